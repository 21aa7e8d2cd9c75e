// SPDX-License-Identifier: MIT
// Resolves the positions of tokens, and the slots of their rows in a cache.
#include <cinttypes>
#include <limits>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

constexpr std::int64_t max_id = std::numeric_limits<std::int32_t>::max();

Status stride_error(const char* field, std::int64_t stride, const char* rule) noexcept {
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %" PRId64 ": it must be %s", field, stride,
                 rule);
}

// Sets `stride` to `given`, to `packed` if `given` is 0, and to 0 for broadcast rows.
Status resolve_stride(const char* field, std::int64_t given, std::uint64_t packed,
                      std::uint64_t& stride) noexcept {
    stride = given == 0 ? packed : given == broadcast ? 0 : std::uint64_t(given);
    if (given == broadcast || (given >= 0 && given <= max_id)) return {};
    return stride_error(field, given, "0 (packed), broadcast, or at most 2^31 - 1");
}

Status resolve_implicit(const Call& call, ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    const std::int64_t steps = std::int64_t{sequences_of(call)} - 1;
    std::uint64_t stride = 0;
    if (Status s = resolve_stride("positions.batch_stride", positions.batch_stride, 0, stride); !s)
        return s;
    if (steps != 0 && positions.batch_stride == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "positions.batch_stride is 0: with batch %u and implicit positions it must be "
                     "given; broadcast: every sequence starts at positions.first",
                     sequences_of(call));
    resolved.position_step = std::uint32_t(stride);
    const std::int64_t last = std::int64_t{positions.first} + call.tokens - 1;
    const std::uint64_t left = last <= max_id ? std::uint64_t(max_id - last) : 0;
    if (last <= max_id && (steps == 0 || stride <= left / std::uint64_t(steps))) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "positions.first is %d: with tokens %u, batch %u and batch_stride %" PRIu64
                 " the last position, %.0f, does not fit in int32",
                 positions.first, call.tokens, sequences_of(call), stride,
                 double(last) + double(steps) * double(stride));
}

// Checks the range of ids. If the batch stride was left at 0, the error states its packed value.
Status check_ids(const Positions& positions, const Call& call, const View& view, std::uint64_t axis,
                 std::uint64_t own) noexcept {
    const std::uint64_t bytes = multiply_add(words_of(view, call), 4, 0);
    const bool of_axes = axis != 0 && positions.axis_stride == 0,
               of_batch = view.batch != 0 && sequences_of(call) > 1 && positions.batch_stride == 0;
    const VkDescriptorBufferInfo& ids = positions.ids;
    if (!ids.buffer || ids.range == VK_WHOLE_SIZE || ids.range >= bytes || !(of_axes || of_batch))
        return check_numbers("positions.ids", ids, {positions.int64 != 0, "set positions.int64"},
                             bytes, own);
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "positions.ids.range is %" PRIu64 " bytes: its ids reach %" PRIu64
                 ", with positions.%s 0, which stands for %" PRIu64
                 " ids; broadcast shares one row",
                 ids.range, bytes, of_axes ? "axis_stride" : "batch_stride",
                 (of_axes ? axis : view.batch) / (positions.int64 ? 2 : 1));
}

}  // namespace

Status resolve_positions(const KernelInfo& info, const Call& call,
                         ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (info.positions == VKROPE_POSITIONS_IMPLICIT) return resolve_implicit(call, resolved);
    if (positions.token_stride < 0 || positions.token_stride > max_id)
        return stride_error("positions.token_stride", positions.token_stride,
                            "0 (packed) or 1 to 2^31 - 1");
    const std::uint64_t token = positions.token_stride == 0 ? 1
                                                            : std::uint64_t(positions.token_stride);
    const std::uint64_t sequence = token * call.tokens;  // packed stride of sequences
    std::uint64_t batch = 0, axis = 0;
    if (Status s = resolve_stride("positions.batch_stride", positions.batch_stride, sequence,
                                  batch);
        !s)
        return s;
    const std::uint64_t all = batch == 0 ? sequence : multiply_add(sequences_of(call), batch, 0);
    if (Status s = resolve_stride("positions.axis_stride", positions.axis_stride, all, axis); !s)
        return s;
    // The ids of one token, on all axes, form one "row" of words.
    const std::uint32_t words = positions.int64 ? 2 : 1;
    const std::uint64_t steps = info.sections.axes == 0 ? 0 : info.sections.axes - 1;
    if (steps == 0) axis = 0;
    const std::uint64_t row = multiply_add(multiply_add(steps, axis, 1), words, 0);
    if (row > std::numeric_limits<std::uint32_t>::max()) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "positions.axis_stride is %" PRId64 ": the ids of a token span %" PRIu64
                     " words, more than 2^32 - 1",
                     positions.axis_stride, row);
    }
    axis *= words;
    resolved.ids_axis = std::uint32_t(axis);
    View& view = resolved.ids;
    view = {};
    view.buffer = positions.ids.buffer;
    view.first_byte = positions.ids.offset;
    view.head_dim = std::uint32_t(row);
    view.token = token * words;
    view.batch = batch * words;
    const std::uint64_t axes = axis == 0 ? 1 : steps + 1;
    return check_ids(positions, call, view, axis,
                     multiply_add(axes, axis == 0 ? all * words : axis, 0) * 4);
}

Status check_covered(const Call& call, std::uint32_t step) noexcept {
    const AngleTableLayout& plan = *call.angles.layout;
    const std::int64_t first = call.positions.first, rows = plan.rows;
    const std::int64_t last = first + call.tokens - 1 +
                              (std::int64_t{sequences_of(call)} - 1) * step;
    const std::int64_t lowest = plan.source == VKROPE_ANGLES_COS_SIN_CACHE ? 0 : 1 - rows;
    if (first >= lowest && last < rows) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "positions.first is %d: the table covers positions %" PRId64 " to %" PRId64
                 ", and the last of the call is %" PRId64
                 "; a call with out_of_range may leave tokens unrotated",
                 call.positions.first, lowest, rows - 1, last);
}

Status resolve_slots(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept {
    const PagedCache& rows = call.paged_cache;
    if (!(info.scatter_kv || info.gather_kv) || (call.in[K].heads == 0 && call.in[V].heads == 0))
        return {};
    if (rows.batch_stride < 0 || rows.batch_stride > max_id)
        return stride_error("paged_cache.batch_stride", rows.batch_stride,
                            "0 (packed) or 1 to 2^31 - 1");
    resolved.page_size = page_size_of(rows);
    const std::uint32_t words = rows.int64 ? 2 : 1;
    View& view = resolved.slot_mapping;  // without scatter_kv only its strides are used
    view = {};
    view.head_dim = words;
    view.token = words;
    view.batch = (rows.batch_stride == 0 ? call.tokens : std::uint64_t(rows.batch_stride)) * words;
    const auto check = [&](const char* name, const VkDescriptorBufferInfo& where) {
        return check_numbers(name, where, {rows.int64 != 0, "set paged_cache.int64"},
                             multiply_add(words_of(view, call), 4, 0),
                             multiply_add(sequences_of(call), view.batch, 0) * 4);
    };
    const auto resolve_of_v = [&](const char* name, const VkDescriptorBufferInfo& where,
                                  Place& place) {
        if (!is_given(where)) return Status{};
        place = {where.buffer, where.offset};
        return check(name, where);
    };
    if (info.scatter_kv) {
        view.buffer = rows.slot_mapping.buffer;
        view.first_byte = rows.slot_mapping.offset;
        if (Status s = check("paged_cache.slot_mapping", rows.slot_mapping); !s) return s;
        if (Status s = resolve_of_v("paged_cache.v_slot_mapping", rows.v_slot_mapping,
                                    resolved.v_slot_mapping);
            !s)
            return s;
    }
    if (!info.gather_kv) return {};
    const bool stays = info.scatter_kv && !is_given(rows.source_mapping);
    const VkDescriptorBufferInfo& source = stays ? rows.slot_mapping : rows.source_mapping;
    resolved.source_mapping = {source.buffer, source.offset};
    if (stays) {
        if (resolved.v_slot_mapping) resolved.v_source_mapping = resolved.v_slot_mapping;
        return {};
    }
    if (Status s = check("paged_cache.source_mapping", source); !s) return s;
    return resolve_of_v("paged_cache.v_source_mapping", rows.v_source_mapping,
                        resolved.v_source_mapping);
}

View slots_of(const ResolvedCall& call, TensorIndex index, bool read) noexcept {
    View view = call.slot_mapping;
    const Place& of_v = read ? call.v_source_mapping : call.v_slot_mapping;
    if (!read && !(index == V && of_v)) return view;
    const Place& place = index == V && of_v ? of_v : call.source_mapping;
    view.buffer = place.buffer;
    view.first_byte = place.first_byte;
    return view;
}

}  // namespace vkrope
