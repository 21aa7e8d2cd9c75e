// SPDX-License-Identifier: MIT
// Tier "frequencies": computes angle tables from the RoPE parameters of a model, in double and
// integer arithmetic; no device, no files. Functions are thread-safe, do not allocate and do not
// throw; they write only to memory of the caller. vkrope.h documents each function under the
// name in the comment above it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vkrope/types.hpp"

namespace vkrope {

using QueryScaling = vkrope_query_scaling;
using QueryScale = vkrope_query_scale;
using ModelFinish = vkrope_model_finish;

/// RoPE parameters of a model or of one of its layer types.
struct Rotation {
    Pairing pairing = VKROPE_HALF_SPLIT;
    std::uint32_t head_dim =
        0;  ///< channels per head; for latent attention (MLA): only the rotated ones
    std::uint32_t rotary_dim = 0;       ///< rotated channels: even, 2 to head_dim
    std::uint32_t q_rotary_offset = 0;  ///< first rotated channel of a query row
    std::uint32_t k_rotary_offset = 0;  ///< first rotated channel of a key row
    /// Windows of a row, as KernelInfo::windows has them: pairs are formed within each (Gemma 4's
    /// vision tower). Their offsets count from the rotary offset, their rotary_dims add up to
    /// rotary_dim, and inv_freq and phase number the pairs window after window. All zero: one
    /// window.
    Window windows[max_windows] = {};
    /// Radians per position, from any formula: [rotary_dim / 2]; with VKROPE_SECTIONS_SUM
    /// [axes, rotary_dim / 2]; with head_groups above 1 [head_groups, ...] of these.
    std::vector<double> inv_freq = {};
    /// [head_groups, rotary_dim / 2] radians that are added to the angle of each pair: angle =
    /// position * inv_freq + phase. Finite, of magnitude below 2048; empty: none. Every source adds
    /// them as multiples of 2^-64 turn, so that error bounds do not change.
    std::vector<double> phase = {};
    /// Groups of consecutive heads with frequencies of their own (LTX-2, Mochi, RoPE-ViT): 1 to
    /// 65535. 1: all heads share them. Above 1 requires VKROPE_ANGLES_COMPUTED, and heads of Q and
    /// K that are multiples of it.
    std::uint32_t head_groups = 1;
    double base = 0;  ///< the unscaled frequencies are base^(-2j / rotary_dim); 0: unknown, or
                      ///< another formula
    Sections sections = {};  ///< which axis rotates which pairs; empty: one position per token
    double attention_factor =
        1.0;  ///< multiplies cos and sin once, in the angle table; 2^-64 to 2^64
    AnglePrecision precision =
        VKROPE_ANGLE_PRECISION_EXACT;  ///< how angles are computed; float32 requires a direct table
    double softmax_scale = 1.0;      ///< factor for the caller's softmax scale; never applied here
    std::uint64_t max_position = 0;  ///< positions that the model was made for; 0: unknown
    /// Longest sequence that these frequencies are valid for, if the scaling depends on the length.
    /// A longer sequence needs new frequencies and a new table; existing ones stay valid. 0: no
    /// limit; valid from the length that they were computed for.
    std::uint64_t longest_seq_len = 0;
    bool rotates = true;  ///< false for a layer without RoPE, which needs no frequencies
    std::string rope_type = "default";  ///< the name that the model gives its scaling
    /// What was ignored or assumed while reading the model.
    std::vector<std::string> warnings = {};
    ModelFinish finish =
        {};  ///< what else the layer does to Q, K and V; never applied by rotations
};

/// vkrope_default_inv_freq.
Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

/// vkrope_inclusive_inv_freq.
Status inclusive_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

using ProportionalScaling = vkrope_proportional_scaling;

/// vkrope_proportional_inv_freq.
Status proportional_inv_freq(double base, std::uint32_t head_dim,
                             const ProportionalScaling& scaling, double* inv_freq);

/// vkrope_axis_of.
constexpr std::uint32_t axis_of(const Sections& sections, std::uint32_t pair) noexcept {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) sum += pairs;
    if (sum == 0) return 0;
    const std::uint32_t m = pair % sum;
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED)
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    std::uint32_t axis = 0;
    for (std::uint32_t end = sections.pairs[0]; m >= end; end += sections.pairs[axis]) ++axis;
    return axis;
}

// Scalings. Each modifies the frequencies of default_inv_freq; on error it leaves them unchanged.

/// vkrope_scale_linear.
Status scale_linear(std::vector<double>& inv_freq, double factor);

/// vkrope_scale_positions.
Status scale_positions(std::vector<double>& inv_freq, double seq_scale);

/// vkrope_scale_divisors.
Status scale_divisors(std::vector<double>& inv_freq, const double* divisors, std::size_t count);

/// vkrope_scale_ntk.
Status scale_ntk(std::vector<double>& inv_freq, double alpha);

/// vkrope_stop_slow_pairs.
Status stop_slow_pairs(std::vector<double>& inv_freq, double length);

using DynamicNtkScaling = vkrope_dynamic_ntk_scaling;

/// vkrope_scale_dynamic_ntk.
Status scale_dynamic_ntk(std::vector<double>& inv_freq, const DynamicNtkScaling& scaling,
                         std::uint64_t seq_len);

using YarnScaling = vkrope_yarn_scaling;

/// vkrope_scale_yarn.
Status scale_yarn(std::vector<double>& inv_freq, double base, const YarnScaling& scaling,
                  double& attention_factor);

using DeepseekYarnScaling = vkrope_deepseek_yarn_scaling;

/// vkrope_scale_deepseek_yarn.
Status scale_deepseek_yarn(std::vector<double>& inv_freq, double base,
                           const DeepseekYarnScaling& scaling, double& attention_factor,
                           double& softmax_scale);

using LongRopeScaling = vkrope_longrope_scaling;

/// vkrope_scale_longrope.
Status scale_longrope(std::vector<double>& inv_freq, const LongRopeScaling& scaling,
                      std::uint64_t seq_len, double& attention_factor);

using Llama3Scaling = vkrope_llama3_scaling;

/// vkrope_scale_llama3.
Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling);

using GgmlScaling = vkrope_ggml_scaling;

/// vkrope_scale_ggml.
Status scale_ggml(std::vector<double>& inv_freq, double base, const GgmlScaling& scaling,
                  double& attention_factor);

/// vkrope_query_scales.
Status query_scales(const QueryScale& scale, const std::int32_t* positions, std::size_t count,
                    float* scales) noexcept;

/// Largest `max_position` of a table; positions are int32. Computed angles also cover -2^31.
inline constexpr std::uint64_t max_positions = std::uint64_t{1} << 31;

/// Largest `max_position` of a factored table: a position has two 11-bit digits.
inline constexpr std::uint64_t max_factored_positions = std::uint64_t{1} << 22;

/// vkrope_default_angles.
constexpr AngleSource default_angles(AnglePrecision precision,
                                     std::uint64_t max_position) noexcept {
    if (precision == VKROPE_ANGLE_PRECISION_FLOAT32) return VKROPE_ANGLES_DIRECT_TEXTURE;
    return max_position > max_factored_positions ? VKROPE_ANGLES_COMPUTED
                                                 : VKROPE_ANGLES_FACTORED_TEXTURE;
}

/// vkrope_error_bound.
constexpr double error_bound(AngleSource source, double attention_factor) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? 6
           : source == VKROPE_ANGLES_COMPUTED       ? 4.5
           : attention_factor == 1                  ? 2.5
                                                    : 3;
}

/// vkrope_plan_angles.
Result<AnglePlan> plan_angles(const Rotation& rotation, AngleSource source,
                              std::uint64_t max_position, std::uint32_t max_image_side);

/// vkrope_plan_cos_sin_cache.
Result<AnglePlan> plan_cos_sin_cache(std::uint32_t pairs, std::uint32_t rows,
                                     std::uint32_t row_stride, Element element,
                                     bool channel_angles = false);

/// vkrope_row_channels.
inline std::uint32_t row_channels(const Rotation& rotation, std::uint32_t rotary_offset) noexcept {
    std::uint32_t end = rotary_offset + rotation.rotary_dim;  // of the last window
    for (const Window& window : rotation.windows) {
        if (window.rotary_dim != 0) end = rotary_offset + window.offset + window.rotary_dim;
    }
    return end > rotation.head_dim ? rotary_offset + rotation.head_dim : rotation.head_dim;
}

/// vkrope_rotation_get_kernel_info.
Result<KernelInfo> kernel_info(const Rotation& rotation, const AnglePlan& plan,
                               std::optional<Element> q, std::optional<Element> k,
                               std::optional<Element> v = std::nullopt) noexcept;

/// vkrope_fill_angles.
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, void* memory,
                   std::size_t bytes);

/// vkrope_fill_angle_lines.
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, std::uint32_t first_line,
                   std::uint32_t lines, void* memory, std::size_t bytes);

/// vkrope_plan_parameters.
Result<ParameterPlan> plan_parameters(const KernelInfo& info) noexcept;

using ParameterSource = vkrope_parameter_source;
using TensorParameterSources = vkrope_tensor_parameter_sources;
using ParameterSources = vkrope_parameter_sources;

/// vkrope_fill_parameters.
Status fill_parameters(const ParameterPlan& plan, const ParameterSources& sources, void* memory,
                       std::size_t bytes) noexcept;

using HadamardBlocks = vkrope_hadamard_blocks;

/// vkrope_hadamard_of_llama_cpp.
HadamardBlocks hadamard_of_llama_cpp(std::uint32_t k_head_dim, bool k_quantised,
                                     std::uint32_t v_head_dim, bool v_quantised) noexcept;

/// vkrope_turn_fraction.
std::uint64_t turn_fraction(double inv_freq) noexcept;

}  // namespace vkrope
