// SPDX-License-Identifier: MIT
#include "kernel/dispatch_sequence.hpp"

#include <algorithm>

#include "base/bits.hpp"
#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"

namespace vkrope {

namespace {

// ---- One dispatch: a tile of some tensors ----

// Binds the part of a tensor in a tile. Sets `layout` to its strides and `offset` to its first
// element in the binding.
VkDescriptorBufferInfo place(const View& view, std::uint32_t group_heads, const Tile& tile,
                             bool z_is_group, const StorageLimits& limits,
                             shader::RowLayout& layout, std::uint32_t& offset) noexcept {
    const std::uint64_t first = view.first_byte +
                                offset_of(view, group_heads, tile.first) * view.element_bytes;
    const VkDescriptorBufferInfo bound = binding_of(
        view.buffer, first, span_of(view, group_heads, tile.count) * view.element_bytes, limits);
    const auto step = [](std::uint32_t count, std::uint64_t stride) {
        return count > 1 ? std::uint32_t(stride) : 0u;
    };
    offset = std::uint32_t((first - bound.offset) / view.offset_bytes);
    layout.head = step(tile.count.heads, view.head);
    if (view.page_size != 0) {
        layout.z = step(tile.count.pages, view.batch);
        layout.token = step(tile.count.rows, view.token);
        return bound;
    }
    layout.z = z_is_group ? step(tile.count.groups, view.group_step(group_heads))
                          : step(tile.count.batch, view.batch);
    layout.token = step(tile.count.tokens, view.token);
    return bound;
}

// The binding of a tensor is that of Q plus the index that the shader sees.
static_assert(shader::binding_k_in == shader::binding_q_in + K &&
              shader::binding_v_in == shader::binding_q_in + V &&
              shader::binding_v_scales == shader::binding_q_scales + V &&
              shader::binding_k_out == shader::binding_q_out + K &&
              shader::binding_v_out == shader::binding_q_out + V &&
              shader::binding_v_scales_out == shader::binding_q_scales_out + V &&
              shader::offset_k_in == shader::offset_q_in + K &&
              shader::offset_v_out == shader::offset_q_out + V &&
              shader::offset_v_scales == shader::offset_q_scales + V &&
              shader::binding_v_second == shader::binding_k_second + V - K &&
              shader::binding_v_weight == shader::binding_q_weight + V &&
              shader::binding_parameters < shader::binding_q_out);

// Push::offsets before packing, and the offset of V's computed scales, which is in Push::flags.
// The offset of a second destination is always 0, so the shader does not get it.
constexpr std::uint32_t offset_second = shader::offset_q_scales_out + tensor_count;
struct Offsets {
    std::uint32_t of[offset_second + 1] = {};

    void pack(std::uint32_t (&words)[4]) const noexcept {
        for (std::uint32_t i = 0; i < 4; ++i)
            words[i] = of[4 * i] | of[4 * i + 1] << 8 | of[4 * i + 2] << 16 | of[4 * i + 3] << 24;
    }
};

// Fills a dispatch, which is all zero, from a tile of some tensors.
class DispatchBuilder {
   public:
    DispatchBuilder(const Kernel& kernel, const Call& call, const ResolvedCall& resolved,
                    const TiledTensors& tensors, const Tile& tile, const Tile& source,
                    bool has_last_source, Dispatch& dispatch) noexcept
        : kernel_(kernel), call_(call), resolved_(resolved), tensors_(tensors), tile_(tile),
          source_(source), has_last_source_(has_last_source),
          z_is_group_(tensors.tiling.tile.groups > 1), dispatch_(dispatch),
          bindings_(dispatch.bindings), push_(dispatch.push) {}

    void build() noexcept {
        dispatch_.pipeline = tensors_.pipeline;
        add_tensors();
        add_positions();
        add_slots();
        add_angles();
        add_counter();
        push_.q_scale = bits_of(resolved_.q_scale);
        bindings_.of[shader::binding_token_count] = resolved_.token_count;
        bindings_.of[shader::binding_parameters] = resolved_.parameters;
        offsets_.of[shader::offset_parameters] = resolved_.parameters_offset;
        offsets_.pack(push_.offsets);
    }

   private:
    // Binds rows at `binding`, whose offset is Push::offsets[offset]. Returns their strides.
    shader::RowLayout bind(const View& view, std::uint32_t group_heads, const Tile& tile,
                           bool z_is_group, std::uint32_t binding, std::uint32_t offset) noexcept {
        shader::RowLayout layout;
        bindings_.of[binding] = place(view, group_heads, tile, z_is_group, kernel_.storage_limits,
                                      layout, offsets_.of[offset]);
        return layout;
    }

    void add_tensors() noexcept {
        Work work = {};
        work.z = z_is_group_ ? tile_.count.groups : tile_.count.batch;
        work.tokens = tile_.count.tokens;
        // The tensors as the shader sees them: Q, K, and a V that shares K's dispatch and strides.
        const struct {
            std::uint32_t& heads;
            shader::RowLayout &in, &out;
            std::uint32_t in_place_flag;
        } seen_as[tensor_count] = {{work.q_heads, push_.q_in, push_.q_out, shader::flag_q_in_place},
                                   {work.k_heads, push_.k_in, push_.k_out, shader::flag_k_in_place},
                                   {work.k_heads, push_.k_in, push_.k_out, 0}};
        for (const TensorIndex t : every_tensor) {
            if (!tensors_.has[t]) continue;
            const ResolvedTensor& tensor = resolved_.tensor[t];
            const TensorIndex index = kernel_.separate_dispatches  ? Q
                                      : t == V && !tensors_.has[K] ? K
                                                                   : t;
            const auto& seen = seen_as[index];
            const std::uint32_t group_heads = tensor.heads / tensors_.tiling.whole.groups;
            Tile rows = tile_;
            // Tensors share a tiling only if it does not split the heads of a group.
            if (tensors_.together()) rows.count.heads = group_heads;
            seen.heads = rows.count.heads;
            const auto bind_in = [&](const Tile& read) {
                return bind(tensor.in, group_heads, read, z_is_group_, shader::binding_q_in + index,
                            shader::offset_q_in + index);
            };
            if (tensors_.has_source) {
                Tile read = source_;
                read.count.heads = rows.count.heads;
                seen.in = bind_in(read);
            } else {
                seen.in = bind_in(rows);
            }
            seen.out = bind(tensors_.of_second ? second_of(kernel_.info, resolved_, t) : tensor.out,
                            group_heads, rows, z_is_group_, shader::binding_q_out + index,
                            shader::offset_q_out + index);
            if (tensor.in_place && !tensors_.of_second) push_.flags |= seen.in_place_flag;
            add_scales(t, index);
            if (tensor.second.buffer && kernel_.seconds_join) add_second(t, index);
            if (resolved_.has_norm_weight) add_norm_weight(t, index);
        }
        dispatch_.shape = shape_of(tensors_.pipeline->geometry, work);
        push_.tokens = work.tokens;
        push_.heads = work.q_heads | work.k_heads << 16;
        push_.flags |= offsets_.of[shader::offset_q_scales_out + V] * shader::flag_v_scales_out |
                       (tensors_.has[K] && tensors_.has[V] ? shader::flag_v : 0) |
                       (call_.direction == VKROPE_INVERSE ? shader::flag_inverse : 0) |
                       (z_is_group_ ? shader::flag_z_is_group : 0);
        if (tensors_.pipeline->geometry.ops == shader::ops_none) return;
        // Parameters of each head need the first head of this dispatch.
        const Counts& first = tile_.first;
        const std::uint32_t head = first.groups * tensors_.tiling.whole.heads + first.heads;
        push_.flags |= head * shader::flag_first_head;
    }

    // The shader computes the strides of scales.
    void add_scales(TensorIndex t, TensorIndex index) noexcept {
        const ResolvedTensor& tensor = resolved_.tensor[t];
        if (tensor.scales)
            bind(*tensor.scales, 1, tile_, z_is_group_, shader::binding_q_scales + index,
                 shader::offset_q_scales + index);
        if (tensors_.of_second) return;
        if (tensor.scales_out)
            bind(scales_of(kernel_.info, resolved_, t, false), 1, all_heads(tile_), false,
                 shader::binding_q_scales_out + index, shader::offset_q_scales_out + index);
        if (tensor.scales_in)
            bind(scales_of(kernel_.info, resolved_, t, true), 1, all_heads(source_), false,
                 index == K ? shader::binding_k_scales_in : shader::binding_v_scales_in,
                 index == K ? shader::offset_k_scales_in : shader::offset_v_scales_in);
    }

    // Returns the tile of rows that have all heads of a token.
    static Tile all_heads(Tile tile) noexcept {
        tile.first.groups = tile.first.heads = 0;
        tile.count.groups = tile.count.heads = 1;
        return tile;
    }

    // The offset is 0, because the buffer is aligned.
    void add_norm_weight(TensorIndex t, TensorIndex index) noexcept {
        const TensorInfo& of = kernel_.info.tensor[t];
        if (!of.ops.norm.weight_bound) return;
        const VkDescriptorBufferInfo& where = call_.norm_weight[t];
        bindings_.of[shader::binding_q_weight + index] = {where.buffer, where.offset,
                                                          bound_weight_bytes(of)};
    }

    // The shader stores the rows of all tokens, whatever their slots: once, with the last pages.
    void add_second(TensorIndex t, TensorIndex index) noexcept {
        if (!has_last_pages()) return;
        // The offset is 0, because tiles are aligned.
        bind(second_of(kernel_.info, resolved_, t).rows_of_tokens(), 1, all_heads(tile_), false,
             shader::binding_k_second + index - K, offset_second);
        push_.flags |= shader::flag_second;
    }

    // Returns whether the tile has the last pages of all caches, or no cache.
    bool has_last_pages() const noexcept {
        const Counts& whole = tensors_.tiling.whole;
        return has_last_source_ && tile_.first.pages + tile_.count.pages == whole.pages &&
               tile_.first.rows + tile_.count.rows == whole.rows;
    }

    void add_positions() noexcept {
        if (kernel_.info.token_count)
            push_.first_token = tile_.first.tokens;
        else
            push_.first_set_tokens = call_.first_set_tokens -
                                     std::min(call_.first_set_tokens, tile_.first.tokens);
        if (resolved_.ids.buffer) {
            const shader::RowLayout ids = bind(resolved_.ids, 1, tile_, z_is_group_,
                                               shader::binding_ids, shader::offset_ids);
            push_.ids_z = ids.z;
            push_.ids_token = ids.token;
            push_.ids_axis = resolved_.ids_axis;
            if (call_.positions.int64) push_.flags |= shader::flag_ids_64;
            return;
        }
        push_.first_position = std::uint32_t(call_.positions.first) + tile_.first.tokens +
                               tile_.first.batch * resolved_.position_step;
        push_.position_z = z_is_group_ ? 0 : resolved_.position_step;
    }

    void add_slots() noexcept {
        const bool has_slots = (tensors_.has[K] || tensors_.has[V]) && !tensors_.of_second;
        const auto bind_slots = [this](const View& slots) {
            push_.slot_z = bind(slots, 1, tile_, z_is_group_, shader::binding_slot_mapping,
                                shader::offset_slots)
                               .z;
        };
        if (has_slots && with_slots() == V && resolved_.v_slot_mapping)
            bind_slots(slots_of(resolved_, V, false));
        else if (has_slots && resolved_.slot_mapping.buffer)
            bind_slots(resolved_.slot_mapping);
        add_source();
        push_.page_size = resolved_.page_size;
        push_.slot_first = tile_.first.pages * resolved_.page_size + tile_.first.rows;
        push_.slot_rows = (tile_.count.pages - 1) * resolved_.page_size + tile_.count.rows;
        if (call_.paged_cache.int64) push_.flags |= shader::flag_slot_mapping_64;
    }

    // Returns the tensor whose slots the dispatch has.
    TensorIndex with_slots() const noexcept { return tensors_.has[K] ? K : V; }

    // The slots that are read. A call that reads no other slots than it writes has their tile.
    void add_source() noexcept {
        if (!resolved_.source_mapping) return;
        const std::uint32_t page_size = resolved_.page_size;
        push_.q_in = {bind(slots_of(resolved_, with_slots(), true), 1, tile_, z_is_group_,
                           shader::binding_source_mapping, shader::offset_source)
                          .z,
                      source_.first.pages * page_size + source_.first.rows,
                      (source_.count.pages - 1) * page_size + source_.count.rows};
    }

    void add_angles() noexcept {
        if (!call_.angles.layout) {  // nothing rotates, so every position is covered
            push_.table_rows = ~0u;
            return;
        }
        const AngleTableLayout& layout = *call_.angles.layout;
        bindings_.of[shader::binding_table] = resolved_.table;
        bindings_.of[shader::binding_table_sin] = resolved_.table_sin;
        offsets_.of[shader::offset_table] = resolved_.table_offset;
        push_.gain = bits_of(resolved_.gain);
        if (kernel_.needs.moves_keys &&
            (call_.gain == VKROPE_GAIN_OMIT || value_or(layout.attention_factor, 1.0) == 1))
            push_.flags |= shader::flag_keeps;
        push_.table_rows = layout.rows;
        switch (kernel_.info.angles) {
            case VKROPE_ANGLES_COS_SIN_CACHE:
                push_.table_stride = layout.row_stride;
                push_.table_sin_offset = resolved_.table_sin_offset;
                break;
            case VKROPE_ANGLES_DIRECT_BUFFER: push_.table_stride = 2 * layout.pairs; break;
            case VKROPE_ANGLES_COMPUTED: push_.first_head_group = tile_.first.groups; break;
            default:
                push_.texture_fold_log2 = layout.fold_log2;
                push_.texture_row_texels = layout.row_texels;
        }
    }

    // Each token is counted in one tile: the tile of its first heads and, if the cache is split, of
    // the last pages. A number of tokens that is too large is counted in the tile of the first
    // sequence that has the last tokens.
    void add_counter() noexcept {
        offsets_.of[shader::offset_out_of_range] = resolved_.out_of_range_offset;
        if (tile_.first.heads != 0 || tile_.first.groups != 0 || !has_last_pages() ||
            !(tensors_.counts_positions || tensors_.counts_slots))
            return;
        push_.flags |= (tensors_.counts_positions ? shader::flag_count_positions : 0) |
                       (tensors_.counts_slots ? shader::flag_count_slots : 0);
        bindings_.of[shader::binding_out_of_range] = resolved_.out_of_range;
        const Counts &first = tile_.first, &count = tile_.count;
        if (kernel_.info.token_count && tensors_.counts_positions && first.batch == 0 &&
            first.tokens + count.tokens == tensors_.tiling.whole.tokens)
            push_.first_token |= shader::first_token_counts;
    }

    const Kernel& kernel_;
    const Call& call_;
    const ResolvedCall& resolved_;
    const TiledTensors& tensors_;
    const Tile& tile_;
    const Tile& source_;  // the same, with the pages and rows that are read
    const bool has_last_source_;
    const bool z_is_group_;  // otherwise z counts sequences
    Dispatch& dispatch_;
    Bindings& bindings_;
    shader::Push& push_;
    Offsets offsets_;
};

// ---- Barriers between dispatches of one call ----

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range &&
           b.offset < a.offset + a.range;
}

// Extends `hull` to contain `bindings`, which have the same buffers.
void extend(Bindings& hull, const Bindings& bindings) noexcept {
    for (std::uint32_t i = 0; i < shader::binding_count; ++i) {
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

bool conflict(const Bindings& earlier, const Bindings& later) noexcept {
    for (std::uint32_t w = shader::binding_q_out; w <= shader::binding_v_second; ++w) {
        const VkDescriptorBufferInfo &before = earlier.of[w], &after = later.of[w];
        if (!before.buffer && !after.buffer) continue;
        for (std::uint32_t i = 0; i < shader::binding_count; ++i)
            if (overlap(before, later.of[i]) || overlap(earlier.of[i], after)) return true;
    }
    return false;
}

Dispatch DispatchSequence::at(std::uint64_t index) const noexcept {
    Dispatch dispatch;
    while (index >= plan_.of[dispatch.part].tiling.count())
        index -= plan_.of[dispatch.part++].tiling.count();
    const TiledTensors& tensors = plan_.of[dispatch.part];
    const Tile tile = tensors.tiling.at(index);
    std::optional<Tile> source;
    bool has_last_source = true;
    if (tensors.has_source) {
        const Tiling& tiling = tensors.tiling;
        source = plan_.source[dispatch.part].at(tiling, index, tile);
        has_last_source = index >= tiling.count() - tiling.count() / tiling.sources;
    }
    DispatchBuilder(kernel_, call_, resolved_, tensors, tile, source ? *source : tile,
                    has_last_source, dispatch)
        .build();
    return dispatch;
}

bool DispatchSequence::needs_barrier(const Dispatch& next, bool is_last) noexcept {
    bool barrier = false;
    if (index_ != first_since_barrier_) {
        bool may_conflict = false;
        for (std::uint32_t part = first_part_; part <= last_part_ && !may_conflict; ++part)
            may_conflict = conflict(since_barrier_[part], next.bindings);
        for (std::uint64_t i = first_since_barrier_; may_conflict && i < index_ && !barrier; ++i)
            barrier = conflict(at(i).bindings, next.bindings);
    }
    if (barrier) first_since_barrier_ = index_;
    if (is_last) return barrier;
    const bool is_first = index_ == first_since_barrier_;
    if (is_first) first_part_ = next.part;
    if (is_first || next.part != last_part_)
        since_barrier_[next.part] = next.bindings;
    else
        extend(since_barrier_[next.part], next.bindings);
    last_part_ = next.part;
    ++index_;
    return barrier;
}

}  // namespace vkrope
