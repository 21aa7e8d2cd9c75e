// SPDX-License-Identifier: MIT
// Single f32 operations, rounded to nearest even. A double has enough digits that rounding its
// result again gives the same float, and no compiler fuses two operations across a conversion.
#pragma once

namespace vkrope::oracle {

inline float product(float a, float b) {
    return float(double{a} * double{b});
}
inline float sum(float a, float b) {
    return float(double{a} + double{b});
}
inline float quotient(float a, float b) {
    return float(double{a} / double{b});
}

}  // namespace vkrope::oracle
