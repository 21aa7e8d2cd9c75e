// SPDX-License-Identifier: MIT
// The RoPE that is asked for.
#pragma once

#include <cstdint>
#include <string_view>

#include "vkrope/vkrope.hpp"

namespace vkrope {

/// vkrope_model_query, checked, with its defaults.
struct Query {
    std::string_view layer_type = {};  ///< empty: not given
    std::string_view tower = "text";
    std::uint64_t seq_len = 0;
    int layer = -1;  ///< -1: not given
    Pairing pairing = VKROPE_PAIRING_NONE;
};

/// Fails for a query that contradicts itself, whatever the model.
Query checked(const ModelQuery& query);

}  // namespace vkrope
