// SPDX-License-Identifier: MIT
// Finds the objects of a configuration: the language model's own object, the objects around it, and
// the keys in these objects that are not read.
#pragma once

#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/unread.hpp"

namespace vkrope {

struct LanguageModel {
    Scope config;   // the model's own object: the document or an object inside it
    Scopes around;  // the enclosing objects, the document first; empty if it is the document
};

// Finds the language model: in an object of a known name, or else in the only object that holds
// heads and a key of RoPE.
LanguageModel language_model(const Scope& document);

// Returns warnings for unread values outside the language model's own object, with both values if
// they differ: other objects of language models, and keys that would affect the rotation inside
// the object.
std::vector<std::string> ignored_around(const LanguageModel& model);

// Returns whether a value describes another part of the model: a tower, a draft model, quantised
// weights, labels.
bool is_other_part(const std::string& key, const json& value);

// Judges the unread keys of an object, at any depth, except in other parts of the model.
void judge_unread(const Scope& scope, UnreadKeys& keys);

// Does the same for the objects around the language model's. ignored_around() reports their keys
// that are not objects, or that are read in the language model's own object.
void judge_unread_around(const LanguageModel& model, UnreadKeys& keys);

// Judges the unread keys of an object that is no language model. Returns whether some key
// indicates norms.
bool warn_of_unread(const Scope& scope, const std::string& model, Warnings& warnings);

}  // namespace vkrope
