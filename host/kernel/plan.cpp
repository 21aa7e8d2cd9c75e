// SPDX-License-Identifier: MIT
#include "kernel/plan.hpp"

#include <algorithm>
#include <bit>

#include "kernel/geometry/finish.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// On a GPU, a lane takes several heads only if enough lanes remain to hide the latency of their
// loads.
constexpr std::uint64_t many_lanes = std::uint64_t{1} << 16;

using BindingOf = VkDescriptorBufferInfo Bindings::*;
constexpr BindingOf read_bindings[] = {
    &Bindings::q_in,         &Bindings::k_in,     &Bindings::v_in,      &Bindings::ids,
    &Bindings::slot_mapping, &Bindings::table,    &Bindings::table_sin, &Bindings::parameters,
    &Bindings::q_scales,     &Bindings::k_scales, &Bindings::v_scales};
constexpr BindingOf written_bindings[] = {&Bindings::q_out, &Bindings::k_out, &Bindings::v_out,
                                          &Bindings::status};

std::uint64_t offset_and_strides(const View& view) noexcept {
    return view.first_byte / view.element_bytes | view.batch | view.token | view.group | view.head;
}

bool tensor_allows(const ResolvedTensor& tensor, std::uint32_t access) noexcept {
    return strides_allow(tensor.in.element_bytes, offset_and_strides(tensor.in), access) &&
           strides_allow(tensor.out.element_bytes, offset_and_strides(tensor.out), access);
}

// The work as the shader sees it: with `apart`, each tensor is a Q; V has K's heads.
Work work_of(const Kernel& kernel, const ResolvedCall& call, const Job& job) noexcept {
    const std::uint32_t k_heads = job.k ? call.k.heads : job.v ? call.v.heads : 0;
    return {.z = call.batch,
            .tokens = call.tokens,
            .q_heads = job.q          ? call.q.heads
                       : kernel.apart ? k_heads
                                      : 0,
            .k_heads = kernel.apart ? 0 : k_heads};
}

// 16-byte access also reads angles from a buffer 16 bytes at a time.
bool angles_allow(const Kernel& kernel, const ResolvedCall& call, std::uint32_t access) noexcept {
    return kernel.info.angles != AngleSource::direct_buffer || access != shader::access_wide ||
           call.table_offset % 4 == 0;
}

// The widest access that the tensors allow. The last pipeline of a part fits every call.
const Pipeline& choose_pipeline(const Kernel& kernel, const ResolvedCall& call,
                                const Job& job) noexcept {
    const Pipeline* pipelines = kernel.pipelines + job.part->first_pipeline;
    const Work work = work_of(kernel, call, job);
    for (std::uint32_t i = 0; i + 1 < job.part->pipeline_count; ++i) {
        const Geometry& geometry = pipelines[i].geometry;
        if ((job.q && !tensor_allows(call.q, geometry.access)) ||
            (job.k && !tensor_allows(call.k, geometry.access)) ||
            (job.v && !tensor_allows(call.v, geometry.access)) ||
            ((job.q || job.k) && !angles_allow(kernel, call, geometry.access))) {
            continue;
        }
        const bool shares = geometry.q_batch > 1 || geometry.k_batch > 1;
        const DispatchShape shape = shape_of(geometry, work);
        const std::uint64_t lanes = std::uint64_t{shape.groups[0]} * shape.groups[1] *
                                    shape.groups[2] * geometry.workgroup_size();
        if (shares && lanes < many_lanes) continue;
        return pipelines[i];
    }
    return pipelines[job.part->pipeline_count - 1];
}

// A tensor of a call, and its names in errors.
struct Named {
    const ResolvedTensor& tensor;
    const Finish& finish;
    const char *in, *out, *scales;
    bool scattered;
};
Named named_q(const Kernel& kernel, const ResolvedCall& call) noexcept {
    return {call.q, kernel.info.q_finish, "q_in", "q_out", "q_scale_tokens", false};
}
Named named_k(const Kernel& kernel, const ResolvedCall& call) noexcept {
    return {call.k, kernel.info.k_finish, "k_in", "k_out", "k_scale_tokens", true};
}
Named named_v(const Kernel& kernel, const ResolvedCall& call) noexcept {
    return {call.v, kernel.info.v_finish, "v_in", "v_out", "v_scale_tokens", true};
}

// Whether the parameters of a tensor depend on the head.
bool differs_by_head(const Finish& finish) noexcept {
    return finish.bias == ParameterShape::head_channel ||
           finish.norm.weight == ParameterShape::head_channel ||
           finish.norm.bias == ParameterShape::head_channel;
}

// A norm over a token needs all of its heads in one dispatch. Parameters of heads need heads that
// are counted from one number in a dispatch.
Status check_heads(const Job& job, const Named& named, const Tiling& tiling) noexcept {
    const Geometry& geometry = job.pipeline->geometry;
    const Counts &whole = tiling.whole, &box = tiling.box;
    const bool token = named.finish.norm.span == NormSpan::token;
    if (token && whole.groups > 1)
        return error(Code::not_supported,
                     "%s has %u groups of heads: a norm over a token takes heads of one stride",
                     named.in, whole.groups);
    const bool too_long = geometry.finish == shader::finish_owned &&
                          owned_iterations(job.part->info, geometry).row > most_iterations;
    if (token && (box.heads != whole.heads || too_long))
        return error(Code::limit_exceeded,
                     "%s has %u heads: a norm over a token needs all in one dispatch, which has %u "
                     "on this device",
                     named.in, whole.heads, too_long ? 0 : box.heads);
    if (!differs_by_head(named.finish) || box.groups == 1 || box.heads == whole.heads) return {};
    return error(Code::limit_exceeded,
                 "%s has groups of %u heads: with parameters of each head a dispatch takes whole "
                 "groups, here it takes %u heads",
                 named.in, whole.heads, box.heads);
}

Result<Tiling> tile_tensor(const Kernel& kernel, const ResolvedCall& call, const Job& job,
                           const Named& named, std::uint32_t group_heads) noexcept {
    const ResolvedTensor& tensor = named.tensor;
    Bound bound;
    bound.add(named.in, tensor.in);
    bound.add(named.out, tensor.out);
    if (call.ids.buffer) bound.add("positions.ids", call.ids);
    if (named.scattered && call.slot_mapping.buffer)
        bound.add("paged_cache.slot_mapping", call.slot_mapping);
    bound.packed_tokens = tensor.scales.buffer != VK_NULL_HANDLE;
    if (bound.packed_tokens) bound.add(named.scales, tensor.scales);
    const Counts whole = {.batch = call.batch,
                          .groups = tensor.heads / group_heads,
                          .heads = group_heads,
                          .tokens = call.tokens,
                          .pages = tensor.pages,
                          .rows = std::max(tensor.out.page_size, 1u)};
    Result<Tiling> tiling = tile(job.part->info, job.pipeline->geometry, whole, group_heads, bound,
                                 kernel.storage_limits, kernel.dispatch_limits);
    if (tiling && job.pipeline->geometry.finish != shader::finish_none)
        tiling.status = check_heads(job, named, tiling.value);
    return tiling;
}

bool same_rows(const View& a, const View& b) noexcept {
    return a.head == b.head && a.group == b.group && a.heads_per_group == b.heads_per_group &&
           a.token == b.token && a.batch == b.batch && a.page_size == b.page_size;
}

// Whether V has K's heads, pages and strides, which a dispatch has only once for both.
bool lies_as_k(const ResolvedTensor& v, const ResolvedTensor& k) noexcept {
    return v.heads == k.heads && v.pages == k.pages && same_rows(v.in, k.in) &&
           same_rows(v.out, k.out);
}

// Tiles the tensors of a job together: in one dispatch for each sequence or group of heads, or in
// one for all. Returns false if a tensor does not fit or steps along z differently.
bool tile_together(const Kernel& kernel, const ResolvedCall& call, Job& job) noexcept {
    const struct {
        bool present;
        Named named;
    } tensors[] = {{job.q, named_q(kernel, call)},
                   {job.k, named_k(kernel, call)},
                   {job.v, named_v(kernel, call)}};
    std::uint32_t groups = 1;
    for (const auto& [present, named] : tensors) {
        if (present) groups = std::max(groups, named.tensor.heads / named.tensor.group_heads);
    }
    bool first = true;
    for (const auto& [present, named] : tensors) {
        if (!present) continue;
        const std::uint32_t heads = named.tensor.heads,
                            own_groups = heads / named.tensor.group_heads;
        if (heads % groups != 0 || (own_groups != groups && own_groups != 1)) return false;
        const Result<Tiling> tiling = tile_tensor(kernel, call, job, named, heads / groups);
        if (!tiling) return false;
        const Counts &box = tiling->box, &whole = tiling->whole;
        if (box.heads != whole.heads || box.pages != whole.pages || box.rows != whole.rows)
            return false;
        // A dispatch has one number for the first head of all of its tensors.
        if (differs_by_head(named.finish) && box.groups != whole.groups) return false;
        Counts& shared = job.tiling.box;
        if (first) job.tiling = tiling.value;
        if (box.batch != shared.batch || box.groups != shared.groups || box.tokens != shared.tokens)
            return false;
        if (named.scattered) {
            job.tiling.whole.pages = shared.pages = box.pages;
            job.tiling.whole.rows = shared.rows = box.rows;
        }
        first = false;
    }
    return true;
}

}  // namespace

Result<Jobs> plan(const Kernel& kernel, const ResolvedCall& call) noexcept {
    Result<Jobs> result;
    Jobs& jobs = result.value;
    if (!kernel.binds.has(shader::binding_status) && call.status.buffer) {
        result.status = error(Code::limit_exceeded,
                              "out_of_range: the kernel then binds %u storage buffers, but the "
                              "device allows %u (maxPerStageDescriptorStorageBuffers)",
                              kernel.storage_buffers_to_count, kernel.max_storage_buffers);
        return result;
    }
    const bool counts = call.status.buffer != VK_NULL_HANDLE;
    bool q = call.q.heads != 0, k = call.k.heads != 0;
    // A V in place without a finish needs no copy; alone, its tokens are still counted.
    const bool v_changes = !call.v.in_place || has_finish(kernel.info.v_finish);
    bool v = call.v.heads != 0 && (v_changes || (counts && !q && !k));
    const bool slots_of_k = k;  // the first tensor with slots counts those outside the cache
    const auto add = [&](Job job) {
        job.counts_positions = counts && jobs.count == 0;  // a token counts once
        job.counts_slots = counts && call.slot_mapping.buffer && (slots_of_k ? job.k : job.v);
        jobs.of[jobs.count++] = job;
    };
    const bool v_joins = v && k && kernel.v_joins && lies_as_k(call.v, call.k);
    const struct {
        bool possible, q, v;
    } pairs[] = {{v_joins, q, true}, {q && k, q, false}, {v_joins && q, false, true}};
    for (const auto& [possible, with_q, with_v] : pairs) {
        if (kernel.apart || !possible) continue;
        Job together = {.part = &kernel.q, .q = with_q, .k = k, .v = with_v, .tiling = {}};
        together.pipeline = &choose_pipeline(kernel, call, together);
        if (!tile_together(kernel, call, together)) continue;
        add(together);
        q = q && !with_q;
        k = false;
        v = v && !with_v;
        break;
    }
    const struct {
        bool present;
        Job job;
        Named named;
    } alone[] = {{q, {.part = &kernel.q, .q = true, .tiling = {}}, named_q(kernel, call)},
                 {k,
                  {.part = kernel.apart ? &kernel.k : &kernel.q, .k = true, .tiling = {}},
                  named_k(kernel, call)},
                 {v, {.part = &kernel.v, .v = true, .tiling = {}}, named_v(kernel, call)}};
    for (const auto& [present, of, named] : alone) {
        if (!present) continue;
        Job job = of;
        job.pipeline = &choose_pipeline(kernel, call, job);
        const Result<Tiling> tiling = tile_tensor(kernel, call, job, named,
                                                  named.tensor.group_heads);
        if (result.status = tiling.status; !result.status) return result;
        job.tiling = tiling.value;
        add(job);
    }
    return result;
}

namespace {

// ---- Dispatches ----

// Binds the part of a tensor in a box. Sets `side` to its strides and `offset` to its first element
// in the binding.
VkDescriptorBufferInfo place(const View& view, std::uint32_t group_heads, const Box& box,
                             bool z_is_group, const StorageLimits& limits, shader::RowLayout& side,
                             std::uint32_t& offset) noexcept {
    const std::uint64_t first = view.first_byte +
                                offset_of(view, group_heads, box.first) * view.element_bytes;
    const VkDescriptorBufferInfo bound = binding_of(
        view.buffer, first, span_of(view, group_heads, box.count) * view.element_bytes, limits);
    const auto step = [](std::uint32_t count, std::uint64_t stride) {
        return count > 1 ? std::uint32_t(stride) : 0u;
    };
    offset = std::uint32_t((first - bound.offset) / view.element_bytes);
    side.head = step(box.count.heads, view.head);
    if (view.page_size != 0) {
        side.z = step(box.count.pages, view.batch);
        side.token = step(box.count.rows, view.token);
        return bound;
    }
    side.z = z_is_group ? step(box.count.groups, view.group_step(group_heads))
                        : step(box.count.batch, view.batch);
    side.token = step(box.count.tokens, view.token);
    return bound;
}

// Push::offsets before packing.
struct Offsets {
    std::uint32_t of[16] = {};

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
        std::uint32_t first_offset, in_place_flag, scales_offset;
        VkDescriptorBufferInfo& scales;
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
                       bindings.q_scales};
    const Seen as_k = {work.k_heads,
                       push.k_in,
                       push.k_out,
                       shader::offset_k_in,
                       shader::flag_k_in_place,
                       shader::offset_k_scales,
                       bindings.k_scales};
    const Seen as_v = {work.k_heads,        push.k_in, push.k_out,
                       shader::offset_v_in, 0,         shader::offset_v_scales,
                       bindings.v_scales};
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
        if (!of.scales.buffer) return;
        shader::RowLayout packed;  // the shader knows it
        seen.scales = place(of.scales, 1, box, z_is_group, kernel.storage_limits, packed,
                            offsets.of[seen.scales_offset]);
    };
    if (job.q) tensor(resolved.q, as_q, bindings.q_in, bindings.q_out);
    if (job.k) tensor(resolved.k, kernel.apart ? as_q : as_k, bindings.k_in, bindings.k_out);
    if (job.v)
        tensor(resolved.v,
               job.k          ? as_v
               : kernel.apart ? as_q
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
    push.flags = in_place | (job.k && job.v ? shader::flag_v : 0) |
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
        default: push.table_stride = plan.fold_log2; push.table_texels = plan.row_texels;
    }
    return dispatch;
}

// ---- Barriers between dispatches of one call ----

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range &&
           b.offset < a.offset + a.range;
}

// Whether `later` touches a range that `earlier` writes, or writes one that it reads. Disjoint rows
// may still lie in overlapping ranges, as in packed QKV, or because a binding starts below its
// first row.
bool conflict(const Bindings& earlier, const Bindings& later) noexcept {
    for (const BindingOf written : written_bindings) {
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
