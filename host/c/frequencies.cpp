// SPDX-License-Identifier: MIT
// Tier "frequencies" for C: frequencies and their scalings, angle tables, parameters.
#include "vkrope/frequencies.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "c/handles.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

// Runs `scale` on the caller's frequencies; they change only if it succeeds.
template <class Scale>
Status scale_in_place(double* inv_freq, std::size_t count, Scale&& scale) {
    if (Status s = not_null(inv_freq, "inv_freq"); !s) return s;
    if (count > PTRDIFF_MAX / sizeof(double)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
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
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_llama3(scaled, *scaling);
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
    return guarded(error, [&] {
        return proportional_inv_freq(base, head_dim, scaling ? *scaling : ProportionalScaling{},
                                     inv_freq);
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
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        return scale_in_place(inv_freq, count, [&](std::vector<double>& scaled) {
            return scale_dynamic_ntk(scaled, *scaling, seq_len);
        });
    });
}

vkrope_result vkrope_scale_yarn(double* inv_freq, size_t count, double base,
                                const vkrope_yarn_scaling* scaling, double* attention_factor,
                                vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_yarn(scaled, base, *scaling, factor);
                                 });
    });
}

vkrope_result vkrope_scale_deepseek_yarn(double* inv_freq, size_t count, double base,
                                         const vkrope_deepseek_yarn_scaling* scaling,
                                         double* attention_factor, double* softmax_scale,
                                         vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        if (Status s = not_null(softmax_scale, "softmax_scale"); !s) return s;
        double scale = 1;
        const Status status = scale_with_factor(
            inv_freq, count, attention_factor, [&](std::vector<double>& scaled, double& factor) {
                return scale_deepseek_yarn(scaled, base, *scaling, factor, scale);
            });
        if (status) *softmax_scale = scale;
        return status;
    });
}

vkrope_result vkrope_scale_longrope(double* inv_freq, size_t count,
                                    const vkrope_longrope_scaling* scaling, uint64_t seq_len,
                                    double* attention_factor, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_longrope(scaled, *scaling, seq_len, factor);
                                 });
    });
}

vkrope_result vkrope_scale_ggml(double* inv_freq, size_t count, double base,
                                const vkrope_ggml_scaling* scaling, double* attention_factor,
                                vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(scaling, "scaling"); !s) return s;
        return scale_with_factor(inv_freq, count, attention_factor,
                                 [&](std::vector<double>& scaled, double& factor) {
                                     return scale_ggml(scaled, base, *scaling, factor);
                                 });
    });
}

vkrope_result vkrope_query_scales(const vkrope_query_scale* scale, const int32_t* positions,
                                  size_t count, float* scales, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(scale, "scale"); !s) return s;
        return query_scales(*scale, positions, count, scales);
    });
}

VkBool32 vkrope_is_quantised(vkrope_element element) {
    return is_quantised(element);
}

uint32_t vkrope_block_channels(vkrope_element element) {
    return block_channels(element);
}

uint32_t vkrope_element_bytes(vkrope_element element) {
    return element_bytes(element);
}

vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision, uint64_t max_position) {
    return default_angles(precision, max_position);
}

double vkrope_error_bound(vkrope_angle_source source, double attention_factor) {
    return error_bound(source, attention_factor);
}

uint64_t vkrope_turn_fraction(double inv_freq) {
    return turn_fraction(inv_freq);
}

Status vkrope::c::check_plan(const vkrope_angle_plan* plan, const char* name) noexcept {
    if (Status s = not_null(plan, name); !s) return s;
    std::uint32_t format;
    std::memcpy(&format, &plan->format, sizeof format);
    if (format == VK_FORMAT_UNDEFINED || format == VK_FORMAT_R32G32B32A32_SFLOAT) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.format is %u: it must be the format that vkrope_plan_angles chose, %u or %u",
                 name, format, unsigned(VK_FORMAT_UNDEFINED),
                 unsigned(VK_FORMAT_R32G32B32A32_SFLOAT));
}

vkrope_result vkrope_plan_angles(const vkrope_rotation* rotation, vkrope_angle_source source,
                                 uint64_t max_position, uint32_t max_image_side,
                                 vkrope_angle_plan* plan, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return hand_out(plan_angles(rotation->of, source, max_position, max_image_side), plan,
                        "plan");
    });
}

vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows, uint32_t row_stride,
                                        vkrope_element element, VkBool32 channel_angles,
                                        vkrope_angle_plan* plan, vkrope_error* error) {
    return guarded(error, [&] {
        return hand_out(plan_cos_sin_cache(pairs, rows, row_stride, element, channel_angles), plan,
                        "plan");
    });
}

vkrope_result vkrope_fill_angles(const vkrope_rotation* rotation, const vkrope_angle_plan* plan,
                                 void* memory, size_t bytes, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        if (Status s = check_plan(plan, "plan"); !s) return s;
        return fill_angles(rotation->of, *plan, memory, bytes);
    });
}

vkrope_result vkrope_get_angle_lines(const vkrope_angle_plan* plan, vkrope_angle_lines* lines,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = check_plan(plan, "plan"); !s) return s;
        return hand_out(Result<AngleLines>{{}, angle_lines(*plan)}, lines, "lines");
    });
}

vkrope_result vkrope_fill_angle_lines(const vkrope_rotation* rotation,
                                      const vkrope_angle_plan* plan, uint32_t first_line,
                                      uint32_t lines, void* memory, size_t bytes,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        if (Status s = check_plan(plan, "plan"); !s) return s;
        return fill_angles(rotation->of, *plan, first_line, lines, memory, bytes);
    });
}

vkrope_result vkrope_rotation_get_kernel_info(const vkrope_rotation* rotation,
                                              const vkrope_angle_plan* plan,
                                              const vkrope_element* q, const vkrope_element* k,
                                              const vkrope_element* v, vkrope_kernel_info* info,
                                              vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        if (Status s = check_plan(plan, "plan"); !s) return s;
        const auto type_of = [](const vkrope_element* type) {
            return type ? std::optional(*type) : std::nullopt;
        };
        return hand_out(kernel_info(rotation->of, *plan, type_of(q), type_of(k), type_of(v)), info,
                        "info");
    });
}

vkrope_result vkrope_plan_parameters(const vkrope_kernel_info* info, vkrope_parameter_plan* plan,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(info, "info"); !s) return s;
        return hand_out(plan_parameters(*info), plan, "plan");
    });
}

vkrope_result vkrope_fill_parameters(const vkrope_parameter_plan* plan,
                                     const vkrope_parameter_sources* sources, void* memory,
                                     size_t bytes, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(plan, "plan"); !s) return s;
        if (Status s = not_null(sources, "sources"); !s) return s;
        return fill_parameters(*plan, *sources, memory, bytes);
    });
}

vkrope_hadamard_blocks vkrope_hadamard_of_llama_cpp(uint32_t k_head_dim, VkBool32 k_quantised,
                                                    uint32_t v_head_dim, VkBool32 v_quantised) {
    return hadamard_of_llama_cpp(k_head_dim, k_quantised, v_head_dim, v_quantised);
}
