// SPDX-License-Identifier: MIT
// resolve(): checks a Call and turns it into a ResolvedCall.
#include "kernel/resolve/resolve.hpp"

#include <algorithm>
#include <cinttypes>
#include <iterator>
#include <utility>

#include "kernel/resolve/rules.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// Input and output of a tensor are both present, or neither is.
Status check_present(const char* name, const TensorInfo& format, std::uint32_t heads,
                     const Tensor& in, const Tensor& out) noexcept {
    if (in.heads != out.heads)
        return error(Code::invalid_argument, "%s_out.heads is %u: it must be %s_in.heads, %u", name,
                     out.heads, name, in.heads);
    if (in.heads != 0 && format.head_dim == 0) {
        return error(Code::invalid_argument,
                     "%s_in.heads is %u: the kernel was created without %s (head_dim 0)", name,
                     in.heads, name);
    }
    if (in.heads != 0 && heads != 0 && in.heads != heads) {
        return error(Code::invalid_argument,
                     "%s_in.heads is %u: the kernel was created for %s_heads %u", name, in.heads,
                     name, heads);
    }
    return {};
}

// The error for tensors that overlap. Names a stride that was left at 0, token_stride first, since
// packed QKV is the likely case.
Status overlap_of(const TensorRows& a, const TensorRows& b) noexcept {
    constexpr std::uint32_t ranks[] = {2, 3, 1, 0};  // of Axis: token, batch, group, head
    for (const std::uint32_t rank : ranks) {
        for (const TensorRows* rows : {&a, &b}) {
            const Axes axes = axes_of(*rows);
            for (std::uint32_t i = 0; i < axes.count; ++i) {
                const Axis& axis = axes.of[i];
                if (!axis.packed || axis.rank != rank) continue;
                return error(Code::invalid_argument,
                             "%s and %s overlap: they must be disjoint; %s.%s is 0, which stands "
                             "for %" PRIu64 " elements",
                             a.name, b.name, axis.owner, axis.field,
                             axis.stride * rows->view.channels);
            }
        }
    }
    return error(Code::invalid_argument, "%s and %s overlap: they must be disjoint", a.name,
                 b.name);
}

}  // namespace

Result<ResolvedCall> resolve(const KernelInfo& info, const FinishNeeds& needs,
                             const StorageLimits& limits, const Call& call) noexcept {
    Result<ResolvedCall> result;
    ResolvedCall& resolved = result.value;
    if (call.direction > Direction::inverse)
        return {error(Code::invalid_argument, "direction is %u: not a valid direction",
                      unsigned(call.direction)),
                {}};
    if (Status s = check_present("q", info.tensor[Q], info.tensor[Q].heads, call.in[Q],
                                 call.out[Q]);
        !s)
        return {s, {}};
    if (Status s = check_present("k", info.tensor[K], info.tensor[K].heads, call.in[K],
                                 call.out[K]);
        !s)
        return {s, {}};
    if (Status s = check_present("v", info.tensor[V], info.tensor[V].heads, call.in[V],
                                 call.out[V]);
        !s)
        return {s, {}};
    if (Status s = check_unused(info, needs.parameter_bytes, call); !s) return {s, {}};
    const bool empty = call.in[Q].heads == 0 && call.in[K].heads == 0 && call.in[V].heads == 0;
    if (call.tokens == 0 || call.batch == 0 || empty) return result;
    resolved.batch = call.batch;
    resolved.tokens = call.tokens;

    const auto rows_of = [&](const char* name, const Tensor& tensor, Element element,
                             const TensorInfo& format, View& view) {
        if (tensor.heads != 0) {
            view.element_bytes = element_bytes(element);
            view.offset_bytes = is_quantised(element) ? 1 : view.element_bytes;
            view.channels = block_channels(element);
            view.head_dim = view.channels == 1 ? format.head_dim : format.head_dim / view.channels;
        }
        return TensorRows{name, tensor, call.batch, call.tokens, view};
    };
    TensorRows q_in = rows_of("q_in", call.in[Q], info.tensor[Q].in, info.tensor[Q], resolved.q.in);
    TensorRows q_out = rows_of("q_out", call.out[Q], info.tensor[Q].out, info.tensor[Q],
                               resolved.q.out);
    TensorRows k_in = rows_of("k_in", call.in[K], info.tensor[K].in, info.tensor[K], resolved.k.in);
    TensorRows k_out = rows_of("k_out", call.out[K], info.tensor[K].out, info.tensor[K],
                               resolved.k.out);
    TensorRows v_in = rows_of("v_in", call.in[V], info.tensor[V].in, info.tensor[V], resolved.v.in);
    TensorRows v_out = rows_of("v_out", call.out[V], info.tensor[V].out, info.tensor[V],
                               resolved.v.out);
    v_out.cache_name = "v_out: paged_cache";  // its strides may suit K and be too short for V
    if (Status s = resolve_slots(info, call, resolved); !s) return {s, {}};
    const PagedCache* cache = resolved.slot_mapping.buffer ? &call.paged_cache : nullptr;
    if (call.in[Q].heads != 0) {
        if (Status s = resolve_tensor(info, info.tensor[Q], nullptr, true, q_in, q_out, resolved.q);
            !s)
            return {s, {}};
    }
    if (call.in[K].heads != 0) {
        if (Status s = resolve_tensor(info, info.tensor[K], cache, true, k_in, k_out, resolved.k);
            !s)
            return {s, {}};
    }
    if (call.in[V].heads != 0) {
        if (Status s = resolve_tensor(info, info.tensor[V], cache, false, v_in, v_out, resolved.v);
            !s)
            return {s, {}};
    }
    if (call.in[K].heads != 0 &&
        call.in[V].heads != 0)  // a slot outside either cache is out of range
        resolved.k.pages = resolved.v.pages = std::min(resolved.k.pages, resolved.v.pages);
    const std::pair<const TensorRows&, const TensorRows&> tensors[] = {
        {q_in, q_out}, {k_in, k_out}, {v_in, v_out}};
    for (std::size_t i = 0; i < std::size(tensors); ++i) {
        const auto& [a_in, a_out] = tensors[i];
        for (std::size_t j = a_in.tensor.heads == 0 ? std::size(tensors) : i + 1;
             j < std::size(tensors); ++j) {
            const auto& [b_in, b_out] = tensors[j];
            if (b_in.tensor.heads == 0) continue;
            if (!disjoint(a_out, b_out)) return {overlap_of(a_out, b_out), {}};
            if (!disjoint(a_in, b_out)) return {overlap_of(a_in, b_out), {}};
            if (!disjoint(a_out, b_in)) return {overlap_of(a_out, b_in), {}};
        }
    }
    if (Status s = resolve_positions(info, call, resolved); !s) return {s, {}};
    if (Status s = resolve_angles(info, limits, call.angles, resolved); !s) return {s, {}};
    if (Status s = resolve_gain(call, resolved); !s) return {s, {}};
    if (needs.any) {
        if (Status s = resolve_finish(info, needs.parameter_bytes, limits, call, resolved); !s)
            return {s, {}};
    }
    if (call.out_of_range.buffer != VK_NULL_HANDLE) {
        if (Status s = bind_words("out_of_range", call.out_of_range, 4, limits, resolved.status,
                                  resolved.status_offset);
            !s)
            return {s, {}};
    }
    result.status = check_words_apart(call, resolved,
                                      {&q_out, &k_out, &v_out, &q_in, &k_in, &v_in});
    return result;
}

}  // namespace vkrope
