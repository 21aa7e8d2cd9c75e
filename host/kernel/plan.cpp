// SPDX-License-Identifier: MIT
#include "kernel/plan.hpp"

#include <algorithm>
#include <iterator>

#include "base/status.hpp"
#include "kernel/geometry/ops.hpp"

namespace vkrope {

namespace {

std::uint64_t offset_and_strides(const View& view) noexcept {
    return view.first_byte / view.element_bytes | view.batch | view.token | view.group | view.head;
}

// Returns whether a tensor allows this access. Quantised types allow every access, because they
// are read and stored word by word. Second destinations are packed, and begin at multiples of 256
// bytes.
bool tensor_allows(const ResolvedTensor& tensor, bool of_second, std::uint32_t access) noexcept {
    const bool any_in = tensor.in.offset_bytes == 1,
               any_out = of_second || tensor.out.offset_bytes == 1;
    return (any_in ||
            strides_allow(tensor.in.element_bytes, offset_and_strides(tensor.in), access)) &&
           (any_out ||
            strides_allow(tensor.out.element_bytes, offset_and_strides(tensor.out), access));
}

// Returns the work as the shader sees it. With `separate_dispatches`, each tensor is a Q. V has K's
// heads.
Work work_of(const Kernel& kernel, const ResolvedCall& call, const TiledTensors& tensors) noexcept {
    const std::uint32_t k_heads = tensors.has[K]   ? call.tensor[K].heads
                                  : tensors.has[V] ? call.tensor[V].heads
                                                   : 0;
    Work work = {};
    work.z = call.batch;
    work.tokens = call.tokens;
    work.q_heads = tensors.has[Q] ? call.tensor[Q].heads : kernel.separate_dispatches ? k_heads : 0;
    work.k_heads = kernel.separate_dispatches ? 0 : k_heads;
    return work;
}

// Returns whether the angles allow this access. Wide access reads 16 bytes of a buffer at a time.
bool angles_allow(const Kernel& kernel, const ResolvedCall& call, std::uint32_t access) noexcept {
    return kernel.info.angles != VKROPE_ANGLES_DIRECT_BUFFER || access != shader::access_wide ||
           call.table_offset % 4 == 0;
}

// Chooses the pipeline with the widest access that the tensors allow. The last pipeline of a set
// fits every call.
const Pipeline& choose_pipeline(const Kernel& kernel, const ResolvedCall& call,
                                const TiledTensors& tensors) noexcept {
    const Pipeline* pipelines = kernel.pipelines + tensors.set->first_pipeline;
    const Work work = work_of(kernel, call, tensors);
    for (std::uint32_t i = 0; i + 1 < tensors.set->pipeline_count; ++i) {
        const Geometry& geometry = pipelines[i].geometry;
        const auto refuses = [&](TensorIndex t) {
            return tensors.has[t] &&
                   !tensor_allows(call.tensor[t], tensors.of_second, geometry.widest_access());
        };
        if (std::any_of(std::begin(every_tensor), std::end(every_tensor), refuses) ||
            ((tensors.has[Q] || tensors.has[K]) && !angles_allow(kernel, call, geometry.access)))
            continue;
        if (!pipelines[i].for_many_tokens) return pipelines[i];
        const DispatchShape shape = shape_of(geometry, work);
        const std::uint64_t lanes = std::uint64_t{shape.groups[0]} * shape.groups[1] *
                                    shape.groups[2] * geometry.workgroup_size();
        if (lanes >= many_lanes) return pipelines[i];
    }
    return pipelines[tensors.set->pipeline_count - 1];
}

// Returns whether the parameters, the scales or the rows of the second destination of a tensor
// depend on the head.
bool differs_by_head(const Kernel& kernel, TensorIndex index) noexcept {
    const TensorInfo& info = kernel.info.tensor[index];
    const Ops& ops = info.ops;
    return (has_second(info) && kernel.seconds_join) || ops.bias == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.norm.bias == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD || is_made(ops.store_scale) ||
           ops.scales_in;
}

// Checks the heads of a tiling. A norm over a token needs all of its heads in one dispatch.
// Parameters per head need a common first head for all tensors of a dispatch.
Status check_heads(const Kernel& kernel, const TiledTensors& tensors, TensorIndex index,
                   const Tiling& tiling) noexcept {
    const Ops& ops = kernel.info.tensor[index].ops;
    const char* const name = names_of[index].in;
    const Geometry& geometry = tensors.pipeline->geometry;
    const Counts &whole = tiling.whole, &tile = tiling.tile;
    const bool token = ops.norm.span == VKROPE_NORM_SPAN_TOKEN;
    if (token && whole.groups > 1)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s has %u groups of heads: a norm over a token takes heads of one stride",
                     name, whole.groups);
    const bool too_long = geometry.ops == shader::ops_owned &&
                          owned_iterations(tensors.set->info, geometry).row > max_iterations;
    if (token && (tile.heads != whole.heads || too_long))
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "%s has %u heads: a norm over a token needs all in one dispatch, which has %u "
                     "on this device",
                     name, whole.heads, too_long ? 0 : tile.heads);
    if (!differs_by_head(kernel, index) || tile.groups == 1 || tile.heads == whole.heads) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "%s has groups of %u heads: with parameters of each head or a second destination "
                 "a dispatch takes whole groups, here it takes %u heads",
                 name, whole.heads, tile.heads);
}

Result<Tiling> tile_tensor(const Kernel& kernel, const ResolvedCall& call, TiledTensors& tensors,
                           TensorIndex index, std::uint32_t group_heads, Source& source) noexcept {
    const ResolvedTensor& tensor = call.tensor[index];
    const TensorNames& names = names_of[index];
    const bool of_second = tensors.of_second;
    Bound bound;
    const View& out = of_second ? bound.keep(second_of(kernel.info, call, index)) : tensor.out;
    const bool has_source = tensor.source_pages != 0;
    if (has_source)
        bound.add_source(names.in, tensor.in);
    else
        bound.add(names.in, tensor.in);
    bound.add(of_second ? names.second : names.out, out);
    if (call.ids.buffer) bound.add("positions.ids", call.ids);
    if (index == V && call.v_slot_mapping && !of_second)
        bound.add("paged_cache.v_slot_mapping", bound.keep(slots_of(call, V, false)));
    else if (index != Q && call.slot_mapping.buffer && !of_second)
        bound.add("paged_cache.slot_mapping", call.slot_mapping);
    if (call.source_mapping)
        bound.add(index == V && call.v_source_mapping ? "paged_cache.v_source_mapping"
                                                      : "paged_cache.source_mapping",
                  bound.keep(slots_of(call, index, true)));
    if (tensor.scales) {
        bound.add(names.scale_tokens, *tensor.scales);
        bound.packed_tokens = true;
    }
    const auto add_scales = [&](const char* name, bool read) {
        const View& scales = bound.keep(scales_of(kernel.info, call, index, read));
        const bool of_source = read && has_source;
        if (of_source)
            bound.add_source(name, scales);
        else
            bound.add(name, scales);
        bound.packed_tokens = bound.packed_tokens || scales.page_size == 0;
        if (scales.element_bytes % 4 != 0)
            bound.align(name, scales, 4, of_source);  // the offset is in words
    };
    if (tensor.scales_out && !of_second) add_scales(names.scales_out, false);
    if (tensor.scales_in) add_scales(names.scales_in, true);
    if (tensor.second && kernel.seconds_join) {
        const View& second = bound.keep(second_of(kernel.info, call, index).rows_of_tokens());
        bound.add(names.second, second);
        bound.packed_tokens = true;
        bound.align(names.second, second, binding_alignment(kernel.storage_limits));
    }
    Counts whole = {};
    whole.batch = call.batch;
    whole.groups = tensor.heads / group_heads;
    whole.heads = group_heads;
    whole.tokens = call.tokens;
    whole.pages = of_second ? 1 : tensor.pages;
    whole.rows = std::max(out.page_size, 1u);
    if (tensor.in.page_size != 0 && !has_source) whole.rows = tensor.in.page_size;
    Result<Tiling> tiling = tile(tensors.set->info, tensors.pipeline->geometry, whole, group_heads,
                                 bound, kernel.storage_limits, kernel.dispatch_limits);
    if (tiling && tensors.pipeline->geometry.ops != shader::ops_none)
        tiling.status = check_heads(kernel, tensors, index, tiling.value);
    if (tiling && has_source) {
        tensors.has_source = true;
        source.pages = tensor.source_pages;
        source.rows = tensor.in.page_size;
        tiling.status = tile_source(bound, group_heads, kernel.storage_limits, tiling.value,
                                    source);
    }
    return tiling;
}

// Tensors with other heads_per_group share only dispatches of one group, in which each tensor finds
// its first head by itself, so only strides count.
bool same_rows(const View& a, const View& b) noexcept {
    return a.head == b.head && a.group == b.group && a.token == b.token && a.batch == b.batch &&
           a.channels == b.channels;
}

// Returns whether V has the heads and strides of K, which a dispatch pushes only once. They have
// the same pages of the same size.
bool lies_as_k(const ResolvedTensor& v, const ResolvedTensor& k) noexcept {
    return v.heads == k.heads && same_rows(v.in, k.in) && same_rows(v.out, k.out);
}

// Tiles the tensors together, in one dispatch for each sequence or group of heads, or in
// one dispatch for all. Returns false if a tensor does not fit or steps along z differently.
bool tile_together(const Kernel& kernel, const ResolvedCall& call, TiledTensors& tensors,
                   Source& source) noexcept {
    std::uint32_t groups = 1;
    for (const TensorIndex t : every_tensor) {
        const ResolvedTensor& tensor = call.tensor[t];
        if (tensors.has[t]) groups = std::max(groups, tensor.heads / tensor.group_heads);
    }
    bool first = true;
    for (const TensorIndex t : every_tensor) {
        if (!tensors.has[t]) continue;
        const std::uint32_t heads = call.tensor[t].heads,
                            own_groups = heads / call.tensor[t].group_heads;
        if (heads % groups != 0 || (own_groups != groups && own_groups != 1)) return false;
        const Result<Tiling> tiling = tile_tensor(kernel, call, tensors, t, heads / groups, source);
        if (!tiling) return false;
        const Counts &tile = tiling->tile, &whole = tiling->whole;
        if (tile.heads != whole.heads || tile.pages != whole.pages || tile.rows != whole.rows ||
            tiling->sources != 1)
            return false;
        // A dispatch has one index of the first head for all of its tensors.
        if (differs_by_head(kernel, t) && tile.groups != whole.groups) return false;
        Counts& shared = tensors.tiling.tile;
        if (first) tensors.tiling = tiling.value;
        if (tile.batch != shared.batch || tile.groups != shared.groups ||
            tile.tokens != shared.tokens)
            return false;
        if (t != Q) {
            tensors.tiling.whole.pages = shared.pages = tile.pages;
            tensors.tiling.whole.rows = shared.rows = tile.rows;
        }
        first = false;
    }
    return true;
}

// Plans the dispatches that only store the second destination of a tensor.
//
// counts  whether they also count
Status plan_second(const Kernel& kernel, const ResolvedCall& call, TensorIndex index, bool counts,
                   Plan& planned) noexcept {
    TiledTensors tensors;
    tensors.counts_positions = counts;
    tensors.set = &kernel.second_set[index];
    tensors.has[index] = tensors.of_second = true;
    tensors.pipeline = &choose_pipeline(kernel, call, tensors);
    const Result<Tiling> tiling = tile_tensor(
        kernel, call, tensors, index, call.tensor[index].group_heads, planned.next_source());
    tensors.tiling = tiling.value;
    planned.add(tensors);
    return tiling.status;
}

}  // namespace

Result<Plan> plan(const Kernel& kernel, const ResolvedCall& call) noexcept {
    Result<Plan> result;
    Plan& planned = result.value;
    if (!kernel.binds.has(shader::binding_out_of_range) && call.out_of_range.buffer) {
        result.status = error(VKROPE_ERROR_LIMIT_EXCEEDED,
                              "out_of_range: the kernel then binds %u storage buffers, but the "
                              "device allows %u (maxPerStageDescriptorStorageBuffers)",
                              kernel.storage_buffers_to_count, kernel.max_storage_buffers);
        return result;
    }
    const bool counts = call.out_of_range.buffer != VK_NULL_HANDLE;
    bool left[tensor_count];  // tensors without a tiling
    for (const TensorIndex t : every_tensor) {
        // A tensor in place that neither the rotation nor an op changes needs no copy.
        const TensorInfo& info = kernel.info.tensor[t];
        const bool changes = (t != V && kernel.info.rotary_dim != 0) || !call.tensor[t].in_place ||
                             !keeps_rows(info) || (has_second(info) && kernel.seconds_join);
        left[t] = call.tensor[t].heads != 0 && changes;
    }
    for (const TensorIndex t : {K, V}) {
        if (!call.tensor[t].second.buffer || kernel.seconds_join) continue;
        // If the rows themselves stay as they are, no other dispatch counts.
        const bool alone = counts && planned.count == 0 && !left[Q] && !left[K] && !left[V];
        if (result.status = plan_second(kernel, call, t, alone, planned); !result.status)
            return result;
    }
    const std::uint32_t seconds = planned.count;
    // The first tensor with slots counts those outside the cache.
    const TensorIndex counts_slots = left[K] ? K : V;
    const auto add = [&](TiledTensors tensors) {
        tensors.counts_positions = counts && planned.count == seconds;  // counts each token once
        const bool has_slots = call.slot_mapping.buffer || call.source_mapping;
        tensors.counts_slots = counts && has_slots &&
                               (tensors.has[counts_slots] ||
                                (v_has_own_slots(call) && tensors.has[V]));
        for (const TensorIndex t : every_tensor) left[t] = left[t] && !tensors.has[t];
        planned.add(tensors);
    };
    const bool v_joins = left[V] && left[K] && kernel.v_joins && !v_has_own_slots(call) &&
                         lies_as_k(call.tensor[V], call.tensor[K]);
    const struct {
        bool possible, q, v;
    } pairs[] = {{v_joins, left[Q], true},
                 {left[Q] && left[K], left[Q], false},
                 {v_joins && left[Q], false, true}};
    for (const auto& [possible, q, v] : pairs) {
        if (kernel.separate_dispatches || !possible) continue;
        TiledTensors together = {};
        together.set = &kernel.set[Q];
        together.has[Q] = q;
        together.has[K] = left[K];
        together.has[V] = v;
        together.pipeline = &choose_pipeline(kernel, call, together);
        if (!tile_together(kernel, call, together, planned.next_source())) continue;
        add(together);
        break;
    }
    for (const TensorIndex t : every_tensor) {
        if (!left[t]) continue;
        TiledTensors tensors = {};
        tensors.set = &kernel.set[t == K && !kernel.separate_dispatches ? Q : t];
        tensors.has[t] = true;
        tensors.pipeline = &choose_pipeline(kernel, call, tensors);
        const Result<Tiling> tiling = tile_tensor(
            kernel, call, tensors, t, call.tensor[t].group_heads, planned.next_source());
        if (result.status = tiling.status; !result.status) return result;
        tensors.tiling = tiling.value;
        add(tensors);
    }
    return result;
}

}  // namespace vkrope
