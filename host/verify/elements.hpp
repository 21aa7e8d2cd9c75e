// SPDX-License-Identifier: MIT
// Reads, writes and fills arrays of stored elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::verify {

std::uint32_t stored(Element element, const Bytes& bytes, std::size_t index);
void store(Element element, Bytes& bytes, std::size_t index, std::uint32_t bits);
// value() returns a stored element; set() stores the nearest representable value.
float value(Element element, const Bytes& bytes, std::size_t index);
void set(Element element, Bytes& bytes, std::size_t index, long double value);

// Return `count` elements: uniform in [-4, 4], of a quantised type random codes with scales that
// are small numbers; or random bits with either sign and all magnitudes.
Bytes random_elements(Element element, std::size_t count, std::uint32_t seed);
Bytes random_bits(Element element, std::size_t count, std::uint32_t seed);

template <class Number>
Bytes bytes_of(const std::vector<Number>& numbers) {
    const auto* first = reinterpret_cast<const std::byte*>(numbers.data());
    return {first, first + numbers.size() * sizeof(Number)};
}

}  // namespace vkrope::verify
