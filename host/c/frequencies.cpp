// SPDX-License-Identifier: MIT
// Frequencies and their scalings for C.
#include "vkrope/frequencies.hpp"

#include <algorithm>
#include <cstdint>

#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

static_assert(VKROPE_QUERY_SCALING_MINISTRAL3 == int(QueryScaling::ministral3));

// Runs `scale` on the caller's frequencies; they change only if it succeeds.
template <class Scale>
Status scale_in_place(double* inv_freq, std::size_t count, Scale&& scale) {
    if (Status s = not_null(inv_freq, "inv_freq"); !s) return s;
    if (count > PTRDIFF_MAX / sizeof(double)) {
        return error(Code::invalid_argument,
                     "count is %llu: that many elements do not fit in memory", ull{count});
    }
    std::vector<double> scaled(inv_freq, inv_freq + count);
    if (Status s = scale(scaled); !s) return s;
    std::copy(scaled.begin(), scaled.end(), inv_freq);
    return {};
}

// Scalings that also give factors: these are written only if all succeeds, as the frequencies are.
template <class Scale>
Status scale_with_factor(double* inv_freq, std::size_t count, double* attention_factor,
                         Scale&& scale) {
    if (Status s = not_null(attention_factor, "attention_factor"); !s) return s;
    double factor = 1;
    const Status status = scale_in_place(
        inv_freq, count, [&](std::vector<double>& scaled) { return scale(scaled, factor); });
    if (status) *attention_factor = factor;
    return status;
}

}  // namespace

vkrope_result vkrope_default_inv_freq(double base, uint32_t rotary_dim, double* inv_freq,
                                      vkrope_error* error) {
    return guarded(error, [&] { return default_inv_freq(base, rotary_dim, inv_freq); });
}

vkrope_result vkrope_scale_linear(double* inv_freq, size_t count, double factor,
                                  vkrope_error* error) {
    return guarded(error, [&] {
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_linear(scaled, factor);
        });
    });
}

vkrope_result vkrope_scale_llama3(double* inv_freq, size_t count,
                                  const vkrope_llama3_scaling* scaling, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_llama3_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        const Llama3Scaling numbers = {c.factor, c.low_freq_factor, c.high_freq_factor,
                                       c.original_max_position_embeddings};
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_llama3(scaled, numbers);
        });
    });
}

vkrope_result vkrope_inclusive_inv_freq(double base, uint32_t rotary_dim, double* inv_freq,
                                        vkrope_error* error) {
    return guarded(error, [&] { return inclusive_inv_freq(base, rotary_dim, inv_freq); });
}

vkrope_result vkrope_proportional_inv_freq(double base, uint32_t head_dim,
                                           const vkrope_proportional_scaling* scaling,
                                           double* inv_freq, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_proportional_scaling c;
        if (Status s = read_optional(scaling, "scaling", c); !s) return s;
        return proportional_inv_freq(base, head_dim,
                                     {or_one(c.factor), or_one(c.partial_rotary_factor)}, inv_freq);
    });
}

vkrope_result vkrope_scale_positions(double* inv_freq, size_t count, double seq_scale,
                                     vkrope_error* error) {
    return guarded(error, [&] {
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_positions(scaled, seq_scale);
        });
    });
}

vkrope_result vkrope_stop_slow_pairs(double* inv_freq, size_t count, double length,
                                     vkrope_error* error) {
    return guarded(error, [&] {
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return stop_slow_pairs(scaled, length);
        });
    });
}

vkrope_result vkrope_scale_divisors(double* inv_freq, size_t count, const double* divisors,
                                    vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(divisors, "divisors"); !s) return s;
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_divisors(scaled, divisors, count);
        });
    });
}

vkrope_result vkrope_scale_ntk(double* inv_freq, size_t count, double alpha, vkrope_error* error) {
    return guarded(error, [&] {
        return scale_in_place(
            inv_freq, count, [&](std::vector<double>& scaled) { return scale_ntk(scaled, alpha); });
    });
}

vkrope_result vkrope_scale_dynamic_ntk(double* inv_freq, size_t count,
                                       const vkrope_dynamic_ntk_scaling* scaling, uint64_t seq_len,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_dynamic_ntk_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        const DynamicNtkScaling numbers = {c.factor, c.max_position_embeddings};
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_dynamic_ntk(scaled, numbers, seq_len);
        });
    });
}

vkrope_result vkrope_scale_yarn(double* inv_freq, size_t count, double base,
                                const vkrope_yarn_scaling* scaling, double* attention_factor,
                                vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_yarn_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        YarnScaling numbers;
        numbers.factor = c.factor;
        numbers.original_max_position_embeddings = c.original_max_position_embeddings;
        numbers.beta_fast = value_or(c.beta_fast, numbers.beta_fast);
        numbers.beta_slow = value_or(c.beta_slow, numbers.beta_slow);
        numbers.truncate = !c.truncate || *c.truncate;
        numbers.attention_factor = c.attention_factor;
        numbers.mscale = c.mscale;
        numbers.mscale_all_dim = c.mscale_all_dim;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_yarn(scaled, base, numbers, factor);
                                 });
    });
}

vkrope_result vkrope_scale_deepseek_yarn(double* inv_freq, size_t count, double base,
                                         const vkrope_deepseek_yarn_scaling* scaling,
                                         double* attention_factor, double* softmax_scale,
                                         vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_deepseek_yarn_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        if (Status s = not_null(softmax_scale, "softmax_scale"); !s) return s;
        DeepseekYarnScaling numbers;
        numbers.factor = c.factor;
        numbers.original_max_position_embeddings = c.original_max_position_embeddings;
        numbers.beta_fast = value_or(c.beta_fast, numbers.beta_fast);
        numbers.beta_slow = value_or(c.beta_slow, numbers.beta_slow);
        numbers.mscale = c.mscale;
        numbers.mscale_all_dim = c.mscale_all_dim;
        double scale = 1;
        const Status status = scale_with_factor(
            inv_freq, count, attention_factor, [&](std::vector<double>& scaled, double& factor) {
                return scale_deepseek_yarn(scaled, base, numbers, factor, scale);
            });
        if (status) *softmax_scale = scale;
        return status;
    });
}

vkrope_result vkrope_scale_longrope(double* inv_freq, size_t count,
                                    const vkrope_longrope_scaling* scaling, uint64_t seq_len,
                                    double* attention_factor, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_longrope_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        LongRopeScaling numbers;
        numbers.short_factor = c.short_factor;
        numbers.long_factor = c.long_factor;
        numbers.count = c.count;
        numbers.original_max_position_embeddings = c.original_max_position_embeddings;
        numbers.factor = c.factor;
        numbers.attention_factor = c.attention_factor;
        numbers.short_mscale = c.short_mscale;
        numbers.long_mscale = c.long_mscale;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_longrope(scaled, numbers, seq_len, factor);
                                 });
    });
}

vkrope_result vkrope_scale_ggml(double* inv_freq, size_t count, double base,
                                const vkrope_ggml_scaling* scaling, double* attention_factor,
                                vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_ggml_scaling c;
        if (Status s = read(scaling, "scaling", c); !s) return s;
        GgmlScaling numbers;
        numbers.freq_scale = c.freq_scale;
        numbers.ext_factor = c.ext_factor;
        numbers.attn_factor = c.attn_factor;
        numbers.beta_fast = c.beta_fast;
        numbers.beta_slow = c.beta_slow;
        numbers.n_ctx_orig = c.n_ctx_orig;
        numbers.n_dims = c.n_dims;
        numbers.freq_factors = c.freq_factors;
        numbers.freq_factor_count = c.freq_factor_count;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_ggml(scaled, base, numbers, factor);
                                 });
    });
}

vkrope_result vkrope_query_scales(const vkrope_query_scale* scale, const int32_t* positions,
                                  size_t count, float* scales, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_query_scale c;
        if (Status s = read(scale, "scale", c); !s) return s;
        return query_scales({enum_from<QueryScaling>(c.kind), c.length, c.beta}, positions, count,
                            scales);
    });
}

VkBool32 vkrope_is_quantised(vkrope_element element) {
    return is_quantised(enum_from<Element>(element));
}

uint32_t vkrope_block_channels(vkrope_element element) {
    return block_channels(enum_from<Element>(element));
}

uint32_t vkrope_element_bytes(vkrope_element element) {
    return element_bytes(enum_from<Element>(element));
}
