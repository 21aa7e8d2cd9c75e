// SPDX-License-Identifier: MIT
#include "io/element_type.hpp"

#include "meaning.hpp"

namespace vkrope::tools {
namespace {

struct ElementNames {
    Element element;
    oracle::Type reference;
    npy::Type npy;
};
constexpr ElementNames names[] = {{VKROPE_F32, oracle::Type::f32, npy::Type::f4},
                                  {VKROPE_F16, oracle::Type::f16, npy::Type::f2},
                                  {VKROPE_BF16, oracle::Type::bf16, npy::Type::u2}};
static_assert(names[static_cast<std::size_t>(VKROPE_BF16)].element == VKROPE_BF16,
              "rows are in the order of Element");

}  // namespace

oracle::Type reference_type(Element element) noexcept {
    return names[static_cast<std::size_t>(element)].reference;
}

oracle::Store reference_store(Element element) noexcept {
    static_assert(static_cast<int>(VKROPE_Q5_1) - static_cast<int>(VKROPE_E4M3FN) ==
                      static_cast<int>(oracle::Store::q5_1),
                  "quantised types are in one order");
    return static_cast<oracle::Store>(static_cast<int>(element) - static_cast<int>(VKROPE_E4M3FN));
}

npy::Type npy_type(Element element) noexcept {
    if (is_quantised(element)) {
        return npy::Type::u1;
    }
    return names[static_cast<std::size_t>(element)].npy;
}

std::optional<Element> element_of(npy::Type type) noexcept {
    for (const ElementNames& row : names) {
        if (row.npy == type) {
            return row.element;
        }
    }
    return std::nullopt;
}

void append_element(std::vector<std::byte>& bytes, Element element, double value) {
    const std::uint32_t bits = oracle::narrow(reference_type(element), value);
    for (std::uint32_t byte = 0; byte < element_bytes(element); ++byte) {
        bytes.push_back(static_cast<std::byte>(bits >> (8 * byte) & 0xff));
    }
}

}  // namespace vkrope::tools
