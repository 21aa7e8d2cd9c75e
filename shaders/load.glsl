// SPDX-License-Identifier: MIT
// Loads units of a tensor. tensor.glsl includes this file for the units that rotate and for those
// that are copied, which may be wider. Needs interface.h, element.glsl and the macros and functions
// of tensor.glsl. Define these macros before each include, which undefines them:
//
//   VKROPE_LOAD_UNIT      name of the function that loads a unit
//   VKROPE_LOAD_ACCESS    a constant: access_*
//   VKROPE_LOAD_ELEMENTS  a constant: elements per unit

#if !defined(VKROPE_LOAD_UNIT) || !defined(VKROPE_LOAD_ACCESS) || !defined(VKROPE_LOAD_ELEMENTS)
#error "load.glsl: define VKROPE_LOAD_UNIT, VKROPE_LOAD_ACCESS and VKROPE_LOAD_ELEMENTS"
#endif

// Loads a unit that starts at element `at`.
Words VKROPE_LOAD_UNIT(uint at) {
    Words w = Words(uvec4(0), uvec4(0));
    const bool f32 = T(element_in) == element_f32;
    if (VKROPE_LOAD_ACCESS == access_wide) {
        w.a = T(in_wide)[f32 ? at / 4 : at / 8];
        if (f32 && VKROPE_LOAD_ELEMENTS == 8) w.b = T(in_wide)[at / 4 + 1];
    } else if (VKROPE_LOAD_ACCESS == access_pair) {
        w.a.xy = T(in_pair)[f32 ? at / 2 : at / 4];
        if (f32 && VKROPE_LOAD_ELEMENTS == 4) w.a.zw = T(in_pair)[at / 2 + 1];
    } else if (f32) {
        w.a.x = T(in_word)[at];
        if (VKROPE_LOAD_ELEMENTS >= 2) w.a.y = T(in_word)[at + 1];
        if (VKROPE_LOAD_ELEMENTS >= 4) w.a.zw = uvec2(T(in_word)[at + 2], T(in_word)[at + 3]);
    } else if (VKROPE_LOAD_ACCESS == access_word) {
        w.a.x = T(in_word)[at / 2];
        if (VKROPE_LOAD_ELEMENTS >= 4) w.a.y = T(in_word)[at / 2 + 1];
    } else {
        w.a.x = (T(load_shared)(at / 2) >> (16 * (at & 1u))) & 0xffffu;
    }
    return w;
}

#undef VKROPE_LOAD_UNIT
#undef VKROPE_LOAD_ACCESS
#undef VKROPE_LOAD_ELEMENTS
