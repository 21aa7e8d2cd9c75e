// SPDX-License-Identifier: MIT
#include "kernel/geometry/view.hpp"

#include <algorithm>

namespace vkrope {

std::uint64_t offset_of(const View& view, std::uint32_t group_heads, const Counts& first) noexcept {
    const std::uint64_t head = view.head_offset(std::uint64_t{first.groups} * group_heads +
                                                first.heads);
    if (view.page_size != 0) return first.pages * view.batch + first.rows * view.token + head;
    return first.batch * view.batch + first.tokens * view.token + head;
}

std::uint64_t span_of(const View& view, std::uint32_t group_heads, const Counts& count) noexcept {
    const std::uint64_t heads = (count.groups - 1) * view.group_step(group_heads) +
                                (count.heads - 1) * view.head + view.head_dim;
    if (view.page_size != 0)
        return (count.pages - 1) * view.batch + (count.rows - 1) * view.token + heads;
    return (count.batch - 1) * view.batch + (count.tokens - 1) * view.token + heads;
}

VkDescriptorBufferInfo binding_of(VkBuffer buffer, std::uint64_t first, std::uint64_t bytes,
                                  const StorageLimits& limits) noexcept {
    const VkDeviceSize alignment = binding_alignment(limits);
    const VkDeviceSize start = first / alignment * alignment;
    return {buffer, start, (first + bytes + 3) / 4 * 4 - start};
}

}  // namespace vkrope
