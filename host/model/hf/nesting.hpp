// SPDX-License-Identifier: MIT
// The objects of a configuration: the language model's own one, those around it, and the keys in
// them that no reader reads.
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
    Scope config;   ///< its own object: the document, or one inside it
    Scopes around;  ///< the enclosing objects, the document first; empty if it is the document
};

LanguageModel language_model(const json& document);

/// Whether a key is the name of an object that may hold a language model; ignored_around() names
/// those that are not read.
bool is_nested_config(const std::string& key);

/// Warnings for what is outside the language model's own object and is not read, with both values
/// if they differ: other objects of language models, and keys that would shape the rotation if they
/// were inside.
std::vector<std::string> ignored_around(const LanguageModel& model);

// ---- Keys that no reader reads: what their values say, and where they are ----

/// Whether a value asks for a scaling: 1, and what turns a feature off, do not.
bool asks_for_scaling(const json& value);

/// Whether a value is a section like rope_scaling, or the name of a scaling.
bool says_a_scaling(const json& value);

using VisitKey = std::function<void(const Scope&, const std::string& key, const json&)>;

/// Calls `visit` for each key in the objects and lists that the value of `field` is or holds, at
/// any depth, which nobody reads. Objects that describe another part of the model are passed over:
/// towers, weights that are quantised, labels.
void visit_inside(const Field& field, const VisitKey& visit);

/// For objects that no language model has: warns of each key that says something of RoPE, a scaling
/// or norms, and that is not among those that are `read`, in objects inside it too. Fails with
/// not_supported for a scaling. Returns whether some key asks for norms.
bool warn_of_unread(const Scope& scope, std::initializer_list<const char*> read,
                    Warnings& warnings);

}  // namespace vkrope
