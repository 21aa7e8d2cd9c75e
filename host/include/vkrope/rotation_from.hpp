// SPDX-License-Identifier: MIT
// Tier "frequencies": a rotation from the arguments that ggml calls its RoPE with, under its names
// and with its defaults. What is not an argument here belongs to the call: positions, layouts and
// directions (kernel.hpp). host/guide/model_files.md has a table for other libraries.
//
// Fails with Code::invalid_argument, which names the argument, its value and its rule. Angles are
// AnglePrecision::exact, although ggml computes them in float32.
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

}  // namespace vkrope
