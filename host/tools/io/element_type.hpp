// SPDX-License-Identifier: MIT
// Conversions between the names of an element type in the library and in .npy files.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/npy.hpp"
#include "verify/definition.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// Maps bf16 to <u2: .npy has no bfloat16, and its users store the bits. Quantised types are bytes.
npy::Type npy_type(Element element) noexcept;

// The inverse of npy_type(); none for types that are not an Element.
std::optional<Element> element_of(npy::Type type) noexcept;

// The type of scales, which are bytes if they are UE8M0.
constexpr npy::Type npy_type(ScaleType scales) noexcept {
    return scales == VKROPE_SCALE_TYPE_UE8M0 ? npy::Type::u1 : npy::Type::f4;
}

// Appends `value`, rounded to nearest even, in the stored form.
void append_element(std::vector<std::byte>& bytes, Element element, double value);

}  // namespace vkrope::tools
