// SPDX-License-Identifier: MIT
#include "verify/oracle/element.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace vkrope::oracle {
namespace {

// An IEEE 754 binary interchange format, or bf16, which is structured in the same way.
struct Format {
    int exponent_bits = 0, fraction_bits = 0;

    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr std::uint32_t infinity() const {
        return ((1u << exponent_bits) - 1) << fraction_bits;
    }
    constexpr std::uint32_t sign() const { return 1u << (exponent_bits + fraction_bits); }
};

constexpr Format format_of(Type type) {
    switch (type) {
        case Type::f32: return {8, 23};
        case Type::f16: return {5, 10};
        default: return {8, 7};
    }
}

// Returns the value of a magnitude (no sign bit). For infinity this is the power of two above the
// largest finite value, the centre of the interval that rounds to infinity.
double magnitude_value(Format format, std::uint32_t magnitude) {
    const auto exponent = int(magnitude >> format.fraction_bits);
    const std::uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
    const std::uint32_t hidden = exponent > 0 ? 1u << format.fraction_bits : 0;
    return std::ldexp(double(hidden + fraction),
                      (exponent > 0 ? exponent : 1) - format.bias() - format.fraction_bits);
}

}  // namespace

float widen(Type type, std::uint32_t bits) {
    if (type == Type::f32) return std::bit_cast<float>(bits);
    const Format format = format_of(type);
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    const bool negative = (bits & format.sign()) != 0;
    float value = std::numeric_limits<float>::quiet_NaN();
    if (magnitude < format.infinity())
        value = float(magnitude_value(format, magnitude));
    else if (magnitude == format.infinity())
        value = std::numeric_limits<float>::infinity();
    return negative ? -value : value;
}

std::uint32_t narrow(Type type, long double value) {
    const Format format = format_of(type);
    const std::uint32_t sign = std::signbit(value) ? format.sign() : 0;
    if (std::isnan(value)) return sign | format.infinity() | 1u << (format.fraction_bits - 1);
    if (std::isinf(value)) return sign | format.infinity();
    const long double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    // Counts the magnitude in units in the last place of the result: 2^fraction_bits to
    // 2^(fraction_bits + 1), or fewer for a subnormal. Scaling by a power of two is exact.
    const int lowest = 1 - format.bias();
    const int exponent = std::max(std::ilogb(magnitude), lowest);
    if (exponent > format.bias()) return sign | format.infinity();
    const long double scaled = std::ldexp(magnitude, format.fraction_bits - exponent);
    auto units = std::uint32_t(scaled);
    const long double rest = scaled - units;
    if (rest > 0.5L || (rest == 0.5L && units % 2 == 1)) ++units;
    // The hidden bit adds the 1 that the exponent field lacks; a carry increments the exponent or
    // gives infinity.
    return sign | ((std::uint32_t(exponent - lowest) << format.fraction_bits) + units);
}

ElementTable::ElementTable(Type type) {
    if (type == Type::f32) return;
    cells_.resize(1u << 16);
    for (std::uint32_t bits = 0; bits < cells_.size(); ++bits)
        cells_[bits] = small_cell(type, bits);
}

ElementTable::Cell ElementTable::f32_cell(std::uint32_t bits) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double overflow = 0x1.ffffffp127;  // largest finite f32 plus half an ulp
    const float value = std::bit_cast<float>(bits);
    if (std::isinf(value))
        return value > 0 ? Cell{overflow, infinity, value} : Cell{-infinity, -overflow, value};
    return {double(value), double(value), value};
}

ElementTable::Cell ElementTable::small_cell(Type type, std::uint32_t bits) {
    const Format format = format_of(type);
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    Cell cell;
    cell.value = oracle::widen(type, bits);
    if (magnitude > format.infinity()) return cell;  // no number rounds to a NaN
    const double centre = magnitude_value(format, magnitude);
    const double below = magnitude == 0 ? -magnitude_value(format, 1)
                                        : magnitude_value(format, magnitude - 1);
    cell.low = (below + centre) / 2;
    cell.high = magnitude == format.infinity()
                    ? std::numeric_limits<double>::infinity()
                    : (centre + magnitude_value(format, magnitude + 1)) / 2;
    if ((bits & format.sign()) != 0) cell = {-cell.high, -cell.low, cell.value};
    return cell;
}

}  // namespace vkrope::oracle
