// SPDX-License-Identifier: MIT
// The class of a model: what the configuration's model_type says, and the defaults that follow.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/hf/field.hpp"
#include "model/hf/model_types.hpp"

namespace vkrope {

struct ModelClass {
    ModelType type;              ///< llama's, with a null name, unless the table has a row
    std::string name = "llama";  ///< as in messages
    Field unknown;               ///< a model_type that the table does not have

    /// The model_type as in messages.
    std::string shown_type() const;

    /// The warning that a field is missing and that the default of this class is assumed.
    std::string assumed(const char* field, double value) const;
};

/// Reads the model_type of the language model, or else of the whole document. Fails for classes
/// whose rotation is not supported.
///
/// config  the language model's own object
/// top     where its numbers are
ModelClass model_class(const nlohmann::json& whole, const Scope& config, const Scopes& top,
                       std::vector<std::string>& warnings);

/// Whether a model of a class with latent attention says that it has none.
bool without_latent_attention(const Scopes& top);

}  // namespace vkrope
