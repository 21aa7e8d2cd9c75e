// SPDX-License-Identifier: MIT
// The oracle of the last ops, in plain loops: the Hadamard transform of a row, and the bytes of a
// quantised type for a row of f32. It shares no code with the library.
//
// Every f32 operation named here rounds once, to nearest even; a product and the sum after it round
// separately.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "verify/oracle/oracle.hpp"

namespace vkrope::oracle {

// e4m3fn and e5m2 are the 8-bit floats of the Open Compute Project; int8 is two's complement. The
// others are ggml's blocks of 32 channels:
//
//             bytes of a block, fields in order                                 x is about
//   q8_0   34   d f16, 32 codes int8                                            d c
//   q4_0   18   d f16, 16 bytes with the codes of j (low half) and j + 16       d (c - 8)
//   q4_1   20   d f16, m f16, 16 bytes as q4_0                                  d c + m
//   q5_0   22   d f16, 32 bits, 16 bytes as q4_0; bit j is the highest of       d (c - 16)
//               code j
//   q5_1   24   d f16, m f16, 32 bits and 16 bytes as q5_0                      d c + m
//   iq4_nl 18   d f16, 16 bytes as q4_0                                         d iq4_values[c]
//
// All fields are little-endian. int4 is two's complement in four bits, two channels in a byte, the
// first in the low half.
enum class Store { e4m3fn, e5m2, int8, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, int4 };

inline constexpr float iq4_least = 1e-15f;  // a block of lesser magnitudes is stored as zeros
inline constexpr std::array<int, 16> iq4_values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};

// The quantisation of a tensor. The scales of blocks are part of their bytes.
struct QuantisedStore {
    Store type = Store::q8_0;
    // For types without blocks: the factors that multiply, one for all heads or one for each head.
    std::vector<float> given = {};
    // With two sets of parameters: the factors of the tokens from `second_from` on. Empty: all
    // tokens use `given`.
    std::vector<float> given_second = {};
    std::uint64_t second_from = 0;
    bool made = false;          // each group has a scale, as in quantise_made()
    std::uint64_t group = 0;    // channels of a group; 0: the row
    float floor = 0;            // least computed scale
    bool power_of_two = false;  // computed scales are powers of two

    // Returns the number of groups in a row.
    std::uint64_t groups(std::uint64_t head_dim) const { return group == 0 ? 1 : head_dim / group; }
};

// Returns whether a type has ggml's blocks, which contain their scales.
bool has_blocks(Store store);

// Return the number of channels and of bytes that belong together: of a block; 2 and 1 for int4; 1
// for the other types without blocks.
std::uint64_t block_channels(Store store);
std::uint64_t block_bytes(Store store);

// Returns whether the blocks have a minimum, m.
bool has_minimum(Store store);

// Returns the code that stands for 0 or for m: 8 for q4_0, 16 for q5_0, 0 for the others. iq4_nl
// has none; NaNs have its code 8.
int middle(Store store);

// Returns the largest finite value of a type without blocks: 448, 57344, 127 or 7.
float largest(Store store);

// Returns the code of a scaled number. e4m3fn and e5m2: the nearest value, ties to even; larger
// numbers, including infinities, become the largest value; a NaN of any sign is 0x7f. int8: the
// nearest integer, ties away from zero, with a magnitude of at most 127; a NaN is 0. int4: the
// same with at most 7, in the low four bits.
std::uint8_t code_of(Store store, float number);

// Returns the code of a channel in a row of a type without blocks.
std::uint8_t code_at(Store store, std::span<const std::uint8_t> row, std::size_t channel);

// Returns the bytes with the codes of x * given, an f32 product.
std::vector<std::uint8_t> quantise_given(Store store, std::span<const float> row, float given);

struct MadeRow {
    float scale = 0;
    std::vector<std::uint8_t> codes;
};

// Returns the codes of the f32 quotient x / scale, of a row or a group of its channels. The scale
// is the larger of `floor` and the f32 quotient of the largest magnitude and largest(); NaNs are
// ignored. Where the scale is 0, every
// channel but a NaN has the code 0. An infinity gives an infinite scale: the codes of finite
// channels are zeros with the sign of x, and infinity / infinity is a NaN.
MadeRow quantise_made(Store store, std::span<const float> row, float floor,
                      bool power_of_two = false);

// Returns the smallest power of two that is neither below `least` nor below 2^-126; infinity
// stays. With `power_of_two` it replaces a scale, as in ceil_to_ue8m0 of DeepGEMM's tests and in
// act_quant of DeepSeek-V3.2-Exp with round_scale, where amax also has a floor.
float power_of_two_from(float least);

// Quantises to ggml's blocks as the functions quantize_row_*_ref do; row.size() is a multiple of
// 32.
//
// amax is the largest magnitude of the block, and x* the first channel with this magnitude; d and
// 1/d are f32 quotients, and only the stored d and m are rounded to f16. 1/d is 0 for d = 0.
//
//   q8_0   d = amax / 127                x * (1/d), to nearest, ties away from zero
//   q4_0   d = x* / -8; -0 for zeros     x * (1/d) + 8.5, truncated, at most 15
//   q5_0   d = x* / -16; -0 for zeros    x * (1/d) + 16.5, truncated, at most 31
//   q4_1   d = (max - min) / 15, m = min (x - m) * (1/d) + 0.5, truncated, at most 15
//   q5_1   d = (max - min) / 31, m = min (x - m) * (1/d) + 0.5, truncated
//   iq4_nl d0 = x* / -127               the index of the value nearest to x * (1/d0), a tie up
//          d = iq4_sums().d()
//
// If several zeros are the minimum, min is the first of them. An iq4_nl block with amax < 1e-15 has
// only zero bytes. This function defines the cases that ggml leaves to the compiler:
//
// - amax, x*, min and max ignore a NaN, whose code is that of 0 or min: 8 for q4_0, 16 for q5_0,
//   0 for the others. A block of only NaNs has the bytes of a block of only +0. In iq4_nl a NaN
//   counts as 0 and has the code 8.
// - If 1/d overflows, or if d is infinite (from an infinity, or a range beyond f32), all channels
//   have the code of a NaN. An infinite d is stored unchanged; of iq4_nl this is d0.
std::vector<std::uint8_t> quantise_blocks(Store store, std::span<const float> row);

// Returns the index of the value of iq4_nl that is nearest to `number`; a tie goes up.
int iq4_index(float number);

// The sums of x^2 v x and of x^2 v v over an iq4_nl block whose codes stand for the values v. Each
// product is computed from left to right; the sums are in the order of channels.
struct Iq4Sums {
    float of_x = 0, of_v = 0;

    // Returns d, the quotient. NaN if the sums overflow.
    float d() const;
};

Iq4Sums iq4_sums(std::span<const float> block, std::span<const int> codes);

// The fields of a block: d and m as f16 bits, and the codes of the channels.
struct BlockFields {
    std::uint32_t d = 0, m = 0;
    std::array<int, 32> codes = {};
};

BlockFields fields_of(Store store, std::span<const std::uint8_t> block);

// Returns the numbers that bytes stand for, times `scale` for types without blocks. Each product
// and sum is rounded to f32.
std::vector<float> dequantise(Store store, std::span<const std::uint8_t> bytes, float scale = 1);

// Multiplies each block of n channels by the Hadamard matrix in Sylvester's order: element (i, j)
// is (-1)^b / sqrt(n), where b is the number of bits set in both i and j. n is a power of two that
// divides row.size().
//
// The error comes from log2(n) levels of f32 sums and one product with the f32 nearest to n^-1/2:
// u for each level, times the sum of all magnitudes of the block over sqrt(n); u for the product;
// and u for the factor unless n is a power of four. Each operation adds `absolute_allowance`. In a
// block with an infinity or a NaN every result is an infinity or a NaN, without error.
void hadamard(std::span<Approximate> row, std::uint64_t n, double absolute_allowance);

}  // namespace vkrope::oracle
