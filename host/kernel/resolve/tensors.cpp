// SPDX-License-Identifier: MIT
// Resolves the layout of a tensor: strides left at 0, caches, and in-place rows.
#include <algorithm>
#include <cinttypes>
#include <numeric>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

// Sets `stride`, which counts elements of `channels` channels, like `packed`. Returns false if
// `given` breaks a rule, which stride_error() names.
bool resolve_stride(std::int64_t given, std::uint64_t packed, std::uint32_t channels,
                    std::uint64_t& stride, bool& is_packed) noexcept {
    is_packed = given == 0;
    stride = is_packed ? packed : std::uint64_t(given);
    if (channels != 1 && !is_packed) {
        if (given % channels != 0) return false;
        stride /= channels;
    }
    return given >= 0;
}

Status stride_error(const char* name, const char* field, std::int64_t given,
                    std::uint32_t channels) noexcept {
    if (given < 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.%s is %" PRId64 ": it must not be negative",
                     name, field, given);
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.%s is %" PRId64
                 ": it counts channels and must be a multiple of the %u of a "
                 "block",
                 name, field, given, channels);
}

Status resolve_heads(TensorRows& rows, bool input) noexcept {
    const Tensor& tensor = rows.tensor;
    View& view = rows.view;
    view.heads = view.heads_per_group = tensor.heads;
    if (tensor.head_stride == broadcast) {
        if (!input)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.head_stride is broadcast: an output or a cache needs a row for each "
                         "head",
                         rows.name);
        if (tensor.heads_per_group != 0 || tensor.group_stride != 0) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.heads_per_group is %u: with head_stride broadcast it must be 0, and "
                         "group_stride too",
                         rows.name, tensor.heads_per_group);
        }
        return {};
    }
    if (!resolve_stride(tensor.head_stride, view.head_dim, view.channels, view.head,
                        rows.packed_head))
        return stride_error(rows.name, "head_stride", tensor.head_stride, view.channels);
    if (tensor.heads_per_group == 0) {
        if (tensor.group_stride == 0) return {};
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.group_stride is %" PRId64 ": without heads_per_group it must be 0",
                     rows.name, tensor.group_stride);
    }
    if (tensor.heads % tensor.heads_per_group != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.heads_per_group is %u: it must divide heads, %u", rows.name,
                     tensor.heads_per_group, tensor.heads);
    }
    const std::uint64_t packed = multiply_add(tensor.heads_per_group, view.head, 0);
    if (!resolve_stride(tensor.group_stride, packed, view.channels, view.group, rows.packed_group))
        return stride_error(rows.name, "group_stride", tensor.group_stride, view.channels);
    view.heads_per_group = tensor.heads_per_group;
    if (view.heads_per_group == 1) {  // each group is one head
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
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s: its strides reach past 2^61 elements",
                 rows.name);
}

Status resolve_strides(TensorRows& rows, bool input) noexcept {
    View& view = rows.view;
    if (Status s = resolve_heads(rows, input); !s) return s;
    const std::uint64_t packed_token = std::uint64_t{rows.tensor.heads} * view.head_dim;
    if (!resolve_stride(rows.tensor.token_stride, packed_token, view.channels, view.token,
                        rows.packed_token))
        return stride_error(rows.name, "token_stride", rows.tensor.token_stride, view.channels);
    const std::uint64_t packed_batch = multiply_add(rows.tokens, view.token, 0);
    if (!resolve_stride(rows.tensor.batch_stride, packed_batch, view.channels, view.batch,
                        rows.packed_batch))
        return stride_error(rows.name, "batch_stride", rows.tensor.batch_stride, view.channels);
    return resolve_span(rows);
}

// Returns an error if page_size was probably forgotten, since rows would go to wrong pages:
// page_size is 1, but the stride that the caller set does not fit pages of one row.
Status check_single_rows(const char* name, const PagedCache& cache,
                         std::uint64_t packed_row) noexcept {
    const std::int64_t distance = cache.page_stride != 0 ? cache.page_stride : cache.row_stride;
    const bool said_twice = cache.page_stride ==
                            cache.row_stride;  // pages are rows, with or without gaps
    if (page_size_of(cache) != 1 || distance <= 0 || std::uint64_t(distance) == packed_row ||
        said_twice)
        return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "paged_cache.page_size is 1, its default: with %s %" PRId64
                 " it must be the rows of a page of %s; for single rows with gaps, set row_stride "
                 "and page_stride to the same value",
                 cache.page_stride != 0 ? "page_stride" : "row_stride", distance, name);
}

// Resolves a tensor as a cache with as many pages as fit in its range.
Status resolve_cache(const PagedCache& cache, TensorRows& rows) noexcept {
    const Tensor& tensor = rows.tensor;
    View& view = rows.view;
    if (tensor.token_stride != 0 || tensor.batch_stride != 0) {
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "%s.%s is %" PRId64
            ": with paged_cache it must be 0; set paged_cache.row_stride and page_stride instead",
            rows.name, tensor.token_stride != 0 ? "token_stride" : "batch_stride",
            tensor.token_stride != 0 ? tensor.token_stride : tensor.batch_stride);
    }
    if (cache.page_size > 1u << 31)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "paged_cache.page_size is %u: it must be 1 to 2^31", cache.page_size);
    if (Status s = resolve_heads(rows, false); !s) return s;
    view.page_size = page_size_of(cache);
    const std::uint64_t packed_row = std::uint64_t{tensor.heads} * view.head_dim;
    if (Status s = check_single_rows(rows.name, cache, packed_row * view.channels); !s) return s;
    if (!resolve_stride(cache.row_stride, packed_row, view.channels, view.token, rows.packed_token))
        return stride_error("paged_cache", "row_stride", cache.row_stride, view.channels);
    const std::uint64_t packed_page = multiply_add(view.page_size, view.token, 0);
    if (!resolve_stride(cache.page_stride, packed_page, view.channels, view.batch,
                        rows.packed_batch))
        return stride_error("paged_cache", "page_stride", cache.page_stride, view.channels);
    if (Status s = resolve_span(rows); !s) return s;
    const std::uint64_t held = tensor.where.range == VK_WHOLE_SIZE
                                   ? 0
                                   : tensor.where.range / view.element_bytes;
    if (held < rows.span) return {};  // check_where() reports it
    const std::uint64_t pages = (held - rows.span) / view.batch + 1;
    rows.pages = std::uint32_t(
        std::min<std::uint64_t>(pages, (std::uint64_t{1} << 31) / view.page_size));
    return resolve_span(rows);
}

Status check_where(const TensorRows& rows) noexcept {
    const VkDescriptorBufferInfo& where = rows.tensor.where;
    const std::uint32_t bytes = rows.view.element_bytes;
    const std::uint32_t alignment = rows.view.channels > 2 ? 2 : bytes;  // of the f16 in a block
    if (where.buffer == VK_NULL_HANDLE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.where.buffer is null", rows.name);
    if (where.range == VK_WHOLE_SIZE) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.where.range is VK_WHOLE_SIZE: it must be the tensor's own bytes",
                     rows.name);
    }
    if (where.offset % alignment != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.where.offset is %" PRIu64
                     ": it must be a multiple of the element's %u bytes",
                     rows.name, where.offset, alignment);
    }
    if (where.range > (too_large >> 2) || where.offset > (too_large >> 2)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.where: offset %" PRIu64 " and range %" PRIu64
                     " lie beyond the end of any buffer",
                     rows.name, where.offset, where.range);
    }
    if (rows.span * bytes > where.range) {
        const Axes axes = axes_of(rows);
        const Axis* axis = longest_axis(axes);
        if (!axis) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.where.range is %" PRIu64 " bytes: its row needs %" PRIu64, rows.name,
                         where.range, rows.span * bytes);
        }
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.where.range is %" PRIu64 " bytes: its rows reach %" PRIu64
                     ", with %s.%s %s%" PRIu64 " elements",
                     rows.name, where.range, rows.span * bytes, axis->owner, axis->field,
                     axis->packed ? "0, which stands for " : "", axis->stride * rows.view.channels);
    }
    const VkDeviceSize buffer_size = rows.tensor.buffer_size;
    if (buffer_size != 0 && where.offset + where.range > buffer_size) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.buffer_size is %" PRIu64 ": it must reach the end of where, byte %" PRIu64,
                     rows.name, buffer_size, where.offset + where.range);
    }
    // The last word may be shared with another element; the buffer must contain all of it.
    const std::uint64_t end = rows.end_byte(), last_word_end = (end + 3) / 4 * 4;
    if (last_word_end > where.offset + where.range && last_word_end > rows.tensor.buffer_size) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s ends at byte %" PRIu64
                     ", in the middle of a word: the buffer must reach byte %" PRIu64
                     ", and where.range or buffer_size must say so",
                     rows.name, end, last_word_end);
    }
    return {};
}

// Returns the error for rows of input and output that overlap but are not the same. Names a stride
// that was left at 0 on one side only.
Status overlap_of_others(const TensorRows& in, const TensorRows& out) noexcept {
    const struct {
        const char* field;
        std::uint64_t in, out;
        bool in_packed, out_packed;
    } strides[] = {
        {"head_stride", in.view.head, out.view.head, in.packed_head, out.packed_head},
        {"group_stride", in.view.group, out.view.group, in.packed_group, out.packed_group},
        {"token_stride", in.view.token, out.view.token, in.packed_token, out.packed_token},
        {"batch_stride", in.view.batch, out.view.batch, in.packed_batch, out.packed_batch}};
    for (const auto& stride : strides) {
        if (out.view.page_size != 0 || stride.in == stride.out ||
            stride.in_packed == stride.out_packed)
            continue;
        if (stride.in == 0 || stride.out == 0) continue;  // an axis of one step has no stride
        const TensorRows &packed = stride.in_packed ? in : out,
                         &given = stride.in_packed ? out : in;
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.%s is 0, which stands for %" PRIu64 ", and %s's is %" PRIu64
                     ": rows that overlap must be the same rows of one type (in place)",
                     packed.name, stride.field,
                     (stride.in_packed ? stride.in : stride.out) * packed.view.channels, given.name,
                     (stride.in_packed ? stride.out : stride.in) * given.view.channels);
    }
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s and %s overlap: they must be the same rows of one type (in place) or disjoint",
                 in.name, out.name);
}

Result<bool> check_in_place(const KernelInfo& info, const TensorInfo& format, const TensorRows& in,
                            const TensorRows& out, bool rotates) noexcept {
    if (disjoint(in, out)) return {{}, false};
    const View &a = in.view, &b = out.view;
    const bool same = a.first_byte == b.first_byte && format.in == format.out && a.head == b.head &&
                      a.group == b.group && a.heads_per_group == b.heads_per_group &&
                      a.token == b.token && a.batch == b.batch && a.page_size == b.page_size;
    if (!same) return {overlap_of_others(in, out), {}};
    if (rotates && info.pairing_out != info.pairing) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "%s and %s are in place: the kernel's pairing_out differs from its pairing, "
                      "so they must be disjoint",
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

}  // namespace

Status resolve_tensor(const KernelInfo& info, TensorIndex index, const PagedCache* from,
                      const PagedCache* to, InAndOut& rows, ResolvedTensor& resolved) noexcept {
    const bool rotates = index != V;
    auto& [in, out] = rows;
    if (Status s = from ? resolve_cache(*from, in) : resolve_strides(in, true); !s) return s;
    if (Status s = place(in); !s) return s;
    if (Status s = to ? resolve_cache(*to, out) : resolve_strides(out, false); !s) return s;
    if (Status s = place(out); !s) return s;
    if (Status s = check_no_self_overlap(out); !s) return s;
    const Result<bool> same = check_in_place(info, info.tensor[index], in, out, rotates);
    const bool moves = from && to && is_given(from->source_mapping);
    resolved.in_place = same.value && !moves;
    resolved.heads = in.tensor.heads;
    resolved.group_heads = std::gcd(resolved.in.heads_per_group, resolved.out.heads_per_group);
    if (rotates && info.head_groups != 1) {
        const std::uint32_t heads = in.tensor.heads, one_group = heads / info.head_groups;
        if (heads % info.head_groups != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.heads is %u: it must be a multiple of the kernel's head_groups, %u",
                         in.name, heads, info.head_groups);
        if (resolved.group_heads % one_group != 0)
            return error(VKROPE_ERROR_NOT_SUPPORTED,
                         "%s.heads_per_group is %u: it must be a multiple of the %u heads that "
                         "share frequencies (heads / head_groups)",
                         in.name, resolved.group_heads, one_group);
        resolved.group_heads = one_group;
    }
    resolved.pages = to ? out.pages : in.pages;
    if (moves)
        resolved.source_pages = in.pages;
    else if (from && to)
        resolved.pages = std::min(in.pages, out.pages);
    return same.status;
}

}  // namespace vkrope
