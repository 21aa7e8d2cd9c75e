// SPDX-License-Identifier: MIT
// A driver that ignores barriers: two dispatches separated by a barrier run in reverse order, as
// they may without a barrier. Software devices run one command after the other, so this file keeps
// a dispatch and its state back until the next dispatch has been recorded.
#include <cstring>
#include <optional>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

// A dispatch and the state that it needs.
struct Dispatch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    std::vector<std::uint8_t> push_constants;
    VkDescriptorSet set = VK_NULL_HANDLE;  // null: `descriptors` are pushed
    DescriptorWrites descriptors;
    std::uint32_t x = 0, y = 0, z = 0;
};

Dispatch current;
std::optional<Dispatch> kept;  // recorded, and not yet passed on to the driver
bool barrier_since = false;    // since `kept` was recorded

void give(VkCommandBuffer commands, Dispatch& dispatch) {
    next.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
    next.vkCmdPushConstants(commands, dispatch.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            std::uint32_t(dispatch.push_constants.size()),
                            dispatch.push_constants.data());
    if (dispatch.set != VK_NULL_HANDLE) {
        next.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.layout, 0,
                                     1, &dispatch.set, 0, nullptr);
    } else {
        next.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.layout, 0,
                                       dispatch.descriptors.count(),
                                       dispatch.descriptors.into(VK_NULL_HANDLE));
    }
    next.vkCmdDispatch(commands, dispatch.x, dispatch.y, dispatch.z);
}

void give_kept(VkCommandBuffer commands) {
    if (kept) give(commands, *kept);
    kept.reset();
}

}  // namespace

void barriers_ignored(Functions& replaced) {
    replaced.vkCmdBindPipeline = [](VkCommandBuffer, VkPipelineBindPoint, VkPipeline pipeline) {
        current.pipeline = pipeline;
    };
    replaced.vkCmdPushConstants = [](VkCommandBuffer, VkPipelineLayout layout, VkShaderStageFlags,
                                     std::uint32_t, std::uint32_t size, const void* values) {
        current.layout = layout;
        current.push_constants.resize(size);
        std::memcpy(current.push_constants.data(), values, size);
    };
    replaced.vkCmdBindDescriptorSets = [](VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                          std::uint32_t, std::uint32_t, const VkDescriptorSet* sets,
                                          std::uint32_t,
                                          const std::uint32_t*) { current.set = sets[0]; };
    replaced.vkCmdPushDescriptorSetKHR = [](VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                            std::uint32_t, std::uint32_t count,
                                            const VkWriteDescriptorSet* writes) {
        current.set = VK_NULL_HANDLE;
        current.descriptors = DescriptorWrites(count, writes);
    };
    replaced.vkCmdPipelineBarrier =
        [](VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
           VkDependencyFlags flags, std::uint32_t memory_count, const VkMemoryBarrier* memory,
           std::uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
           std::uint32_t image_count, const VkImageMemoryBarrier* images) {
            barrier_since = true;
            next.vkCmdPipelineBarrier(commands, from, to, flags, memory_count, memory, buffer_count,
                                      buffers, image_count, images);
        };
    replaced.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
        current.x = x;
        current.y = y;
        current.z = z;
        if (kept && barrier_since) {
            give(commands, current);
            give_kept(commands);
        } else {
            give_kept(commands);
            kept = current;
        }
        barrier_since = false;
    };
    replaced.vkEndCommandBuffer = [](VkCommandBuffer commands) {
        give_kept(commands);
        return next.vkEndCommandBuffer(commands);
    };
}

}  // namespace vkrope::faults
