// SPDX-License-Identifier: MIT
// Checks and resolves norms, biases, clip, scales of the call, and Hadamard transforms.
#include "kernel/geometry/ops.hpp"

#include <cinttypes>
#include <cmath>

#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

constexpr std::uint32_t max_norm_head_dim = 4096;
constexpr float min_eps = 1e-20f, max_eps = 1;

constexpr std::uint32_t max_row_heads = 1024;

Status check_shape(const char* tensor, const char* field, ParameterShape shape,
                   std::uint32_t heads) noexcept {
    if (Status s = check_enumerator(tensor, field, shape, VKROPE_PARAMETER_HEAD_CHANNEL); !s)
        return s;
    if (shape != VKROPE_PARAMETER_HEAD_CHANNEL) return {};
    if (heads != 0) return check_head_count(tensor, heads);
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.%s is [heads, head_dim]: %s.heads must be above 0", tensor, field, tensor);
}

Status check_norm(const char* tensor, const Norm& norm, std::uint32_t head_dim,
                  std::uint32_t heads) noexcept {
    if (Status s = check_enumerator(tensor, "ops.norm.kind", norm.kind, VKROPE_NORM_LAYER); !s)
        return s;
    if (norm.kind == VKROPE_NORM_NONE) {
        if (norm.span == VKROPE_NORM_SPAN_HEAD && norm.place == VKROPE_NORM_PLACE_BEFORE &&
            norm.eps == 0 && norm.weight == VKROPE_PARAMETER_NONE && norm.weight_offset == 0 &&
            norm.bias == VKROPE_PARAMETER_NONE && !norm.round_between && norm.first_channel == 0 &&
            norm.channels == 0 && !norm.weight_bound && norm.weight_type == VKROPE_F32)
            return {};
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.kind is none: its other fields must have their defaults", tensor);
    }
    if (Status s = check_enumerator(tensor, "ops.norm.span", norm.span, VKROPE_NORM_SPAN_TOKEN); !s)
        return s;
    if (Status s = check_enumerator(tensor, "ops.norm.place", norm.place, VKROPE_NORM_PLACE_AFTER);
        !s)
        return s;
    if (!(norm.eps >= min_eps && norm.eps <= max_eps))
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.norm.eps is %g: it must be 1e-20 to 1",
                     tensor, double(norm.eps));
    if (Status s = check_norm_part(tensor, norm, head_dim); !s) return s;
    if (Status s = check_shape(tensor, "ops.norm.weight", norm.weight, heads); !s) return s;
    if (Status s = check_shape(tensor, "ops.norm.bias", norm.bias, heads); !s) return s;
    if (norm.weight_offset > 1)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.weight_offset is %u: it must be 0 or 1", tensor,
                     norm.weight_offset);
    if (norm.weight_offset != 0 && norm.weight == VKROPE_PARAMETER_NONE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.weight_offset is 1: norm.weight is none", tensor);
    if (norm.weight_bound && norm.weight == VKROPE_PARAMETER_NONE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.weight_bound is true: norm.weight is none", tensor);
    if (Status s = check_enumerator(tensor, "ops.norm.weight_type", norm.weight_type, VKROPE_INT4);
        !s)
        return s;
    if (!norm.weight_bound && norm.weight_type != VKROPE_F32)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.weight_type is %s: weight_bound is false, so it must be 0",
                     tensor, element_name(norm.weight_type));
    if (is_quantised(norm.weight_type))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.weight_type is %s: it must be f32, f16 or bf16", tensor,
                     element_name(norm.weight_type));
    if (norm.bias != VKROPE_PARAMETER_NONE && norm.kind != VKROPE_NORM_LAYER)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.bias is %u: only a layer norm has a bias", tensor,
                     unsigned(norm.bias));
    if (norm.span == VKROPE_NORM_SPAN_TOKEN && heads == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.span is token: %s.heads must be above 0", tensor, tensor);
    if (norm.span == VKROPE_NORM_SPAN_TOKEN && heads > max_row_heads)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s.heads is %u: a norm over a token takes at most %u heads", tensor, heads,
                     max_row_heads);
    if (head_dim > max_norm_head_dim)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s.head_dim is %u: a norm takes at most %u channels", tensor, head_dim,
                     max_norm_head_dim);
    return {};
}

constexpr std::uint32_t max_hadamard = 512;

Status check_hadamard(const char* tensor, const char* field, std::uint32_t block,
                      std::uint32_t head_dim) noexcept {
    if (block == 0) return {};
    if (block < 2 || block > max_hadamard || (block & (block - 1)) != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.%s is %u: it must be a power of two from 2 to %u, or 0", tensor, field,
                     block, max_hadamard);
    if (head_dim % block == 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.%s is %u: it must divide head_dim, %u",
                 tensor, field, block, head_dim);
}

Status check_second(TensorIndex index, const TensorInfo& of) noexcept {
    const char* const tensor = names_of[index].name;
    if (Status s = check_enumerator(tensor, "second_of", of.second_of, VKROPE_SECOND_INPUT); !s)
        return s;
    if (Status s = check_enumerator(tensor, "second", of.second, VKROPE_INT4); !s) return s;
    if (of.second_of == VKROPE_SECOND_NONE && of.second != VKROPE_F32)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.second is %s: second_of is none, so it must be 0", tensor,
                     element_name(of.second));
    if (of.second_of == VKROPE_SECOND_NONE) return {};
    if (index == Q)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.second_of is %u: only K and V have a second destination", tensor,
                     unsigned(of.second_of));
    if (of.second > VKROPE_BF16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.second is %s: it must be f32, f16 or bf16",
                     tensor, element_name(of.second));
    if (of.heads == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.second_of is %u: %s.heads must be above 0",
                     tensor, unsigned(of.second_of), tensor);
    return check_head_count(tensor, of.heads);
}

Status check_ops(const KernelInfo& info, TensorIndex index) noexcept {
    const TensorInfo& of = info.tensor[index];
    const char* const tensor = names_of[index].name;
    const Ops& ops = of.ops;
    const std::uint32_t head_dim = of.head_dim, heads = of.heads;
    if (Status s = check_shape(tensor, "ops.bias", ops.bias, heads); !s) return s;
    if (Status s = check_norm(tensor, ops.norm, head_dim, heads); !s) return s;
    if (!(ops.clip >= 0) || std::isinf(ops.clip))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.clip is %g: it must be finite and not negative", tensor,
                     double(ops.clip));
    if (!std::isfinite(ops.scale))
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.scale is %g: it must be finite", tensor,
                     double(ops.scale));
    if (ops.scale_call && index != Q)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scale_call is true: only Q has a q_scale", tensor);
    if (Status s = check_hadamard(tensor, "hadamard", ops.hadamard, head_dim); !s) return s;
    if (Status s = check_second(index, of); !s) return s;
    if (Status s = check_hadamard(tensor, "hadamard_of_input", ops.hadamard_of_input, head_dim); !s)
        return s;
    return check_scales(tensor, of, index != Q && info.scatter_kv, index != Q && info.gather_kv);
}

}  // namespace

Status check_ops(const KernelInfo& info) noexcept {
    for (const TensorIndex t : every_tensor)
        if (Status s = check_ops(info, t); !s) return s;
    if (!info.two_parameter_sets) return {};
    if (info.token_count)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "token_count is VK_TRUE: with two_parameter_sets it must be VK_FALSE");
    for (const TensorIndex t : every_tensor)
        if (info.tensor[t].ops.norm.weight_bound)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.ops.norm.weight_bound is true: with two_parameter_sets, weights have "
                         "two sets in parameters",
                         names_of[t].name);
    if (ops_needs(info).parameter_bytes != 0) return {};
    return error(
        VKROPE_ERROR_INVALID_ARGUMENT,
        "two_parameter_sets is VK_TRUE: the kernel has no weights, biases or given scales");
}

namespace {

Status resolve_scale(const Ops& ops, const Call& call, ResolvedCall& resolved) noexcept {
    if (!std::isfinite(call.q_scale))
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "q_scale is %g: it must be finite",
                     double(call.q_scale));
    resolved.q_scale = float(double(ops.scale) * double(q_scale_of(call)));
    if (std::isfinite(resolved.q_scale)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "q_scale is %g: its product with tensor[0].ops.scale %g exceeds float",
                 double(q_scale_of(call)), double(ops.scale));
}

Status resolve_scale_tokens(const char* name, const Ops& ops, const VkDescriptorBufferInfo& where,
                            const Call& call, std::optional<View>& scales) noexcept {
    if (!ops.scale_tokens) return {};
    View& view = scales.emplace();
    view.buffer = where.buffer;
    view.first_byte = where.offset;
    view.token = call.tokens > 1 ? 1 : 0;
    view.batch = sequences_of(call) > 1 ? call.tokens : 0;
    return check_words(name, where, std::uint64_t{sequences_of(call)} * call.tokens * 4);
}

Status resolve_second(const KernelInfo& info, TensorIndex index,
                      const VkDescriptorBufferInfo& where, ResolvedCall& resolved) noexcept {
    if (!has_second(info.tensor[index])) return {};
    const char* const name = names_of[index].second;
    if (where.offset % 256 != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.offset is %" PRIu64 ": it must be a multiple of 256", name, where.offset);
    resolved.tensor[index].second = {where.buffer, where.offset};
    const View view = second_of(info, resolved, index);
    const std::uint64_t elements = multiply_add(std::uint64_t{resolved.batch} * resolved.tokens,
                                                view.heads * view.head, 0);
    return check_words(name, where, multiply_add(elements, view.element_bytes, 3) / 4 * 4);
}

Status resolve_norm_weight(const TensorInfo& of, const char* name,
                           const VkDescriptorBufferInfo& where, const StorageLimits& limits,
                           ResolvedCall& resolved) noexcept {
    if (!of.ops.norm.weight_bound) return {};
    resolved.has_norm_weight = true;
    const std::uint64_t alignment = binding_alignment(limits);
    if (where.offset % alignment != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.offset is %" PRIu64 ": on this device it must be a multiple of %" PRIu64,
                     name, where.offset, alignment);
    VkDescriptorBufferInfo bound;
    std::uint32_t offset = 0;
    return bind_words(name, where, bound_weight_bytes(of), limits, bound, offset);
}

}  // namespace

View second_of(const KernelInfo& info, const ResolvedCall& call, TensorIndex index) noexcept {
    const TensorInfo& of = info.tensor[index];
    const ResolvedTensor& tensor = call.tensor[index];
    View view;
    view.buffer = tensor.second.buffer;
    view.first_byte = tensor.second.first_byte;
    view.element_bytes = view.offset_bytes = element_bytes(of.second);
    view.head_dim = of.head_dim;
    view.heads = view.heads_per_group = tensor.heads;
    view.head = of.head_dim;
    view.token = tensor.heads * view.head;
    view.batch = call.tokens * view.token;
    return view;
}

OpsNeeds ops_needs(const KernelInfo& info) noexcept {
    ParameterLayout plan;
    lay_out_parameters(info, plan);
    return {has_ops(info), moves_keys(info), info.two_parameter_sets ? 2 * plan.bytes : plan.bytes};
}

Status resolve_ops(const KernelInfo& info, std::size_t parameter_bytes, const StorageLimits& limits,
                   const Call& call, ResolvedCall& resolved) noexcept {
    if (Status s = resolve_scale(info.tensor[Q].ops, call, resolved); !s) return s;
    for (const TensorIndex t : every_tensor) {
        if (call.in[t].heads == 0) continue;
        const Ops& ops = info.tensor[t].ops;
        ResolvedTensor& tensor = resolved.tensor[t];
        if (Status s = resolve_scale_tokens(names_of[t].scale_tokens, ops, call.scale_tokens[t],
                                            call, tensor.scales);
            !s)
            return s;
        if (Status s = resolve_scales(info, t, call, resolved); !s) return s;
        if (Status s = resolve_second(info, t, call.second[t], resolved); !s) return s;
        if (Status s = resolve_norm_weight(info.tensor[t], names_of[t].norm_weight,
                                           call.norm_weight[t], limits, resolved);
            !s)
            return s;
    }
    if (parameter_bytes == 0) return {};
    if (info.two_parameter_sets &&
        (call.first_set_tokens == 0 || call.first_set_tokens >= call.tokens))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "first_set_tokens is %u: with two sets of parameters it must be at least 1 "
                     "and below tokens, %u, so that each has tokens; a kernel with one set is for "
                     "the others",
                     call.first_set_tokens, call.tokens);
    if (call.parameters.offset % 16 != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "parameters.offset is %" PRIu64 ": it must be a multiple of 16",
                     call.parameters.offset);
    return bind_words("parameters", call.parameters, parameter_bytes, limits, resolved.parameters,
                      resolved.parameters_offset);
}

}  // namespace vkrope
