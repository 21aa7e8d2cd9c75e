// SPDX-License-Identifier: MIT
// Declares the query for one RoPE of a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope {

// A checked vkrope_model_query with defaults filled in.
struct Query {
    std::string_view layer_type = {};  // empty: not set
    std::string_view tower = "text";
    std::uint64_t seq_len = 0;
    int layer = -1;  // -1: not set
    Pairing pairing = VKROPE_PAIRING_NONE;
    std::vector<std::string> ignore = {};  // names of keys
};

// Checks a query. Fails if it contradicts itself, whatever the model.
Query checked(const ModelQuery& query);

}  // namespace vkrope
