// SPDX-License-Identifier: MIT
// A rotation from the arguments of ggml, for C.
#include "vkrope/rotation_from.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "c/convert.hpp"

using namespace vkrope;
using namespace vkrope::c;

vkrope_result vkrope_rotation_from_ggml(const vkrope_ggml_rope* rope, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        vkrope_ggml_rope c;
        if (Status s = read(rope, "rope", c); !s) return s;
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
        Result<Rotation> made = rotation_from_ggml(cpp);
        if (made) *rotation = wrap(std::move(made.value)).release();
        return made.status;
    });
}
