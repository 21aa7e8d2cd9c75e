// SPDX-License-Identifier: MIT
#include "kernel/validate.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <limits>

#include "status.hpp"

namespace vkrope {

namespace {

constexpr std::uint64_t too_large = std::numeric_limits<std::uint64_t>::max();

// a * b + c, or too_large where it does not fit.
std::uint64_t multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    if (a == too_large || b == too_large || c == too_large) return too_large;
    if (b != 0 && a > (too_large - 1 - c) / b) return too_large;
    return a * b + c;
}

// ---- KernelInfo ----

Status check_width(const char* name, const Width& width, std::uint32_t rotary_dim) noexcept {
    if (width.head_dim == 0) return {};
    if (width.head_dim < 2 || width.head_dim > 65534) {
        return error(Code::invalid_argument, "%s.head_dim is %u: it must be 2 to 65534, or 0 for an absent tensor", name,
                     width.head_dim);
    }
    if (width.rotary_offset > width.head_dim || rotary_dim > width.head_dim - width.rotary_offset) {
        return error(Code::invalid_argument, "%s.rotary_offset is %u: with rotary_dim %u the window ends past head_dim %u", name,
                     width.rotary_offset, rotary_dim, width.head_dim);
    }
    if (width.in > Element::bf16)
        return error(Code::invalid_argument, "%s.in is %u: no such element type", name, unsigned(width.in));
    if (width.out > Element::bf16)
        return error(Code::invalid_argument, "%s.out is %u: no such element type", name, unsigned(width.out));
    return {};
}

// ---- Tensors ----

// A tensor on its way to a Placement. Elements, unless a name says bytes.
struct TensorRows {
    const char* name;
    const Tensor& tensor;
    Element element;
    std::uint32_t head_dim;
    std::uint32_t batch, tokens;
    Strides strides = {};
    std::uint64_t span = 0;  // from the first element to behind the last one

    std::uint64_t first_byte() const { return tensor.where.offset; }
    std::uint64_t end_byte() const { return first_byte() + span * element_bytes(element); }
};

Status resolve_stride(const TensorRows& rows, const char* field, std::int64_t given, std::uint64_t packed,
                      std::uint64_t& stride) noexcept {
    if (given < 0) return error(Code::invalid_argument, "%s.%s is %" PRId64 ": it must not be negative", rows.name, field, given);
    stride = given == 0 ? packed : std::uint64_t(given);
    return {};
}

Status resolve_strides(TensorRows& rows) noexcept {
    const Tensor& tensor = rows.tensor;
    if (tensor.heads_per_group != 0 || tensor.group_stride != 0) {
        return error(Code::not_supported, "%s.heads_per_group is %u: groups of heads are not supported yet", rows.name,
                     tensor.heads_per_group);
    }
    if (tensor.head_stride == broadcast) {
        return error(Code::not_supported, "%s.head_stride is broadcast: one row for all heads is not supported yet", rows.name);
    }
    Strides& strides = rows.strides;
    if (Status s = resolve_stride(rows, "head_stride", tensor.head_stride, rows.head_dim, strides.head); !s) return s;
    const std::uint64_t packed_token = std::uint64_t{tensor.heads} * rows.head_dim;
    if (Status s = resolve_stride(rows, "token_stride", tensor.token_stride, packed_token, strides.token); !s) return s;
    const std::uint64_t packed_batch = multiply_add(rows.tokens, strides.token, 0);
    if (Status s = resolve_stride(rows, "batch_stride", tensor.batch_stride, packed_batch, strides.batch); !s) return s;
    rows.span = multiply_add(tensor.heads - 1, strides.head, rows.head_dim);
    rows.span = multiply_add(rows.tokens - 1, strides.token, rows.span);
    rows.span = multiply_add(rows.batch - 1, strides.batch, rows.span);
    if (rows.span > std::numeric_limits<std::uint64_t>::max() / 8) {
        return error(Code::invalid_argument, "%s: its strides reach past 2^61 elements", rows.name);
    }
    return {};
}

Status check_where(const TensorRows& rows) noexcept {
    const VkDescriptorBufferInfo& where = rows.tensor.where;
    const std::uint32_t bytes = element_bytes(rows.element);
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

// Rows of an output must not overlap each other: every axis steps over all that the faster axes cover.
Status check_no_self_overlap(const TensorRows& rows) noexcept {
    struct Axis {
        const char* field;
        std::uint64_t count, stride;
    };
    std::array<Axis, 3> axes = {{{"head_stride", rows.tensor.heads, rows.strides.head},
                                 {"token_stride", rows.tokens, rows.strides.token},
                                 {"batch_stride", rows.batch, rows.strides.batch}}};
    std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    std::uint64_t covered = rows.head_dim;
    for (const Axis& axis : axes) {
        if (axis.count < 2) continue;
        if (axis.stride < covered) {
            return error(Code::invalid_argument, "%s.%s is %" PRIu64 ": rows of %" PRIu64 " elements would overlap", rows.name,
                         axis.field, axis.stride, covered);
        }
        covered = multiply_add(axis.count - 1, axis.stride, covered);
    }
    return {};
}

// Two tensors in one buffer share no byte: their spans are apart, or they alternate within one common token stride (packed QKV).
bool disjoint(const TensorRows& a, const TensorRows& b) noexcept {
    if (a.tensor.where.buffer != b.tensor.where.buffer) return true;
    if (a.end_byte() <= b.first_byte() || b.end_byte() <= a.first_byte()) return true;
    const std::uint64_t bytes_a = element_bytes(a.element), bytes_b = element_bytes(b.element);
    const std::uint64_t period = a.strides.token * bytes_a;
    if (period == 0 || period != b.strides.token * bytes_b) return false;
    if ((a.batch > 1 && (a.strides.batch * bytes_a) % period != 0) || (b.batch > 1 && (b.strides.batch * bytes_b) % period != 0))
        return false;
    const auto extent = [](const TensorRows& rows) {
        return ((rows.tensor.heads - 1) * rows.strides.head + rows.head_dim) * element_bytes(rows.element);
    };
    // Both as intervals on a circle of `period` bytes, seen from the start of a.
    const std::uint64_t start_b = (b.first_byte() % period + period - a.first_byte() % period) % period;
    return extent(a) <= start_b && start_b + extent(b) <= period;
}

Result<bool> check_in_place(const TensorRows& in, const TensorRows& out) noexcept {
    if (disjoint(in, out)) return {{}, false};
    const bool same = in.first_byte() == out.first_byte() && in.element == out.element && in.strides.head == out.strides.head &&
                      in.strides.token == out.strides.token && in.strides.batch == out.strides.batch;
    if (!same) {
        return {error(Code::invalid_argument, "%s and %s overlap: they must be the same rows of one type (in place) or disjoint",
                      in.name, out.name),
                {}};
    }
    return {{}, true};
}

// Binds `where` at the next lower offset that the device and `alignment` allow.
VkDescriptorBufferInfo lower(const VkDescriptorBufferInfo& where, VkDeviceSize bytes, const StorageLimits& limits) noexcept {
    const VkDeviceSize alignment = std::max<VkDeviceSize>(limits.offset_alignment, 16);
    const VkDeviceSize start = where.offset / alignment * alignment;
    const VkDeviceSize end = (where.offset + bytes + 3) / 4 * 4;
    return {where.buffer, start, end - start};
}

Status check_range(const char* name, const VkDescriptorBufferInfo& bound, const StorageLimits& limits) noexcept {
    if (bound.range <= limits.range) return {};
    return error(Code::limit_exceeded, "%s spans %" PRIu64 " bytes: the device binds %" PRIu64 " at most (maxStorageBufferRange)",
                 name, bound.range, limits.range);
}

Status place(TensorRows& rows, const StorageLimits& limits, Placement& placement) noexcept {
    if (Status s = resolve_strides(rows); !s) return s;
    if (Status s = check_where(rows); !s) return s;
    placement.bound = lower(rows.tensor.where, rows.span * element_bytes(rows.element), limits);
    placement.strides = rows.strides;
    placement.strides.offset = (rows.tensor.where.offset - placement.bound.offset) / element_bytes(rows.element);
    return check_range(rows.name, placement.bound, limits);
}

// ---- Positions, angles, counter ----

// A buffer of words: `bytes` bytes from where.offset on.
Status place_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes, const StorageLimits& limits,
                   VkDescriptorBufferInfo& bound, std::uint32_t& offset_words) noexcept {
    if (where.buffer == VK_NULL_HANDLE) return error(Code::invalid_argument, "%s.buffer is null", name);
    if (where.offset % 4 != 0)
        return error(Code::invalid_argument, "%s.offset is %" PRIu64 ": it must be a multiple of 4", name, where.offset);
    if (where.range == VK_WHOLE_SIZE || where.range < bytes) {
        return error(Code::invalid_argument,
                     "%s.range is %" PRIu64 " bytes: it must be at least %" PRIu64 ", and not VK_WHOLE_SIZE", name, where.range,
                     bytes);
    }
    bound = lower(where, bytes, limits);
    offset_words = std::uint32_t((where.offset - bound.offset) / 4);
    return check_range(name, bound, limits);
}

Status check_supported(const Call& call) noexcept {
    if (call.gain > Gain::divide_out) return error(Code::invalid_argument, "gain is %u: no such gain", unsigned(call.gain));
    if (call.gain != Gain::apply)
        return error(Code::not_supported, "gain is %u: other than apply is not supported yet", unsigned(call.gain));
    if (call.k_rows.slots.buffer) return error(Code::not_supported, "k_rows.slots: destination rows are not supported yet");
    if (call.positions.int64) return error(Code::not_supported, "positions.int64: ids of 64 bits are not supported yet");
    if (call.positions.axis_stride != 0)
        return error(Code::not_supported, "positions.axis_stride: several axes are not supported yet");
    if (call.positions.token_stride != 1)
        return error(Code::not_supported, "positions.token_stride: other than 1 is not supported yet");
    return {};
}

Status resolve_positions(const KernelInfo& info, const StorageLimits& limits, const Call& call, ResolvedCall& resolved) noexcept {
    const Positions& positions = call.positions;
    if (info.positions == PositionSource::implicit) {
        const std::int64_t last = std::int64_t{positions.first} + call.tokens - 1;
        if (last <= std::numeric_limits<std::int32_t>::max()) return {};
        return error(Code::invalid_argument, "positions.first is %d: with tokens %u the last position, %" PRId64 ", is no int32",
                     positions.first, call.tokens, last);
    }
    if (positions.batch_stride < 0 || positions.batch_stride > std::numeric_limits<std::int32_t>::max()) {
        return error(Code::invalid_argument, "positions.batch_stride is %" PRId64 ": it must be 0 to 2^31 - 1",
                     positions.batch_stride);
    }
    resolved.ids_batch_stride = std::uint32_t(positions.batch_stride);
    const std::uint64_t ids = multiply_add(call.batch - 1, std::uint64_t(positions.batch_stride), call.tokens);
    return place_words("positions.ids", positions.ids, ids * 4, limits, resolved.ids, resolved.ids_offset);
}

// Every row that the shader takes for covered is inside the table: it reads by these numbers.
bool holds_its_rows(const AnglePlan& plan) noexcept {
    if (plan.rows == 0) return false;
    if (plan.source == AngleSource::direct_buffer) return std::uint64_t{plan.rows} * plan.pairs * 8 <= plan.bytes;
    if (plan.fold_log2 > 31 || plan.row_texels < (plan.pairs + 1) / 2) return false;
    const std::uint64_t columns = ((std::uint64_t{plan.rows} - 1) >> plan.fold_log2) + 1;
    return columns * plan.row_texels <= plan.extent.width &&
           std::min(std::uint64_t{plan.rows}, std::uint64_t{1} << plan.fold_log2) <= plan.extent.height;
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
    if (!holds_its_rows(*angles.plan)) {
        return error(Code::invalid_argument,
                     "angles.plan: %u rows do not fit into its %zu bytes; it must be as plan_angles made it", angles.plan->rows,
                     angles.plan->bytes);
    }
    if (info.angles == AngleSource::direct_buffer) {
        return place_words("angles.buffer", angles.buffer, angles.plan->bytes, limits, resolved.table, resolved.table_offset);
    }
    if (angles.view == VK_NULL_HANDLE) return error(Code::invalid_argument, "angles.view is null");
    return {};
}

// What a call reads or counts in beside its tensors.
struct Words {
    const char* name;
    std::uint64_t first_byte;
    const VkDescriptorBufferInfo& bound;

    bool overlaps(VkBuffer buffer, std::uint64_t first, std::uint64_t end) const {
        return bound.buffer && bound.buffer == buffer && first_byte < end && first < bound.offset + bound.range;
    }
};

// The ids and the table lie outside what the call writes, and the counter outside all else that it touches. `tensors`: outputs, then inputs.
Status check_words_apart(const Call& call, const ResolvedCall& resolved, const std::array<const TensorRows*, 4>& tensors) noexcept {
    const auto overlap = [](const char* a, const char* b) {
        return error(Code::invalid_argument, "%s and %s overlap: they must be disjoint", a, b);
    };
    const Words read[] = {{"positions.ids", call.positions.ids.offset, resolved.ids},
                          {"angles.buffer", call.angles.buffer.offset, resolved.table}};
    const Words counter = {"out_of_range", call.out_of_range.offset, resolved.status};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorRows& rows = *tensors[i];
        if (rows.tensor.heads == 0) continue;
        const auto reaches = [&](const Words& words) {
            return words.overlaps(rows.tensor.where.buffer, rows.first_byte(), rows.end_byte());
        };
        if (reaches(counter)) return overlap(rows.name, counter.name);
        for (const Words& words : read) {
            if (i < 2 && reaches(words)) return overlap(rows.name, words.name);
        }
    }
    for (const Words& words : read) {
        if (words.overlaps(counter.bound.buffer, counter.first_byte, counter.first_byte + 4))
            return overlap(words.name, counter.name);
    }
    return {};
}

// Q or K: both of its sides, or neither.
Status check_present(const char* name, const Width& width, const Tensor& in, const Tensor& out) noexcept {
    if (in.heads != out.heads)
        return error(Code::invalid_argument, "%s_out.heads is %u: %s_in.heads is %u", name, out.heads, name, in.heads);
    if (in.heads > 65535) return error(Code::invalid_argument, "%s_in.heads is %u: it must be at most 65535", name, in.heads);
    if (in.heads != 0 && width.head_dim == 0) {
        return error(Code::invalid_argument, "%s_in.heads is %u: the kernel was created without %s (head_dim 0)", name, in.heads,
                     name);
    }
    return {};
}

}  // namespace

Status validate(const DeviceRef& device, const KernelInfo& info) noexcept {
    if (!device.instance) return error(Code::invalid_argument, "device.instance is null");
    if (!device.physical) return error(Code::invalid_argument, "device.physical is null");
    if (!device.device) return error(Code::invalid_argument, "device.device is null");
    if (!device.get_instance_proc_addr) return error(Code::invalid_argument, "device.get_instance_proc_addr is null");
    if (device.enabled & ~std::uint32_t{push_descriptor | debug_utils}) {
        return error(Code::invalid_argument, "device.enabled is 0x%x: bits that are no Enabled", device.enabled);
    }
    if (info.pairing > Pairing::interleaved)
        return error(Code::invalid_argument, "pairing is %u: no such pairing", unsigned(info.pairing));
    if (info.angles == AngleSource::factored_texture || info.angles == AngleSource::computed) {
        return error(Code::not_supported, "angles is %u: factored and computed angles are not supported yet",
                     unsigned(info.angles));
    }
    if (info.angles > AngleSource::computed)
        return error(Code::invalid_argument, "angles is %u: no such source", unsigned(info.angles));
    if (info.positions == PositionSource::axis_ids) {
        return error(Code::not_supported, "positions is axis_ids: several axes are not supported yet");
    }
    if (info.positions > PositionSource::axis_ids)
        return error(Code::invalid_argument, "positions is %u: no such source", unsigned(info.positions));
    if (info.pairing_out && *info.pairing_out > Pairing::interleaved) {
        return error(Code::invalid_argument, "pairing_out is %u: no such pairing", unsigned(*info.pairing_out));
    }
    if (info.pairing_out && *info.pairing_out != info.pairing) {
        return error(Code::not_supported, "pairing_out is %u: another than pairing is not supported yet",
                     unsigned(*info.pairing_out));
    }
    if (info.scatter_k) return error(Code::not_supported, "scatter_k: destination rows are not supported yet");
    if (info.mapping > Mapping::cpu) return error(Code::invalid_argument, "mapping is %u: no such mapping", unsigned(info.mapping));
    if (info.rotary_dim < 2 || info.rotary_dim % 2 != 0) {
        return error(Code::invalid_argument, "rotary_dim is %u: it must be even and at least 2", info.rotary_dim);
    }
    if (info.q.head_dim == 0 && info.k.head_dim == 0)
        return error(Code::invalid_argument, "q.head_dim and k.head_dim are both 0: nothing to rotate");
    if (Status s = check_width("q", info.q, info.rotary_dim); !s) return s;
    return check_width("k", info.k, info.rotary_dim);
}

Result<ResolvedCall> validate(const KernelInfo& info, const StorageLimits& limits, const Call& call) noexcept {
    Result<ResolvedCall> result;
    ResolvedCall& resolved = result.value;
    Status& status = result.status;
    if (call.direction > Direction::inverse)
        return {error(Code::invalid_argument, "direction is %u: no such direction", unsigned(call.direction)), {}};
    if (status = check_supported(call); !status) return result;
    if (status = check_present("q", info.q, call.q_in, call.q_out); !status) return result;
    if (status = check_present("k", info.k, call.k_in, call.k_out); !status) return result;
    resolved.work = {.batch = call.batch, .tokens = call.tokens, .q_heads = call.q_in.heads, .k_heads = call.k_in.heads};
    if (call.tokens == 0 || call.batch == 0 || (call.q_in.heads == 0 && call.k_in.heads == 0)) {
        resolved.work.tokens = 0;
        return result;
    }

    TensorRows q_in{"q_in", call.q_in, info.q.in, info.q.head_dim, call.batch, call.tokens};
    TensorRows q_out{"q_out", call.q_out, info.q.out, info.q.head_dim, call.batch, call.tokens};
    TensorRows k_in{"k_in", call.k_in, info.k.in, info.k.head_dim, call.batch, call.tokens};
    TensorRows k_out{"k_out", call.k_out, info.k.out, info.k.head_dim, call.batch, call.tokens};
    const auto place_pair = [&](TensorRows& in, TensorRows& out, Placement& in_at, Placement& out_at, bool& in_place) {
        if (in.tensor.heads == 0) return true;
        if (status = place(in, limits, in_at); !status) return false;
        if (status = place(out, limits, out_at); !status) return false;
        if (status = check_no_self_overlap(out); !status) return false;
        const Result<bool> same = check_in_place(in, out);
        status = same.status;
        in_place = same.value;
        return bool(status);
    };
    if (!place_pair(q_in, q_out, resolved.q_in, resolved.q_out, resolved.work.q_in_place)) return result;
    if (!place_pair(k_in, k_out, resolved.k_in, resolved.k_out, resolved.work.k_in_place)) return result;
    if (call.q_in.heads != 0 && call.k_in.heads != 0) {
        for (const auto& [a, b] : {std::pair{&q_out, &k_out}, {&q_in, &k_out}, {&q_out, &k_in}}) {
            if (!disjoint(*a, *b))
                return {error(Code::invalid_argument, "%s and %s overlap: they must be disjoint", a->name, b->name), {}};
        }
    }
    if (status = resolve_positions(info, limits, call, resolved); !status) return result;
    if (status = resolve_angles(info, limits, call.angles, resolved); !status) return result;
    if (call.out_of_range.buffer != VK_NULL_HANDLE) {
        status = place_words("out_of_range", call.out_of_range, 4, limits, resolved.status, resolved.status_offset);
        if (!status) return result;
    }
    status = check_words_apart(call, resolved, {&q_out, &k_out, &q_in, &k_in});
    return result;
}

}  // namespace vkrope
