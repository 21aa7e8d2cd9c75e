// SPDX-License-Identifier: MIT
#include "verify/elements.hpp"

#include <cstring>
#include <random>

#include "base/meaning.hpp"
#include "verify/definition.hpp"

namespace vkrope::verify {

std::uint32_t stored(Element element, const Bytes& bytes, std::size_t index) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[index * element_bytes(element)], element_bytes(element));
    return bits;
}

void store(Element element, Bytes& bytes, std::size_t index, std::uint32_t bits) {
    std::memcpy(&bytes[index * element_bytes(element)], &bits, element_bytes(element));
}

float value(Element element, const Bytes& bytes, std::size_t index) {
    return oracle::widen(type_of(element), stored(element, bytes, index));
}

void set(Element element, Bytes& bytes, std::size_t index, long double number) {
    store(element, bytes, index, oracle::narrow(type_of(element), number));
}

Bytes random_elements(Element element, std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(stored_bytes(element, count));
    if (is_quantised(element)) {
        for (std::byte& byte : bytes) byte = std::byte(random() >> 16);
        const std::size_t fields = !has_blocks(element)                     ? 0
                                   : oracle::has_minimum(store_of(element)) ? 2
                                                                            : 1;
        for (std::size_t block = 0; block < bytes.size(); block += element_bytes(element)) {
            for (std::size_t field = 0; field < fields; ++field) {
                const std::uint32_t bits = oracle::narrow(
                    oracle::Type::f16, (static_cast<long double>(random()) / 0x1p32L - 0.5L) / 16);
                std::memcpy(&bytes[block + 2 * field], &bits, 2);
            }
        }
        return bytes;
    }
    for (std::size_t i = 0; i < count; ++i)
        set(element, bytes, i, (static_cast<long double>(random()) / 0x1p32L - 0.5L) * 8);
    return bytes;
}

Bytes random_bits(Element element, std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(count * element_bytes(element));
    for (std::size_t i = 0; i < count; ++i) store(element, bytes, i, std::uint32_t(random()));
    return bytes;
}

}  // namespace vkrope::verify
