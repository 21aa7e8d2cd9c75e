// SPDX-License-Identifier: MIT
// Finds the axis of a pair if tokens have positions on several axes. Needs interface.h, and the
// constants section_order, leftover_axis and section_0 to section_7 (VKROPE_CONSTANTS). Declares no
// binding, push constant or workgroup size.
#ifndef VKROPE_SECTIONS_GLSL
#define VKROPE_SECTIONS_GLSL

const uint vkrope_section_sum = section_0 + section_1 + section_2 + section_3 + section_4 +
                                section_5 + section_6 + section_7;
const uint vkrope_section_bits = section_0 | section_1 | section_2 | section_3 | section_4 |
                                 section_5 | section_6 | section_7;

// 0 if each run of n pairs that starts at a multiple of n, a power of two, has one axis; constant
// if n is constant.
#define VKROPE_AXES_MISFIT(n) \
    ((section_order ^ sections_sequential) | (vkrope_section_bits & ((n)-1)))

uint vkrope_axis_of(const uint pair) {
    const uint m = pair % vkrope_section_sum;
    uint axis = 0, end = section_0;
    if (section_order == sections_sequential) {
        if (m >= end) axis = 1;
        end += section_1;
        if (m >= end) axis = 2;
        end += section_2;
        if (m >= end) axis = 3;
        end += section_3;
        if (m >= end) axis = 4;
        end += section_4;
        if (m >= end) axis = 5;
        end += section_5;
        if (m >= end) axis = 6;
        end += section_6;
        if (m >= end) axis = 7;
    } else {
        axis = m % 3;
        const uint size = axis == 0 ? section_0 : axis == 1 ? section_1 : section_2;
        if (m >= 3 * size) axis = leftover_axis;
    }
    return axis;
}

#endif
