// SPDX-License-Identifier: MIT
#include "kernel/plan.hpp"

#include <algorithm>
#include <bit>

#include "status.hpp"

namespace vkrope {

namespace {

// On a GPU, a lane takes several heads only where enough lanes remain to hide the latency of their loads.
constexpr std::uint64_t many_lanes = std::uint64_t{1} << 16;

using BindingOf = VkDescriptorBufferInfo Bindings::*;
constexpr BindingOf read_bindings[] = {&Bindings::q_in,  &Bindings::k_in,  &Bindings::ids,
                                       &Bindings::slots, &Bindings::table, &Bindings::table_sin};
constexpr BindingOf written_bindings[] = {&Bindings::q_out, &Bindings::k_out, &Bindings::status};

std::uint64_t offset_and_strides(const View& view) noexcept {
    return view.first_byte / view.element_bytes | view.batch | view.token | view.group | view.head;
}

bool tensor_allows(const ResolvedTensor& tensor, std::uint32_t access) noexcept {
    return strides_allow(tensor.in.element_bytes, offset_and_strides(tensor.in), access) &&
           strides_allow(tensor.out.element_bytes, offset_and_strides(tensor.out), access);
}

// As the shader sees it: the one tensor of a lean dispatch is its Q.
Work work_of(const Kernel& kernel, const ResolvedCall& call, const Job& job) noexcept {
    const std::uint32_t k_heads = job.k ? call.k.heads : 0;
    return {.z = call.batch,
            .tokens = call.tokens,
            .q_heads = job.q ? call.q.heads : kernel.lean ? k_heads : 0,
            .k_heads = kernel.lean ? 0 : k_heads};
}

// 16-byte access takes angles of a buffer in 16 bytes, too.
bool angles_allow(const Kernel& kernel, const ResolvedCall& call, std::uint32_t access) noexcept {
    return kernel.info.angles != AngleSource::direct_buffer || access != shader::access_wide || call.table_offset % 4 == 0;
}

// The widest access that the tensors allow. The last pipeline of a part serves every call.
const Pipeline& choose_pipeline(const Kernel& kernel, const ResolvedCall& call, const Job& job) noexcept {
    const Pipeline* pipelines = kernel.pipelines + job.part->first_pipeline;
    const Work work = work_of(kernel, call, job);
    for (std::uint32_t i = 0; i + 1 < job.part->pipeline_count; ++i) {
        const Geometry& geometry = pipelines[i].geometry;
        if ((job.q && !tensor_allows(call.q, geometry.access)) || (job.k && !tensor_allows(call.k, geometry.access)) ||
            !angles_allow(kernel, call, geometry.access)) {
            continue;
        }
        const bool shares = geometry.q_batch > 1 || geometry.k_batch > 1;
        const DispatchShape shape = shape_of(geometry, work);
        const std::uint64_t lanes = std::uint64_t{shape.groups[0]} * shape.groups[1] * shape.groups[2] * geometry.workgroup_size();
        if (shares && lanes < many_lanes) continue;
        return pipelines[i];
    }
    return pipelines[job.part->pipeline_count - 1];
}

Result<Tiling> tile_tensor(const Kernel& kernel, const ResolvedCall& call, const Job& job, bool key,
                           std::uint32_t group_heads) noexcept {
    const ResolvedTensor& tensor = key ? call.k : call.q;
    Bound bound;
    bound.add(key ? "k_in" : "q_in", tensor.in);
    bound.add(key ? "k_out" : "q_out", tensor.out);
    if (call.ids.buffer) bound.add("positions.ids", call.ids);
    if (key && call.slots.buffer) bound.add("k_rows.slots", call.slots);
    const Counts whole = {.batch = call.batch,
                          .groups = tensor.heads / group_heads,
                          .heads = group_heads,
                          .tokens = call.tokens,
                          .pages = tensor.pages,
                          .rows = std::max(tensor.out.page_size, 1u)};
    return tile(job.part->info, job.pipeline->geometry, whole, group_heads, bound, kernel.storage_limits, kernel.dispatch_limits);
}

// Q and K in one dispatch for each sequence, or each group of heads, or in one for all: where both fit, and go along z in the same
// way.
bool tile_together(const Kernel& kernel, const ResolvedCall& call, Job& job) noexcept {
    const std::uint32_t q_groups = call.q.heads / call.q.group_heads, k_groups = call.k.heads / call.k.group_heads;
    const std::uint32_t groups = q_groups > k_groups ? q_groups : k_groups;
    if (call.q.heads % groups != 0 || call.k.heads % groups != 0) return false;
    if ((q_groups != groups && q_groups != 1) || (k_groups != groups && k_groups != 1)) return false;
    const Result<Tiling> q = tile_tensor(kernel, call, job, false, call.q.heads / groups);
    const Result<Tiling> k = tile_tensor(kernel, call, job, true, call.k.heads / groups);
    if (!q || !k) return false;
    const auto undivided = [](const Tiling& tiling) {
        return tiling.box.heads == tiling.whole.heads && tiling.box.pages == tiling.whole.pages &&
               tiling.box.rows == tiling.whole.rows;
    };
    if (!undivided(q.value) || !undivided(k.value) || q->box.batch != k->box.batch || q->box.groups != k->box.groups ||
        q->box.tokens != k->box.tokens) {
        return false;
    }
    job.tiling = q.value;
    job.tiling.whole.pages = job.tiling.box.pages = k->box.pages;
    job.tiling.whole.rows = job.tiling.box.rows = k->box.rows;
    return true;
}

}  // namespace

Result<Jobs> plan(const Kernel& kernel, const ResolvedCall& call) noexcept {
    Result<Jobs> result;
    Jobs& jobs = result.value;
    if (!kernel.binds.has(shader::binding_status) && call.status.buffer) {
        result.status =
            error(Code::limit_exceeded,
                  "out_of_range: vkrope then binds %u storage buffers, the device allows %u (maxPerStageDescriptorStorageBuffers)",
                  kernel.storage_buffers_to_count, kernel.max_storage_buffers);
        return result;
    }
    const bool q = call.q.heads != 0, k = call.k.heads != 0, counts = call.status.buffer != VK_NULL_HANDLE;
    if (q && k && !kernel.lean) {
        Job both = {.part = &kernel.q, .q = true, .k = true, .counts_positions = counts, .tiling = {}};
        both.counts_slots = counts && call.slots.buffer;
        both.pipeline = &choose_pipeline(kernel, call, both);
        if (tile_together(kernel, call, both)) {
            jobs.of[jobs.count++] = both;
            return result;
        }
    }
    for (const bool key : {false, true}) {
        if (!(key ? k : q)) continue;
        Job& job = jobs.of[jobs.count];
        job = {.part = key && kernel.lean ? &kernel.k : &kernel.q, .q = !key, .k = key, .tiling = {}};
        job.counts_positions = counts && jobs.count == 0;  // a token counts once
        job.counts_slots = counts && key && call.slots.buffer;
        job.pipeline = &choose_pipeline(kernel, call, job);
        const Result<Tiling> tiling = tile_tensor(kernel, call, job, key, key ? call.k.group_heads : call.q.group_heads);
        if (result.status = tiling.status; !result.status) return result;
        job.tiling = tiling.value;
        ++jobs.count;
    }
    return result;
}

namespace {

// ---- Dispatches ----

// Binds what a box touches of a tensor, whose rows are then where `side` says, from element `offset` on.
VkDescriptorBufferInfo place(const View& view, std::uint32_t group_heads, const Box& box, bool z_is_group,
                             const StorageLimits& limits, shader::Side& side, std::uint32_t& offset) noexcept {
    const std::uint64_t first = view.first_byte + offset_of(view, group_heads, box.first) * view.element_bytes;
    const VkDescriptorBufferInfo bound =
        binding_of(view.buffer, first, span_of(view, group_heads, box.count) * view.element_bytes, limits);
    const auto step = [](std::uint32_t count, std::uint64_t stride) { return count > 1 ? std::uint32_t(stride) : 0u; };
    offset = std::uint32_t((first - bound.offset) / view.element_bytes);
    side.head = step(box.count.heads, view.head);
    if (view.page_size != 0) {
        side.z = step(box.count.pages, view.batch);
        side.token = step(box.count.rows, view.token);
        return bound;
    }
    side.z = z_is_group ? step(box.count.groups, view.group_step(group_heads)) : step(box.count.batch, view.batch);
    side.token = step(box.count.tokens, view.token);
    return bound;
}

// What becomes Push::offsets.
struct Offsets {
    std::uint32_t of[16] = {};

    void pack(std::uint32_t (&words)[4]) const noexcept {
        for (std::uint32_t i = 0; i < 4; ++i)
            words[i] = of[4 * i] | of[4 * i + 1] << 8 | of[4 * i + 2] << 16 | of[4 * i + 3] << 24;
    }
};

Dispatch dispatch_of(const Kernel& kernel, const Call& call, const ResolvedCall& resolved, const Job& job,
                     const Box& box) noexcept {
    Dispatch dispatch = {.pipeline = job.pipeline, .bindings = {}, .shape = {}};
    Bindings& bindings = dispatch.bindings;
    shader::Push& push = dispatch.push;
    const bool z_is_group = job.tiling.box.groups > 1;
    Work work = {.z = z_is_group ? box.count.groups : box.count.batch, .tokens = box.count.tokens};
    Offsets offsets;
    std::uint32_t in_place = 0;
    // What the shader sees at `sides` and `first_offset`.
    struct Sides {
        shader::Side &in, &out;
    };
    const auto tensor = [&](const ResolvedTensor& of, std::uint32_t& heads, VkDescriptorBufferInfo& in, VkDescriptorBufferInfo& out,
                            const Sides& sides, std::uint32_t first_offset, std::uint32_t in_place_flag) {
        const std::uint32_t group_heads = of.heads / job.tiling.whole.groups;
        Box own = box;
        if (job.q && job.k) own.count.heads = group_heads;  // they share a tiling only if it leaves the heads of a group together
        heads = own.count.heads;
        in = place(of.in, group_heads, own, z_is_group, kernel.storage_limits, sides.in, offsets.of[first_offset]);
        out = place(of.out, group_heads, own, z_is_group, kernel.storage_limits, sides.out, offsets.of[first_offset + 1]);
        if (of.in_place) in_place |= in_place_flag;
    };
    static_assert(shader::offset_q_out == shader::offset_q_in + 1 && shader::offset_k_out == shader::offset_k_in + 1);
    const Sides q_sides = {push.q_in, push.q_out}, k_sides = {push.k_in, push.k_out};
    if (job.q) {
        tensor(resolved.q, work.q_heads, bindings.q_in, bindings.q_out, q_sides, shader::offset_q_in, shader::flag_q_in_place);
    }
    if (job.k && kernel.lean) {
        tensor(resolved.k, work.q_heads, bindings.k_in, bindings.k_out, q_sides, shader::offset_q_in, shader::flag_q_in_place);
    } else if (job.k) {
        tensor(resolved.k, work.k_heads, bindings.k_in, bindings.k_out, k_sides, shader::offset_k_in, shader::flag_k_in_place);
    }
    dispatch.shape = shape_of(job.pipeline->geometry, work);

    // Each token counts in one box: that of its first heads, and where the cache is cut, of the last pages.
    const Counts& whole = job.tiling.whole;
    const bool counts = box.first.heads == 0 && box.first.groups == 0 && box.first.pages + box.count.pages == whole.pages &&
                        box.first.rows + box.count.rows == whole.rows;
    push.tokens = work.tokens;
    push.heads = work.q_heads | work.k_heads << 16;
    push.flags = in_place | (call.direction == Direction::inverse ? shader::flag_inverse : 0) |
                 (counts && job.counts_positions ? shader::flag_count_positions : 0) |
                 (counts && job.counts_slots ? shader::flag_count_slots : 0) | (z_is_group ? shader::flag_z_is_group : 0) |
                 (call.k_rows.int64 ? shader::flag_slots_64 : 0) | (call.positions.int64 ? shader::flag_ids_64 : 0);
    push.gain = std::bit_cast<std::uint32_t>(resolved.gain);
    push.first_position = std::uint32_t(call.positions.first) + box.first.tokens + box.first.batch * resolved.position_step;
    shader::Side ids = {}, slots = {};
    if (resolved.ids.buffer) {
        bindings.ids = place(resolved.ids, 1, box, z_is_group, kernel.storage_limits, ids, offsets.of[shader::offset_ids]);
    }
    if (job.k && resolved.slots.buffer) {
        bindings.slots = place(resolved.slots, 1, box, z_is_group, kernel.storage_limits, slots, offsets.of[shader::offset_slots]);
    }
    push.index_z = resolved.ids.buffer ? ids.z : z_is_group ? 0 : resolved.position_step;
    push.index_token = ids.token;
    push.index_axis = resolved.ids_axis;
    push.slot_z = slots.z;
    push.page_size = resolved.page_size;
    push.slot_first = box.first.pages * resolved.page_size + box.first.rows;
    push.slot_rows = (box.count.pages - 1) * resolved.page_size + box.count.rows;
    if (push.flags & (shader::flag_count_positions | shader::flag_count_slots)) bindings.status = resolved.status;
    bindings.table = resolved.table;
    bindings.table_sin = resolved.table_sin;
    offsets.of[shader::offset_status] = resolved.status_offset;
    offsets.of[shader::offset_table] = resolved.table_offset;
    offsets.pack(push.offsets);
    const AnglePlan& plan = *call.angles.plan;
    push.table_rows = plan.rows;
    switch (kernel.info.angles) {
        case AngleSource::caller_buffer:
            push.table_stride = plan.row_stride;
            push.table_texels = resolved.table_sin_offset;
            break;
        case AngleSource::direct_buffer: push.table_stride = 2 * plan.pairs; break;
        default: push.table_stride = plan.fold_log2; push.table_texels = plan.row_texels;
    }
    return dispatch;
}

// ---- Barriers between dispatches of one call ----

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range && b.offset < a.offset + a.range;
}

// Whether `later` touches a range that `earlier` writes, or writes one that it reads. Disjoint rows may still lie in overlapping
// ranges, as in packed QKV, or because a binding starts lower than what it is for.
bool conflict(const Bindings& earlier, const Bindings& later) noexcept {
    for (const BindingOf written : written_bindings) {
        for (const BindingOf read : read_bindings) {
            if (overlap(earlier.*written, later.*read) || overlap(earlier.*read, later.*written)) return true;
        }
        for (const BindingOf other : written_bindings) {
            if (overlap(earlier.*written, later.*other)) return true;
        }
    }
    return false;
}

// Makes `hull` reach around `bindings` too, buffer by buffer: a job binds one buffer for each purpose.
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
    const std::uint64_t first = jobs_.of[0].tiling.count();
    const Job& job = jobs_.of[index < first ? 0 : 1];
    return dispatch_of(kernel_, call_, resolved_, job, job.tiling.at(index < first ? index : index - first));
}

bool DispatchSequence::needs_barrier(const Bindings& next) noexcept {
    bool barrier = false;
    if (conflict(since_barrier_, next)) {
        for (std::uint64_t i = first_since_barrier_; i < index_ && !barrier; ++i) barrier = conflict(at(i).bindings, next);
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
