// SPDX-License-Identifier: MIT
// One f32 operation each, rounded to nearest even. A double holds enough digits that rounding its
// result again changes nothing; and no compiler fuses two operations with a conversion between
// them.
#pragma once

namespace vkrope::oracle {

inline float product(float a, float b) {
    return static_cast<float>(double{a} * double{b});
}
inline float sum(float a, float b) {
    return static_cast<float>(double{a} + double{b});
}
inline float quotient(float a, float b) {
    return static_cast<float>(double{a} / double{b});
}

}  // namespace vkrope::oracle
