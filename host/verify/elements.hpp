// SPDX-License-Identifier: MIT
// Arrays of elements as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::verify {

std::uint32_t stored(Element element, const Bytes& bytes, std::size_t index);
void store(Element element, Bytes& bytes, std::size_t index, std::uint32_t bits);
/// Read the value of a stored element; store the nearest representable value.
float value(Element element, const Bytes& bytes, std::size_t index);
void set(Element element, Bytes& bytes, std::size_t index, long double value);

/// `count` elements, uniform in [-4, 4], or with random bits: either sign and every magnitude.
Bytes random_elements(Element element, std::size_t count, std::uint32_t seed);
Bytes random_bits(Element element, std::size_t count, std::uint32_t seed);

template <class Number>
Bytes bytes_of(const std::vector<Number>& numbers) {
    const auto* first = reinterpret_cast<const std::byte*>(numbers.data());
    return {first, first + numbers.size() * sizeof(Number)};
}

}  // namespace vkrope::verify
