// SPDX-License-Identifier: MIT
#include "kernel/dispatch_sequence.hpp"

#include <algorithm>

#include "base/bits.hpp"

namespace vkrope {

namespace {

// ---- One dispatch: a box of a job ----

// Binds the part of a tensor in a box. Sets `layout` to its strides and `offset` to its first
// element in the binding.
VkDescriptorBufferInfo place(const View& view, std::uint32_t group_heads, const Box& box,
                             bool z_is_group, const StorageLimits& limits,
                             shader::RowLayout& layout, std::uint32_t& offset) noexcept {
    const std::uint64_t first = view.first_byte +
                                offset_of(view, group_heads, box.first) * view.element_bytes;
    const VkDescriptorBufferInfo bound = binding_of(
        view.buffer, first, span_of(view, group_heads, box.count) * view.element_bytes, limits);
    const auto step = [](std::uint32_t count, std::uint64_t stride) {
        return count > 1 ? std::uint32_t(stride) : 0u;
    };
    offset = std::uint32_t((first - bound.offset) / view.offset_bytes);
    layout.head = step(box.count.heads, view.head);
    if (view.page_size != 0) {
        layout.z = step(box.count.pages, view.batch);
        layout.token = step(box.count.rows, view.token);
        return bound;
    }
    layout.z = z_is_group ? step(box.count.groups, view.group_step(group_heads))
                          : step(box.count.batch, view.batch);
    layout.token = step(box.count.tokens, view.token);
    return bound;
}

// The binding of a tensor is that of Q plus the tensor's index. Written buffers come last.
static_assert(shader::binding_k_in == shader::binding_q_in + K &&
              shader::binding_v_in == shader::binding_q_in + V &&
              shader::binding_v_scales == shader::binding_q_scales + V &&
              shader::binding_k_out == shader::binding_q_out + K &&
              shader::binding_v_out == shader::binding_q_out + V &&
              shader::binding_v_scales_out == shader::binding_q_scales_out + V &&
              shader::offset_k_in == shader::offset_q_in + K &&
              shader::offset_v_out == shader::offset_q_out + V &&
              shader::offset_v_scales == shader::offset_q_scales + V &&
              shader::binding_parameters < shader::binding_q_out &&
              shader::binding_out_of_range < shader::binding_turns);

// Push::offsets before packing, and the offset of V's made scales, which is in Push::flags.
struct Offsets {
    std::uint32_t of[shader::offset_q_scales_out + tensor_count] = {};

    void pack(std::uint32_t (&words)[4]) const noexcept {
        for (std::uint32_t i = 0; i < 4; ++i)
            words[i] = of[4 * i] | of[4 * i + 1] << 8 | of[4 * i + 2] << 16 | of[4 * i + 3] << 24;
    }
};

Dispatch dispatch_of(const Kernel& kernel, const Call& call, const ResolvedCall& resolved,
                     const Job& job, const Box& box) noexcept {
    Dispatch dispatch = {};
    dispatch.pipeline = job.pipeline;
    Bindings& bindings = dispatch.bindings;
    shader::Push& push = dispatch.push;
    const bool z_is_group = job.tiling.box.groups > 1;
    Work work = {};
    work.z = z_is_group ? box.count.groups : box.count.batch;
    work.tokens = box.count.tokens;
    Offsets offsets;
    std::uint32_t in_place = 0;
    // The tensors as the shader sees them: Q, K, and a V that shares K's dispatch and strides.
    const struct {
        std::uint32_t& heads;
        shader::RowLayout &in, &out;
        std::uint32_t in_place_flag;
    } seen_as[tensor_count] = {{work.q_heads, push.q_in, push.q_out, shader::flag_q_in_place},
                               {work.k_heads, push.k_in, push.k_out, shader::flag_k_in_place},
                               {work.k_heads, push.k_in, push.k_out, 0}};
    for (const TensorIndex t : every_tensor) {
        if (!job.has[t]) continue;
        const ResolvedTensor& of = resolved.tensor[t];
        const TensorIndex index = kernel.separate_dispatches ? Q : t == V && !job.has[K] ? K : t;
        const auto& seen = seen_as[index];
        const std::uint32_t group_heads = of.heads / job.tiling.whole.groups;
        Box own = box;
        // Tensors share a tiling only if it does not split the heads of a group.
        if (job.together()) own.count.heads = group_heads;
        seen.heads = own.count.heads;
        bindings.of[shader::binding_q_in + t] = place(of.in, group_heads, own, z_is_group,
                                                      kernel.storage_limits, seen.in,
                                                      offsets.of[shader::offset_q_in + index]);
        bindings.of[shader::binding_q_out + t] = place(of.out, group_heads, own, z_is_group,
                                                       kernel.storage_limits, seen.out,
                                                       offsets.of[shader::offset_q_out + index]);
        if (of.in_place) in_place |= seen.in_place_flag;
        shader::RowLayout packed;  // unused, since the shader computes these strides
        if (of.scales)
            bindings.of[shader::binding_q_scales + index] = place(
                *of.scales, 1, box, z_is_group, kernel.storage_limits, packed,
                offsets.of[shader::offset_q_scales + index]);
        if (!of.scales_out) continue;
        Box tokens = box;  // the scales of a token cover all heads
        tokens.first.groups = tokens.first.heads = 0;
        tokens.count.groups = tokens.count.heads = 1;
        bindings.of[shader::binding_q_scales_out + index] = place(
            *of.scales_out, 1, tokens, false, kernel.storage_limits, packed,
            offsets.of[shader::offset_q_scales_out + index]);
    }
    dispatch.shape = shape_of(job.pipeline->geometry, work);

    // Each token is counted in one box: the box of its first heads and, if the cache is split, of
    // the last pages.
    const Counts& whole = job.tiling.whole;
    const bool counts = box.first.heads == 0 && box.first.groups == 0 &&
                        box.first.pages + box.count.pages == whole.pages &&
                        box.first.rows + box.count.rows == whole.rows;
    const std::uint32_t first_head = job.pipeline->geometry.ops != shader::ops_none
                                         ? box.first.groups * whole.heads + box.first.heads
                                         : 0;
    push.tokens = work.tokens;
    push.heads = work.q_heads | work.k_heads << 16;
    push.flags = in_place |
                 offsets.of[shader::offset_q_scales_out + V] * shader::flag_v_scales_out |
                 (job.has[K] && job.has[V] ? shader::flag_v : 0) |
                 (call.direction == VKROPE_INVERSE ? shader::flag_inverse : 0) |
                 (counts && job.counts_positions ? shader::flag_count_positions : 0) |
                 (counts && job.counts_slots ? shader::flag_count_slots : 0) |
                 (z_is_group ? shader::flag_z_is_group : 0) |
                 (call.paged_cache.int64 ? shader::flag_slot_mapping_64 : 0) |
                 (call.positions.int64 ? shader::flag_ids_64 : 0) |
                 first_head * shader::flag_first_head;
    push.q_scale = bits_of(resolved.q_scale);
    bindings.of[shader::binding_parameters] = resolved.parameters;
    offsets.of[shader::offset_parameters] = resolved.parameters_offset;
    push.gain = bits_of(resolved.gain);
    push.first_position = std::uint32_t(call.positions.first) + box.first.tokens +
                          box.first.batch * resolved.position_step;
    shader::RowLayout ids = {}, slots = {};
    if (resolved.ids.buffer) {
        bindings.of[shader::binding_ids] = place(resolved.ids, 1, box, z_is_group,
                                                 kernel.storage_limits, ids,
                                                 offsets.of[shader::offset_ids]);
    }
    if ((job.has[K] || job.has[V]) && resolved.slot_mapping.buffer) {
        bindings.of[shader::binding_slot_mapping] = place(resolved.slot_mapping, 1, box, z_is_group,
                                                          kernel.storage_limits, slots,
                                                          offsets.of[shader::offset_slots]);
    }
    push.index_z = resolved.ids.buffer ? ids.z : z_is_group ? 0 : resolved.position_step;
    push.index_token = ids.token;
    push.index_axis = resolved.ids_axis;
    // The kernel's kind of positions leaves this field free for the tokens of the first set.
    if (kernel.info.two_parameter_sets)
        (resolved.ids.buffer ? push.first_position : push.index_token) =
            call.first_set_tokens - std::min(call.first_set_tokens, box.first.tokens);
    push.slot_z = slots.z;
    push.page_size = resolved.page_size;
    push.slot_first = box.first.pages * resolved.page_size + box.first.rows;
    push.slot_rows = (box.count.pages - 1) * resolved.page_size + box.count.rows;
    if (push.flags & (shader::flag_count_positions | shader::flag_count_slots))
        bindings.of[shader::binding_out_of_range] = resolved.out_of_range;
    bindings.of[shader::binding_table] = resolved.table;
    bindings.of[shader::binding_table_sin] = resolved.table_sin;
    offsets.of[shader::offset_out_of_range] = resolved.out_of_range_offset;
    offsets.of[shader::offset_table] = resolved.table_offset;
    offsets.pack(push.offsets);
    const AngleTableLayout& plan = *call.angles.layout;
    push.table_rows = plan.rows;
    switch (kernel.info.angles) {
        case VKROPE_ANGLES_COS_SIN_CACHE:
            push.table_stride = plan.row_stride;
            push.table_texels = resolved.table_sin_offset;
            break;
        case VKROPE_ANGLES_DIRECT_BUFFER: push.table_stride = 2 * plan.pairs; break;
        case VKROPE_ANGLES_COMPUTED: push.table_stride = box.first.groups; break;
        default: push.table_stride = plan.fold_log2; push.table_texels = plan.row_texels;
    }
    return dispatch;
}

// ---- Barriers between dispatches of one call ----

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range &&
           b.offset < a.offset + a.range;
}

// Returns whether `later` accesses a range that `earlier` writes, or writes a range that `earlier`
// reads. Disjoint rows may have overlapping ranges, as in packed QKV, or because a binding starts
// before its first row.
bool conflict(const Bindings& earlier, const Bindings& later) noexcept {
    for (std::uint32_t w = shader::binding_q_out; w < shader::binding_turns; ++w) {
        const VkDescriptorBufferInfo &before = earlier.of[w], &after = later.of[w];
        if (!before.buffer && !after.buffer) continue;
        for (std::uint32_t i = 0; i < shader::binding_turns; ++i) {
            if (overlap(before, later.of[i]) || overlap(earlier.of[i], after)) return true;
        }
    }
    return false;
}

// Extends `hull` to contain `bindings`, which have the same buffers in every dispatch of a call.
void extend(Bindings& hull, const Bindings& bindings) noexcept {
    for (std::uint32_t i = 0; i < shader::binding_turns; ++i) {
        VkDescriptorBufferInfo& all = hull.of[i];
        const VkDescriptorBufferInfo& next = bindings.of[i];
        if (!next.buffer) continue;
        if (!all.buffer) {
            all = next;
            continue;
        }
        const VkDeviceSize end = std::max(all.offset + all.range, next.offset + next.range);
        all.offset = std::min(all.offset, next.offset);
        all.range = end - all.offset;
    }
}

}  // namespace

Dispatch DispatchSequence::at(std::uint64_t index) const noexcept {
    const Job* job = jobs_.of;
    for (; index >= job->tiling.count(); ++job) index -= job->tiling.count();
    return dispatch_of(kernel_, call_, resolved_, *job, job->tiling.at(index));
}

bool DispatchSequence::needs_barrier(const Bindings& next) noexcept {
    bool barrier = false;
    if (index_ != first_since_barrier_ && conflict(since_barrier_, next)) {
        for (std::uint64_t i = first_since_barrier_; i < index_ && !barrier; ++i)
            barrier = conflict(at(i).bindings, next);
    }
    if (barrier) {
        since_barrier_ = {};
        first_since_barrier_ = index_;
    }
    extend(since_barrier_, next);
    ++index_;
    return barrier;
}

}  // namespace vkrope
