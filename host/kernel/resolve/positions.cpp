// SPDX-License-Identifier: MIT
// Positions of tokens, and slots of their rows in a cache.
#include <cinttypes>
#include <limits>

#include "kernel/resolve/rules.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

constexpr std::int64_t max_positions = std::numeric_limits<std::int32_t>::max();

Status check_stride(const char* field, std::int64_t stride, std::int64_t least) noexcept {
    if (stride >= least && stride <= max_positions) return {};
    return error(Code::invalid_argument, "%s is %" PRId64 ": it must be %d to 2^31 - 1", field,
                 stride, int(least));
}

Status resolve_implicit(const Call& call, ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (positions.int64) {  // a message of its own: in C the field has another name
        return error(Code::invalid_argument,
                     "positions.int64 is given: the kernel was created for implicit positions");
    }
    if (positions.axis_stride != 0 || positions.token_stride != 1) {
        return error(Code::invalid_argument,
                     "positions.%s is given: the kernel was created for implicit positions",
                     positions.axis_stride != 0 ? "axis_stride" : "token_stride");
    }
    resolved.position_step = std::uint32_t(positions.batch_stride);
    const std::int64_t last = std::int64_t{positions.first} + call.tokens - 1;
    const std::int64_t steps = std::int64_t{call.batch} - 1;
    if (last <= max_positions &&
        (steps == 0 || positions.batch_stride <= (max_positions - last) / steps))
        return {};
    return error(Code::invalid_argument,
                 "positions.first is %d: with tokens %u, batch %u and batch_stride %" PRId64
                 " the last position, %.0f, does not fit in int32",
                 positions.first, call.tokens, call.batch, positions.batch_stride,
                 double(last) + double(steps) * double(positions.batch_stride));
}

}  // namespace

Status resolve_positions(const KernelInfo& info, const Call& call,
                         ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (Status s = check_stride("positions.batch_stride", positions.batch_stride, 0); !s) return s;
    if (Status s = check_stride("positions.axis_stride", positions.axis_stride, 0); !s) return s;
    if (Status s = check_stride("positions.token_stride", positions.token_stride, 1); !s) return s;
    if (info.positions == PositionSource::implicit) return resolve_implicit(call, resolved);
    if (info.positions == PositionSource::ids && positions.axis_stride != 0) {
        return error(Code::invalid_argument,
                     "positions.axis_stride is %" PRId64 ": the kernel was created for one axis",
                     positions.axis_stride);
    }
    // The ids of a token, on all axes, are one "row" of words.
    const std::uint32_t words = positions.int64 ? 2 : 1;
    const std::uint64_t steps = info.sections.axes == 0 ? 0 : info.sections.axes - 1;
    const std::uint64_t row = (steps * std::uint64_t(positions.axis_stride) + 1) * words;
    if (row > std::numeric_limits<std::uint32_t>::max()) {
        return error(Code::limit_exceeded,
                     "positions.axis_stride is %" PRId64 ": the ids of a token span %" PRIu64
                     " words, more than 2^32 - 1",
                     positions.axis_stride, row);
    }
    resolved.ids_axis = std::uint32_t(positions.axis_stride) * words;
    View& view = resolved.ids;
    view = {.buffer = positions.ids.buffer, .first_byte = positions.ids.offset};
    view.head_dim = std::uint32_t(row);
    view.token = std::uint64_t(positions.token_stride) * words;
    view.batch = std::uint64_t(positions.batch_stride) * words;
    return check_words("positions.ids", positions.ids, multiply_add(words_of(view, call), 4, 0));
}

Status resolve_slots(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept {
    const PagedCache& rows = call.paged_cache;
    const bool given = rows.slot_mapping.buffer || rows.slot_mapping.offset ||
                       rows.slot_mapping.range || rows.int64 || rows.page_size != 1 ||
                       rows.page_stride || rows.row_stride || rows.batch_stride;
    if (!info.scatter_k) {
        if (given)
            return error(Code::invalid_argument,
                         "paged_cache: the kernel was created without scatter_k");
        return {};
    }
    if (call.k_in.heads == 0 && call.v_in.heads == 0) return {};
    if (Status checked = check_stride("paged_cache.batch_stride", rows.batch_stride, 0); !checked)
        return checked;
    resolved.page_size = rows.page_size;
    const std::uint32_t words = rows.int64 ? 2 : 1;
    View& view = resolved.slot_mapping;
    view = {.buffer = rows.slot_mapping.buffer, .first_byte = rows.slot_mapping.offset};
    view.head_dim = words;
    view.token = words;
    view.batch = (rows.batch_stride == 0 ? call.tokens : std::uint64_t(rows.batch_stride)) * words;
    return check_words("paged_cache.slot_mapping", rows.slot_mapping,
                       multiply_add(words_of(view, call), 4, 0));
}

}  // namespace vkrope
