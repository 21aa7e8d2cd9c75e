// SPDX-License-Identifier: MIT
// The rules that hold for every kind of model file: of what is asked for, and of what comes out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vkrope/model.hpp"

namespace vkrope {

/// Fails for a query that contradicts itself, whatever the model.
void check_query(const ModelQuery& query);

/// Fails where numbers that are right one by one make frequencies or factors that no table can
/// hold.
///
/// turning    the first so many pairs have a frequency; the others turn by 0
/// base       that they were made of, and how the file calls it
void require_usable(const Rotation& rotation, std::size_t turning, double base,
                    const char* base_name);

/// Keeps as many warnings as people read, and says how many there were beyond.
void shorten(std::vector<std::string>& warnings);

}  // namespace vkrope
