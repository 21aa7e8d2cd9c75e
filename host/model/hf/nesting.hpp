// SPDX-License-Identifier: MIT
// Finds the language model's own object in a multi-modal configuration, and the objects around it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/field.hpp"

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

}  // namespace vkrope
