// SPDX-License-Identifier: MIT
// The text in a .npy header: a Python dict literal with three keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/regular_file.hpp"

namespace vkrope::npy {

using Error = tools::FileError;

inline constexpr std::size_t max_rank = 8;

struct Dict {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::uint64_t> shape;
};

// Reads {'descr': '...', 'fortran_order': False, 'shape': (1, 2)} with the keys in any order,
// spaces between any two tokens, an optional comma at the end, and nothing but white space after
// it. Throws Error for anything else.
Dict parse_dict(std::string_view text);

}  // namespace vkrope::npy
