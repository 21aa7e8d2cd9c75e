// SPDX-License-Identifier: MIT
// Tier "frequencies": rotations from the arguments that other libraries call their RoPE with, under
// their names and with their defaults. What is not an argument here belongs to the call: positions,
// layouts and directions (kernel.hpp).
//
// Arguments of one meaning differ by their names alone: a factor of position interpolation divides
// the frequencies (FlashInfer's rope_scale, TransformerEngine's seq_len_interpolation_factor), a
// scale multiplies them (ggml's freq_scale, MLX's scale): one is 1 over the other. Numbers for each
// pair divide in ggml (freq_factors) and in MLX (freqs).
//
// All fail with Code::invalid_argument, which names the argument, its value and its rule. Angles
// are AnglePrecision::exact, although all of these libraries compute them in float32.
#pragma once

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Arguments of ggml_rope_ext and ggml_rope_multi that determine angles and pairs; ggml's ggml.h
/// and ggml_compute_forward_rope in ggml-cpu/ops.cpp. ggml_rope_ext_back is Direction::inverse.
///
/// attn_factor is multiplied by 1 + 0.1 ln(1 / freq_scale) if ext_factor is not 0: an attention
/// factor of a config.json already contains that, and would count twice.
struct GgmlRope {
    std::uint32_t head_dim = 0;  ///< ne[0] of the tensor: 2 to 65534
    /// Rotated channels: even, 2 to head_dim. In vision mode head_dim / 2, although all channels
    /// rotate.
    std::uint32_t n_dims = 0;
    /// GGML_ROPE_TYPE_...: 0 normal (interleaved pairs), 2 neox (half_split); with four ids per
    /// token and half_split: 8 mrope, 40 imrope (interleaved sections), 24 vision (frequencies
    /// start again in each section).
    std::uint32_t mode = 0;
    double n_ctx_orig = 0;     ///< original length; finite, not negative; 0 blends only pair 0
    double freq_base = 10000;  ///< finite and above 0; above 1 if ext_factor is not 0
    double freq_scale = 1;     ///< 1 / factor: multiplies the frequencies
    double ext_factor = 0;     ///< weight of YaRN: 0 (linear scaling) to 1; negative: not set
    double attn_factor = 1;    ///< of the rotation alone, see above; negative: not set
    double beta_fast = 32;     ///< at least beta_slow; negative: not set
    double beta_slow = 1;      ///< above 0; negative: not set
    const double* freq_factors = nullptr;  ///< [freq_factor_count] divisors: rope_freqs of a file
    std::size_t freq_factor_count = 0;     ///< 0, or at least the number of pairs
    /// Pairs of time, height, width and the fourth axis; mrope, imrope and vision only, else 0. In
    /// vision mode those that are reached must be above 0 and cover n_dims pairs.
    std::uint32_t sections[4] = {};
};

/// A rotation from ggml's arguments. The ids of mrope and imrope are ggml's [4][tokens]; the
/// rotation has only axes that rotate a pair.
Result<Rotation> rotation_from_ggml(const GgmlRope& rope);

/// Attributes and shapes of RotaryEmbedding, of ONNX's opset 23 or of com.microsoft; onnx's
/// Operators.md, ONNX Runtime's ContribOperators.md and rotary_embedding_helper.h.
///
/// cos_cache and sin_cache are inputs with any values, so that the rotation has no frequencies: it
/// is for plan_cos_sin_cache and AngleSource::cos_sin_cache. To the call belong: position_ids
/// (none: the caches have a row for each token; one number: an implicit first position; [batch,
/// tokens]: ids), the layout ([batch, tokens, hidden] or [batch, heads, tokens, head_size]), and
/// is_packed_batching, which changes no angle.
struct OnnxRope {
    bool interleaved = false;
    std::uint32_t num_heads = 0;             ///< of an X with three dimensions; 0: not given
    std::uint32_t rotary_embedding_dim = 0;  ///< rotated channels: even; 0: the whole head
    double scale =
        1;  ///< com.microsoft's; must be 1: ONNX Runtime reads others, but does not use them
    /// Last dimension of X: head_size of an X with four dimensions, else hidden_size, which
    /// num_heads divides.
    std::uint32_t channels = 0;
    bool four_dims = false;         ///< X is [batch, heads, tokens, head_size]
    std::uint32_t cache_width = 0;  ///< last dimension of cos_cache; 0: not checked. Without
                                    ///< num_heads, com.microsoft's head_size is twice this
};
Result<Rotation> rotation_from_onnx(const OnnxRope& rope);

/// Arguments of FlashInfer's apply_rope and apply_llama31_rope; flashinfer/rope.py and
/// include/flashinfer/pos_enc.cuh. The defaults of apply_llama31_rope are rope_scale 8, rope_theta
/// 500000, factors 1 and 4, old_context_len 8192.
struct FlashinferRope {
    std::uint32_t head_dim = 0;    ///< 2 to 65534
    std::uint32_t rotary_dim = 0;  ///< even, 2 to head_dim; 0: head_dim
    bool interleave = false;
    double rope_scale = 1;        ///< a factor: divides the frequencies; finite and above 0
    double rope_theta = 10000;    ///< finite and above 0
    double low_freq_factor = 0;   ///< apply_llama31_rope only; these three 0: apply_rope
    double high_freq_factor = 0;  ///< above low_freq_factor: FlashInfer divides by the difference
    double old_context_len = 0;   ///< finite and above 0
};
Result<Rotation> rotation_from_flashinfer(const FlashinferRope& rope);

/// Arguments of mlx.core.fast.rope and mlx.nn.RoPE; mlx/fast.cpp. A magnitude, which mlx-lm's YaRN
/// and LongRoPE multiply into the channels before the call, is not an argument: multiply
/// Rotation::attention_factor by it, and leave that multiplication out.
struct MlxRope {
    std::uint32_t head_dim = 0;  ///< last dimension of x: 2 to 65534
    std::uint32_t dims = 0;      ///< rotated channels: even, 2 to head_dim
    bool traditional = false;    ///< interleaved pairs, else half_split
    double base = 0;             ///< finite and above 0; 0: None, and freqs must be given
    double scale = 1;            ///< multiplies positions, 1 / factor; finite and above 0
    /// [freq_count] divisors of the position, above 0, despite their name: 1 / inv_freq. Infinite
    /// for a pair that does not rotate; null: from base.
    const double* freqs = nullptr;
    std::size_t freq_count = 0;  ///< dims / 2, or 0
};
Result<Rotation> rotation_from_mlx(const MlxRope& rope);

/// Arguments of TransformerEngine's RotaryPositionEmbedding and of its forward;
/// transformer_engine/pytorch/attention/rope.py. It interpolates only if both the factor and the
/// pretrained length are given; sequences beyond their product are divided by max_seq_len /
/// pretrained_max_position_embeddings instead of the factor.
struct TransformerEngineRope {
    std::uint32_t dim = 0;      ///< head_dim: 2 to 65534
    double rotary_percent = 1;  ///< rotated share, rounded down; above 0; 1 and above: all
    double seq_len_interpolation_factor = 0;               ///< divides positions; finite; 0: None
    std::uint64_t pretrained_max_position_embeddings = 0;  ///< at most 2^31; 0: None
    double rotary_base = 10000;                            ///< finite and above 0
    bool interleaved = false;
    std::uint64_t max_seq_len = 0;  ///< of forward, at most 2^31; 0: within the product
};

/// A rotation from TransformerEngine's arguments. Rotation::longest_seq_len is the longest sequence
/// that the frequencies of an interpolation are valid for.
Result<Rotation> rotation_from_transformer_engine(const TransformerEngineRope& rope);

}  // namespace vkrope
