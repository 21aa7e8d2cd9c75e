// SPDX-License-Identifier: MIT
// Where the rows of a tensor lie, and how its elements are read.
#pragma once

#include <limits>

#include "verify/oracle/element.hpp"
#include "verify/oracle/oracle.hpp"

namespace vkrope::oracle {

/// row_of() for a token whose slot is not in the cache.
inline constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

bool has_row(const Cache& cache, std::int64_t slot);

/// First element of a row, or nowhere.
std::uint64_t row_of(const Tensor& tensor, const Place& place);

/// The bits of element `index`.
std::uint32_t load(const void* elements, std::size_t bytes, std::uint64_t index);

/// Element tables are made when first needed.
const ElementTable& table_of(Type type);

/// Throws std::invalid_argument if a rule does not hold.
void require(bool holds, const char* rule);

/// Throws std::invalid_argument unless input and output have the same shape, only the output has
/// slots, and no slot is used twice.
void check_tensors(const Tensor& in, const Tensor& out);

}  // namespace vkrope::oracle
