// SPDX-License-Identifier: MIT
// Norms, biases, clip and scale for C, and their parameter buffer.
#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

static_assert(VKROPE_NORM_RMS == int(NormKind::rms) && VKROPE_NORM_LAYER == int(NormKind::layer));
static_assert(VKROPE_NORM_SPAN_TOKEN == int(NormSpan::token));
static_assert(VKROPE_NORM_PLACE_AFTER == int(NormPlace::after));
static_assert(VKROPE_PARAMETER_CHANNEL == int(ParameterShape::channel) &&
              VKROPE_PARAMETER_HEAD_CHANNEL == int(ParameterShape::head_channel) &&
              VKROPE_PARAMETER_TENSOR == int(ParameterShape::tensor) &&
              VKROPE_PARAMETER_HEAD == int(ParameterShape::head));
static_assert(VKROPE_STORE_SCALE_GIVEN == int(StoreScale::given) &&
              VKROPE_STORE_SCALE_GIVEN_HEAD == int(StoreScale::given_head) &&
              VKROPE_STORE_SCALE_MADE == int(StoreScale::made) &&
              VKROPE_STORE_SCALE_MADE_POWER_OF_TWO == int(StoreScale::made_power_of_two));
static_assert(VKROPE_SCALE_LAYOUT_PAGES_HEADS == int(ScaleLayout::pages_heads));

Status read_norm(const vkrope_norm* from, Norm& norm) noexcept {
    vkrope_norm c;
    if (Status s = read_optional(from, "norm", c); !s) return s;
    norm.kind = enum_from<NormKind>(c.kind);
    norm.span = enum_from<NormSpan>(c.span);
    norm.place = enum_from<NormPlace>(c.place);
    norm.eps = c.eps;
    norm.weight = enum_from<ParameterShape>(c.weight);
    norm.weight_offset = c.weight_offset;
    norm.bias = enum_from<ParameterShape>(c.bias);
    norm.round_between = c.round_between;
    return {};
}

vkrope_parameter_item to_c(const ParameterItem& item) noexcept {
    return {vkrope_parameter_shape(item.shape), item.offset, item.count, item.added};
}
vkrope_tensor_parameters to_c(const TensorParameters& of) noexcept {
    return {to_c(of.bias), to_c(of.weight), to_c(of.norm_bias), to_c(of.store_scale)};
}

ParameterItem to_cpp(const vkrope_parameter_item& item) noexcept {
    return {enum_from<ParameterShape>(item.shape), item.offset, item.count, item.added};
}
TensorParameters to_cpp(const vkrope_tensor_parameters& of) noexcept {
    return {to_cpp(of.bias), to_cpp(of.weight), to_cpp(of.norm_bias), to_cpp(of.store_scale)};
}

ParameterSource to_cpp(const vkrope_parameter_source& source) noexcept {
    return {source.data, enum_from<Element>(source.element), source.count};
}
TensorParameterSources to_cpp(const vkrope_tensor_parameter_sources& of) noexcept {
    return {to_cpp(of.bias), to_cpp(of.weight), to_cpp(of.norm_bias), to_cpp(of.store_scale)};
}

void set(const Finish& from, vkrope_rotation::Finished& to) noexcept {
    const Norm& norm = from.norm;
    to.norm.struct_size = sizeof to.norm;
    to.norm.kind = vkrope_norm_kind(norm.kind);
    to.norm.span = vkrope_norm_span(norm.span);
    to.norm.place = vkrope_norm_place(norm.place);
    to.norm.eps = norm.eps;
    to.norm.weight = vkrope_parameter_shape(norm.weight);
    to.norm.weight_offset = norm.weight_offset;
    to.norm.bias = vkrope_parameter_shape(norm.bias);
    to.norm.round_between = norm.round_between;
    to.finish.struct_size = sizeof to.finish;
    if (norm.kind != NormKind::none) to.finish.norm = &to.norm;
    to.finish.bias = vkrope_parameter_shape(from.bias);
    to.finish.clip = from.clip;
    to.finish.scale = from.scale;
    to.finish.scale_call = from.scale_call;
    to.finish.scale_tokens = from.scale_tokens;
    to.finish.hadamard = from.hadamard;
    to.finish.store_scale = vkrope_store_scale(from.store_scale);
    to.finish.scale_floor = from.scale_floor;
    to.finish.scale_layout = vkrope_scale_layout(from.scale_layout);
}

}  // namespace

void vkrope::c::set_finish(vkrope_rotation& rotation) noexcept {
    const ModelFinish& finish = rotation.of.finish;
    set(finish.q, rotation.q_finish);
    set(finish.k, rotation.k_finish);
    set(finish.v, rotation.v_finish);
    rotation.query_scale = {};
    rotation.query_scale.struct_size = sizeof rotation.query_scale;
    rotation.query_scale.kind = vkrope_query_scaling(finish.query_scale.kind);
    rotation.query_scale.length = finish.query_scale.length;
    rotation.query_scale.beta = finish.query_scale.beta;
}

vkrope_result vkrope_rotation_get_finish(const vkrope_rotation* rotation,
                                         vkrope_model_finish* finish, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        vkrope_model_finish c = {};
        c.q = &rotation->q_finish.finish;
        c.k = &rotation->k_finish.finish;
        c.v = &rotation->v_finish.finish;
        c.query_scale = &rotation->query_scale;
        c.q_heads = rotation->of.finish.q_heads;
        c.k_heads = rotation->of.finish.k_heads;
        c.norms_known = rotation->of.finish.norms_known ? VK_TRUE : VK_FALSE;
        return write(c, "finish", finish);
    });
}

Status vkrope::c::read_finish(const vkrope_finish* from, const char* name,
                              Finish& finish) noexcept {
    vkrope_finish c;
    if (Status s = read_optional(from, name, c); !s) return s;
    if (Status s = read_norm(c.norm, finish.norm); !s) return s;
    finish.bias = enum_from<ParameterShape>(c.bias);
    finish.clip = c.clip;
    if (c.scale != 0) finish.scale = c.scale;
    finish.scale_call = c.scale_call;
    finish.scale_tokens = c.scale_tokens;
    finish.hadamard = c.hadamard;
    finish.store_scale = enum_from<StoreScale>(c.store_scale);
    finish.scale_floor = c.scale_floor;
    finish.scale_layout = enum_from<ScaleLayout>(c.scale_layout);
    return {};
}

vkrope_hadamard_blocks vkrope_hadamard_of_llama_cpp(uint32_t k_head_dim, VkBool32 k_quantised,
                                                    uint32_t v_head_dim, VkBool32 v_quantised) {
    const HadamardBlocks blocks = hadamard_of_llama_cpp(k_head_dim, k_quantised, v_head_dim,
                                                        v_quantised);
    return {blocks.q_and_k, blocks.v};
}

vkrope_result vkrope_plan_parameters(const vkrope_kernel_info* info, vkrope_parameter_plan* plan,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        KernelInfo of;
        if (Status s = read_info(info, of); !s) return s;
        const Result<ParameterPlan> made = plan_parameters(of);
        if (!made) return made.status;
        vkrope_parameter_plan c = {};
        c.q = to_c(made->tensor[Q]);
        c.k = to_c(made->tensor[K]);
        c.v = to_c(made->tensor[V]);
        c.bytes = made->bytes;
        return write(c, "plan", plan);
    });
}

vkrope_result vkrope_fill_parameters(const vkrope_parameter_plan* plan,
                                     const vkrope_parameter_sources* sources, void* memory,
                                     size_t bytes, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        vkrope_parameter_plan planned;
        if (Status s = read(plan, "plan", planned); !s) return s;
        vkrope_parameter_sources given;
        if (Status s = read(sources, "sources", given); !s) return s;
        const ParameterPlan of = {to_cpp(planned.q), to_cpp(planned.k), to_cpp(planned.v),
                                  planned.bytes};
        return fill_parameters(of, {to_cpp(given.q), to_cpp(given.k), to_cpp(given.v)}, memory,
                               bytes);
    });
}
