// SPDX-License-Identifier: MIT
// Computes the orthonormal Hadamard transform of blocks of 2^levels channels, in Sylvester's order.
// Needs element.glsl. Declares no binding, push constant or workgroup size.
//
// Level i, with i ascending, replaces the channels a and b, whose numbers differ only in bit i (0
// in a), by a + b and a - b. Levels below the size of a unit stay inside it. The other levels
// combine several units: vkrope_butterflies combines channels at the stride of a level,
// vkrope_butterfly two units. One product with vkrope_hadamard_factor follows the last level.
#ifndef VKROPE_HADAMARD_GLSL
#define VKROPE_HADAMARD_GLSL

#ifndef VKROPE_ELEMENT_GLSL
#error "hadamard.glsl: include interface.h and element.glsl first"
#endif

// Applies the levels inside a unit of n elements.
Unit vkrope_butterflies(const uint n, const uint levels, Unit u) {
    if (n >= 2 && levels >= 1) {
        const vec4 even = vec4(u.a.xz, u.b.xz), odd = vec4(u.a.yw, u.b.yw);
        precise vec4 sum = even + odd;
        precise vec4 difference = even - odd;
        u.a = vec4(sum.x, difference.x, sum.y, difference.y);
        u.b = vec4(sum.z, difference.z, sum.w, difference.w);
    }
    if (n >= 4 && levels >= 2) {
        const vec4 low = vec4(u.a.x, u.a.y, u.b.x, u.b.y), high = vec4(u.a.z, u.a.w, u.b.z, u.b.w);
        precise vec4 sum = low + high;
        precise vec4 difference = low - high;
        u.a = vec4(sum.x, sum.y, difference.x, difference.y);
        u.b = vec4(sum.z, sum.w, difference.z, difference.w);
    }
    if (n == 8 && levels >= 3) {
        precise vec4 sum = u.a + u.b;
        precise vec4 difference = u.a - u.b;
        u = Unit(sum, difference);
    }
    return u;
}

// Returns one unit of a butterfly of two: that with the level's bit if `upper`, else the other.
Unit vkrope_butterfly(const bool upper, const Unit own, const Unit other) {
    precise vec4 sum_a = own.a + other.a;
    precise vec4 sum_b = own.b + other.b;
    precise vec4 difference_a = other.a - own.a;
    precise vec4 difference_b = other.b - own.b;
    return vkrope_either(upper, Unit(difference_a, difference_b), Unit(sum_a, sum_b));
}

// Returns the f32 nearest to 2^(-levels / 2): a power of two, times sqrt(1/2) if `levels` is odd.
float vkrope_hadamard_factor(const uint levels) {
    return uintBitsToFloat(((levels & 1u) == 0 ? 0x3f800000u : 0x3f3504f3u) -
                           ((levels >> 1) << 23));
}

// The number of levels inside a unit of n elements.
#define VKROPE_UNIT_LEVELS(n) ((n) == 8 ? 3u : (n) == 4 ? 2u : (n) == 2 ? 1u : 0u)

#endif
