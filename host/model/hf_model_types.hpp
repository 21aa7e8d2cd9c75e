// SPDX-License-Identifier: MIT
// What a `model_type` says that the fields of a configuration do not.
#pragma once

#include <string>

#include "vkrope/types.hpp"

namespace vkrope {

/// One row of the table. The defaults are those of the configuration class in transformers, for files that leave a field out.
struct ModelType {
    const char* name = nullptr;
    Pairing pairing = Pairing::half_split;
    double rope_theta = 10000;  ///< 0: versions of the class disagree, so the file has to say it
    double partial_rotary_factor = 1;
    std::uint32_t rotary_dim = 0;  ///< 0: from partial_rotary_factor
    std::uint32_t head_dim = 0;    ///< 0: hidden_size / num_attention_heads
};

/// The row of a model_type; null for one that the table does not have.
const ModelType* find_model_type(const std::string& name);

/// Why the RoPE of a model_type cannot be imported, however plain its fields look; null where it can.
const char* unsupported_model_type(const std::string& name);

}  // namespace vkrope
