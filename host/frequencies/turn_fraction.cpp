// SPDX-License-Identifier: MIT
// Converts radians to turns in integers, so that the angle loses no digits before it is reduced
// modulo one turn.
#include <array>
#include <cmath>

#include "vkrope/vkrope.hpp"

namespace vkrope {
namespace {

// 2^192 / (2 pi), truncated, in 32-bit limbs, least significant first: every compiler can multiply
// these exactly.
constexpr std::array<std::uint32_t, 6> inverse_two_pi = {0x4f10e410, 0x36d8a566, 0x7d4d3770,
                                                         0x7f09d5f4, 0x9391054a, 0x28be60db};

using Product = std::array<std::uint32_t, 8>;

Product times_inverse_two_pi(std::uint64_t mantissa) noexcept {
    const std::array<std::uint32_t, 2> factor = {std::uint32_t(mantissa),
                                                 std::uint32_t(mantissa >> 32)};
    Product product = {};
    for (std::size_t i = 0; i < factor.size(); ++i) {
        std::uint64_t carry = 0;
        for (std::size_t j = 0; j < inverse_two_pi.size(); ++j) {
            // At most (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
            const std::uint64_t sum = std::uint64_t{factor[i]} * inverse_two_pi[j] +
                                      product[i + j] + carry;
            product[i + j] = std::uint32_t(sum);
            carry = sum >> 32;
        }
        product[i + inverse_two_pi.size()] = std::uint32_t(carry);
    }
    return product;
}

// Returns bits [first, first + 64) of `product`; bits beyond its end are 0.
std::uint64_t bits_from(const Product& product, std::size_t first) noexcept {
    const auto limb = [&](std::size_t index) -> std::uint64_t {
        return index < product.size() ? product[index] : 0;
    };
    const std::size_t index = first / 32;
    const std::size_t shift = first % 32;
    const std::uint64_t low = limb(index) | limb(index + 1) << 32;
    return shift == 0 ? low : low >> shift | limb(index + 2) << (64 - shift);
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

uint64_t vkrope_turn_fraction(double inv_freq) {
    const double magnitude = std::fabs(inv_freq);
    if (!(magnitude < 0x1p11)) return 0;  // violates the contract, as does a NaN
    int exponent = 0;
    const auto mantissa = std::uint64_t(std::ldexp(std::frexp(magnitude, &exponent), 53));
    // inv_freq = mantissa * 2^(exponent - 53); the constant has 192 fractional bits, the result 64.
    const auto first = std::size_t(192 - 64 + 53 - exponent);
    const std::uint64_t fraction = bits_from(times_inverse_two_pi(mantissa), first);
    return inv_freq < 0 ? 0 - fraction : fraction;
}
