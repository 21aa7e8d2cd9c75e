// SPDX-License-Identifier: MIT
// Finds the rows of a tensor in memory and reads elements.
#pragma once

#include <cstring>
#include <limits>

#include "verify/oracle/element.hpp"
#include "verify/oracle/oracle.hpp"

namespace vkrope::oracle {

// Result of row_of() for a token whose slot is not in the cache.
inline constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

bool has_row(const Cache& cache, std::int64_t slot);

// Returns the first element of a row, or `nowhere`.
std::uint64_t row_of(const Tensor& tensor, const Place& place);

// Returns the bits of element `index`.
inline std::uint32_t load(const void* elements, std::size_t bytes, std::uint64_t index) {
    if (bytes == 4) {
        std::uint32_t bits;
        std::memcpy(&bits, static_cast<const char*>(elements) + index * 4, 4);
        return bits;
    }
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(elements) + index * 2, 2);
    return bits;
}

// Returns the table of a type, which is computed at the first use.
const ElementTable& table_of(Type type);

// Throws std::invalid_argument unless `holds`.
void require(bool holds, const char* rule);

// Throws std::invalid_argument unless input and output have the same shape, and no slot of the
// output is used twice.
void check_tensors(const Tensor& in, const Tensor& out);

}  // namespace vkrope::oracle
