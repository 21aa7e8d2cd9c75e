// SPDX-License-Identifier: MIT
// Where in a multi-modal configuration the language model's own object is, and what lies around it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config_field.hpp"

namespace vkrope {

struct LanguageModel {
    Scope config;   ///< its own object: the document, or one inside it
    Scopes around;  ///< the objects that it lies in, the document first; empty where it is the
                    ///< document
};

LanguageModel language_model(const nlohmann::json& document);

/// Warnings that name what is said beside the language model's own object and not read, with both
/// values where they differ: other objects of language models, and keys that would shape the
/// rotation if they stood inside.
std::vector<std::string> ignored_around(const LanguageModel& model);

}  // namespace vkrope
