// SPDX-License-Identifier: MIT
// One element type has three names: the library's, the oracle's and that of .npy files.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "files/npy.hpp"
#include "reference/oracle.hpp"
#include "vkrope/types.hpp"

namespace vkrope::tools {

reference::Type reference_type(Element element) noexcept;

/// bf16 is <u2: .npy has no bfloat16, and its users store the bits.
npy::Type npy_type(Element element) noexcept;

/// The inverse; nothing for types that are no Element.
std::optional<Element> element_of(npy::Type type) noexcept;

/// Appends `value`, rounded to nearest even, as a file stores it.
void append_element(std::vector<std::byte>& bytes, Element element, double value);

}  // namespace vkrope::tools
