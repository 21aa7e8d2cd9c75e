// SPDX-License-Identifier: MIT
// An angle table in a texture of the engine's own.
#pragma once

#include "gpu.hpp"
#include "vkrope/frequencies.hpp"

namespace engine {

struct Table {
    vkrope::AnglePlan plan;
    Image image;
    Buffer staging;  ///< may be freed once the commands have completed

    vkrope::Angles angles() const { return {&plan, image.view, {}}; }
};

/// RoPE of whole head rows, base 10 000.
inline vkrope::Rotation plain_rotation(std::uint32_t head_dim) {
    vkrope::Rotation rotation;
    rotation.head_dim = rotation.rotary_dim = head_dim;
    rotation.inv_freq.resize(head_dim / 2);
    check(vkrope::default_inv_freq(10000.0, head_dim, rotation.inv_freq.data()), "default_inv_freq");
    return rotation;
}

/// Makes the texture of `plan` and records its upload. Later commands may read it where vkrope does.
///
/// fill  writes plan.bytes bytes
template <class Fill>
Table upload_table(const Gpu& gpu, VkCommandBuffer commands, const vkrope::AnglePlan& plan, const Fill& fill) {
    Table table;
    table.plan = plan;
    table.staging = gpu.make_buffer(table.plan.bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, true);
    fill(table.staging.mapped);
    table.image = gpu.make_image(table.plan.format, table.plan.extent, table.plan.usage | VK_IMAGE_USAGE_TRANSFER_DST_BIT);

    VkImageMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = table.image.handle;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0, nullptr, 1,
                         &barrier);
    VkBufferImageCopy region = {};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {table.plan.extent.width, table.plan.extent.height, 1};
    vkCmdCopyBufferToImage(commands, table.staging.handle, table.image.handle, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = vkrope::boundary().input_access;
    barrier.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
    barrier.newLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, vkrope::boundary().stage, 0, 0, nullptr, 0, nullptr, 1,
                         &barrier);
    return table;
}

/// The table of a rotation, for positions below `max_position`: what a kernel reads by default.
inline Table upload_table(const Gpu& gpu, VkCommandBuffer commands, const vkrope::Rotation& rotation, std::uint64_t max_position) {
    const auto plan = vkrope::plan_angles(rotation, vkrope::AngleSource::factored_texture, max_position,
                                          gpu.properties().limits.maxImageDimension2D);
    check(plan.status, "plan_angles");
    return upload_table(gpu, commands, plan.value, [&](void* texels) {
        check(vkrope::fill_angles(rotation, plan.value, texels, plan.value.bytes), "fill_angles");
    });
}

}  // namespace engine
