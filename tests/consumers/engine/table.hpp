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

/// Makes the texture and records its upload. Later commands may read it where vkrope does.
inline Table upload_table(const Gpu& gpu, VkCommandBuffer commands, const vkrope::Rotation& rotation, std::uint64_t max_position) {
    Table table;
    const auto plan = vkrope::plan_angles(rotation, vkrope::AngleSource::direct_texture, max_position,
                                          gpu.properties().limits.maxImageDimension2D);
    check(plan.status, "plan_angles");
    table.plan = plan.value;
    table.staging = gpu.make_buffer(table.plan.bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, true);
    check(vkrope::fill_angles(rotation, table.plan, table.staging.mapped, table.plan.bytes), "fill_angles");
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

}  // namespace engine
