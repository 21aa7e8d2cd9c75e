// SPDX-License-Identifier: MIT
// Tier "frequencies": from the numbers of a model's RoPE to the table that the shader reads.
// Arithmetic in double and in integers; no device, no files. Every function is thread-safe. None
// allocates, and none throws: all that they write lies in memory of the caller.
#pragma once

#include <string>
#include <vector>

#include "vkrope/types.hpp"

namespace vkrope {

/// One model's RoPE, or that of one of its layer types.
struct Rotation {
    Pairing pairing = Pairing::half_split;
    std::uint32_t head_dim =
        0;  ///< channels of one head row; of latent attention (MLA): those that turn
    std::uint32_t rotary_dim = 0;       ///< channels that are rotated: even, 2 to head_dim
    std::uint32_t q_rotary_offset = 0;  ///< first rotated channel of a query row
    std::uint32_t k_rotary_offset = 0;  ///< first rotated channel of a key row
    std::vector<double> inv_freq = {};  ///< [rotary_dim / 2] radians per position; of any origin
    double base =
        0;  ///< unscaled, the frequencies would be base^(-2j / rotary_dim); 0: unknown, or not so
    Sections sections = {};  ///< which axis turns which pair; no axes: one position a token
    double attention_factor =
        1.0;  ///< multiplies cos and sin, once, in the angle table; 2^-64 to 2^64
    AnglePrecision precision =
        AnglePrecision::exact;  ///< what the angle of a pair is; float32 is for direct tables
    double softmax_scale =
        1.0;  ///< what the scaling asks of the caller's softmax; never applied here
    std::uint64_t max_position = 0;  ///< positions that the model was made for; 0 is unknown
    /// Scalings that depend on the length: the longest sequence that these frequencies serve. A
    /// longer one is due frequencies and a table of its own; what was made before stays valid. 0:
    /// they serve any length, from the one that they were made for.
    std::uint64_t longest_seq_len = 0;
    bool rotates = true;                ///< false for a layer without RoPE
    std::string rope_type = "default";  ///< the name that the model gives its scaling
    /// What was ignored or assumed while reading the model.
    std::vector<std::string> warnings = {};
};

/// inv_freq[j] = base^(-2j / rotary_dim), radians per position, for j in [0, rotary_dim / 2).
/// RoFormer (arXiv:2104.09864), section 3.2.2.
///
/// base        finite and above 0
/// rotary_dim  even, 2 to 65534
/// inv_freq    receives rotary_dim / 2 numbers; on error it is left as it was
Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

/// The spacing of tutorials, exp(linspace(0, -1, rotary_dim / 2) * ln(base)), which reaches 1 /
/// base: inv_freq[j] = base^(-j / (rotary_dim / 2 - 1)), and 1 where there is one pair. As
/// default_inv_freq otherwise.
Status inclusive_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq);

/// Rotation of a part of the pairs of a window as wide as the head: the first
/// floor(partial_rotary_factor * head_dim / 2) frequencies are base^(-2j / head_dim) / factor, the
/// others 0. "proportional" in Hugging Face's modeling_rope_utils.py (Gemma 4).
///
/// base      finite and above 0
/// head_dim  even, 2 to 65534; rotary_dim is the same
/// inv_freq  receives head_dim / 2 numbers; on error it is left as it was
struct ProportionalScaling {
    double factor = 1;                 ///< finite and above 0
    double partial_rotary_factor = 1;  ///< above 0, at most 1
};
Status proportional_inv_freq(double base, std::uint32_t head_dim,
                             const ProportionalScaling& scaling, double* inv_freq);

/// The axis that turns a pair, by its number in the angle table; 0 without sections.
constexpr std::uint32_t axis_of(const Sections& sections, std::uint32_t pair) noexcept {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) sum += pairs;
    if (sum == 0) return 0;
    const std::uint32_t m = pair % sum;
    if (sections.order == SectionOrder::interleaved)
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    std::uint32_t axis = 0;
    for (std::uint32_t end = sections.pairs[0]; m >= end; end += sections.pairs[axis]) ++axis;
    return axis;
}

// The scalings. Each takes the frequencies of default_inv_freq, of which it changes all or, on
// error, none.

/// Position interpolation: every frequency is divided by `factor`. arXiv:2306.15595; "linear" in
/// Hugging Face transformers' modeling_rope_utils.py.
///
/// factor  finite and above 0
Status scale_linear(std::vector<double>& inv_freq, double factor);

/// Every position is multiplied by `seq_scale`, as TransformerEngine's RotaryPositionEmbedding does
/// where it interpolates (by 1 / seq_len_interpolation_factor): the frequencies are.
///
/// seq_scale  finite and above 0
Status scale_positions(std::vector<double>& inv_freq, double seq_scale);

/// Every pair is divided by a number of its own: freq_factors of ggml's ggml_rope_ext, the lists of
/// LongRoPE.
///
/// divisors  finite and above 0
/// count     as many as there are frequencies
Status scale_divisors(std::vector<double>& inv_freq, const double* divisors, std::size_t count);

/// NTK-aware scaling: the base is multiplied by alpha^(d / (d - 2)), d = rotary_dim, so that the
/// slowest pair is divided by `alpha` and the fastest stays. u/bloc97 (2023), described in
/// arXiv:2309.00071, section 3.1; alpha of HunYuan's modeling_hunyuan.py.
///
/// alpha  finite and above 0
Status scale_ntk(std::vector<double>& inv_freq, double alpha);

/// The numbers of dynamic NTK scaling, as configurations name them.
struct DynamicNtkScaling {
    double factor = 0;                   ///< finite and above 0
    double max_position_embeddings = 0;  ///< that the model was trained with; finite and above 0
};

/// scale_ntk with an alpha that grows with the sequence: factor * L / max - (factor - 1), L =
/// max(seq_len, max), where max is max_position_embeddings. u/emozilla (2023), described in
/// arXiv:2309.00071, section 3.3; "dynamic" in Hugging Face's modeling_rope_utils.py.
///
/// seq_len  0: unknown, which leaves the frequencies as they are
Status scale_dynamic_ntk(std::vector<double>& inv_freq, const DynamicNtkScaling& scaling,
                         std::uint64_t seq_len);

/// The numbers of YaRN, as configurations name them.
struct YarnScaling {
    double factor = 0;                            ///< finite and above 0
    double original_max_position_embeddings = 0;  ///< finite and above 0
    double beta_fast =
        32;  ///< turns within the original length from which on a pair stays; at least beta_slow
    double beta_slow = 1;  ///< turns up to which a pair is divided by `factor`; finite and above 0
    bool truncate = true;  ///< widen the range between the two to whole pairs
    double attention_factor = 0;  ///< 0: of mscale and mscale_all_dim, or 0.1 ln(factor) + 1
    double mscale = 0;            ///< 0: not given
    double mscale_all_dim = 0;    ///< 0: not given
};

/// YaRN: fast pairs stay, slow ones are divided by `factor`, and between them the two are blended
/// linearly in the number of the pair. arXiv:2309.00071, section 3.2; "yarn" in Hugging Face's
/// modeling_rope_utils.py.
///
/// base              that the frequencies were made of; finite and above 1
/// attention_factor  receives what multiplies cos and sin. By default with m(s) = 0.1 s ln(factor)
/// + 1, and 1 for factors up to 1:
///                   m(mscale) / m(mscale_all_dim) where both are given, else m(1)
Status scale_yarn(std::vector<double>& inv_freq, double base, const YarnScaling& scaling,
                  double& attention_factor);

/// The numbers of DeepSeek's YaRN, as its configurations name them.
struct DeepseekYarnScaling {
    double factor = 0;                            ///< finite and above 0
    double original_max_position_embeddings = 0;  ///< finite and above 0
    double beta_fast = 32;                        ///< as YarnScaling's
    double beta_slow = 1;                         ///< as YarnScaling's
    double mscale = 1;                            ///< finite, at least 0
    double mscale_all_dim = 0;                    ///< finite, at least 0
};

/// The frequencies are those of scale_yarn with `truncate`; the magnitude, with m as above, is
/// split between the rotation and the softmax. DeepseekV2YarnRotaryEmbedding and
/// DeepseekV2Attention of DeepSeek's modeling_deepseek.py.
///
/// base              that the frequencies were made of; finite and above 1
/// attention_factor  receives m(mscale) / m(mscale_all_dim)
/// softmax_scale     receives m(mscale_all_dim)^2, by which the caller's softmax scale is to be
/// multiplied
Status scale_deepseek_yarn(std::vector<double>& inv_freq, double base,
                           const DeepseekYarnScaling& scaling, double& attention_factor,
                           double& softmax_scale);

/// The numbers of LongRoPE, as configurations name them.
struct LongRopeScaling {
    const double* short_factor = nullptr;  ///< [count] divisors, finite and above 0
    const double* long_factor = nullptr;   ///< [count] divisors, finite and above 0
    std::size_t count = 0;                 ///< as many as there are frequencies
    double original_max_position_embeddings =
        0;  ///< up to which the short list holds; finite and above 1
    double factor =
        0;  ///< max_position_embeddings / original_max_position_embeddings; finite and above 0
    double attention_factor =
        0;                    ///< 0: sqrt(1 + ln(factor) / ln(original)), or 1 for factors up to 1
    double short_mscale = 0;  ///< attention factor of the short list; 0: as above
    double long_mscale = 0;   ///< attention factor of the long list; 0: as above
};

/// LongRoPE: divisors per pair, the short list for sequences up to the original length, the long
/// one beyond. arXiv:2402.13753; "longrope" in Hugging Face's modeling_rope_utils.py; short_mscale
/// and long_mscale as in its modeling_phimoe.py.
///
/// seq_len           0: unknown, which takes the short list
/// attention_factor  receives what multiplies cos and sin
Status scale_longrope(std::vector<double>& inv_freq, const LongRopeScaling& scaling,
                      std::uint64_t seq_len, double& attention_factor);

/// The numbers of Llama 3.1's scaling, as its configuration names them.
struct Llama3Scaling {
    double factor = 0;  ///< finite and above 0
    double low_freq_factor =
        0;  ///< above 0, at most high_freq_factor: equal ones make a step, as in Llama 4
    double high_freq_factor = 0;                  ///< finite
    double original_max_position_embeddings = 0;  ///< positions; finite and above 0
};

/// Wavelengths above original / low_freq_factor are divided by `factor`, those below original /
/// high_freq_factor stay, and between them the two are blended linearly in original / wavelength.
/// `apply_scaling` of Meta's llama-models; "llama3" in Hugging Face's modeling_rope_utils.py.
Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling);

/// The arguments of ggml_rope_ext that shape its angles.
///
/// "Not set" is what llama_context_params of llama.cpp's include/llama.h calls "from the model": 0
/// in freq_scale, a negative number in the four after it. There is no model here, so each is then
/// what llama.cpp takes for a model whose file does not say (src/llama-hparams.h,
/// src/llama-context.cpp), which is the field's default. Of a model whose scaling type is YaRN
/// llama.cpp takes an ext_factor that is not set for 1: a caller who knows that it is one says 1.
struct GgmlScaling {
    double freq_scale = 1;     ///< 1 / factor; finite and above 0; 0: not set
    double ext_factor = 0;     ///< YaRN's share: 0, linear scaling, to 1; negative: not set
    double attn_factor = 1;    ///< finite and above 0; negative: not set
    double beta_fast = 32;     ///< at least beta_slow; negative: not set
    double beta_slow = 1;      ///< finite and above 0; negative: not set
    double n_ctx_orig = 0;     ///< original length; finite, not negative; 0 blends pair 0 alone
    std::uint32_t n_dims = 0;  ///< that the blend's range is made of; 0: twice the frequencies
    const double* freq_factors = nullptr;  ///< [freq_factor_count] that divide; finite and above 0
    std::size_t freq_factor_count =
        0;  ///< as many as there are frequencies, or 0; more are ignored
};

/// ggml's form of linear scaling, YaRN and per-pair factors: rope_yarn of ggml's ggml-cpu/ops.cpp.
///
/// base              freq_base, that the frequencies were made of; finite and above 0, above 1
/// where ext_factor is not 0 attention_factor  receives attn_factor, times 1 + 0.1 ln(1 /
/// freq_scale) where ext_factor is not 0
Status scale_ggml(std::vector<double>& inv_freq, double base, const GgmlScaling& scaling,
                  double& attention_factor);

/// The largest `max_position` of a table: positions are int32. Computed angles cover -2^31 too.
inline constexpr std::uint64_t max_positions = std::uint64_t{1} << 31;

/// The largest `max_position` of a factored table: two digits of 11 bits.
inline constexpr std::uint64_t max_factored_positions = std::uint64_t{1} << 22;

/// What AngleSource::by_default is, on every device: direct_texture for a float32 product.
constexpr AngleSource default_angles(AnglePrecision precision,
                                     std::uint64_t max_position) noexcept {
    if (precision == AnglePrecision::float32) return AngleSource::direct_texture;
    return max_position > max_factored_positions ? AngleSource::computed
                                                 : AngleSource::factored_texture;
}

/// B of the bound that enum AngleSource states. shaders/README.md derives it.
///
/// source            one that is made of a Rotation, not by_default
/// attention_factor  that the rotation has
/// With AnglePrecision::float32 the exact value is that of the float32 angle; a factor other than 1
/// then costs 1.5 more. A gain other than apply adds 2 where the factor is not 1.
constexpr double error_bound(AngleSource source, double attention_factor) noexcept {
    return source == AngleSource::factored_texture ? 6
           : source == AngleSource::computed       ? 4.5
           : attention_factor == 1                 ? 2.5
                                                   : 3;
}

/// Plans a table for every position with |position| < max_position; the numbers of computed angles
/// serve every int32, whatever max_position is.
///
/// source          which kind of table; by_default: the result's `source` says which it is
/// max_position    1 to 2^31, of factored tables to 2^22, of computed angles to 2^31 + 1
/// max_image_side  maxImageDimension2D of the device; ignored for buffers. A table that does not
/// fit is limit_exceeded.
///
/// With 64 pairs: factored_texture 1.03 MiB to 131 072 and 2 MiB to 2^22, computed 544 bytes,
/// direct tables 64 MiB to 131 072. The result's `bytes` says it; a table may be planned, filled
/// and used anew whenever positions have grown.
Result<AnglePlan> plan_angles(const Rotation& rotation, AngleSource source,
                              std::uint64_t max_position, std::uint32_t max_image_side);

/// Plans for cos and sin of the caller's own, as [rows, row_stride] each: of any values, indexed by
/// position. A position of 0 to rows - 1 is covered. Tables of full width, whose second half
/// repeats the first, have a row_stride of rotary_dim.
///
/// pairs       rotary_dim / 2
/// rows        1 to 2^31
/// row_stride  elements; at least `pairs`; 16-bit rows may begin in the middle of a word
/// The result's `bytes` is what cos and sin need each, in whole words.
Result<AnglePlan> plan_cos_sin_cache(std::uint32_t pairs, std::uint32_t rows,
                                     std::uint32_t row_stride, Element element);

/// Channels of a query or key row: head_dim; of latent attention, whose window lies beyond
/// head_dim, what ends with the window: of a key that is a row of the latent cache.
///
/// rotary_offset  the rotation's q_rotary_offset or k_rotary_offset
inline std::uint32_t row_channels(const Rotation& rotation, std::uint32_t rotary_offset) noexcept {
    return rotary_offset + rotation.rotary_dim > rotation.head_dim
               ? rotary_offset + rotation.head_dim
               : rotation.head_dim;
}

/// What create() (kernel.hpp) needs to know of a model: pairing, channels, offsets, angle source
/// and sections. Change what your engine has otherwise: `q.out`, `scatter_k`, or `positions` for
/// ids in a buffer; with sections positions stay axis_ids, and text has an axis_stride of 0.
///
/// rotation  of a layer that rotates: otherwise there is no kernel, and Q and K stay as they are
/// plan      made from this rotation, or plan_cos_sin_cache'
/// q, k      how the tensors are stored, in and out; nullopt for a tensor that the kernel never
/// sees The result has PositionSource::axis_ids where the rotation has sections, else implicit
/// positions.
Result<KernelInfo> kernel_info(const Rotation& rotation, const AnglePlan& plan,
                               std::optional<Element> q, std::optional<Element> k) noexcept;

/// Writes the table of `plan`: attention_factor * cos and sin of position * inv_freq, each rounded
/// once from double; of computed angles, the fractions of a turn. These are formed in integers, so
/// that a far position is as exact as a near one.
///
/// memory  plan.bytes bytes, aligned to 4; mapped device memory will do: it is written once, in
/// order, never read bytes   size of `memory`, at least plan.bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, void* memory,
                   std::size_t bytes);

/// Writes a part of the table, for staging memory that is smaller than the whole: `lines` lines
/// from `first_line` on.
///
/// bytes  size of `memory`, at least lines * angle_lines(plan).bytes
Status fill_angles(const Rotation& rotation, const AnglePlan& plan, std::uint32_t first_line,
                   std::uint32_t lines, void* memory, std::size_t bytes);

/// The angle inv_freq in turns, modulo one turn, as a 64-bit fixed-point fraction (units of 2^-64
/// turn, truncated).
///
/// inv_freq  radians per position; finite, |inv_freq| < 2^11
std::uint64_t turn_fraction(double inv_freq) noexcept;

}  // namespace vkrope
