// SPDX-License-Identifier: MIT
// Describes the location of the rows of a tensor, in 64 bits: pure arithmetic, no Vulkan call.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace vkrope {

// Counts, or first indices, in each direction. `heads` counts the heads of one group. `pages`, and
// `rows` of a page, are for a scattered tensor.
struct Counts {
    std::uint32_t batch = 1, groups = 1, heads = 1, tokens = 1, pages = 1, rows = 1;
};

// Part of a call: `count` steps from `first` on, in every direction.
struct Tile {
    Counts first = {0, 0, 0, 0, 0, 0}, count;
};

// One tensor of a call, or the ids or slots of a call, whose elements are 32-bit words. Strides
// are in elements, and are 0 along a direction that has one step. The elements of a tensor of
// ggml's blocks are its blocks.
struct View {
    VkBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t first_byte = 0;  // offset in the buffer
    std::uint32_t element_bytes = 4;
    std::uint32_t offset_bytes = 4;     // unit of a dispatch's offset into the tensor
    std::uint32_t channels = 1;         // of an element, which is a number or a block
    std::uint32_t head_dim = 1;         // elements of a row
    std::uint32_t heads = 1;            // of all groups
    std::uint32_t heads_per_group = 1;  // equal to `heads`: one group
    std::uint64_t batch = 0, token = 0, group = 0, head = 0;
    std::uint32_t page_size = 0;  // rows per page; if above 0, `batch` is the stride of pages and
                                  // `token` the stride of rows in a page

    // Returns the elements from the first row to the row of head `index`, counted over all groups.
    std::uint64_t head_offset(std::uint64_t index) const noexcept {
        return index / heads_per_group * group + index % heads_per_group * head;
    }

    // Returns the view with all heads of a token, which must be packed, as one row.
    View rows_of_tokens() const noexcept {
        View rows = *this;
        rows.head_dim *= heads;
        rows.heads = rows.heads_per_group = 1;
        rows.head = 0;
        return rows;
    }

    // Returns whether groups of `group_heads` heads, which divide heads_per_group or equal it,
    // have a constant stride, so that z of a dispatch can count them. Returns false for a
    // scattered tensor, where z steps by page.
    bool steps_evenly(std::uint32_t group_heads) const noexcept {
        return page_size == 0 && (group_heads == heads_per_group || heads_per_group == heads);
    }
    std::uint64_t group_step(std::uint32_t group_heads) const noexcept {
        return group_heads == heads_per_group ? group : group_heads * head;
    }
};

// Returns the elements from the tensor's first row to the first row of a part.
std::uint64_t offset_of(const View& view, std::uint32_t group_heads, const Counts& first) noexcept;

// Returns the elements from the first channel of a part to one past its last. If there are several
// groups, they must have a constant stride.
std::uint64_t span_of(const View& view, std::uint32_t group_heads, const Counts& count) noexcept;

// Device limits for bindings.
struct StorageLimits {
    VkDeviceSize offset_alignment =
        256;                        // minStorageBufferOffsetAlignment, a power of two, at most 256
    VkDeviceSize range = 1u << 27;  // maxStorageBufferRange, bytes
    VkDeviceSize uniform_alignment = 256;   // minUniformBufferOffsetAlignment
    VkDeviceSize uniform_range = 1u << 14;  // maxUniformBufferRange, bytes
};

// Returns the multiples at which bindings start: of 16 that are offsets that the device allows.
constexpr VkDeviceSize binding_alignment(const StorageLimits& limits) noexcept {
    return limits.offset_alignment > 16 ? limits.offset_alignment : 16;
}

// Returns the binding for `bytes` bytes from byte `first` on. It has whole words, and starts at
// the next lower multiple of binding_alignment().
VkDescriptorBufferInfo binding_of(VkBuffer buffer, std::uint64_t first, std::uint64_t bytes,
                                  const StorageLimits& limits) noexcept;

}  // namespace vkrope
