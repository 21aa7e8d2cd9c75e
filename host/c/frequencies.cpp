// SPDX-License-Identifier: MIT
// Tier "frequencies" for C.
#include "vkrope/frequencies.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

static_assert(VKROPE_PAIRING_INTERLEAVED == int(Pairing::interleaved));
static_assert(VKROPE_ANGLES_DIRECT_BUFFER == int(AngleSource::direct_buffer));
static_assert(VKROPE_ANGLES_FACTORED_TEXTURE == int(AngleSource::factored_texture));
static_assert(VKROPE_ANGLES_COMPUTED == int(AngleSource::computed));
static_assert(VKROPE_QUERY_SCALING_MINISTRAL3 == int(QueryScaling::ministral3));
static_assert(VKROPE_ANGLE_PRECISION_FLOAT32 == int(AnglePrecision::float32));

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

double value_or(double value, double otherwise) {
    return value == 0 ? otherwise : value;
}

double or_one(double value) {
    return value_or(value, 1);
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

bool rotates(const vkrope_rotation_info& info) {
    return !info.rotates || *info.rotates;
}

Status check(const vkrope_rotation_info& info) {
    if (enum_from<Pairing>(info.pairing) > Pairing::interleaved) {
        return error(Code::invalid_argument, "info.pairing is %u: it must be a vkrope_pairing",
                     unsigned(enum_from<Pairing>(info.pairing)));
    }
    if (enum_from<AnglePrecision>(info.precision) > AnglePrecision::float32) {
        return error(Code::invalid_argument,
                     "info.precision is %u: it must be a vkrope_angle_precision",
                     unsigned(enum_from<AnglePrecision>(info.precision)));
    }
    // Arrays come without their size, so a count that does not match rotary_dim must not be
    // trusted.
    const std::size_t count = info.inv_freq_count;
    if (count != info.rotary_dim / 2 && !(!rotates(info) && count == 0)) {
        return error(Code::invalid_argument,
                     "info.inv_freq_count is %llu: it must be rotary_dim / 2 = %u", ull{count},
                     info.rotary_dim / 2);
    }
    if (Status s = not_null(info.inv_freq, "info.inv_freq"); !s && count != 0) return s;
    if (Status s = not_null(info.warnings, "info.warnings"); !s && info.warning_count != 0)
        return s;
    for (std::size_t i = 0; i < info.warning_count; ++i) {
        if (!info.warnings[i])
            return error(Code::invalid_argument, "info.warnings[%llu] is null", ull{i});
    }
    return {};
}

Rotation to_cpp(const vkrope_rotation_info& info) {
    Rotation rotation;
    rotation.pairing = enum_from<Pairing>(info.pairing);
    rotation.head_dim = info.head_dim;
    rotation.rotary_dim = info.rotary_dim;
    rotation.q_rotary_offset = info.q_rotary_offset;
    rotation.k_rotary_offset = info.k_rotary_offset;
    rotation.inv_freq.assign(info.inv_freq, info.inv_freq + info.inv_freq_count);
    rotation.attention_factor = or_one(info.attention_factor);
    rotation.softmax_scale = or_one(info.softmax_scale);
    rotation.max_position = info.max_position;
    rotation.longest_seq_len = info.longest_seq_len;
    rotation.base = info.base;
    rotation.precision = enum_from<AnglePrecision>(info.precision);
    rotation.rotates = rotates(info);
    if (info.rope_type) rotation.rope_type = info.rope_type;
    rotation.warnings.assign(info.warnings, info.warnings + info.warning_count);
    return rotation;
}

vkrope_rotation_info to_c(const vkrope_rotation& rotation) {
    vkrope_rotation_info info = {};
    info.pairing = vkrope_pairing(rotation.of.pairing);
    info.head_dim = rotation.of.head_dim;
    info.rotary_dim = rotation.of.rotary_dim;
    info.q_rotary_offset = rotation.of.q_rotary_offset;
    info.k_rotary_offset = rotation.of.k_rotary_offset;
    info.rotates = &rotation.rotates;
    info.inv_freq = rotation.of.inv_freq.data();
    info.inv_freq_count = rotation.of.inv_freq.size();
    info.attention_factor = rotation.of.attention_factor;
    info.softmax_scale = rotation.of.softmax_scale;
    info.max_position = rotation.of.max_position;
    info.longest_seq_len = rotation.of.longest_seq_len;
    info.base = rotation.of.base;
    info.precision = vkrope_angle_precision(rotation.of.precision);
    info.rope_type = rotation.of.rope_type.c_str();
    info.warnings = rotation.warnings.data();
    info.warning_count = rotation.warnings.size();
    if (rotation.of.sections.axes != 0) info.sections = &rotation.sections;
    return info;
}

}  // namespace

namespace vkrope::c {

Status read_sections(const vkrope_sections* from, const char* name, Sections& sections) {
    vkrope_sections c;
    if (Status s = read_optional(from, name, c); !s) return s;
    sections.order = enum_from<SectionOrder>(c.order);
    if (sections.order > SectionOrder::interleaved)
        return error(Code::invalid_argument, "%s.order is %u: it must be a vkrope_section_order",
                     name, unsigned(sections.order));
    sections.axes = c.axes;
    static_assert(VKROPE_MAX_AXES == max_axes);
    std::copy(std::begin(c.pairs), std::end(c.pairs), sections.pairs);
    sections.leftover_axis = c.leftover_axis;
    return {};
}

std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation) {
    auto handle = std::make_unique<vkrope_rotation>();
    handle->of = std::move(rotation);
    for (const std::string& warning : handle->of.warnings)
        handle->warnings.push_back(warning.c_str());
    handle->rotates = handle->of.rotates;
    const Sections& sections = handle->of.sections;
    handle->sections.struct_size = sizeof handle->sections;
    handle->sections.order = vkrope_section_order(sections.order);
    handle->sections.axes = sections.axes;
    std::copy(std::begin(sections.pairs), std::end(sections.pairs), handle->sections.pairs);
    handle->sections.leftover_axis = sections.leftover_axis;
    set_finish(*handle);
    return handle;
}

enum class PlanFormat : std::uint32_t {};  // any number that C passes as a VkFormat

Status read_plan(const vkrope_angle_plan* from, const char* name, AnglePlan& plan) noexcept {
    vkrope_angle_plan c;
    if (Status s = read(from, name, c); !s) return s;
    if (c.bytes > std::numeric_limits<std::size_t>::max()) {
        return error(Code::invalid_argument,
                     "%s.bytes is %llu: it must fit in size_t, which holds at most %llu", name,
                     ull{c.bytes}, ull{std::numeric_limits<std::size_t>::max()});
    }
    const auto format = std::uint32_t(enum_from<PlanFormat>(c.format));
    if (format != VK_FORMAT_UNDEFINED && format != VK_FORMAT_R32G32B32A32_SFLOAT) {
        return error(
            Code::invalid_argument,
            "%s.format is %u: it must be the format that vkrope_plan_angles chose, %u or %u", name,
            format, unsigned(VK_FORMAT_UNDEFINED), unsigned(VK_FORMAT_R32G32B32A32_SFLOAT));
    }
    plan.source = enum_from<AngleSource>(c.source);
    plan.format = VkFormat(format);
    plan.extent = c.extent;
    plan.usage = c.usage;
    plan.bytes = std::size_t(c.bytes);
    plan.pairs = c.pairs;
    plan.rows = c.rows;
    plan.fold_log2 = c.fold_log2;
    plan.row_texels = c.row_texels;
    if (c.attention_factor != 0) plan.attention_factor = c.attention_factor;
    plan.element = enum_from<Element>(c.element);
    plan.row_stride = c.row_stride;
    plan.sections.order = enum_from<SectionOrder>(c.section_order);
    plan.sections.axes = c.axes;
    std::copy(std::begin(c.section_pairs), std::end(c.section_pairs), plan.sections.pairs);
    plan.sections.leftover_axis = c.leftover_axis;
    return {};
}

vkrope_angle_plan to_c(const AnglePlan& plan) noexcept {
    vkrope_angle_plan c = {};
    c.struct_size = sizeof c;
    c.source = vkrope_angle_source(plan.source);
    c.format = plan.format;
    c.extent = plan.extent;
    c.usage = plan.usage;
    c.pairs = plan.pairs;
    c.rows = plan.rows;
    c.fold_log2 = plan.fold_log2;
    c.row_texels = plan.row_texels;
    c.bytes = plan.bytes;
    c.attention_factor = plan.attention_factor;
    c.element = vkrope_element(plan.element);
    c.row_stride = plan.row_stride;
    c.section_order = vkrope_section_order(plan.sections.order);
    c.axes = plan.sections.axes;
    std::copy(std::begin(plan.sections.pairs), std::end(plan.sections.pairs), c.section_pairs);
    c.leftover_axis = plan.sections.leftover_axis;
    return c;
}

}  // namespace vkrope::c

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

uint64_t vkrope_turn_fraction(double inv_freq) {
    return turn_fraction(inv_freq);
}

vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision, uint64_t max_position) {
    return vkrope_angle_source(default_angles(enum_from<AnglePrecision>(precision), max_position));
}

double vkrope_error_bound(vkrope_angle_source source, double attention_factor) {
    return error_bound(enum_from<AngleSource>(source), attention_factor);
}

uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair) {
    Sections read;
    return read_sections(sections, "sections", read) && read.axes <= max_axes ? axis_of(read, pair)
                                                                              : 0;
}

uint32_t vkrope_row_channels(const vkrope_rotation* rotation, uint32_t rotary_offset) {
    return rotation ? row_channels(rotation->of, rotary_offset) : 0;
}

uint32_t vkrope_element_bytes(vkrope_element element) {
    return element_bytes(enum_from<Element>(element));
}

vkrope_result vkrope_rotation_create(const vkrope_rotation_info* info, vkrope_rotation** rotation,
                                     vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        vkrope_rotation_info c;
        if (Status s = read(info, "info", c); !s) return s;
        if (Status s = check(c); !s) return s;
        Rotation made = to_cpp(c);
        if (Status s = read_sections(c.sections, "info.sections", made.sections); !s) return s;
        *rotation = wrap(std::move(made)).release();
        return {};
    });
}

vkrope_result vkrope_rotation_get_info(const vkrope_rotation* rotation, vkrope_rotation_info* info,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return write(to_c(*rotation), "info", info);
    });
}

void vkrope_rotation_destroy(vkrope_rotation* rotation) {
    delete rotation;
}

vkrope_result vkrope_plan_angles(const vkrope_rotation* rotation, vkrope_angle_source source,
                                 uint64_t max_position, uint32_t max_image_side,
                                 vkrope_angle_plan* plan, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        const Result<AnglePlan> made = plan_angles(rotation->of, enum_from<AngleSource>(source),
                                                   max_position, max_image_side);
        if (!made) return made.status;
        return write(c::to_c(made.value), "plan", plan);
    });
}

vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows, uint32_t row_stride,
                                        vkrope_element element, vkrope_angle_plan* plan,
                                        vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        const Result<AnglePlan> made = plan_cos_sin_cache(pairs, rows, row_stride,
                                                          enum_from<Element>(element));
        if (!made) return made.status;
        return write(c::to_c(made.value), "plan", plan);
    });
}

vkrope_result vkrope_fill_angles(const vkrope_rotation* rotation, const vkrope_angle_plan* plan,
                                 void* memory, size_t bytes, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        AnglePlan filled;
        if (Status s = read_plan(plan, "plan", filled); !s) return s;
        return fill_angles(rotation->of, filled, memory, bytes);
    });
}

vkrope_result vkrope_get_angle_lines(const vkrope_angle_plan* plan, vkrope_angle_lines* lines,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        AnglePlan divided;
        if (Status s = read_plan(plan, "plan", divided); !s) return s;
        const AngleLines of = angle_lines(divided);
        vkrope_angle_lines c = {};
        c.count = of.count;
        c.bytes = of.bytes;
        return write(c, "lines", lines);
    });
}

vkrope_result vkrope_fill_angle_lines(const vkrope_rotation* rotation,
                                      const vkrope_angle_plan* plan, uint32_t first_line,
                                      uint32_t lines, void* memory, size_t bytes,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        AnglePlan filled;
        if (Status s = read_plan(plan, "plan", filled); !s) return s;
        return fill_angles(rotation->of, filled, first_line, lines, memory, bytes);
    });
}
