// SPDX-License-Identifier: MIT
#include "io/element_type.hpp"

#include "base/meaning.hpp"

namespace vkrope::tools {
namespace {

constexpr npy::Type numbers[] = {npy::Type::f4, npy::Type::f2, npy::Type::u2};  // f32, f16, bf16

}  // namespace

npy::Type npy_type(Element element) noexcept {
    return is_quantised(element) ? npy::Type::u1 : numbers[std::size_t(element)];
}

std::optional<Element> element_of(npy::Type type) noexcept {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16})
        if (npy_type(element) == type) return element;
    return std::nullopt;
}

void append_element(std::vector<std::byte>& bytes, Element element, double value) {
    const std::uint32_t bits = oracle::narrow(verify::type_of(element), value);
    for (std::uint32_t byte = 0; byte < element_bytes(element); ++byte)
        bytes.push_back(std::byte(bits >> (8 * byte) & 0xff));
}

}  // namespace vkrope::tools
