// SPDX-License-Identifier: MIT
#include "conformance/builtin/symptoms.hpp"

#include <cmath>
#include <limits>

namespace vkrope::conformance {
namespace {

// Returns a b + c d. The products are volatile, so that no compiler fuses them with the sum.
float summed(float a, float b, float c, float d) {
    const volatile float first = a * b, second = c * d;
    return first + second;
}

struct Pair {
    float y[2];
};
Pair rotated(float x0, float x1, const CosSin& angle) {
    return {{summed(x0, angle.cos, -x1, angle.sin), summed(x0, angle.sin, x1, angle.cos)}};
}

bool is_subnormal(float x) {
    return x != 0 && std::fabs(x) < std::numeric_limits<float>::min();
}

std::uint32_t bits_of(oracle::Type type, float x) {
    return oracle::narrow(type, static_cast<long double>(x));
}

// Returns true if the value was truncated where rounding to nearest would have rounded up.
bool is_cut(const WrongElement& element, float got) {
    const float nearest = oracle::widen(element.type, bits_of(element.type, element.expected));
    return element.type != oracle::Type::f32 && std::fabs(nearest) > std::fabs(element.expected) &&
           got == oracle::widen(element.type, bits_of(element.type, element.expected) - 1);
}

}  // namespace

std::string symptom_of(const WrongElement& element) {
    const float got = oracle::widen(element.type, element.got), expected = element.expected;
    if (element.got == element.before) return "nothing was written there";
    if (std::isnan(expected) != std::isnan(got))
        return std::isnan(expected) ? "a NaN was lost" : "";
    if (std::isinf(expected) && !std::isinf(got)) return "an infinity was lost";
    if (expected == 0 && got == 0) return "the sign of a zero was lost";
    if (got == 0)
        return is_subnormal(expected) ? "a subnormal number was flushed" : "a 0 was written";
    return is_cut(element, got) ? "the result was rounded toward zero" : "";
}

std::string symptom_of(const WrongElement& element, const WrongRotation& rotation) {
    if (std::string symptom = symptom_of(element); !symptom.empty()) return symptom;
    const auto& [x0, x1, member, angle, angle_at] = rotation;
    const auto is = [&element](float y) { return element.got == bits_of(element.type, y); };
    const float a = x0, b = member == 0 ? angle.cos : angle.sin, c = member == 0 ? -x1 : x1,
                d = member == 0 ? angle.sin : angle.cos;
    const volatile float first = a * b, second = c * d;
    if (is(std::fma(a, b, second)) || is(std::fma(c, d, first)))
        return "a product was fused with the sum";
    if (is(summed(a, b, -c, d))) {
        return member == 0 ? "a sum was computed in place of a difference"
                           : "a difference was computed in place of a sum";
    }
    const Pair once = rotated(x0, x1, angle);
    const auto stored = [&element](float y) {
        return oracle::widen(element.type, bits_of(element.type, y));
    };
    if (is(rotated(stored(once.y[0]), stored(once.y[1]), angle).y[member]))
        return "it was rotated twice";
    // Offsets by one row of a direct table, or of either or both digits of a factored table.
    for (const std::int64_t further : {1, -1, 2048, -2048, 2049, -2049}) {
        if (const std::optional<CosSin> other = angle_at(further);
            other && is(rotated(x0, x1, *other).y[member])) {
            return fmt::format("it has the angle of the position {} {}", std::abs(further),
                               further > 0 ? "further on" : "before");
        }
    }
    const float got = oracle::widen(element.type, element.got);
    const float scale = std::fabs(x0) + std::fabs(x1);
    if (std::fabs(got + element.expected) / scale < 0x1p-20f)
        return "the result has the wrong sign";
    const float away = std::fabs(got - element.expected) / scale;
    if (away > 0x1p-20f && away < 0x1p-8f && element.type == oracle::Type::f32)
        return "the arithmetic has fewer bits than f32";
    return away > 0x1p-6f && std::fabs(got) < std::hypot(x0, x1) ? "it was rotated by another angle"
                                                                 : "";
}

}  // namespace vkrope::conformance
