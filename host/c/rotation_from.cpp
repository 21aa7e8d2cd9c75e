// SPDX-License-Identifier: MIT
// Rotations from the arguments of other libraries, for C.
#include "vkrope/rotation_from.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "c/convert.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

// Reads the struct of C and hands out the rotation that `make` makes of it.
template <class Rope, class Make>
vkrope_result make_from(const Rope* rope, vkrope_rotation** rotation, vkrope_error* error,
                        Make&& make) {
    return making(rotation, "rotation", error, [&]() -> Status {
        Rope c;
        if (Status s = read(rope, "rope", c); !s) return s;
        Result<Rotation> made = make(c);
        if (made) *rotation = wrap(std::move(made.value)).release();
        return made.status;
    });
}

}  // namespace

vkrope_result vkrope_rotation_from_ggml(const vkrope_ggml_rope* rope, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return make_from(rope, rotation, error, [](const vkrope_ggml_rope& c) {
        GgmlRope cpp;
        cpp.head_dim = c.head_dim;
        cpp.n_dims = c.n_dims;
        cpp.mode = c.mode;
        cpp.n_ctx_orig = c.n_ctx_orig;
        cpp.freq_base = value_or(c.freq_base, cpp.freq_base);
        cpp.freq_scale = c.freq_scale;
        cpp.ext_factor = c.ext_factor;
        cpp.attn_factor = or_one(c.attn_factor);
        cpp.beta_fast = value_or(c.beta_fast, cpp.beta_fast);
        cpp.beta_slow = value_or(c.beta_slow, cpp.beta_slow);
        cpp.freq_factors = c.freq_factors;
        cpp.freq_factor_count = c.freq_factor_count;
        std::copy(std::begin(c.sections), std::end(c.sections), cpp.sections);
        return rotation_from_ggml(cpp);
    });
}

vkrope_result vkrope_rotation_from_onnx(const vkrope_onnx_rope* rope, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return make_from(rope, rotation, error, [](const vkrope_onnx_rope& c) {
        OnnxRope cpp;
        cpp.interleaved = c.interleaved;
        cpp.num_heads = c.num_heads;
        cpp.rotary_embedding_dim = c.rotary_embedding_dim;
        cpp.scale = or_one(c.scale);
        cpp.channels = c.channels;
        cpp.four_dims = c.four_dims;
        cpp.cache_width = c.cache_width;
        return rotation_from_onnx(cpp);
    });
}

vkrope_result vkrope_rotation_from_flashinfer(const vkrope_flashinfer_rope* rope,
                                              vkrope_rotation** rotation, vkrope_error* error) {
    return make_from(rope, rotation, error, [](const vkrope_flashinfer_rope& c) {
        FlashinferRope cpp;
        cpp.head_dim = c.head_dim;
        cpp.rotary_dim = c.rotary_dim;
        cpp.interleave = c.interleave;
        cpp.rope_scale = or_one(c.rope_scale);
        cpp.rope_theta = value_or(c.rope_theta, cpp.rope_theta);
        cpp.low_freq_factor = c.low_freq_factor;
        cpp.high_freq_factor = c.high_freq_factor;
        cpp.old_context_len = c.old_context_len;
        return rotation_from_flashinfer(cpp);
    });
}

vkrope_result vkrope_rotation_from_mlx(const vkrope_mlx_rope* rope, vkrope_rotation** rotation,
                                       vkrope_error* error) {
    return make_from(rope, rotation, error, [](const vkrope_mlx_rope& c) {
        MlxRope cpp;
        cpp.head_dim = c.head_dim;
        cpp.dims = c.dims;
        cpp.traditional = c.traditional;
        cpp.base = c.base;
        cpp.scale = or_one(c.scale);
        cpp.freqs = c.freqs;
        cpp.freq_count = c.freq_count;
        return rotation_from_mlx(cpp);
    });
}

vkrope_result vkrope_rotation_from_transformer_engine(const vkrope_transformer_engine_rope* rope,
                                                      vkrope_rotation** rotation,
                                                      vkrope_error* error) {
    return make_from(rope, rotation, error, [](const vkrope_transformer_engine_rope& c) {
        TransformerEngineRope cpp;
        cpp.dim = c.dim;
        cpp.rotary_percent = or_one(c.rotary_percent);
        cpp.seq_len_interpolation_factor = c.seq_len_interpolation_factor;
        cpp.pretrained_max_position_embeddings = c.pretrained_max_position_embeddings;
        cpp.rotary_base = value_or(c.rotary_base, cpp.rotary_base);
        cpp.interleaved = c.interleaved;
        cpp.max_seq_len = c.max_seq_len;
        return rotation_from_transformer_engine(cpp);
    });
}
