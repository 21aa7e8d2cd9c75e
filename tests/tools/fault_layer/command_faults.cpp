// SPDX-License-Identifier: MIT
// Faults of a driver that executes commands other than the recorded ones.
#include <cstring>

#include "faults.hpp"
#include "interface.h"

namespace vkrope::faults {
namespace {

// ---- Push constants ----

bool pushed = false;  // since this command buffer was begun

void push_constants_ignored(Functions& replaced) {
    replaced.vkBeginCommandBuffer = [](VkCommandBuffer commands,
                                       const VkCommandBufferBeginInfo* info) {
        pushed = false;
        return next.vkBeginCommandBuffer(commands, info);
    };
    replaced.vkCmdPushConstants = [](VkCommandBuffer commands, VkPipelineLayout layout,
                                     VkShaderStageFlags stages, std::uint32_t offset,
                                     std::uint32_t size, const void* values) {
        if (!pushed) next.vkCmdPushConstants(commands, layout, stages, offset, size, values);
        pushed = true;
    };
}

void push_constants_cut(Functions& replaced) {
    replaced.vkCmdPushConstants = [](VkCommandBuffer commands, VkPipelineLayout layout,
                                     VkShaderStageFlags stages, std::uint32_t offset,
                                     std::uint32_t size, const void* values) {
        constexpr std::uint32_t room = 64;
        std::vector<std::uint8_t> kept(size);
        std::memcpy(kept.data(), values, size < room ? size : room);
        next.vkCmdPushConstants(commands, layout, stages, offset, size, kept.data());
    };
}

// ---- Descriptors ----

// The kinds of offsets of which a driver keeps only some low bits.
struct Cut {
    std::uint32_t bits = 64;                               // number of low bits that are kept
    bool inputs = false, outputs = false, others = false;  // descriptor offsets of these bindings
    bool distances = false;  // strides in push constants, in units of 4 bytes
};
Cut cut;

void cut_offsets_in(Functions& replaced, const Cut& places) {
    cut = places;
    cut.bits = std::uint32_t(std::stoul(argument));
    change_descriptors(replaced, [](DescriptorWrites& writes) {
        for (std::uint32_t i = 0; i < writes.count(); ++i) {
            const std::uint32_t to = writes.binding(i);
            const bool input = to == shader::binding_q_in || to == shader::binding_k_in,
                       output = to == shader::binding_q_out || to == shader::binding_k_out;
            if (input ? cut.inputs : output ? cut.outputs : cut.others)
                writes.buffers()[i].offset &= (VkDeviceSize{1} << cut.bits) - 1;
        }
    });
    if (!cut.distances) return;
    replaced.vkCmdPushConstants = [](VkCommandBuffer commands, VkPipelineLayout layout,
                                     VkShaderStageFlags stages, std::uint32_t offset,
                                     std::uint32_t size, const void* values) {
        shader::Push push;
        if (size != sizeof push)
            return next.vkCmdPushConstants(commands, layout, stages, offset, size, values);
        std::memcpy(&push, values, sizeof push);
        const auto kept = std::uint32_t((std::uint64_t{1} << (cut.bits - 2)) - 1);
        for (shader::RowLayout* side : {&push.q_in, &push.q_out, &push.k_in, &push.k_out})
            for (std::uint32_t* distance : {&side->z, &side->token, &side->head}) *distance &= kept;
        next.vkCmdPushConstants(commands, layout, stages, offset, size, &push);
    };
}

void cut_inputs(Functions& replaced) {
    cut_offsets_in(replaced, {.inputs = true});
}
void cut_outputs(Functions& replaced) {
    cut_offsets_in(replaced, {.outputs = true});
}
void cut_descriptors(Functions& replaced) {
    cut_offsets_in(replaced, {.inputs = true, .outputs = true, .others = true});
}
void cut_push_constants(Functions& replaced) {
    cut_offsets_in(replaced, {.distances = true});
}
void cut_offsets(Functions& replaced) {
    cut_offsets_in(replaced, {.inputs = true, .outputs = true, .others = true, .distances = true});
}

DescriptorWrites last_writes;  // of this command buffer

void descriptors_one_call_old(Functions& replaced) {
    replaced.vkBeginCommandBuffer = [](VkCommandBuffer commands,
                                       const VkCommandBufferBeginInfo* info) {
        last_writes = {};
        return next.vkBeginCommandBuffer(commands, info);
    };
    change_descriptors(replaced, [](DescriptorWrites& writes) {
        const DescriptorWrites given = writes;
        if (last_writes.count() > 0) writes = last_writes;
        last_writes = given;
    });
}

// ---- Dispatches ----

void dispatch_runs_twice(Functions& replaced) {
    replaced.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
        next.vkCmdDispatch(commands, x, y, z);
        next.vkCmdDispatch(commands, x, y, z);
    };
}

void last_group_missing(Functions& replaced) {
    replaced.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
        next.vkCmdDispatch(commands, x > 1 ? x - 1 : x, y, z);
    };
}

void groups_of_z_missing(Functions& replaced) {
    replaced.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                std::uint32_t) { next.vkCmdDispatch(commands, x, y, 1); };
}

DescriptorWrites bound;

void word_flips(Functions& replaced) {
    change_descriptors(replaced, [](DescriptorWrites& writes) { bound = writes; });
    replaced.vkCmdDispatch = [](VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
        static std::uint32_t dispatches = 0;
        next.vkCmdDispatch(commands, x, y, z);
        std::uint32_t output = 0;
        while (output < bound.count() && bound.binding(output) != shader::binding_q_out) ++output;
        if (++dispatches % 97 != 0 || output == bound.count()) return;
        const VkDescriptorBufferInfo& buffer = bound.buffers()[output];
        VkMemoryBarrier barrier = {};
        barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        next.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                  VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                                  nullptr);
        next.vkCmdFillBuffer(commands, buffer.buffer, (buffer.offset + buffer.range / 2) / 4 * 4, 4,
                             0x12345678);
    };
}

// ---- Copies ----

void last_texture_row_missing(Functions& replaced) {
    replaced.vkCmdCopyBufferToImage = [](VkCommandBuffer commands, VkBuffer from, VkImage to,
                                         VkImageLayout layout, std::uint32_t count,
                                         const VkBufferImageCopy* given) {
        std::vector<VkBufferImageCopy> regions(given, given + count);
        for (VkBufferImageCopy& region : regions)
            if (region.imageExtent.height > 1) --region.imageExtent.height;
        next.vkCmdCopyBufferToImage(commands, from, to, layout, count, regions.data());
    };
}

constexpr Fault all[] = {
    {"push_constants_ignored", "ignores all push constants of a command buffer but the first",
     push_constants_ignored},
    {"push_constants_cut", "has 0 for the push constants beyond the first 64 bytes",
     push_constants_cut},
    {"cut_inputs", "keeps the low bits of the offset of an input", cut_inputs},
    {"cut_outputs", "keeps the low bits of the offset of an output", cut_outputs},
    {"cut_descriptors", "keeps the low bits of the offset of a descriptor", cut_descriptors},
    {"cut_push_constants", "keeps the low bits of a distance between rows", cut_push_constants},
    {"cut_offsets", "keeps the low bits of an offset in a buffer", cut_offsets},
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

std::span<const Fault> command_faults() {
    return all;
}

}  // namespace vkrope::faults
