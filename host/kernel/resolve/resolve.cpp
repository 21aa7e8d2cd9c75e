// SPDX-License-Identifier: MIT
// Implements resolve(): checks a Call and converts it to a ResolvedCall.
#include "kernel/resolve/resolve.hpp"

#include <algorithm>
#include <cinttypes>

#include "base/angle_layout.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

// Checks that input and output of a tensor are both present or both absent.
Status check_present(const TensorNames& names, const TensorInfo& info, const Tensor& in,
                     const Tensor& out) noexcept {
    if (in.heads != out.heads)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.heads is %u: it must be %s.heads, %u",
                     names.out, out.heads, names.in, in.heads);
    if (in.heads != 0 && info.head_dim == 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.heads is %u: the kernel was created without %s (head_dim 0)", names.in,
                     in.heads, names.name);
    }
    if (in.heads != 0 && info.heads != 0 && in.heads != info.heads) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.heads is %u: the kernel was created for %s %u", names.in, in.heads,
                     names.heads, info.heads);
    }
    return {};
}

// Returns the error for tensors that overlap. Names a stride that was left at 0, token_stride
// first, because packed QKV is the likely case.
Status overlap_of(const TensorRows& a, const TensorRows& b) noexcept {
    constexpr std::uint32_t ranks[] = {2, 3, 1, 0};  // Axis::rank: token, batch, group, head
    for (const std::uint32_t rank : ranks) {
        for (const TensorRows* rows : {&a, &b}) {
            const Axes axes = axes_of(*rows);
            for (std::uint32_t i = 0; i < axes.count; ++i) {
                const Axis& axis = axes.of[i];
                if (!axis.packed || axis.rank != rank) continue;
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "%s and %s overlap: they must be disjoint; %s.%s is 0, which stands "
                             "for %" PRIu64 " elements",
                             a.name, b.name, axis.owner, axis.field,
                             axis.stride * rows->view.channels);
            }
        }
    }
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s and %s overlap: they must be disjoint", a.name,
                 b.name);
}

Status resolve_token_count(const StorageLimits& limits, const Call& call,
                           ResolvedCall& resolved) noexcept {
    if (call.tokens > shader::first_token_counts)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tokens is %u: with token_count it must be at most 2^31", call.tokens);
    const VkDescriptorBufferInfo& where = call.token_count;
    if (!where.buffer)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "token_count.buffer is null: the kernel was created with token_count");
    std::uint32_t offset = 0;
    if (Status s = bind_words("token_count", where, 4, limits, resolved.token_count, offset); !s)
        return s;
    if (offset == 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "token_count.offset is %" PRIu64
                 ": on this device it must be a multiple of %" PRIu64,
                 where.offset, binding_alignment(limits));
}

// Resolves what only a kernel that rotates has: positions and angles.
Status resolve_rotation(const KernelInfo& info, const StorageLimits& limits, const Call& call,
                        ResolvedCall& resolved) noexcept {
    if (Status s = resolve_positions(info, call, resolved); !s) return s;
    if (Status s = resolve_angles(info, limits, call.angles, resolved); !s) return s;
    if (Status s = resolve_gain(call, resolved); !s) return s;
    const bool rotates = call.in[Q].heads != 0 || call.in[K].heads != 0;
    if (info.positions != VKROPE_POSITIONS_IMPLICIT || !rotates || is_given(call.out_of_range))
        return {};
    return check_covered(call, resolved.position_step);
}

}  // namespace

Result<ResolvedCall> resolve(const KernelInfo& info, const OpsNeeds& needs,
                             const StorageLimits& limits, const Call& call) noexcept {
    Result<ResolvedCall> result;
    ResolvedCall& resolved = result.value;
    if (Status s = check_enumerator(nullptr, "direction", call.direction, VKROPE_INVERSE); !s)
        return {s, {}};
    if (Status s = check_enumerator(nullptr, "gain", call.gain, VKROPE_GAIN_DIVIDE_OUT); !s)
        return {s, {}};
    for (const TensorIndex t : every_tensor)
        if (Status s = check_present(names_of[t], info.tensor[t], call.in[t], call.out[t]); !s)
            return {s, {}};
    if (Status s = check_unused(info, needs.parameter_bytes, call); !s) return {s, {}};
    if (call.angles.layout) {
        if (Status s = check_layout("angles.layout->", *call.angles.layout); !s) return {s, {}};
    }
    if (is_given(call.out_of_range) && !call.out_of_range.buffer)
        return {error(VKROPE_ERROR_INVALID_ARGUMENT, "out_of_range.buffer is null"), {}};
    const bool empty = call.in[Q].heads == 0 && call.in[K].heads == 0 && call.in[V].heads == 0;
    if (call.tokens == 0 || empty) return result;
    resolved.batch = sequences_of(call);
    resolved.tokens = call.tokens;
    if (info.token_count) {
        if (Status s = resolve_token_count(limits, call, resolved); !s) return {s, {}};
    }

    const auto rows_of = [&](const char* name, const Tensor& tensor, Element element,
                             std::uint32_t head_dim, View& view) {
        if (tensor.heads != 0) {
            view.element_bytes = element_bytes(element);
            view.offset_bytes = is_quantised(element) ? 1 : view.element_bytes;
            view.channels = block_channels(element);
            view.head_dim = view.channels == 1 ? head_dim : head_dim / view.channels;
        }
        return TensorRows{name, tensor, sequences_of(call), call.tokens, view};
    };
    const auto both = [&](TensorIndex t) {
        const TensorInfo& of = info.tensor[t];
        ResolvedTensor& to = resolved.tensor[t];
        return InAndOut{rows_of(names_of[t].in, call.in[t], of.in, of.head_dim, to.in),
                        rows_of(names_of[t].out, call.out[t], of.out, of.head_dim, to.out)};
    };
    InAndOut rows[tensor_count] = {both(Q), both(K), both(V)};
    rows[V].in.cache_name = "in[2]: paged_cache";  // strides that fit K may be too short for V
    rows[V].out.cache_name = "out[2]: paged_cache";
    if (Status s = resolve_slots(info, call, resolved); !s) return {s, {}};
    for (const TensorIndex t : every_tensor) {
        if (call.in[t].heads == 0) continue;
        const PagedCache* from = t != Q && info.gather_kv ? &call.paged_cache : nullptr;
        const PagedCache* to = t != Q && info.scatter_kv ? &call.paged_cache : nullptr;
        if (Status s = resolve_tensor(info, t, from, to, rows[t], resolved.tensor[t]); !s)
            return {s, {}};
    }
    const bool share_slots = call.in[K].heads != 0 && call.in[V].heads != 0 &&
                             !v_has_own_slots(resolved);
    if (share_slots) {  // slots must be inside both caches
        ResolvedTensor &k = resolved.tensor[K], &v = resolved.tensor[V];
        k.pages = v.pages = std::min(k.pages, v.pages);
        k.source_pages = v.source_pages = std::min(k.source_pages, v.source_pages);
    }
    for (std::uint32_t i = 0; i < tensor_count; ++i) {
        if (call.in[i].heads == 0) continue;
        const auto& [a_in, a_out] = rows[i];
        for (std::uint32_t j = i + 1; j < tensor_count; ++j) {
            if (call.in[j].heads == 0) continue;
            const auto& [b_in, b_out] = rows[j];
            if (!disjoint(a_out, b_out)) return {overlap_of(a_out, b_out), {}};
            if (!disjoint(a_in, b_out)) return {overlap_of(a_in, b_out), {}};
            if (!disjoint(a_out, b_in)) return {overlap_of(a_out, b_in), {}};
        }
    }
    if (info.rotary_dim != 0) {
        if (Status s = resolve_rotation(info, limits, call, resolved); !s) return {s, {}};
    }
    if (needs.any) {
        if (Status s = resolve_ops(info, needs.parameter_bytes, limits, call, resolved); !s)
            return {s, {}};
    }
    if (is_given(call.out_of_range)) {
        if (Status s = bind_words("out_of_range", call.out_of_range, 4, limits,
                                  resolved.out_of_range, resolved.out_of_range_offset);
            !s)
            return {s, {}};
    }
    result.status = check_words_apart(info, call, resolved, rows);
    return result;
}

}  // namespace vkrope
