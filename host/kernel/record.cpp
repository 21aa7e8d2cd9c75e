// SPDX-License-Identifier: MIT
// record(): validate -> plan -> descriptors and push constants -> dispatch. No step looks back.
#include <cinttypes>

#include "kernel/plan.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// One write for each binding of the module: static use is textual, so every declared binding must be valid.
struct Writes {
    VkWriteDescriptorSet writes[max_bindings];
    VkDescriptorBufferInfo buffers[max_bindings];
    VkDescriptorImageInfo image;
};

// A binding that the call leaves unused gets a buffer that the call uses the same way: read where it is read, written where it is
// written, so that nobody has to synchronise more than what the call really touches.
const VkDescriptorBufferInfo& buffer_for(const Bindings& of, std::uint32_t binding) noexcept {
    const VkDescriptorBufferInfo& in = of.q_in.buffer ? of.q_in : of.k_in;
    const VkDescriptorBufferInfo& out = of.q_out.buffer ? of.q_out : of.k_out;
    const auto or_else = [](const VkDescriptorBufferInfo& used,
                            const VkDescriptorBufferInfo& other) -> const VkDescriptorBufferInfo& {
        return used.buffer ? used : other;
    };
    switch (binding) {
        case shader::binding_first_in: return in;
        case shader::binding_first_out: return out;
        case shader::binding_second_in: return or_else(of.k_in, in);
        case shader::binding_second_out: return or_else(of.k_out, out);
        case shader::binding_index_a: return or_else(of.ids, in);
        case shader::binding_index_b: return or_else(of.slots, in);
        case shader::binding_table: return or_else(of.table, in);
        default: return or_else(of.status, out);
    }
}

void fill_writes(const Kernel& kernel, const Bindings& bindings, const Angles& angles, VkDescriptorSet set, Writes& out) noexcept {
    out.image = {VK_NULL_HANDLE, angles.view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    for (std::uint32_t i = 0; i < kernel.module->binding_count; ++i) {
        const Binding& binding = kernel.module->bindings[i];
        VkWriteDescriptorSet& write = out.writes[i];
        write = {};
        write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        write.dstSet = set;
        write.dstBinding = binding.number;
        write.descriptorCount = 1;
        write.descriptorType = binding.type;
        if (binding.type == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE) {
            write.pImageInfo = &out.image;
        } else {
            out.buffers[i] = buffer_for(bindings, binding.number);
            write.pBufferInfo = &out.buffers[i];
        }
    }
}

Status check_arena(const Kernel& kernel, const DescriptorArena* arena) noexcept {
    if (kernel.device.enabled & push_descriptor) return {};
    if (!arena) return error(Code::invalid_argument, "arena is null: without push descriptors the kernel needs one");
    if (!belongs_to(*arena, kernel)) return error(Code::invalid_argument, "arena: it was made for another kernel");
    return {};
}

Status check_sets(const Kernel& kernel, const DescriptorArena* arena, std::uint64_t needed) noexcept {
    if ((kernel.device.enabled & push_descriptor) || free_sets(*arena) >= needed) return {};
    return error(Code::limit_exceeded,
                 "arena: the call needs %" PRIu64 " of its %u sets, %u are left; reset it or make a larger one", needed,
                 capacity(*arena), free_sets(*arena));
}

void bind(VkCommandBuffer commands, const Kernel& kernel, const Bindings& bindings, const Angles& angles,
          DescriptorArena* arena) noexcept {
    const DeviceFunctions& vk = kernel.vk;
    const std::uint32_t count = kernel.module->binding_count;
    Writes writes;
    if (kernel.device.enabled & push_descriptor) {
        fill_writes(kernel, bindings, angles, VK_NULL_HANDLE, writes);
        vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, count, writes.writes);
        return;
    }
    const VkDescriptorSet set = take_set(*arena);
    fill_writes(kernel, bindings, angles, set, writes);
    vk.vkUpdateDescriptorSets(kernel.device.device, count, writes.writes, 0, nullptr);
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set, 0, nullptr);
}

void record_barrier(VkCommandBuffer commands, const Kernel& kernel) noexcept {
    const Boundary at = boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = at.output_access;
    barrier.dstAccessMask = at.in_place_access;
    kernel.vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void record_dispatch(VkCommandBuffer commands, const Kernel& kernel, const Dispatch& dispatch, const Call& call,
                     DescriptorArena* arena) noexcept {
    bind(commands, kernel, dispatch.bindings, call.angles, arena);
    kernel.vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline->handle);
    kernel.vk.vkCmdPushConstants(commands, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof dispatch.push, &dispatch.push);
    kernel.vk.vkCmdDispatch(commands, dispatch.shape.groups[0], dispatch.shape.groups[1], dispatch.shape.groups[2]);
}

}  // namespace

Boundary boundary() noexcept {
    return {.stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            .input_access = VK_ACCESS_SHADER_READ_BIT,
            .output_access = VK_ACCESS_SHADER_WRITE_BIT,
            .in_place_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
}

Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept {
    if (!kernel) return {error(Code::invalid_argument, "kernel is null"), 0};
    const Result<ResolvedCall> resolved = validate(kernel->info, kernel->storage_limits, call);
    if (!resolved || resolved->tokens == 0) return {resolved.status, 0};
    const Result<Jobs> jobs = plan(*kernel, resolved.value);
    return {jobs.status, jobs ? jobs->dispatches() : 0};
}

Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call, DescriptorArena* arena) noexcept {
    if (!commands) return error(Code::invalid_argument, "commands is null");
    if (!kernel) return error(Code::invalid_argument, "kernel is null");
    const Result<ResolvedCall> resolved = validate(kernel->info, kernel->storage_limits, call);
    if (!resolved || resolved->tokens == 0) return resolved.status;
    if (Status s = check_arena(*kernel, arena); !s) return s;
    const Result<Jobs> jobs = plan(*kernel, resolved.value);
    if (!jobs) return jobs.status;
    const std::uint64_t count = jobs->dispatches();
    if (Status s = check_sets(*kernel, arena, count); !s) return s;

    const bool labelled = kernel->device.enabled & debug_utils;
    if (labelled) {
        VkDebugUtilsLabelEXT label = {};
        label.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT;
        label.pLabelName = "vkrope";
        kernel->vk.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
    }
    DispatchSequence sequence(*kernel, call, resolved.value, jobs.value);
    for (std::uint64_t i = 0; i < count; ++i) {
        const Dispatch dispatch = sequence.at(i);
        if (sequence.needs_barrier(dispatch.bindings)) record_barrier(commands, *kernel);
        record_dispatch(commands, *kernel, dispatch, call, arena);
    }
    if (labelled) kernel->vk.vkCmdEndDebugUtilsLabelEXT(commands);
    return {};
}

}  // namespace vkrope
