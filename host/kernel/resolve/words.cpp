// SPDX-License-Identifier: MIT
// Checks the buffers other than inputs and outputs: ids, slots, tables, scales, the counter and
// second destinations.
#include <cinttypes>

#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

Status check_words(const char* name, const VkDescriptorBufferInfo& where,
                   std::uint64_t bytes) noexcept {
    if (where.buffer == VK_NULL_HANDLE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.buffer is null", name);
    if (where.offset % 4 != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.offset is %" PRIu64 ": it must be a multiple of 4", name, where.offset);
    if (where.range >= bytes && where.range <= (too_large >> 2) && where.offset <= (too_large >> 2))
        return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.range is %" PRIu64 " bytes: it must be at least %" PRIu64
                 ", and not VK_WHOLE_SIZE",
                 name, where.range, bytes);
}

Status check_numbers(const char* name, const VkDescriptorBufferInfo& where, Width width,
                     std::uint64_t bytes, std::uint64_t own) noexcept {
    if (Status s = check_words(name, where, bytes); !s) return s;
    if (width.is_64 || (where.range != 2 * bytes && where.range != 2 * own)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.range is %" PRIu64
                 " bytes, twice those of 32-bit numbers: %s if they have 64 bits; else the range "
                 "must be their own %" PRIu64,
                 name, where.range, width.to_64, where.range / 2);
}

Status bind_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes,
                  const StorageLimits& limits, VkDescriptorBufferInfo& bound,
                  std::uint32_t& offset_words) noexcept {
    if (Status s = check_words(name, where, bytes); !s) return s;
    bound = binding_of(where.buffer, where.offset, bytes, limits);
    offset_words = std::uint32_t((where.offset - bound.offset) / 4);
    if (bound.range <= limits.range) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "%s spans %" PRIu64 " bytes, but the device binds at most %" PRIu64
                 " (maxStorageBufferRange)",
                 name, bound.range, limits.range);
}

Status bind_uniforms(const char* name, const Angles& angles, const StorageLimits& limits,
                     VkDescriptorBufferInfo& bound) noexcept {
    const VkDescriptorBufferInfo& where = angles.buffer;
    if (Status s = check_words(name, where, angles.layout->bytes); !s) return s;
    bound = {where.buffer, where.offset, angles.layout->bytes};
    if (where.offset % limits.uniform_alignment == 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.offset is %" PRIu64 ": for computed angles it must be a multiple of %" PRIu64
                 " (minUniformBufferOffsetAlignment)",
                 name, where.offset, limits.uniform_alignment);
}

std::uint64_t words_of(const View& numbers, const Call& call) noexcept {
    return multiply_add(sequences_of(call) - 1, numbers.batch,
                        multiply_add(call.tokens - 1, numbers.token, numbers.head_dim));
}

namespace {

// A buffer that a call reads or increments, other than a tensor.
struct Words {
    const char* name;
    VkBuffer buffer;
    std::uint64_t first, end;  // bytes

    bool overlaps(const Words& other) const {
        return buffer == other.buffer && first < other.end && other.first < end;
    }
};

Words words_of(const char* name, const VkDescriptorBufferInfo& where,
               const VkDescriptorBufferInfo& bound) noexcept {
    return {name, bound.buffer, where.offset, bound.offset + bound.range};
}

// Returns whether the scales that are read move with their rows within a cache, so that they may be
// those that are written.
bool move_with_rows(const ResolvedTensor& tensor) noexcept {
    const auto same = [](const auto& a, const auto& b) {
        return a.buffer == b.buffer && a.first_byte == b.first_byte;
    };
    return same(tensor.scales_in, tensor.scales_out) && same(tensor.in, tensor.out);
}

}  // namespace

Status check_words_apart(const KernelInfo& info, const Call& call, const ResolvedCall& resolved,
                         const InAndOut (&rows)[tensor_count]) noexcept {
    const auto overlap = [](const char* a, const char* b) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s and %s overlap: they must be disjoint", a,
                     b);
    };
    Words read[18];
    std::size_t count = 0;  // number of buffers that the call has
    const auto read_view = [&](const char* name, const View& view) {
        const std::uint64_t bytes = words_of(view, call) * 4;
        read[count++] = {name, view.buffer, view.first_byte, view.first_byte + bytes};
    };
    const auto read_words = [&](const char* name, const VkDescriptorBufferInfo& where,
                                const VkDescriptorBufferInfo& bound) {
        if (bound.buffer) read[count++] = words_of(name, where, bound);
    };
    if (resolved.ids.buffer) read_view("positions.ids", resolved.ids);
    if (resolved.slot_mapping.buffer) {
        read_view("paged_cache.slot_mapping", resolved.slot_mapping);
        if (resolved.v_slot_mapping)
            read_view("paged_cache.v_slot_mapping", slots_of(resolved, V, false));
    }
    if (resolved.source_mapping && is_given(call.paged_cache.source_mapping)) {
        read_view("paged_cache.source_mapping", slots_of(resolved, K, true));
        if (is_given(call.paged_cache.v_source_mapping))
            read_view("paged_cache.v_source_mapping", slots_of(resolved, V, true));
    }
    read_words("angles.buffer", call.angles.buffer, resolved.table);
    read_words("angles.sin", call.angles.sin, resolved.table_sin);
    read_words("parameters", call.parameters, resolved.parameters);
    read_words("token_count", call.token_count, resolved.token_count);
    for (const TensorIndex t : every_tensor)
        if (resolved.tensor[t].scales)
            read_view(names_of[t].scale_tokens, *resolved.tensor[t].scales);
    for (std::uint32_t t = Q; resolved.has_norm_weight && t < tensor_count; ++t) {
        const VkDescriptorBufferInfo& where = call.norm_weight[t];
        if (where.buffer)
            read[count++] = {names_of[t].norm_weight, where.buffer, where.offset,
                             where.offset + bound_weight_bytes(info.tensor[t])};
    }
    const bool has_scales_in = resolved.tensor[K].scales_in || resolved.tensor[V].scales_in;
    for (std::uint32_t t = K; has_scales_in && t < tensor_count; ++t) {
        const VkDescriptorBufferInfo& where = call.scales_in[t];
        if (resolved.tensor[t].scales_in && !move_with_rows(resolved.tensor[t]))
            read[count++] = {names_of[t].scales_in, where.buffer, where.offset,
                             where.offset + where.range};
    }
    Words written[7];
    std::size_t written_count = 0;
    if (resolved.out_of_range.buffer)
        written[written_count++] = words_of("out_of_range", call.out_of_range,
                                            resolved.out_of_range);
    for (const TensorIndex t : every_tensor) {
        const VkDescriptorBufferInfo& where = call.scales_out[t];
        if (resolved.tensor[t].scales_out)
            written[written_count++] = {names_of[t].scales_out, where.buffer, where.offset,
                                        where.offset + where.range};
        if (!resolved.tensor[t].second.buffer) continue;
        const View second = second_of(info, resolved, t);
        const std::uint64_t end = second.first_byte +
                                  resolved.batch * second.batch * second.element_bytes;
        written[written_count++] = {names_of[t].second, second.buffer, second.first_byte,
                                    (end + 3) / 4 * 4};
    }
    if (count + written_count == 0) return {};
    for (const bool is_output : {true, false}) {
        for (const InAndOut& both : rows) {
            const TensorRows& of = is_output ? both.out : both.in;
            if (of.tensor.heads == 0) continue;
            const Words tensor = {of.name, of.tensor.where.buffer, of.first_byte(), of.end_byte()};
            for (std::size_t w = 0; w < written_count; ++w)
                if (written[w].overlaps(tensor)) return overlap(of.name, written[w].name);
            for (std::size_t w = 0; w < count && is_output; ++w)
                if (read[w].overlaps(tensor)) return overlap(of.name, read[w].name);
        }
    }
    for (std::size_t i = 0; i < written_count; ++i) {
        for (std::size_t w = 0; w < count; ++w)
            if (read[w].overlaps(written[i])) return overlap(read[w].name, written[i].name);
        for (std::size_t w = 0; w < i; ++w)
            if (written[w].overlaps(written[i])) return overlap(written[w].name, written[i].name);
    }
    return {};
}

}  // namespace vkrope
