// SPDX-License-Identifier: MIT
// Tier "frequencies": from the numbers of a model's RoPE to the table that the shader reads.
// Arithmetic in double and in integers; no device, no files. Every function is thread-safe. None allocates, and none throws: all
// that they write lies in memory of the caller.
#pragma once

#include <string>
#include <vector>

#include "vkrope/types.hpp"

namespace vkrope {

/// One model's RoPE, or that of one of its layer types.
struct Rotation {
    Pairing pairing = Pairing::half_split;
    std::uint32_t head_dim = 0;              ///< channels of one head row
    std::uint32_t rotary_dim = 0;            ///< channels that are rotated: even, 2 to head_dim
    std::uint32_t q_rotary_offset = 0;       ///< first rotated channel of a query row
    std::uint32_t k_rotary_offset = 0;       ///< first rotated channel of a key row
    std::vector<double> inv_freq = {};       ///< [rotary_dim / 2] radians per position
    double attention_factor = 1.0;           ///< multiplies cos and sin, once, in the angle table
    double softmax_scale = 1.0;              ///< what the scaling asks of the caller's softmax; never applied here
    std::uint64_t max_position = 0;          ///< positions that the model was made for; 0 is unknown
    bool rotates = true;                     ///< false for a layer without RoPE
    std::string rope_type = "default";       ///< the name that the model gives its scaling
    std::vector<std::string> warnings = {};  ///< what was ignored or assumed while reading the model
};

/// inv_freq[j] = base^(-2j / rotary_dim), radians per position, for j in [0, rotary_dim / 2).
/// RoFormer (arXiv:2104.09864), section 3.2.2.
///
/// base        finite and above 0
/// rotary_dim  even, 2 to 65534
/// inv_freq    receives rotary_dim / 2 numbers; on error it is left as it was
Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

/// Position interpolation: every frequency is divided by `factor`. arXiv:2306.15595; "linear" in
/// Hugging Face transformers' modeling_rope_utils.py.
///
/// factor  finite and above 0
Status scale_linear(std::vector<double>& inv_freq, double factor);

/// The numbers of Llama 3.1's scaling, as its configuration names them.
struct Llama3Scaling {
    double factor = 0;                            ///< finite and above 0
    double low_freq_factor = 0;                   ///< above 0 and below high_freq_factor
    double high_freq_factor = 0;                  ///< finite
    double original_max_position_embeddings = 0;  ///< positions; finite and above 0
};

/// Wavelengths above original / low_freq_factor are divided by `factor`, those below original /
/// high_freq_factor stay, and between them the two are blended linearly in original / wavelength.
/// `apply_scaling` of Meta's llama-models; "llama3" in Hugging Face's modeling_rope_utils.py.
Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling);

/// The largest `max_position` that any angle source covers: positions are int32.
inline constexpr std::uint64_t max_positions = std::uint64_t{1} << 31;

/// Plans a table for every position with |position| < max_position.
///
/// source          which kind of table
/// max_position    1 to 2^31
/// max_image_side  maxImageDimension2D of the device; ignored for buffers. A table that does not fit is limit_exceeded.
Result<AnglePlan> plan_angles(const Rotation& rotation, AngleSource source, std::uint64_t max_position,
                              std::uint32_t max_image_side);

/// Writes the table of `plan`: attention_factor * cos and sin of position * inv_freq, each rounded once from double.
/// The fraction of a turn is formed in integers, so that a far position is as exact as a near one.
///
/// memory  plan.bytes bytes, aligned to 4; mapped device memory will do: it is written once, in order, never read
/// bytes   size of `memory`, at least plan.bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, void* memory, std::size_t bytes);

/// A table in lines: texel lines of a texture, positions of a buffer.
struct AngleLines {
    std::uint32_t count = 0;
    std::size_t bytes = 0;  ///< of one line
};
AngleLines angle_lines(const AnglePlan& plan) noexcept;

/// Writes a part of the table, for staging memory that is smaller than the whole: `lines` lines from `first_line` on.
///
/// bytes  size of `memory`, at least lines * angle_lines(plan).bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, std::uint32_t first_line, std::uint32_t lines, void* memory,
                   std::size_t bytes);

/// The angle inv_freq in turns, modulo one turn, as a 64-bit fixed-point fraction (units of 2^-64 turn, truncated).
///
/// inv_freq  radians per position; finite, |inv_freq| < 2^11
std::uint64_t turn_fraction(double inv_freq) noexcept;

}  // namespace vkrope
