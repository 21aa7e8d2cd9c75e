// SPDX-License-Identifier: MIT
// The oracle of the last ops: the Hadamard transform of a row, and the bytes that the
// definition of a quantised type gives for a row of f32. In plain loops; it shares no code with
// the library.
//
// Every f32 operation named here rounds once, to nearest even; a product and the sum that follows
// it round apart.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "verify/oracle/ops.hpp"

namespace vkrope::oracle {

/// e4m3fn, e5m2: 8-bit floats of the Open Compute Project. int8: two's complement. The others are
/// ggml's blocks of 32 channels:
///
///             bytes of a block, fields in order                                 x is about
///   q8_0   34   d f16, 32 codes int8                                            d c
///   q4_0   18   d f16, 16 bytes with the codes of j (low half) and j + 16       d (c - 8)
///   q4_1   20   d f16, m f16, 16 bytes as q4_0                                  d c + m
///   q5_0   22   d f16, 32 bits, 16 bytes as q4_0; bit j is the highest of       d (c - 16)
///               code j
///   q5_1   24   d f16, m f16, 32 bits and 16 bytes as q5_0                      d c + m
///
/// All fields are little-endian.
enum class Store { e4m3fn, e5m2, int8, q8_0, q4_0, q4_1, q5_0, q5_1 };

/// Channels that share a block, and its bytes; 1 and 1 where an element stands alone.
std::uint64_t block_channels(Store store);
std::uint64_t block_bytes(Store store);

/// Whether the blocks have a minimum, m.
bool has_minimum(Store store);

/// The code that stands for 0, or for m: 0, for q4_0 and q5_0 8 and 16.
int middle(Store store);

/// The largest finite value of a type whose elements stand alone: 448, 57344, 127.
float largest(Store store);

/// The code of a number that is scaled already. e4m3fn and e5m2: the nearest value, ties to even;
/// what is beyond the largest becomes the largest, infinities too; a NaN of any sign is 0x7f.
/// int8: the nearest integer, ties away from zero, at most 127 in size; a NaN is 0.
std::uint8_t code_of(Store store, float number);

/// Codes of x * given, one f32 product.
std::vector<std::uint8_t> quantise_given(Store store, std::span<const float> row, float given);

struct MadeRow {
    float scale = 0;
    std::vector<std::uint8_t> codes;
};

/// Codes of x / scale, the f32 quotient, where scale is the larger of `floor` and the f32 quotient
/// of the largest magnitude and largest(). A NaN has no magnitude. Where scale is 0, the code of
/// every channel but a NaN is 0. An infinity makes an infinite scale: the codes of finite channels
/// are zeros with the sign of x, and infinity / infinity is a NaN.
MadeRow quantise_made(Store store, std::span<const float> row, float floor,
                      bool power_of_two = false);

/// The smallest power of two that is not below `least`, nor below 2^-126: what a scale becomes with
/// `power_of_two`. Infinity stays. This is ceil_to_ue8m0 of DeepGEMM's tests, and what act_quant of
/// DeepSeek-V3.2-Exp does with round_scale, whose amax has a floor of its own.
float power_of_two_from(float least);

/// Blocks of ggml, as its functions quantize_row_*_ref define them; row.size() is a multiple of 32.
///
/// amax is the largest magnitude of the block, and x* its first channel with this magnitude; d and
/// 1/d are f32 quotients, and only the stored d and m are rounded to f16. 1/d is 0 for d = 0.
///
///   q8_0   d = amax / 127                x * (1/d), to nearest, ties away from zero
///   q4_0   d = x* / -8; -0 for zeros     x * (1/d) + 8.5, truncated, at most 15
///   q5_0   d = x* / -16; -0 for zeros    x * (1/d) + 16.5, truncated, at most 31
///   q4_1   d = (max - min) / 15, m = min (x - m) * (1/d) + 0.5, truncated, at most 15
///   q5_1   d = (max - min) / 31, m = min (x - m) * (1/d) + 0.5, truncated
///
/// Of equal zeros min is the first. ggml leaves these to the compiler, and here they are:
///
/// - A NaN is left out of amax, x*, min and max, and its code is the code of 0, or of min: 0, for
///   q4_0 and q5_0 8 and 16. A block of NaNs only has the bytes of one that is +0 throughout.
/// - If 1/d overflows, or if d is infinite (from an infinity, or a range beyond f32), all codes are
///   these. An infinite d is stored as it is.
std::vector<std::uint8_t> quantise_blocks(Store store, std::span<const float> row);

/// The fields of a block: d and m as f16 bits, and the codes of its channels.
struct BlockFields {
    std::uint32_t d = 0, m = 0;
    std::array<int, 32> codes = {};
};

BlockFields fields_of(Store store, std::span<const std::uint8_t> block);

/// The numbers that bytes stand for, times `scale` where elements stand alone. Each product and
/// sum is rounded to f32.
std::vector<float> dequantise(Store store, std::span<const std::uint8_t> bytes, float scale = 1);

/// Multiplies each block of n channels by the Hadamard matrix in Sylvester's order, whose element
/// (i, j) is -1 to the number of bits that i and j share, over sqrt(n). n is a power of two that
/// divides row.size().
///
/// The error comes from log2(n) levels of f32 sums and one product with the f32 nearest to
/// n^-1/2: u for each level, of the sum of all magnitudes of the block over sqrt(n); u for the
/// product; and u for the factor unless n is a power of four. Each operation adds
/// `absolute_allowance`. In a block with an infinity or a NaN all is one of them, without an error.
void hadamard(std::span<Approximate> row, std::uint64_t n, double absolute_allowance);

}  // namespace vkrope::oracle
