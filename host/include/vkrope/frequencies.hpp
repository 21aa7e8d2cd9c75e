// SPDX-License-Identifier: MIT
// Tier "frequencies": computes angle tables from the RoPE parameters of a model, in double and
// integer arithmetic; no device, no files. Functions are thread-safe, do not allocate and do not
// throw; they write only to memory of the caller. Longer than other files, since a tier has one
// public header.
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

/// inv_freq[j] = base^(-2j / rotary_dim), radians per position, for j in [0, rotary_dim / 2).
/// RoFormer (arXiv:2104.09864), section 3.2.2.
///
/// base        finite and above 0
/// rotary_dim  even, 2 to 65534
/// inv_freq    receives rotary_dim / 2 numbers; unchanged on error
Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

/// inv_freq[j] = base^(-j / (rotary_dim / 2 - 1)), down to 1 / base; 1 if there is only one pair.
/// Tutorials write this spacing as exp(linspace(0, -1, rotary_dim / 2) * ln(base)). Parameters as
/// default_inv_freq.
Status inclusive_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

using ProportionalScaling = vkrope_proportional_scaling;

/// Partial rotation with a window as wide as the head: the first floor(partial_rotary_factor *
/// head_dim / 2) frequencies are base^(-2j / head_dim) / factor, the others 0. "proportional" in
/// Hugging Face's modeling_rope_utils.py (Gemma 4).
///
/// base      finite and above 0
/// head_dim  even, 2 to 65534; equals rotary_dim
/// inv_freq  receives head_dim / 2 numbers; unchanged on error
Status proportional_inv_freq(double base, std::uint32_t head_dim,
                             const ProportionalScaling& scaling, double* inv_freq);

/// Axis that rotates pair `pair` of the angle table; 0 without sections.
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

/// Position interpolation: divides every frequency by `factor`. arXiv:2306.15595; "linear" in
/// Hugging Face transformers' modeling_rope_utils.py.
///
/// factor  finite and above 0
Status scale_linear(std::vector<double>& inv_freq, double factor);

/// Multiplies every frequency by `seq_scale`, as if every position were multiplied by it:
/// interpolation of TransformerEngine's RotaryPositionEmbedding (seq_scale = 1 /
/// seq_len_interpolation_factor).
///
/// seq_scale  finite and above 0
Status scale_positions(std::vector<double>& inv_freq, double seq_scale);

/// Divides each frequency by its own divisor: freq_factors of ggml's ggml_rope_ext, the lists of
/// LongRoPE.
///
/// divisors  finite and above 0
/// count     must equal the number of frequencies
Status scale_divisors(std::vector<double>& inv_freq, const double* divisors, std::size_t count);

/// NTK-aware scaling: multiplies the base by alpha^(d / (d - 2)), d = rotary_dim. This divides the
/// slowest frequency by `alpha` and keeps the fastest. u/bloc97 (2023), described in
/// arXiv:2309.00071, section 3.1; alpha of HunYuan's modeling_hunyuan.py.
///
/// alpha  finite and above 0
Status scale_ntk(std::vector<double>& inv_freq, double alpha);

/// Stops the pairs that do not complete a turn within `length` positions: their frequency becomes
/// 0. The zero frequencies of FoPE (arXiv:2412.17739), get_inv_freq of its reference code. FoPE's
/// Fourier series, a weighted sum of cosines for each channel, is not a rotation.
///
/// length  positions that the model was trained with: finite and above 0
Status stop_slow_pairs(std::vector<double>& inv_freq, double length);

using DynamicNtkScaling = vkrope_dynamic_ntk_scaling;

/// scale_ntk with an alpha that grows with the sequence: factor * L / max - (factor - 1), L =
/// max(seq_len, max), where max is max_position_embeddings. u/emozilla (2023), described in
/// arXiv:2309.00071, section 3.3; "dynamic" in Hugging Face's modeling_rope_utils.py.
///
/// seq_len  0: unknown; the frequencies stay unchanged
Status scale_dynamic_ntk(std::vector<double>& inv_freq, const DynamicNtkScaling& scaling,
                         std::uint64_t seq_len);

using YarnScaling = vkrope_yarn_scaling;

/// YaRN: keeps fast pairs, divides slow pairs by `factor`, and blends linearly in the pair index in
/// between. arXiv:2309.00071, section 3.2; "yarn" in Hugging Face's modeling_rope_utils.py.
///
/// base              base of the frequencies; finite and above 1
/// attention_factor  receives the factor for cos and sin. Default: m(mscale) / m(mscale_all_dim) if
///                   both are given, else m(1), with m(s) = 0.1 s ln(factor) + 1 (1 for factors up
///                   to 1)
Status scale_yarn(std::vector<double>& inv_freq, double base, const YarnScaling& scaling,
                  double& attention_factor);

using DeepseekYarnScaling = vkrope_deepseek_yarn_scaling;

/// Frequencies as scale_yarn with `truncate`; the magnitude, with m as above, is split between the
/// rotation and the softmax. DeepseekV2YarnRotaryEmbedding and DeepseekV2Attention in DeepSeek's
/// modeling_deepseek.py.
///
/// base              base of the frequencies; finite and above 1
/// attention_factor  receives m(mscale) / m(mscale_all_dim)
/// softmax_scale     receives m(mscale_all_dim)^2, a factor for the caller's softmax scale
Status scale_deepseek_yarn(std::vector<double>& inv_freq, double base,
                           const DeepseekYarnScaling& scaling, double& attention_factor,
                           double& softmax_scale);

using LongRopeScaling = vkrope_longrope_scaling;

/// LongRoPE: divides each frequency by its own divisor, short_factor for sequences up to the
/// original length, long_factor beyond. arXiv:2402.13753; "longrope" in Hugging Face's
/// modeling_rope_utils.py; short_mscale and long_mscale as in its modeling_phimoe.py.
///
/// seq_len           0: unknown; uses short_factor
/// attention_factor  receives the factor for cos and sin
Status scale_longrope(std::vector<double>& inv_freq, const LongRopeScaling& scaling,
                      std::uint64_t seq_len, double& attention_factor);

using Llama3Scaling = vkrope_llama3_scaling;

/// Divides frequencies with a wavelength above original / low_freq_factor by `factor`, keeps those
/// with a wavelength below original / high_freq_factor, and blends linearly in original /
/// wavelength in between. `apply_scaling` of Meta's llama-models; "llama3" in Hugging Face's
/// modeling_rope_utils.py.
Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling);

using GgmlScaling = vkrope_ggml_scaling;

/// ggml's form of linear scaling, YaRN and per-pair factors: rope_yarn in ggml's ggml-cpu/ops.cpp.
///
/// base              freq_base, the base of the frequencies; finite and above 0, above 1 if
///                   ext_factor is not 0
/// attention_factor  receives attn_factor, times 1 + 0.1 ln(1 / freq_scale) if ext_factor is not 0
Status scale_ggml(std::vector<double>& inv_freq, double base, const GgmlScaling& scaling,
                  double& attention_factor);

/// Computes the factor of each token, in double and rounded once: Call::scale_tokens of Q
/// (kernel.hpp).
///
/// positions  [count], at least 0
/// scales     receives [count]; unchanged on error
Status query_scales(const QueryScale& scale, const std::int32_t* positions, std::size_t count,
                    float* scales) noexcept;

/// Largest `max_position` of a table; positions are int32. Computed angles also cover -2^31.
inline constexpr std::uint64_t max_positions = std::uint64_t{1} << 31;

/// Largest `max_position` of a factored table: a position has two 11-bit digits.
inline constexpr std::uint64_t max_factored_positions = std::uint64_t{1} << 22;

/// What VKROPE_ANGLES_AUTOMATIC means, on every device. float32 precision requires a direct table.
/// plan_angles chooses computed for head groups and VKROPE_SECTIONS_SUM, whatever the length.
constexpr AngleSource default_angles(AnglePrecision precision,
                                     std::uint64_t max_position) noexcept {
    if (precision == VKROPE_ANGLE_PRECISION_FLOAT32) return VKROPE_ANGLES_DIRECT_TEXTURE;
    return max_position > max_factored_positions ? VKROPE_ANGLES_COMPUTED
                                                 : VKROPE_ANGLES_FACTORED_TEXTURE;
}

/// B of the error bound in AngleSource; host/guide/accuracy.md derives it.
///
/// source            not by_default or cos_sin_cache
/// attention_factor  of the rotation
/// For VKROPE_ANGLE_PRECISION_FLOAT32 the bound is relative to the float32 angle; add 1.5 if the
/// factor is not 1. For a gain other than `apply` add 2 if the factor is not 1.
constexpr double error_bound(AngleSource source, double attention_factor) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? 6
           : source == VKROPE_ANGLES_COMPUTED       ? 4.5
           : attention_factor == 1                  ? 2.5
                                                    : 3;
}

/// Plans a table that covers every position with |position| < max_position. Computed angles cover
/// every int32 position, whatever max_position is.
///
/// source          kind of table; by_default: see `source` of the result
/// max_position    1 to 2^31; factored tables: to 2^22; computed angles: to 2^31 + 1
/// max_image_side  maxImageDimension2D of the device; ignored for buffers. Returns limit_exceeded
///                 if the table does not fit.
///
/// With 64 pairs: factored_texture has 1.03 MiB for 131 072 positions and 2 MiB for 2^22, computed
/// 544 bytes, direct tables 64 MiB for 131 072. `bytes` of the result gives the size. To cover more
/// positions later, plan and fill a new table.
Result<AnglePlan> plan_angles(const Rotation& rotation, AngleSource source,
                              std::uint64_t max_position, std::uint32_t max_image_side);

/// Plans for cos and sin buffers of the caller, [rows, row_stride] each, with any values, indexed
/// by position. Covers positions 0 to rows - 1. Full-width tables, whose second half repeats the
/// first, have a row_stride of rotary_dim.
///
/// pairs       rotary_dim / 2
/// rows        1 to 2^31
/// row_stride  elements; at least `pairs`; 0: packed; 16-bit rows may start in the middle of a word
/// channel_angles  full-width tables whose halves may differ (V-JEPA 2, tables of Hugging Face
///                 transformers as they are): a row has cos and sin of each rotated channel, and
///                 row_stride is at least 2 * pairs. The gradient transposes the matrix of a pair.
/// `bytes` of the result is the size of cos and of sin each, in whole words.
Result<AnglePlan> plan_cos_sin_cache(std::uint32_t pairs, std::uint32_t rows,
                                     std::uint32_t row_stride, Element element,
                                     bool channel_angles = false);

/// Channels of a query or key row: head_dim. With latent attention the window lies beyond head_dim,
/// and the row ends with the window; a key row is then a row of the latent cache.
///
/// rotary_offset  the rotation's q_rotary_offset or k_rotary_offset
inline std::uint32_t row_channels(const Rotation& rotation, std::uint32_t rotary_offset) noexcept {
    std::uint32_t end = rotary_offset + rotation.rotary_dim;  // of the last window
    for (const Window& window : rotation.windows) {
        if (window.rotary_dim != 0) end = rotary_offset + window.offset + window.rotary_dim;
    }
    return end > rotation.head_dim ? rotary_offset + rotation.head_dim : rotation.head_dim;
}

/// Derives the KernelInfo for create() (kernel.hpp) from a rotation: pairing, channels, offsets,
/// windows, angle source and sections, and the model's other steps, rotation.finish, with its head
/// counts if it has any. V has the head_dim of K. Where the model has steps, Call::parameters needs
/// its weights, see plan_parameters, and Call::scale_tokens of Q the query_scales of
/// rotation.finish.query_scale.
///
/// Change what differs in your engine: `tensor[K].out`, `scatter_k`, `heads` of a part of the
/// heads, or `positions` for ids in a buffer. If your engine makes the model's norms and scales
/// itself, leave them out: `for (auto& tensor : info->tensor) tensor.ops = {}`. With sections,
/// positions must stay axis_ids; for text let all axes read one row, with `broadcast` for
/// axis_stride.
///
/// rotation  must rotate: a layer without RoPE needs no kernel
/// plan      from plan_angles for this rotation, or from plan_cos_sin_cache
/// q, k, v   element type of input and output; nullopt if the kernel does not handle the tensor,
///           whose steps are then left out
/// The result has VKROPE_POSITIONS_AXIS_IDS if the rotation has sections, else implicit positions.
Result<KernelInfo> kernel_info(const Rotation& rotation, const AnglePlan& plan,
                               std::optional<Element> q, std::optional<Element> k,
                               std::optional<Element> v = std::nullopt) noexcept;

/// Writes the table of `plan`: attention_factor * cos and sin of position * inv_freq, each rounded
/// once from double. For computed angles, writes the fractions of a turn. Fractions are computed in
/// integers, so distant positions are as exact as near ones.
///
/// memory  plan.bytes bytes, aligned to 4; may be mapped device memory: it is written once, in
///         order, and never read
/// bytes   size of `memory`, at least plan.bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, void* memory,
                   std::size_t bytes);

/// Writes `lines` lines of the table, starting at `first_line`, for staging memory smaller than the
/// table.
///
/// bytes  size of `memory`, at least lines * angle_lines(plan).bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, std::uint32_t first_line,
                   std::uint32_t lines, void* memory, std::size_t bytes);

/// Plans the parameter buffer of a kernel: the weights, biases and scales that the ops of
/// Q, K and V name, in this order, each from a multiple of 16 bytes on. Items that are absent
/// have no shape.
Result<ParameterPlan> plan_parameters(const KernelInfo& info) noexcept;

using ParameterSource = vkrope_parameter_source;

using TensorParameterSources = vkrope_tensor_parameter_sources;

using ParameterSources = vkrope_parameter_sources;

/// Writes the parameter buffer of `plan`, or one of its two sets: the sources as f32, plus
/// ParameterItem::added, rounded once. Every item of the plan must have a source of its size, and
/// every other item none. A store_scale multiplies before the store and must be finite and not 0:
/// engines that divide by a scale, as vLLM by its k_scale, pass the reciprocal.
///
/// memory  plan.bytes bytes, aligned to 4; may be mapped device memory: it is written once, in
///         order, and never read
/// bytes   size of `memory`, at least plan.bytes
Status fill_parameters(const ParameterPlan& plan, const ParameterSources& sources, void* memory,
                       std::size_t bytes) noexcept;

using HadamardBlocks = vkrope_hadamard_blocks;

/// The blocks with which llama.cpp transforms Q, K and V before it stores a quantised cache, as of
/// its release b9867 (src/llama-kv-cache.cpp; ggml-org/llama.cpp#21038): for Q and K the largest
/// power of two that divides head_dim, for V 64; none if head_dim is not a multiple of 64. At most
/// 512 channels.
///
/// k_quantised, v_quantised  whether the cache of K, or of V, has a quantised type; Q and K are
///                           transformed for K's, V for V's
HadamardBlocks hadamard_of_llama_cpp(std::uint32_t k_head_dim, bool k_quantised,
                                     std::uint32_t v_head_dim, bool v_quantised) noexcept;

/// inv_freq in turns per position, modulo one turn, as a 64-bit fixed-point fraction (units of
/// 2^-64 turn, truncated).
///
/// inv_freq  radians per position; finite, |inv_freq| < 2^11
std::uint64_t turn_fraction(double inv_freq) noexcept;

}  // namespace vkrope
