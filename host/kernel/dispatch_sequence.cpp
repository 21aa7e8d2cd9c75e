// SPDX-License-Identifier: MIT
#include "kernel/dispatch_sequence.hpp"

#include <algorithm>
#include <bit>

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

constexpr std::uint32_t offset_v_scales_out = 16;  // an offset that Push::offsets has no byte for

// Push::offsets before packing.
struct Offsets {
    std::uint32_t of[17] = {};  // the last one is in flags

    void pack(std::uint32_t (&words)[4]) const noexcept {
        for (std::uint32_t i = 0; i < 4; ++i)
            words[i] = of[4 * i] | of[4 * i + 1] << 8 | of[4 * i + 2] << 16 | of[4 * i + 3] << 24;
    }
};

Dispatch dispatch_of(const Kernel& kernel, const Call& call, const ResolvedCall& resolved,
                     const Job& job, const Box& box) noexcept {
    Dispatch dispatch = {.pipeline = job.pipeline, .bindings = {}, .shape = {}};
    Bindings& bindings = dispatch.bindings;
    shader::Push& push = dispatch.push;
    const bool z_is_group = job.tiling.box.groups > 1;
    Work work = {.z = z_is_group ? box.count.groups : box.count.batch, .tokens = box.count.tokens};
    Offsets offsets;
    std::uint32_t in_place = 0;
    // What the shader sees as Q, as K, or as a V beside a K, whose strides V has.
    struct Seen {
        std::uint32_t& heads;
        shader::RowLayout &in, &out;
        std::uint32_t first_offset, in_place_flag, scales_offset, scales_out_offset;
        VkDescriptorBufferInfo &scales, &scales_out;
    };
    static_assert(shader::offset_q_out == shader::offset_q_in + 1 &&
                  shader::offset_k_out == shader::offset_k_in + 1 &&
                  shader::offset_v_out == shader::offset_v_in + 1);
    const Seen as_q = {work.q_heads,
                       push.q_in,
                       push.q_out,
                       shader::offset_q_in,
                       shader::flag_q_in_place,
                       shader::offset_q_scales,
                       shader::offset_q_scales_out,
                       bindings.q_scales,
                       bindings.q_scales_out};
    const Seen as_k = {work.k_heads,
                       push.k_in,
                       push.k_out,
                       shader::offset_k_in,
                       shader::flag_k_in_place,
                       shader::offset_k_scales,
                       shader::offset_k_scales_out,
                       bindings.k_scales,
                       bindings.k_scales_out};
    const Seen as_v = {work.k_heads,
                       push.k_in,
                       push.k_out,
                       shader::offset_v_in,
                       0,
                       shader::offset_v_scales,
                       offset_v_scales_out,
                       bindings.v_scales,
                       bindings.v_scales_out};
    const bool together = job.q + job.k + job.v > 1;
    const auto tensor = [&](const ResolvedTensor& of, const Seen& seen, VkDescriptorBufferInfo& in,
                            VkDescriptorBufferInfo& out) {
        const std::uint32_t group_heads = of.heads / job.tiling.whole.groups;
        Box own = box;
        if (together)
            own.count.heads =
                group_heads;  // they share a tiling only if it does not split the heads of a group
        seen.heads = own.count.heads;
        in = place(of.in, group_heads, own, z_is_group, kernel.storage_limits, seen.in,
                   offsets.of[seen.first_offset]);
        out = place(of.out, group_heads, own, z_is_group, kernel.storage_limits, seen.out,
                    offsets.of[seen.first_offset + 1]);
        if (of.in_place) in_place |= seen.in_place_flag;
        shader::RowLayout packed;  // the shader knows it
        if (of.scales)
            seen.scales = place(*of.scales, 1, box, z_is_group, kernel.storage_limits, packed,
                                offsets.of[seen.scales_offset]);
        if (!of.scales_out) return;
        Box tokens = box;  // of all heads
        tokens.first.groups = tokens.first.heads = 0;
        tokens.count.groups = tokens.count.heads = 1;
        seen.scales_out = place(*of.scales_out, 1, tokens, false, kernel.storage_limits, packed,
                                offsets.of[seen.scales_out_offset]);
    };
    if (job.q) tensor(resolved.q, as_q, bindings.q_in, bindings.q_out);
    if (job.k)
        tensor(resolved.k, kernel.separate_dispatches ? as_q : as_k, bindings.k_in, bindings.k_out);
    if (job.v)
        tensor(resolved.v,
               job.k                        ? as_v
               : kernel.separate_dispatches ? as_q
                                            : as_k,
               bindings.v_in, bindings.v_out);
    dispatch.shape = shape_of(job.pipeline->geometry, work);

    // Each token is counted in one box: the box of its first heads and, if the cache is split, of
    // the last pages.
    const Counts& whole = job.tiling.whole;
    const bool counts = box.first.heads == 0 && box.first.groups == 0 &&
                        box.first.pages + box.count.pages == whole.pages &&
                        box.first.rows + box.count.rows == whole.rows;
    const std::uint32_t first_head = job.pipeline->geometry.finish != shader::finish_none
                                         ? box.first.groups * whole.heads + box.first.heads
                                         : 0;
    push.tokens = work.tokens;
    push.heads = work.q_heads | work.k_heads << 16;
    push.flags = in_place | offsets.of[offset_v_scales_out] * shader::flag_v_scales_out |
                 (job.k && job.v ? shader::flag_v : 0) |
                 (call.direction == Direction::inverse ? shader::flag_inverse : 0) |
                 (counts && job.counts_positions ? shader::flag_count_positions : 0) |
                 (counts && job.counts_slots ? shader::flag_count_slots : 0) |
                 (z_is_group ? shader::flag_z_is_group : 0) |
                 (call.paged_cache.int64 ? shader::flag_slot_mapping_64 : 0) |
                 (call.positions.int64 ? shader::flag_ids_64 : 0) |
                 first_head * shader::flag_first_head;
    push.q_scale = std::bit_cast<std::uint32_t>(resolved.q_scale);
    bindings.parameters = resolved.parameters;
    offsets.of[shader::offset_parameters] = resolved.parameters_offset;
    push.gain = std::bit_cast<std::uint32_t>(resolved.gain);
    push.first_position = std::uint32_t(call.positions.first) + box.first.tokens +
                          box.first.batch * resolved.position_step;
    shader::RowLayout ids = {}, slots = {};
    if (resolved.ids.buffer) {
        bindings.ids = place(resolved.ids, 1, box, z_is_group, kernel.storage_limits, ids,
                             offsets.of[shader::offset_ids]);
    }
    if ((job.k || job.v) && resolved.slot_mapping.buffer) {
        bindings.slot_mapping = place(resolved.slot_mapping, 1, box, z_is_group,
                                      kernel.storage_limits, slots,
                                      offsets.of[shader::offset_slots]);
    }
    push.index_z = resolved.ids.buffer ? ids.z : z_is_group ? 0 : resolved.position_step;
    push.index_token = ids.token;
    push.index_axis = resolved.ids_axis;
    // In the field that these positions leave free.
    if (kernel.info.two_parameter_sets)
        (resolved.ids.buffer ? push.first_position : push.index_token) =
            call.first_set_tokens - std::min(call.first_set_tokens, box.first.tokens);
    push.slot_z = slots.z;
    push.page_size = resolved.page_size;
    push.slot_first = box.first.pages * resolved.page_size + box.first.rows;
    push.slot_rows = (box.count.pages - 1) * resolved.page_size + box.count.rows;
    if (push.flags & (shader::flag_count_positions | shader::flag_count_slots))
        bindings.status = resolved.status;
    bindings.table = resolved.table;
    bindings.table_sin = resolved.table_sin;
    offsets.of[shader::offset_status] = resolved.status_offset;
    offsets.of[shader::offset_table] = resolved.table_offset;
    offsets.pack(push.offsets);
    const AnglePlan& plan = *call.angles.plan;
    push.table_rows = plan.rows;
    switch (kernel.info.angles) {
        case AngleSource::cos_sin_cache:
            push.table_stride = plan.row_stride;
            push.table_texels = resolved.table_sin_offset;
            break;
        case AngleSource::direct_buffer: push.table_stride = 2 * plan.pairs; break;
        case AngleSource::computed: push.table_stride = box.first.groups; break;
        default: push.table_stride = plan.fold_log2; push.table_texels = plan.row_texels;
    }
    return dispatch;
}

// ---- Barriers between dispatches of one call ----

using BindingOf = VkDescriptorBufferInfo Bindings::*;
constexpr BindingOf read_bindings[] = {
    &Bindings::q_in,         &Bindings::k_in,     &Bindings::v_in,      &Bindings::ids,
    &Bindings::slot_mapping, &Bindings::table,    &Bindings::table_sin, &Bindings::parameters,
    &Bindings::q_scales,     &Bindings::k_scales, &Bindings::v_scales};
constexpr BindingOf written_bindings[] = {
    &Bindings::q_out,        &Bindings::k_out,        &Bindings::v_out,       &Bindings::status,
    &Bindings::q_scales_out, &Bindings::k_scales_out, &Bindings::v_scales_out};

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range &&
           b.offset < a.offset + a.range;
}

// Whether `later` touches a range that `earlier` writes, or writes one that it reads. Disjoint rows
// may still lie in overlapping ranges, as in packed QKV, or because a binding starts below its
// first row.
bool conflict(const Bindings& earlier, const Bindings& later) noexcept {
    for (const BindingOf written : written_bindings) {
        if (!(earlier.*written).buffer && !(later.*written).buffer) continue;
        for (const BindingOf read : read_bindings) {
            if (overlap(earlier.*written, later.*read) || overlap(earlier.*read, later.*written))
                return true;
        }
        for (const BindingOf other : written_bindings) {
            if (overlap(earlier.*written, later.*other)) return true;
        }
    }
    return false;
}

// Extends `hull` to contain `bindings`, member by member: a call has one buffer for each member.
void extend(Bindings& hull, const Bindings& bindings) noexcept {
    const auto one = [&](BindingOf member) {
        const VkDescriptorBufferInfo& next = bindings.*member;
        VkDescriptorBufferInfo& all = hull.*member;
        if (!next.buffer) return;
        if (!all.buffer) {
            all = next;
            return;
        }
        const VkDeviceSize end = std::max(all.offset + all.range, next.offset + next.range);
        all.offset = std::min(all.offset, next.offset);
        all.range = end - all.offset;
    };
    for (const BindingOf member : read_bindings) one(member);
    for (const BindingOf member : written_bindings) one(member);
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
