// SPDX-License-Identifier: MIT
// A driver that executes other commands than those that were recorded.
#include <cstring>
#include <vector>

#include "barrier_lie.hpp"
#include "descriptor_writes.hpp"
#include "lies.hpp"

namespace vkrope::lies {
namespace {

// ---- Push constants ----

bool pushed = false;  // since this command buffer was begun

void push_constants_ignored(Functions& told) {
    told.vkBeginCommandBuffer = [](VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
        pushed = false;
        return next.vkBeginCommandBuffer(commands, info);
    };
    told.vkCmdPushConstants = [](VkCommandBuffer commands, VkPipelineLayout layout,
                                 VkShaderStageFlags stages, std::uint32_t offset,
                                 std::uint32_t size, const void* values) {
        if (!pushed) next.vkCmdPushConstants(commands, layout, stages, offset, size, values);
        pushed = true;
    };
}

void push_constants_cut(Functions& told) {
    told.vkCmdPushConstants = [](VkCommandBuffer commands, VkPipelineLayout layout,
                                 VkShaderStageFlags stages, std::uint32_t offset,
                                 std::uint32_t size, const void* values) {
        constexpr std::uint32_t room = 64;
        std::vector<std::uint8_t> kept(size);
        std::memcpy(kept.data(), values, size < room ? size : room);
        next.vkCmdPushConstants(commands, layout, stages, offset, size, kept.data());
    };
}

// ---- Descriptors ----

void descriptor_offset_27_bits(Functions& told) {
    change_descriptors(told, [](DescriptorWrites& writes) {
        for (VkDescriptorBufferInfo& buffer : writes.buffers()) {
            buffer.offset &= (VkDeviceSize{1} << 27) - 1;
        }
    });
}

DescriptorWrites last_writes;  // of this command buffer

void descriptors_one_call_old(Functions& told) {
    told.vkBeginCommandBuffer = [](VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
        last_writes = {};
        return next.vkBeginCommandBuffer(commands, info);
    };
    change_descriptors(told, [](DescriptorWrites& writes) {
        const DescriptorWrites given = writes;
        if (last_writes.count() > 0) writes = last_writes;
        last_writes = given;
    });
}

// ---- Dispatches ----

void dispatch_runs_twice(Functions& told) {
    told.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                            std::uint32_t z) {
        next.vkCmdDispatch(commands, x, y, z);
        next.vkCmdDispatch(commands, x, y, z);
    };
}

void last_group_missing(Functions& told) {
    told.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                            std::uint32_t z) {
        next.vkCmdDispatch(commands, x > 1 ? x - 1 : x, y, z);
    };
}

void groups_of_z_missing(Functions& told) {
    told.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                            std::uint32_t) { next.vkCmdDispatch(commands, x, y, 1); };
}

DescriptorWrites bound;

void word_flips(Functions& told) {
    change_descriptors(told, [](DescriptorWrites& writes) { bound = writes; });
    told.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                            std::uint32_t z) {
        constexpr std::uint32_t output = 1, of = 97;  // binding of Q's output; dispatches
        static std::uint32_t dispatches = 0;
        next.vkCmdDispatch(commands, x, y, z);
        const VkDescriptorBufferInfo* buffer = bound.buffer_of(output);
        if (++dispatches % of != 0 || buffer == nullptr) return;
        VkMemoryBarrier barrier = {};
        barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        next.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                  VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                                  nullptr);
        next.vkCmdFillBuffer(commands, buffer->buffer, (buffer->offset + buffer->range / 2) / 4 * 4,
                             4, 0x12345678);
    };
}

// ---- Copies ----

void last_texture_row_missing(Functions& told) {
    told.vkCmdCopyBufferToImage = [](VkCommandBuffer commands, VkBuffer from, VkImage to,
                                     VkImageLayout layout, std::uint32_t count,
                                     const VkBufferImageCopy* given) {
        std::vector<VkBufferImageCopy> regions(given, given + count);
        for (VkBufferImageCopy& region : regions) {
            if (region.imageExtent.height > 1) --region.imageExtent.height;
        }
        next.vkCmdCopyBufferToImage(commands, from, to, layout, count, regions.data());
    };
}

constexpr Lie all[] = {
    {"push_constants_ignored", "ignores all push constants of a command buffer but the first",
     push_constants_ignored},
    {"push_constants_cut", "has 0 for the push constants beyond the first 64 bytes",
     push_constants_cut},
    {"descriptor_offset_27_bits", "keeps 27 bits of the offset of a descriptor",
     descriptor_offset_27_bits},
    {"descriptors_one_call_old", "binds the descriptors of the dispatch before",
     descriptors_one_call_old},
    {"barriers_ignored", "runs dispatches in another order in spite of a barrier between them",
     barriers_ignored},
    {"dispatch_runs_twice", "runs each dispatch twice", dispatch_runs_twice},
    {"last_group_missing", "does not run the last workgroups along x", last_group_missing},
    {"groups_of_z_missing", "runs one layer of workgroups along z", groups_of_z_missing},
    {"word_flips", "spoils one word of the output of one dispatch in 97", word_flips},
    {"last_texture_row_missing", "does not copy the last row of a texture",
     last_texture_row_missing},
};

}  // namespace

std::span<const Lie> command_lies() {
    return all;
}

}  // namespace vkrope::lies
