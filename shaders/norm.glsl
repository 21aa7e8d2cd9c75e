// SPDX-License-Identifier: MIT
// Computes norms: sums over a row, 1/sqrt, bias, clip and scale. Uses only additions, subtractions,
// multiplications and integers, so that every device computes the same bits. Needs element.glsl and
// pairing.glsl. Declares no binding, push constant or workgroup size.
//
// A sum over a row is a tree over the channel number: level i adds channels c and c + 2^i; channels
// beyond the row are +0. A unit is a complete subtree, so that the sum depends neither on the unit
// nor on the assignment of units to lanes.
#ifndef VKROPE_NORM_GLSL
#define VKROPE_NORM_GLSL

// Each sum is computed twice, from values and from values times 2^-80. The second sum replaces the
// first if the first is not finite. The second is finite, because the sum of 2^28 squares of
// numbers below 2^48 is. Numbers that the scaling flushes to 0 are too small to affect this sum.
const float vkrope_small = 8.271806125530277e-25f;  // 2^-80

// Terms of the sums over a row. An RMS norm sums squares; a layer norm sums values, differences
// from their mean, and the squares of the differences.
const uint sum_values = 0, sum_differences = 1, sum_squares = 2;

// A normalised channel is ((x * scale - mean) * scale_d - rest) * root. An RMS norm has no mean and
// no rest. `scale` and `scale_d` are 1, or 2^-80 where the sums would overflow.
struct VkropeNorm {
    float scale, mean, scale_d, rest, root;
};

VkropeNorm vkrope_no_norm() {
    VkropeNorm norm;
    norm.scale = norm.scale_d = norm.root = 1.0;
    norm.mean = norm.rest = 0.0;
    return norm;
}

// Number of levels of a tree over n leaves: log2(n), rounded up.
#define VKROPE_LEVELS(n) \
    ((n) <= 1      ? 0   \
     : (n) <= 2    ? 1   \
     : (n) <= 4    ? 2   \
     : (n) <= 8    ? 3   \
     : (n) <= 16   ? 4   \
     : (n) <= 32   ? 5   \
     : (n) <= 64   ? 6   \
     : (n) <= 128  ? 7   \
     : (n) <= 256  ? 8   \
     : (n) <= 512  ? 9   \
     : (n) <= 1024 ? 10  \
     : (n) <= 2048 ? 11  \
                   : 12)

// Returns the sum of the n elements of a unit.
float vkrope_unit_sum(const uint n, const Unit u) {
    float sum = u.a.x;
    if (n == 8) {
        precise vec4 pairs = vec4(u.a.xz, u.b.xz) + vec4(u.a.yw, u.b.yw);
        precise float all = (pairs.x + pairs.y) + (pairs.z + pairs.w);
        sum = all;
    } else if (n == 4) {
        precise float all = (u.a.x + u.a.y) + (u.a.z + u.a.w);
        sum = all;
    } else if (n == 2) {
        precise float all = u.a.x + u.a.y;
        sum = all;
    }
    return sum;
}

Unit vkrope_squares(const Unit u) {
    precise vec4 a = u.a * u.a;
    precise vec4 b = u.b * u.b;
    return Unit(a, b);
}

Unit vkrope_sum(const Unit u, const Unit v) {
    precise vec4 a = u.a + v.a;
    precise vec4 b = u.b + v.b;
    return Unit(a, b);
}

Unit vkrope_product(const Unit u, const Unit v) {
    precise vec4 a = u.a * v.a;
    precise vec4 b = u.b * v.b;
    return Unit(a, b);
}

// Returns u * factor - less.
Unit vkrope_centred(const Unit u, const float factor, const float less) {
    precise vec4 a = u.a * factor - less;
    precise vec4 b = u.b * factor - less;
    return Unit(a, b);
}

// Clips to +-most; a NaN stays a NaN.
vec4 vkrope_clip_four(const vec4 x, const float most) {
    const float least = uintBitsToFloat(floatBitsToUint(most) | 0x80000000u);
    const vec4 below = mix(x, vec4(most), greaterThan(x, vec4(most)));
    return mix(below, vec4(least), lessThan(x, vec4(least)));
}
Unit vkrope_clip(const Unit u, const float most) {
    return Unit(vkrope_clip_four(u.a, most), vkrope_clip_four(u.b, most));
}

// Returns 1 / sqrt(v) for v from 2^-100 on, within 2 * 2^-24 of it; 0 for infinity, NaN for a NaN.
// With v = m 4^e and m in [1, 4), two Newton steps refine a seed of 1 / sqrt(m), a third one adds
// the residual, and integers apply 2^-e.
float vkrope_inverse_root(const float v) {
    const uint bits = floatBitsToUint(v);
    const uint exponent = bits >> 23, odd = (exponent & 1u) ^ 1u;  // exponent of m: 0 or 1
    const uint e = (exponent - 127u - odd) << 22;                  // e, in the bits of an exponent
    const float m = uintBitsToFloat((bits & 0x7fffffu) | ((127u + odd) << 23));
    precise float half_m = m * 0.5f;
    precise float y = uintBitsToFloat(0x5f375a86u - (floatBitsToUint(m) >> 1));
    y = y * (1.5f - (half_m * y) * y);
    y = y * (1.5f - (half_m * y) * y);
    y = y + y * (0.5f - (half_m * y) * y);
    float root = uintBitsToFloat(floatBitsToUint(y) - e);
    if (bits == 0x7f800000u) root = 0.0;
    if (bits > 0x7f800000u) root = v;
    return root;
}

bool vkrope_is_finite(const float x) {
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}

// Sets `scale` and `mean` from the two sums of a row and from 1 / the length of the row.
void vkrope_set_mean(inout VkropeNorm norm, const vec2 sums, const float inverse_n) {
    const bool finite = vkrope_is_finite(sums.x);
    precise float mean = (finite ? sums.x : sums.y) * inverse_n;
    norm.scale = finite ? 1.0 : vkrope_small;
    norm.mean = mean;
}

// Sets `scale_d`, `rest` and `root` from the sums of d = x * scale - mean and of their squares. For
// an RMS norm the sums of d are 0. Where values are scaled, eps is too small to matter, and 2^-100
// in its place keeps the root of a row without variance finite.
void vkrope_set_root(inout VkropeNorm norm, const vec2 sums, const vec2 squares,
                     const float inverse_n, const float eps) {
    const bool overflows = floatBitsToUint(squares.x) == 0x7f800000u;
    const bool scaled = overflows || norm.scale != 1.0;
    precise float rest = (overflows ? sums.y : sums.x) * inverse_n;
    precise float variance = (overflows ? squares.y : squares.x) * inverse_n - rest * rest;
    if (variance < 0.0) variance = 0.0;
    precise float v = variance + (scaled ? 7.888609052210118e-31f : eps);
    norm.scale_d = overflows ? vkrope_small : 1.0;
    norm.rest = rest;
    norm.root = vkrope_inverse_root(v);
}

// ---- The tree over the units of a row, or over the heads of a token ----

// For each level, the sum of a left subtree that waits for the right subtree. Loop counters with a
// constant range index the array, so that it needs no memory once loops are unrolled.
float vkrope_waiting[12];

// Adds leaf `index`, in ascending order. With the last leaf, returns the whole sum.
float vkrope_tree_add(const uint levels, const uint index, const float leaf) {
    float sum = leaf;
    bool carries = true;
    VKROPE_UNROLL for (uint level = 0; level < levels; ++level) {
        precise float both = vkrope_waiting[level] + sum;
        const bool right = ((index >> level) & 1u) != 0;
        if (carries && !right) vkrope_waiting[level] = sum;
        carries = carries && right;
        if (carries) sum = both;
    }
    return sum;
}

#endif
