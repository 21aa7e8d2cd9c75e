// SPDX-License-Identifier: MIT
// Forms and rotates pairs of channels. Needs interface.h and element.glsl. Declares no binding,
// push constant or workgroup size.
//
// `n` is the number of elements in a unit: 1, 2, 4 or 8. Two units of the row, A and B, contain the
// n pairs from `pair` on.
#ifndef VKROPE_PAIRING_GLSL
#define VKROPE_PAIRING_GLSL

// Returns the first channels of A and B, from the start of the window, of pairs [pair, pair + n).
uvec2 vkrope_pair_channels(const uint pairing, const uint rotary_dim, const uint n,
                           const uint pair) {
    return pairing == pairing_half_split ? uvec2(pair, pair + rotary_dim / 2)
                                         : uvec2(2 * pair, 2 * pair + n);
}

// Splits units A and B into the elements x0 and x1 of pairs.
void vkrope_to_pairs(const uint pairing, const uint n, const Unit A, const Unit B, out Unit x0,
                     out Unit x1) {
    if (pairing == pairing_half_split) {
        x0 = A;
        x1 = B;
    } else if (n == 8) {
        x0 = Unit(vec4(A.a.xz, A.b.xz), vec4(B.a.xz, B.b.xz));
        x1 = Unit(vec4(A.a.yw, A.b.yw), vec4(B.a.yw, B.b.yw));
    } else if (n == 4) {
        x0 = Unit(vec4(A.a.xz, B.a.xz), vec4(0));
        x1 = Unit(vec4(A.a.yw, B.a.yw), vec4(0));
    } else if (n == 2) {
        x0 = Unit(vec4(A.a.x, B.a.x, 0, 0), vec4(0));
        x1 = Unit(vec4(A.a.y, B.a.y, 0, 0), vec4(0));
    } else {
        x0 = A;
        x1 = B;
    }
}

// Inverts vkrope_to_pairs.
void vkrope_from_pairs(const uint pairing, const uint n, const Unit y0, const Unit y1, out Unit A,
                       out Unit B) {
    if (pairing == pairing_half_split || n == 1) {
        A = y0;
        B = y1;
    } else if (n == 8) {
        A = Unit(vec4(y0.a.x, y1.a.x, y0.a.y, y1.a.y), vec4(y0.a.z, y1.a.z, y0.a.w, y1.a.w));
        B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.b.y), vec4(y0.b.z, y1.b.z, y0.b.w, y1.b.w));
    } else {
        A = Unit(vec4(y0.a.x, y1.a.x, y0.a.y, y1.a.y), vec4(0));
        B = n == 4 ? Unit(vec4(y0.a.z, y1.a.z, y0.a.w, y1.a.w), vec4(0))
                   : Unit(vec4(y0.a.y, y1.a.y, 0, 0), vec4(0));
    }
}

// Moves the elements of two units from the channels of one pairing to those of another, bit for
// bit. f16 is read as bf16, which needs no conversion.
void vkrope_change_pairing(const uint from, const uint to, const uint n, const uint element,
                           const Words A, const Words B, out Words P, out Words Q) {
    const uint as = element == element_f32 ? element_f32 : element_bf16;
    Unit x0, x1, p, q;
    vkrope_to_pairs(from, n, vkrope_decode(as, A), vkrope_decode(as, B), x0, x1);
    vkrope_from_pairs(to, n, x0, x1, p, q);
    P = Words(floatBitsToUint(p.a), floatBitsToUint(p.b));
    Q = Words(floatBitsToUint(q.a), floatBitsToUint(q.b));
    if (element != element_f32) {
        P = Words(vkrope_upper_halves(p), uvec4(0));
        Q = Words(vkrope_upper_halves(q), uvec4(0));
    }
}

// Computes y0 = x0 c0 - x1 s0 and y1 = x0 s1 + x1 c1. `precise`, which is local to a function,
// prevents fused multiply-adds and reordering, which would change bits.
void vkrope_rotate_channels(const Unit x0, const Unit x1, const Unit c0, const Unit s0,
                            const Unit c1, const Unit s1, out Unit y0, out Unit y1) {
    precise vec4 a0 = x0.a * c0.a - x1.a * s0.a;
    precise vec4 a1 = x0.a * s1.a + x1.a * c1.a;
    precise vec4 b0 = x0.b * c0.b - x1.b * s0.b;
    precise vec4 b1 = x0.b * s1.b + x1.b * c1.b;
    y0 = Unit(a0, b0);
    y1 = Unit(a1, b1);
}

// Rotates pairs, with one angle for both channels of a pair.
void vkrope_rotate(const Unit x0, const Unit x1, const Unit c, const Unit s, out Unit y0,
                   out Unit y1) {
    vkrope_rotate_channels(x0, x1, c, s, c, s, y0, y1);
}

// Returns the first n/2 elements of a, followed by the first n/2 elements of b.
Unit vkrope_join(const uint n, Unit a, const Unit b) {
    Unit u = Unit(a.a, b.a);
    if (n == 4)
        u.a = vec4(a.a.x, a.a.y, b.a.x, b.a.y);
    else if (n == 2)
        u.a = vec4(a.a.x, b.a.x, 0, 0);
    return u;
}

Unit vkrope_scale(const Unit u, const float factor) {
    precise vec4 a = u.a * factor;
    precise vec4 b = u.b * factor;
    return Unit(a, b);
}

// The two units of a chunk in one head, as stored.
struct ChunkWords {
    Words a, b;
};

// The copied units that a lane of a GPU loads before it stores the first one.
const uint units_together = 4;
struct CopiedWords {
    Words a, b, c, d;
};

// Two units of a row, at the same channels in every head.
struct Chunk {
    uvec2 from, to;  // first channels in input and output, from rotary_offset on
    bool rotates;    // false: copied, bit for bit unless the element type changes
    Unit c, s;       // cos and sin of the pairs, or of their first channels
    Unit c1, s1;     // cos and sin of the second channels; equal to c, s without channel_angles
};

#endif
