// SPDX-License-Identifier: MIT
#include "kernel/validate.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <limits>
#include <numeric>

#include "interface.h"
#include "kernel/geometry/overlap.hpp"
#include "kernel/vulkan/program.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// ---- KernelInfo ----

Status check_width(const char* name, const Width& width, const KernelInfo& info, bool rotates) noexcept {
    if (width.head_dim == 0) return {};
    if (!rotates && width.rotary_offset != 0) {
        return error(Code::invalid_argument, "%s.rotary_offset is %u: no channel of it is rotated, so it must be 0", name,
                     width.rotary_offset);
    }
    if (width.head_dim < 2 || width.head_dim > 65534) {
        return error(Code::invalid_argument, "%s.head_dim is %u: it must be 2 to 65534, or 0 for an absent tensor", name,
                     width.head_dim);
    }
    std::uint64_t end = info.rotary_dim;  // of the last window
    for (const Window& window : info.windows) {
        if (window.rotary_dim != 0) end = std::uint64_t{window.offset} + window.rotary_dim;
    }
    if (rotates && width.rotary_offset + end > width.head_dim) {
        return error(Code::invalid_argument, "%s.rotary_offset is %u: with rotary_dim %u the window ends past head_dim %u", name,
                     width.rotary_offset, info.rotary_dim, width.head_dim);
    }
    if (width.in > Element::bf16)
        return error(Code::invalid_argument, "%s.in is %u: no such element type", name, unsigned(width.in));
    if (width.out > Element::bf16)
        return error(Code::invalid_argument, "%s.out is %u: no such element type", name, unsigned(width.out));
    return {};
}

// Even windows, ascending and apart, that make up rotary_dim.
Status check_windows(const KernelInfo& info) noexcept {
    if (info.windows[0].rotary_dim == 0) {
        for (const Window& window : info.windows) {
            if (window.rotary_dim != 0 || window.offset != 0)
                return error(Code::invalid_argument, "windows[0].rotary_dim is 0: then all windows must be zero");
        }
        return {};
    }
    std::uint64_t end = 0, sum = 0;
    for (std::uint32_t i = 0; i < max_windows; ++i) {
        const Window& window = info.windows[i];
        if (window.rotary_dim == 0) {
            if (window.offset == 0) continue;
            return error(Code::invalid_argument, "windows[%u].rotary_dim is 0: its offset is %u", i, window.offset);
        }
        if (i > 0 && info.windows[i - 1].rotary_dim == 0)
            return error(Code::invalid_argument, "windows[%u].rotary_dim is %u: windows[%u] is absent", i, window.rotary_dim,
                         i - 1);
        if (window.rotary_dim % 2 != 0)
            return error(Code::invalid_argument, "windows[%u].rotary_dim is %u: it must be even", i, window.rotary_dim);
        if (window.offset < end) {
            return error(Code::invalid_argument, "windows[%u].offset is %u: windows[%u] ends at %" PRIu64 "; they must not overlap",
                         i, window.offset, i - 1, end);
        }
        end = std::uint64_t{window.offset} + window.rotary_dim;
        sum += window.rotary_dim;
    }
    if (sum == info.rotary_dim) return {};
    return error(Code::invalid_argument, "rotary_dim is %u: the windows have %" PRIu64 " channels together", info.rotary_dim, sum);
}

Status check_sections(const KernelInfo& info) noexcept {
    const Sections& sections = info.sections;
    const bool several = info.positions == PositionSource::axis_ids;
    if (several && (sections.axes < 2 || sections.axes > max_axes))
        return error(Code::invalid_argument, "sections.axes is %u: with axis_ids it must be 2 to %u", sections.axes, max_axes);
    if (!several && sections.axes != 0)
        return error(Code::invalid_argument, "sections.axes is %u: without axis_ids it must be 0", sections.axes);
    if (!several) return {};
    if (sections.order > SectionOrder::interleaved)
        return error(Code::invalid_argument, "sections.order is %u: no such order", unsigned(sections.order));
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < max_axes; ++i) {
        if (sections.pairs[i] > 32767 || (i >= sections.axes && sections.pairs[i] != 0)) {
            return error(Code::invalid_argument, "sections.pairs[%u] is %u: it must be at most 32767, and 0 from axes %u on", i,
                         sections.pairs[i], sections.axes);
        }
        sum += sections.pairs[i];
    }
    if (sum == 0) return error(Code::invalid_argument, "sections.pairs are all 0: some axis must turn some pair");
    if (sections.order == SectionOrder::sequential) return {};
    if (sections.axes != 3 && sections.axes != 4)
        return error(Code::invalid_argument, "sections.axes is %u: interleaved sections have 3 or 4", sections.axes);
    if (sections.leftover_axis < sections.axes) return {};
    return error(Code::invalid_argument, "sections.leftover_axis is %u: there are %u axes", sections.leftover_axis, sections.axes);
}

// ---- Tensors ----

Status resolve_stride(const char* name, const char* field, std::int64_t given, std::uint64_t packed, std::uint64_t& stride,
                      bool& is_packed) noexcept {
    if (given < 0) return error(Code::invalid_argument, "%s.%s is %" PRId64 ": it must not be negative", name, field, given);
    is_packed = given == 0;
    stride = is_packed ? packed : std::uint64_t(given);
    return {};
}

Status resolve_heads(TensorRows& rows, bool input) noexcept {
    const Tensor& tensor = rows.tensor;
    View& view = rows.view;
    view.heads = view.heads_per_group = tensor.heads;
    if (tensor.head_stride == broadcast) {
        if (!input)
            return error(Code::invalid_argument, "%s.head_stride is broadcast: an output has a row for each head", rows.name);
        if (tensor.heads_per_group != 0 || tensor.group_stride != 0) {
            return error(Code::invalid_argument,
                         "%s.heads_per_group is %u: with head_stride broadcast it must be 0, and group_stride too", rows.name,
                         tensor.heads_per_group);
        }
        return {};
    }
    if (Status s = resolve_stride(rows.name, "head_stride", tensor.head_stride, view.head_dim, view.head, rows.packed_head); !s) return s;
    if (tensor.heads_per_group == 0) {
        if (tensor.group_stride == 0) return {};
        return error(Code::invalid_argument, "%s.group_stride is %" PRId64 ": without heads_per_group it must be 0", rows.name,
                     tensor.group_stride);
    }
    if (tensor.heads % tensor.heads_per_group != 0) {
        return error(Code::invalid_argument, "%s.heads_per_group is %u: it must divide heads, %u", rows.name,
                     tensor.heads_per_group, tensor.heads);
    }
    const std::uint64_t packed = multiply_add(tensor.heads_per_group, view.head, 0);
    if (Status s = resolve_stride(rows.name, "group_stride", tensor.group_stride, packed, view.group, rows.packed_group); !s) return s;
    view.heads_per_group = tensor.heads_per_group;
    if (view.heads_per_group == 1) {  // groups of one are heads
        view.head = view.group;
        view.heads_per_group = view.heads;
        rows.packed_head = rows.packed_group;
    } else if (view.group == packed) {
        view.heads_per_group = view.heads;
    }
    return {};
}

Status resolve_span(TensorRows& rows) noexcept {
    View& view = rows.view;
    if (view.heads_per_group == 1) view.head = 0;
    if (rows.groups() == 1) view.group = 0;
    rows.span = multiply_add(view.heads_per_group - 1, view.head, view.head_dim);
    rows.span = multiply_add(rows.groups() - 1, view.group, rows.span);
    if (view.page_size != 0) {
        rows.span = multiply_add(view.page_size - 1, view.token, rows.span);
        rows.span = multiply_add(rows.pages - 1, view.batch, rows.span);
    } else {
        if (rows.tokens == 1) view.token = 0;
        if (rows.batch == 1) view.batch = 0;
        rows.span = multiply_add(rows.tokens - 1, view.token, rows.span);
        rows.span = multiply_add(rows.batch - 1, view.batch, rows.span);
    }
    if (rows.span <= too_large / 8) return {};
    return error(Code::invalid_argument, "%s: its strides reach past 2^61 elements", rows.name);
}

Status resolve_strides(TensorRows& rows, bool input) noexcept {
    View& view = rows.view;
    if (Status s = resolve_heads(rows, input); !s) return s;
    const std::uint64_t packed_token = std::uint64_t{rows.tensor.heads} * view.head_dim;
    if (Status s = resolve_stride(rows.name, "token_stride", rows.tensor.token_stride, packed_token, view.token, rows.packed_token); !s) return s;
    const std::uint64_t packed_batch = multiply_add(rows.tokens, view.token, 0);
    if (Status s = resolve_stride(rows.name, "batch_stride", rows.tensor.batch_stride, packed_batch, view.batch, rows.packed_batch); !s) return s;
    return resolve_span(rows);
}

// A page_size that was forgotten, and is 1, would send rows to other pages: a distance that is not that of single rows shows it.
Status check_single_rows(const Rows& cache, std::uint64_t packed_row) noexcept {
    const std::int64_t distance = cache.page_stride != 0 ? cache.page_stride : cache.row_stride;
    const bool said_twice = cache.page_stride == cache.row_stride;  // pages are rows, whatever lies between them
    if (cache.page_size != 1 || distance <= 0 || std::uint64_t(distance) == packed_row || said_twice) return {};
    return error(Code::invalid_argument,
                 "k_rows.page_size is 1: with %s %" PRId64 " it must say how many rows a page has; single rows that lie apart have a "
                 "row_stride and a page_stride of one length",
                 cache.page_stride != 0 ? "page_stride" : "row_stride", distance);
}

// An output as a cache: as many pages as its range holds.
Status resolve_cache(const Rows& cache, TensorRows& rows) noexcept {
    const Tensor& tensor = rows.tensor;
    View& view = rows.view;
    if (tensor.token_stride != 0 || tensor.batch_stride != 0) {
        return error(Code::invalid_argument,
                     "%s.%s is %" PRId64 ": with k_rows it must be 0; k_rows.row_stride and page_stride count", rows.name,
                     tensor.token_stride != 0 ? "token_stride" : "batch_stride",
                     tensor.token_stride != 0 ? tensor.token_stride : tensor.batch_stride);
    }
    if (cache.page_size == 0 || cache.page_size > 1u << 31)
        return error(Code::invalid_argument, "k_rows.page_size is %u: it must be 1 to 2^31", cache.page_size);
    if (Status s = resolve_heads(rows, false); !s) return s;
    view.page_size = cache.page_size;
    const std::uint64_t packed_row = std::uint64_t{tensor.heads} * view.head_dim;
    if (Status s = check_single_rows(cache, packed_row); !s) return s;
    if (Status s = resolve_stride("k_rows", "row_stride", cache.row_stride, packed_row, view.token, rows.packed_token); !s) return s;
    const std::uint64_t packed_page = multiply_add(view.page_size, view.token, 0);
    if (Status s = resolve_stride("k_rows", "page_stride", cache.page_stride, packed_page, view.batch, rows.packed_batch); !s) return s;
    if (Status s = resolve_span(rows); !s) return s;
    const std::uint64_t held = tensor.where.range == VK_WHOLE_SIZE ? 0 : tensor.where.range / view.element_bytes;
    if (held < rows.span) return {};  // check_where() says so
    const std::uint64_t pages = (held - rows.span) / view.batch + 1;
    rows.pages = std::uint32_t(std::min<std::uint64_t>(pages, (std::uint64_t{1} << 31) / view.page_size));
    return resolve_span(rows);
}

Status check_where(const TensorRows& rows) noexcept {
    const VkDescriptorBufferInfo& where = rows.tensor.where;
    const std::uint32_t bytes = rows.view.element_bytes;
    if (where.buffer == VK_NULL_HANDLE) return error(Code::invalid_argument, "%s.where.buffer is null", rows.name);
    if (where.range == VK_WHOLE_SIZE) {
        return error(Code::invalid_argument, "%s.where.range is VK_WHOLE_SIZE: it must be the tensor's own bytes", rows.name);
    }
    if (where.offset % bytes != 0) {
        return error(Code::invalid_argument, "%s.where.offset is %" PRIu64 ": it must be a multiple of the element's %u bytes",
                     rows.name, where.offset, bytes);
    }
    if (where.range > (too_large >> 2) || where.offset > (too_large >> 2)) {
        return error(Code::invalid_argument, "%s.where: offset %" PRIu64 " and range %" PRIu64 " are more than any buffer has",
                     rows.name, where.offset, where.range);
    }
    if (rows.span * bytes > where.range) {
        for (const Axes axes = axes_of(rows); const Axis& axis : axes.of) {
            if (!axis.packed || axis.count < 2) continue;
            return error(Code::invalid_argument,
                         "%s.where.range is %" PRIu64 " bytes: its rows reach %" PRIu64 ", with %s.%s 0, which packs them at %" PRIu64
                         " elements",
                         rows.name, where.range, rows.span * bytes, axis.owner, axis.field, axis.stride);
        }
        return error(Code::invalid_argument, "%s.where.range is %" PRIu64 " bytes: its rows reach %" PRIu64, rows.name, where.range,
                     rows.span * bytes);
    }
    const VkDeviceSize buffer_size = rows.tensor.buffer_size;
    if (buffer_size != 0 && where.offset + where.range > buffer_size) {
        return error(Code::invalid_argument, "%s.buffer_size is %" PRIu64 ": where ends at byte %" PRIu64, rows.name, buffer_size,
                     where.offset + where.range);
    }
    // The last word may hold a neighbour's half; it has to be in the buffer all the same.
    const std::uint64_t end = rows.end_byte(), last_word_end = (end + 3) / 4 * 4;
    if (last_word_end > where.offset + where.range && last_word_end > rows.tensor.buffer_size) {
        return error(Code::invalid_argument,
                     "%s ends at byte %" PRIu64 ", in the middle of a word: the buffer must reach byte %" PRIu64
                     ", as where.range or buffer_size says",
                     rows.name, end, last_word_end);
    }
    return {};
}

// Rows of input and output that meet, but are not the same: where one side was left at 0, that is named.
Status overlap_of_others(const TensorRows& in, const TensorRows& out) noexcept {
    const struct {
        const char* field;
        std::uint64_t in, out;
        bool in_packed, out_packed;
    } strides[] = {{"head_stride", in.view.head, out.view.head, in.packed_head, out.packed_head},
                   {"group_stride", in.view.group, out.view.group, in.packed_group, out.packed_group},
                   {"token_stride", in.view.token, out.view.token, in.packed_token, out.packed_token},
                   {"batch_stride", in.view.batch, out.view.batch, in.packed_batch, out.packed_batch}};
    for (const auto& stride : strides) {
        if (out.view.page_size != 0 || stride.in == stride.out || stride.in_packed == stride.out_packed) continue;
        if (stride.in == 0 || stride.out == 0) continue;  // a direction of one step has none
        const TensorRows &packed = stride.in_packed ? in : out, &given = stride.in_packed ? out : in;
        return error(Code::invalid_argument,
                     "%s.%s is 0, which packs its rows at %" PRIu64 ", and %s's is %" PRIu64
                     ": rows that overlap must be the same rows of one type (in place)",
                     packed.name, stride.field, stride.in_packed ? stride.in : stride.out, given.name,
                     stride.in_packed ? stride.out : stride.in);
    }
    return error(Code::invalid_argument, "%s and %s overlap: they must be the same rows of one type (in place) or disjoint", in.name,
                 out.name);
}

Result<bool> check_in_place(const KernelInfo& info, const Width& width, const TensorRows& in, const TensorRows& out,
                            bool rotates) noexcept {
    if (disjoint(in, out)) return {{}, false};
    const View &a = in.view, &b = out.view;
    const bool same = a.first_byte == b.first_byte && width.in == width.out && a.head == b.head && a.group == b.group &&
                      a.heads_per_group == b.heads_per_group && a.token == b.token && a.batch == b.batch && b.page_size == 0;
    if (!same) return {overlap_of_others(in, out), {}};
    if (rotates && info.pairing_out && *info.pairing_out != info.pairing) {
        return {error(Code::invalid_argument, "%s and %s are in place: the kernel's pairing_out is another than its pairing",
                      in.name, out.name),
                {}};
    }
    return {{}, true};
}

Status place(TensorRows& rows) noexcept {
    rows.view.buffer = rows.tensor.where.buffer;
    rows.view.first_byte = rows.tensor.where.offset;
    return check_where(rows);
}

// ---- Positions, angles, counter ----

// A buffer of words: `bytes` bytes from where.offset on.
Status check_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes) noexcept {
    if (where.buffer == VK_NULL_HANDLE) return error(Code::invalid_argument, "%s.buffer is null", name);
    if (where.offset % 4 != 0)
        return error(Code::invalid_argument, "%s.offset is %" PRIu64 ": it must be a multiple of 4", name, where.offset);
    if (where.range != VK_WHOLE_SIZE && where.range >= bytes && where.offset <= (too_large >> 2)) return {};
    return error(Code::invalid_argument, "%s.range is %" PRIu64 " bytes: it must be at least %" PRIu64 ", and not VK_WHOLE_SIZE",
                 name, where.range, bytes);
}

// Such a buffer, bound whole.
Status bind_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes, const StorageLimits& limits,
                  VkDescriptorBufferInfo& bound, std::uint32_t& offset_words) noexcept {
    if (Status s = check_words(name, where, bytes); !s) return s;
    bound = binding_of(where.buffer, where.offset, bytes, limits);
    offset_words = std::uint32_t((where.offset - bound.offset) / 4);
    if (bound.range <= limits.range) return {};
    return error(Code::limit_exceeded, "%s spans %" PRIu64 " bytes: the device binds %" PRIu64 " at most (maxStorageBufferRange)",
                 name, bound.range, limits.range);
}

// The numbers of computed angles.
Status bind_uniforms(const char* name, const Angles& angles, const StorageLimits& limits, VkDescriptorBufferInfo& bound) noexcept {
    const VkDescriptorBufferInfo& where = angles.buffer;
    if (Status s = check_words(name, where, angles.plan->bytes); !s) return s;
    bound = {where.buffer, where.offset, angles.plan->bytes};
    if (where.offset % limits.uniform_alignment == 0) return {};
    return error(Code::invalid_argument,
                 "%s.offset is %" PRIu64 ": for computed angles it must be a multiple of %" PRIu64
                 " (minUniformBufferOffsetAlignment)",
                 name, where.offset, limits.uniform_alignment);
}

std::uint64_t words_of(const View& numbers, const Call& call) noexcept {
    return multiply_add(call.batch - 1, numbers.batch, multiply_add(call.tokens - 1, numbers.token, numbers.head_dim));
}

constexpr std::int64_t most_positions = std::numeric_limits<std::int32_t>::max();

Status check_stride(const char* field, std::int64_t stride, std::int64_t least) noexcept {
    if (stride >= least && stride <= most_positions) return {};
    return error(Code::invalid_argument, "%s is %" PRId64 ": it must be %d to 2^31 - 1", field, stride, int(least));
}

Status resolve_implicit(const Call& call, ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (positions.int64) {  // a sentence of its own: in C the field has another name
        return error(Code::invalid_argument, "positions.int64 is given: the kernel was created for implicit positions");
    }
    if (positions.axis_stride != 0 || positions.token_stride != 1) {
        return error(Code::invalid_argument, "positions.%s is given: the kernel was created for implicit positions",
                     positions.axis_stride != 0 ? "axis_stride" : "token_stride");
    }
    resolved.position_step = std::uint32_t(positions.batch_stride);
    const std::int64_t last = std::int64_t{positions.first} + call.tokens - 1;
    const std::int64_t steps = std::int64_t{call.batch} - 1;
    if (last <= most_positions && (steps == 0 || positions.batch_stride <= (most_positions - last) / steps)) return {};
    return error(Code::invalid_argument,
                 "positions.first is %d: with tokens %u, batch %u and batch_stride %" PRId64 " the last position is no int32",
                 positions.first, call.tokens, call.batch, positions.batch_stride);
}

Status resolve_positions(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (Status s = check_stride("positions.batch_stride", positions.batch_stride, 0); !s) return s;
    if (Status s = check_stride("positions.axis_stride", positions.axis_stride, 0); !s) return s;
    if (Status s = check_stride("positions.token_stride", positions.token_stride, 1); !s) return s;
    if (info.positions == PositionSource::implicit) return resolve_implicit(call, resolved);
    if (info.positions == PositionSource::ids && positions.axis_stride != 0) {
        return error(Code::invalid_argument, "positions.axis_stride is %" PRId64 ": the kernel was created for one axis",
                     positions.axis_stride);
    }
    // The ids of a token, on all axes, are one "row" of words.
    const std::uint32_t words = positions.int64 ? 2 : 1;
    const std::uint64_t steps = info.sections.axes == 0 ? 0 : info.sections.axes - 1;
    const std::uint64_t row = (steps * std::uint64_t(positions.axis_stride) + 1) * words;
    if (row > std::numeric_limits<std::uint32_t>::max()) {
        return error(Code::limit_exceeded, "positions.axis_stride is %" PRId64 ": the ids of a token span %" PRIu64 " words",
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
    const Rows& rows = call.k_rows;
    const bool given = rows.slots.buffer || rows.slots.offset || rows.slots.range || rows.int64 || rows.page_size != 1 ||
                       rows.page_stride || rows.row_stride || rows.batch_stride;
    if (!info.scatter_k) {
        if (given) return error(Code::invalid_argument, "k_rows: the kernel was created without scatter_k");
        return {};
    }
    if (call.k_in.heads == 0 && call.v_in.heads == 0) return {};
    if (Status checked = check_stride("k_rows.batch_stride", rows.batch_stride, 0); !checked) return checked;
    resolved.page_size = rows.page_size;
    const std::uint32_t words = rows.int64 ? 2 : 1;
    View& view = resolved.slots;
    view = {.buffer = rows.slots.buffer, .first_byte = rows.slots.offset};
    view.head_dim = words;
    view.token = words;
    view.batch = (rows.batch_stride == 0 ? call.tokens : std::uint64_t(rows.batch_stride)) * words;
    return check_words("k_rows.slots", rows.slots, multiply_add(words_of(view, call), 4, 0));
}

Status resolve_gain(const Call& call, ResolvedCall& resolved) noexcept {
    if (call.gain > Gain::divide_out) return error(Code::invalid_argument, "gain is %u: no such gain", unsigned(call.gain));
    const double factor = call.angles.plan->attention_factor;
    if (!(factor > 0) || factor > std::numeric_limits<float>::max()) {
        return error(Code::invalid_argument, "angles.plan->attention_factor is %g: it must be finite and above 0", factor);
    }
    if (call.gain == Gain::apply) return {};
    const double gain = call.gain == Gain::omit ? 1 / factor : 1 / factor / factor;
    if (gain < double(std::numeric_limits<float>::min()) || gain > double(std::numeric_limits<float>::max())) {
        return error(Code::invalid_argument,
                     "angles.plan->attention_factor is %g: gain %u would multiply by %g, which is no normal float", factor,
                     unsigned(call.gain), gain);
    }
    resolved.gain = float(gain);
    return {};
}

// Every row that the shader takes for covered is inside the table: it reads by these numbers.
bool holds_its_rows(const AnglePlan& plan) noexcept {
    if (plan.rows == 0) return false;
    if (plan.source == AngleSource::direct_buffer) return std::uint64_t{plan.rows} * plan.pairs * 8 <= plan.bytes;
    if (plan.source == AngleSource::computed) {
        return shader::turn_bytes(plan.pairs) <= plan.bytes;
    }
    if (plan.source == AngleSource::caller_buffer) {
        return plan.row_stride >= plan.pairs &&
               (std::uint64_t{plan.rows} - 1) * plan.row_stride + plan.pairs <= plan.bytes / element_bytes(plan.element);
    }
    if (plan.fold_log2 > 31 || plan.row_texels < (plan.pairs + 1) / 2) return false;
    const std::uint64_t rows = plan.source == AngleSource::factored_texture ? shader::factored_rows(plan.rows) : plan.rows;
    const std::uint64_t columns = ((rows - 1) >> plan.fold_log2) + 1;
    return columns * plan.row_texels <= plan.extent.width &&
           std::min(rows, std::uint64_t{1} << plan.fold_log2) <= plan.extent.height;
}

Status resolve_angles(const KernelInfo& info, const StorageLimits& limits, const Angles& angles, ResolvedCall& resolved) noexcept {
    if (!angles.plan) return error(Code::invalid_argument, "angles.plan is null");
    if (angles.plan->source != info.angles) {
        return error(Code::invalid_argument, "angles.plan->source is %u: the kernel was created for %u",
                     unsigned(angles.plan->source), unsigned(info.angles));
    }
    if (angles.plan->pairs != info.rotary_dim / 2) {
        return error(Code::invalid_argument, "angles.plan->pairs is %u: rotary_dim %u has %u", angles.plan->pairs, info.rotary_dim,
                     info.rotary_dim / 2);
    }
    if (info.angles != AngleSource::caller_buffer && angles.plan->sections != info.sections) {
        if (angles.plan->sections.axes != info.sections.axes) {
            return error(Code::invalid_argument,
                         "angles.plan->sections.axes is %u: the kernel was created for sections of %u; make both of one rotation",
                         angles.plan->sections.axes, info.sections.axes);
        }
        return error(Code::invalid_argument,
                     "angles.plan->sections differ from the kernel's in order, pairs or leftover_axis; make both of one rotation");
    }
    if (!holds_its_rows(*angles.plan)) {
        return error(Code::invalid_argument,
                     "angles.plan: %u rows do not fit into its %zu bytes; it must be as plan_angles made it", angles.plan->rows,
                     angles.plan->bytes);
    }
    if (info.angles == AngleSource::computed) return bind_uniforms("angles.buffer", angles, limits, resolved.table);
    if (info.angles == AngleSource::direct_buffer) {
        return bind_words("angles.buffer", angles.buffer, angles.plan->bytes, limits, resolved.table, resolved.table_offset);
    }
    if (info.angles == AngleSource::caller_buffer) {
        if (angles.plan->element != info.table) {
            return error(Code::invalid_argument, "angles.plan->element is %u: the kernel was created for a table of %u",
                         unsigned(angles.plan->element), unsigned(info.table));
        }
        const std::uint64_t bytes = (std::uint64_t{angles.plan->bytes} + 3) / 4 * 4;
        if (Status s = bind_words("angles.buffer", angles.buffer, bytes, limits, resolved.table, resolved.table_offset); !s)
            return s;
        return bind_words("angles.sin", angles.sin, bytes, limits, resolved.table_sin, resolved.table_sin_offset);
    }
    if (angles.view == VK_NULL_HANDLE) return error(Code::invalid_argument, "angles.view is null");
    return {};
}

// What a call reads or counts in beside its tensors.
struct Words {
    const char* name;
    VkBuffer buffer;
    std::uint64_t first, end;  // bytes

    bool overlaps(const Words& other) const { return buffer && buffer == other.buffer && first < other.end && other.first < end; }
};

Words words_of(const char* name, const View& view, const Call& call) noexcept {
    if (!view.buffer) return {name, VK_NULL_HANDLE, 0, 0};
    return {name, view.buffer, view.first_byte, view.first_byte + words_of(view, call) * 4};
}

Words words_of(const char* name, const VkDescriptorBufferInfo& where, const VkDescriptorBufferInfo& bound) noexcept {
    return {name, bound.buffer, where.offset, bound.offset + bound.range};
}

// Ids, slots and table lie outside what the call writes, and the counter outside all else that it touches. `tensors`: outputs, then
// inputs.
Status check_words_apart(const Call& call, const ResolvedCall& resolved, const std::array<const TensorRows*, 6>& tensors) noexcept {
    const auto overlap = [](const char* a, const char* b) {
        return error(Code::invalid_argument, "%s and %s overlap: they must be disjoint", a, b);
    };
    const Words read[] = {words_of("positions.ids", resolved.ids, call), words_of("k_rows.slots", resolved.slots, call),
                          words_of("angles.buffer", call.angles.buffer, resolved.table),
                          words_of("angles.sin", call.angles.sin, resolved.table_sin)};
    const Words counter = words_of("out_of_range", call.out_of_range, resolved.status);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorRows& rows = *tensors[i];
        if (rows.tensor.heads == 0) continue;
        const Words tensor = {rows.name, rows.tensor.where.buffer, rows.first_byte(), rows.end_byte()};
        if (counter.overlaps(tensor)) return overlap(rows.name, counter.name);
        for (const Words& words : read) {
            if (i < tensors.size() / 2 && words.overlaps(tensor)) return overlap(rows.name, words.name);
        }
    }
    for (const Words& words : read) {
        if (words.overlaps(counter)) return overlap(words.name, counter.name);
    }
    return {};
}

// A tensor has both of its sides, or neither.
Status check_present(const char* name, const Width& width, std::uint32_t heads, const Tensor& in, const Tensor& out) noexcept {
    if (in.heads != out.heads)
        return error(Code::invalid_argument, "%s_out.heads is %u: %s_in.heads is %u", name, out.heads, name, in.heads);
    if (in.heads != 0 && width.head_dim == 0) {
        return error(Code::invalid_argument, "%s_in.heads is %u: the kernel was created without %s (head_dim 0)", name, in.heads,
                     name);
    }
    if (in.heads != 0 && heads != 0 && in.heads != heads) {
        return error(Code::invalid_argument, "%s_in.heads is %u: the kernel was created for %s_heads %u", name, in.heads, name, heads);
    }
    return {};
}

}  // namespace

Status validate(const DeviceRef& device, const KernelInfo& info) noexcept {
    if (Status s = validate(device); !s) return s;
    if (info.pairing > Pairing::interleaved)
        return error(Code::invalid_argument, "pairing is %u: no such pairing", unsigned(info.pairing));
    if (info.angles > AngleSource::caller_buffer)
        return error(Code::invalid_argument, "angles is %u: no such source", unsigned(info.angles));
    if (info.positions > PositionSource::axis_ids)
        return error(Code::invalid_argument, "positions is %u: no such source", unsigned(info.positions));
    if (info.pairing_out && *info.pairing_out > Pairing::interleaved) {
        return error(Code::invalid_argument, "pairing_out is %u: no such pairing", unsigned(*info.pairing_out));
    }
    if (info.scatter_k && info.k.head_dim == 0) return error(Code::invalid_argument, "scatter_k: k.head_dim is 0, there is no K");
    if (info.conversion > Conversion::integer)
        return error(Code::invalid_argument, "conversion is %u: no such conversion", unsigned(info.conversion));
    if (info.mapping > Mapping::cpu) return error(Code::invalid_argument, "mapping is %u: no such mapping", unsigned(info.mapping));
    if (info.rotary_dim < 2 || info.rotary_dim % 2 != 0) {
        return error(Code::invalid_argument, "rotary_dim is %u: it must be even and at least 2", info.rotary_dim);
    }
    if (info.q.head_dim == 0 && info.k.head_dim == 0)
        return error(Code::invalid_argument, "q.head_dim and k.head_dim are both 0: nothing to rotate");
    if (Status s = check_windows(info); !s) return s;
    if (Status s = check_sections(info); !s) return s;
    if (info.table > Element::bf16) return error(Code::invalid_argument, "table is %u: no such element type", unsigned(info.table));
    if (Status s = check_width("q", info.q, info, true); !s) return s;
    if (Status s = check_width("k", info.k, info, true); !s) return s;
    return check_width("v", info.v, info, false);
}

Result<ResolvedCall> validate(const KernelInfo& info, const StorageLimits& limits, const Call& call) noexcept {
    Result<ResolvedCall> result;
    ResolvedCall& resolved = result.value;
    Status& status = result.status;
    if (call.direction > Direction::inverse)
        return {error(Code::invalid_argument, "direction is %u: no such direction", unsigned(call.direction)), {}};
    if (status = check_present("q", info.q, info.q_heads, call.q_in, call.q_out); !status) return result;
    if (status = check_present("k", info.k, info.k_heads, call.k_in, call.k_out); !status) return result;
    if (status = check_present("v", info.v, info.v_heads, call.v_in, call.v_out); !status) return result;
    const bool empty = call.q_in.heads == 0 && call.k_in.heads == 0 && call.v_in.heads == 0;
    if (call.tokens == 0 || call.batch == 0 || empty) return result;
    resolved.batch = call.batch;
    resolved.tokens = call.tokens;

    const auto rows_of = [&](const char* name, const Tensor& tensor, Element element, const Width& width, View& view) {
        view.element_bytes = element_bytes(element);
        view.head_dim = width.head_dim;
        return TensorRows{name, tensor, call.batch, call.tokens, view};
    };
    TensorRows q_in = rows_of("q_in", call.q_in, info.q.in, info.q, resolved.q.in);
    TensorRows q_out = rows_of("q_out", call.q_out, info.q.out, info.q, resolved.q.out);
    TensorRows k_in = rows_of("k_in", call.k_in, info.k.in, info.k, resolved.k.in);
    TensorRows k_out = rows_of("k_out", call.k_out, info.k.out, info.k, resolved.k.out);
    TensorRows v_in = rows_of("v_in", call.v_in, info.v.in, info.v, resolved.v.in);
    TensorRows v_out = rows_of("v_out", call.v_out, info.v.out, info.v, resolved.v.out);
    if (status = resolve_slots(info, call, resolved); !status) return result;
    const auto resolve_pair = [&](const Width& width, TensorRows& in, TensorRows& out, ResolvedTensor& pair) {
        if (in.tensor.heads == 0) return true;
        if (status = resolve_strides(in, true); !status) return false;
        if (status = place(in); !status) return false;
        status = resolved.slots.buffer && &out != &q_out ? resolve_cache(call.k_rows, out) : resolve_strides(out, false);
        if (!status) return false;
        if (status = place(out); !status) return false;
        if (status = check_no_self_overlap(out); !status) return false;
        const Result<bool> same = check_in_place(info, width, in, out, &out != &v_out);
        status = same.status;
        pair.in_place = same.value;
        pair.heads = in.tensor.heads;
        pair.group_heads = std::gcd(pair.in.heads_per_group, pair.out.heads_per_group);
        pair.pages = out.pages;
        return bool(status);
    };
    if (!resolve_pair(info.q, q_in, q_out, resolved.q)) return result;
    if (!resolve_pair(info.k, k_in, k_out, resolved.k)) return result;
    if (!resolve_pair(info.v, v_in, v_out, resolved.v)) return result;
    if (call.k_in.heads != 0 && call.v_in.heads != 0)  // a slot that one of the caches does not have is outside
        resolved.k.pages = resolved.v.pages = std::min(resolved.k.pages, resolved.v.pages);
    for (const auto& [a, b] : {std::pair{&q_out, &k_out}, {&q_in, &k_out}, {&q_out, &k_in}, {&q_out, &v_out}, {&q_in, &v_out},
                               {&q_out, &v_in}, {&k_out, &v_out}, {&k_in, &v_out}, {&k_out, &v_in}}) {
        if (a->tensor.heads != 0 && b->tensor.heads != 0 && !disjoint(*a, *b))
            return {error(Code::invalid_argument, "%s and %s overlap: they must be disjoint", a->name, b->name), {}};
    }
    if (status = resolve_positions(info, call, resolved); !status) return result;
    if (status = resolve_angles(info, limits, call.angles, resolved); !status) return result;
    if (status = resolve_gain(call, resolved); !status) return result;
    if (call.out_of_range.buffer != VK_NULL_HANDLE) {
        status = bind_words("out_of_range", call.out_of_range, 4, limits, resolved.status, resolved.status_offset);
        if (!status) return result;
    }
    status = check_words_apart(call, resolved, {&q_out, &k_out, &v_out, &q_in, &k_in, &v_in});
    return result;
}

}  // namespace vkrope
