// SPDX-License-Identifier: MIT
// Stores units of a tensor in one of its destinations. tensor.glsl includes this file for the first
// destination, for the units that rotate and for those that are copied, and ops.glsl for the second
// destination. Needs interface.h and element.glsl. Define these macros before each include, which
// undefines them:
//
//   VKROPE_STORE_UNIT      name of the function that stores a unit
//   VKROPE_STORE_MERGED    name of the function that replaces some bits of a word
//   VKROPE_STORE_AGAIN     if defined, this function exists already
//   VKROPE_STORE_ACCESS    a constant: access_*
//   VKROPE_STORE_ELEMENTS  a constant: elements per unit
//   VKROPE_STORE_ELEMENT   element_* of the destination
//   VKROPE_STORE_WIDE      the destination as an array of uvec4
//   VKROPE_STORE_PAIR      the destination as an array of uvec2
//   VKROPE_STORE_WORD      the destination as an array of uint

#if !defined(VKROPE_STORE_UNIT) || !defined(VKROPE_STORE_MERGED)
#error "store.glsl: define VKROPE_STORE_UNIT and VKROPE_STORE_MERGED"
#endif
#if !defined(VKROPE_STORE_ACCESS) || !defined(VKROPE_STORE_ELEMENTS)
#error "store.glsl: define VKROPE_STORE_ACCESS and VKROPE_STORE_ELEMENTS"
#endif
#if !defined(VKROPE_STORE_WIDE) || !defined(VKROPE_STORE_PAIR) || !defined(VKROPE_STORE_WORD)
#error "store.glsl: define VKROPE_STORE_WIDE, VKROPE_STORE_PAIR and VKROPE_STORE_WORD"
#endif
#ifndef VKROPE_STORE_ELEMENT
#error "store.glsl: define VKROPE_STORE_ELEMENT"
#endif

#ifndef VKROPE_STORE_AGAIN
// Replaces the bits of `mask`, which no other invocation writes.
void VKROPE_STORE_MERGED(uint at, const uint mask, const uint value) {
    atomicAnd(VKROPE_STORE_WORD[at], ~mask);
    atomicOr(VKROPE_STORE_WORD[at], value);
}
#endif

// Stores a unit that starts at element `at`.
void VKROPE_STORE_UNIT(uint at, const Words w) {
    const bool f32 = VKROPE_STORE_ELEMENT == element_f32;
    if (VKROPE_STORE_ACCESS == access_wide) {
        VKROPE_STORE_WIDE[f32 ? at / 4 : at / 8] = w.a;
        if (f32 && VKROPE_STORE_ELEMENTS == 8) VKROPE_STORE_WIDE[at / 4 + 1] = w.b;
    } else if (VKROPE_STORE_ACCESS == access_pair) {
        VKROPE_STORE_PAIR[f32 ? at / 2 : at / 4] = w.a.xy;
        if (f32 && VKROPE_STORE_ELEMENTS == 4) VKROPE_STORE_PAIR[at / 2 + 1] = w.a.zw;
    } else if (f32) {
        VKROPE_STORE_WORD[at] = w.a.x;
        if (VKROPE_STORE_ELEMENTS >= 2) VKROPE_STORE_WORD[at + 1] = w.a.y;
        if (VKROPE_STORE_ELEMENTS >= 4) {
            VKROPE_STORE_WORD[at + 2] = w.a.z;
            VKROPE_STORE_WORD[at + 3] = w.a.w;
        }
    } else if (VKROPE_STORE_ACCESS == access_word) {
        VKROPE_STORE_WORD[at / 2] = w.a.x;
        if (VKROPE_STORE_ELEMENTS >= 4) VKROPE_STORE_WORD[at / 2 + 1] = w.a.y;
    } else {
        const uint shift = 16 * (at & 1u);
        VKROPE_STORE_MERGED(at / 2, 0xffffu << shift, (w.a.x & 0xffffu) << shift);
    }
}

#undef VKROPE_STORE_UNIT
#undef VKROPE_STORE_MERGED
#undef VKROPE_STORE_AGAIN
#undef VKROPE_STORE_ACCESS
#undef VKROPE_STORE_ELEMENTS
#undef VKROPE_STORE_ELEMENT
#undef VKROPE_STORE_WIDE
#undef VKROPE_STORE_PAIR
#undef VKROPE_STORE_WORD
