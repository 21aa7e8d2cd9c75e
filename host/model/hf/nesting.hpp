// SPDX-License-Identifier: MIT
// Finds the objects of a configuration: the language model's own object, the objects around it, and
// the keys in these objects that are not read.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/key_words.hpp"

namespace vkrope {

struct LanguageModel {
    Scope config;   ///< the model's own object: the document or an object inside it
    Scopes around;  ///< the enclosing objects, the document first; empty if it is the document
};

LanguageModel language_model(const json& document);

/// Returns whether a key is the name of an object that may contain a language model.
/// ignored_around() warns of those that are not read.
bool is_nested_config(const std::string& key);

/// Returns warnings for unread values outside the language model's own object, with both values if
/// they differ: other objects of language models, and keys that would affect the rotation inside
/// the object.
std::vector<std::string> ignored_around(const LanguageModel& model);

// ---- Unread keys: their values and places ----

/// Returns whether a value enables a scaling. 1 and values that turn a feature off do not.
bool asks_for_scaling(const json& value);

/// Returns whether a value is a section like rope_scaling, or the name of a scaling.
bool says_a_scaling(const json& value);

using VisitKey = std::function<void(const Scope&, const std::string& key, const json&)>;

/// Calls `visit` for each unread key in the value of `field`, at any depth. Skips objects that
/// describe another part of the model: towers, quantised weights, labels.
void visit_inside(const Field& field, const VisitKey& visit);

/// Warns of each key in an object that no language model has, if the key concerns RoPE, a scaling
/// or norms and is not in `read`, at any depth. Fails with not_supported for a scaling. Returns
/// whether some key enables norms.
bool warn_of_unread(const Scope& scope, std::initializer_list<const char*> read,
                    Warnings& warnings);

}  // namespace vkrope
