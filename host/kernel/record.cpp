// SPDX-License-Identifier: MIT
// record(): validate -> dispatch shape -> push constants and descriptors -> dispatch. No step looks back.
#include <cstring>

#include "kernel/kernel_object.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// On a GPU, an invocation takes four heads only where enough invocations remain to hide the latency of their loads.
constexpr std::uint64_t many_invocations = std::uint64_t{1} << 18;

bool call_allows(const Kernel& kernel, const ResolvedCall& call, std::uint32_t access) noexcept {
    const auto allow = [&](std::uint32_t heads, const Width& width, const Placement& in, const Placement& out) {
        return heads == 0 || (strides_allow(width.in, in.strides, access) && strides_allow(width.out, out.strides, access));
    };
    return allow(call.work.q_heads, kernel.info.q, call.q_in, call.q_out) &&
           allow(call.work.k_heads, kernel.info.k, call.k_in, call.k_out);
}

// The widest access that the call allows. The last pipeline serves every call.
const Pipeline& choose_pipeline(const Kernel& kernel, const ResolvedCall& call) noexcept {
    for (std::uint32_t i = 0; i + 1 < kernel.pipeline_count; ++i) {
        const Variant& variant = kernel.pipelines[i].variant;
        if (!call_allows(kernel, call, variant.access)) continue;
        const std::uint64_t items = items_per_token(kernel.info, variant, call.work) * call.work.tokens * call.work.batch;
        if (variant.heads_owned > 1 && items < many_invocations) continue;
        return kernel.pipelines[i];
    }
    return kernel.pipelines[kernel.pipeline_count - 1];
}

shader::Side side(const Placement& at) noexcept {
    return {std::uint32_t(at.strides.offset), std::uint32_t(at.strides.batch), std::uint32_t(at.strides.token),
            std::uint32_t(at.strides.head)};
}

shader::Push push_constants(const KernelInfo& info, const Call& call, const ResolvedCall& resolved) noexcept {
    shader::Push push = {};
    push.first_in = side(resolved.q_in);
    push.first_out = side(resolved.q_out);
    push.second_in = side(resolved.k_in);
    push.second_out = side(resolved.k_out);
    push.tokens = resolved.work.tokens;
    push.heads = resolved.work.q_heads | resolved.work.k_heads << 16;
    push.flags = (call.direction == Direction::inverse ? shader::flag_inverse : 0) |
                 (resolved.work.q_in_place ? shader::flag_first_in_place : 0) |
                 (resolved.work.k_in_place ? shader::flag_second_in_place : 0) |
                 (resolved.status.buffer ? shader::flag_count_uncovered : 0);
    push.first_position = std::uint32_t(call.positions.first);
    push.index_offset = resolved.ids_offset;
    push.index_batch = resolved.ids_batch_stride;
    const AnglePlan& plan = *call.angles.plan;
    push.table_rows = plan.rows;
    push.table_offset = resolved.table_offset;
    push.table_stride = info.angles == AngleSource::direct_texture ? plan.fold_log2 : 2 * plan.pairs;
    push.table_texels = plan.row_texels;
    push.status_offset = resolved.status_offset;
    return push;
}

// One write for each binding of the module: static use is textual, so every declared binding must be valid.
struct Writes {
    VkWriteDescriptorSet writes[max_bindings];
    VkDescriptorBufferInfo buffers[max_bindings];
    VkDescriptorImageInfo image;
};

// A binding that the call leaves unused gets a buffer that the call uses the same way: read where it is read, written where it is written,
// so that nobody has to synchronise more than what the call really touches.
const VkDescriptorBufferInfo& buffer_for(const ResolvedCall& call, std::uint32_t binding) noexcept {
    const bool has_q = call.work.q_heads != 0, has_k = call.work.k_heads != 0;
    const VkDescriptorBufferInfo& in = has_q ? call.q_in.bound : call.k_in.bound;
    const VkDescriptorBufferInfo& out = has_q ? call.q_out.bound : call.k_out.bound;
    switch (binding) {
        case shader::binding_first_in: return in;
        case shader::binding_first_out: return out;
        case shader::binding_second_in: return has_k ? call.k_in.bound : in;
        case shader::binding_second_out: return has_k ? call.k_out.bound : out;
        case shader::binding_index_a: return call.ids.buffer ? call.ids : in;
        case shader::binding_table: return call.table.buffer ? call.table : in;
        default: return call.status.buffer ? call.status : out;
    }
}

void fill_writes(const Kernel& kernel, const ResolvedCall& call, const Angles& angles, VkDescriptorSet set, Writes& out) noexcept {
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
            out.buffers[i] = buffer_for(call, binding.number);
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

// Makes the bindings of the call current. The one step that can still fail, by a full arena, comes before anything is recorded.
Status bind(VkCommandBuffer commands, const Kernel& kernel, const ResolvedCall& call, const Angles& angles,
            DescriptorArena* arena) noexcept {
    const DeviceFunctions& vk = kernel.vk;
    Writes writes;
    if (kernel.device.enabled & push_descriptor) {
        fill_writes(kernel, call, angles, VK_NULL_HANDLE, writes);
        vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, kernel.module->binding_count,
                                     writes.writes);
        return {};
    }
    const Result<VkDescriptorSet> set = take_set(*arena);
    if (!set) return set.status;
    fill_writes(kernel, call, angles, set.value, writes);
    vk.vkUpdateDescriptorSets(kernel.device.device, kernel.module->binding_count, writes.writes, 0, nullptr);
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set.value, 0, nullptr);
    return {};
}

}  // namespace

Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call, DescriptorArena* arena) noexcept {
    if (!commands) return error(Code::invalid_argument, "commands is null");
    if (!kernel) return error(Code::invalid_argument, "kernel is null");
    if (Status s = check_arena(*kernel, arena); !s) return s;
    const Result<ResolvedCall> resolved = validate(kernel->info, kernel->storage_limits, call);
    if (!resolved || resolved->work.tokens == 0) return resolved.status;
    const Pipeline& pipeline = choose_pipeline(*kernel, resolved.value);
    const Result<DispatchShape> shape = dispatch_shape(kernel->info, pipeline.variant, resolved->work, kernel->dispatch_limits);
    if (!shape) return shape.status;

    if (Status s = bind(commands, *kernel, resolved.value, call.angles, arena); !s) return s;
    const shader::Push push = push_constants(kernel->info, call, resolved.value);
    kernel->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    kernel->vk.vkCmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    kernel->vk.vkCmdDispatch(commands, shape->groups[0], shape->groups[1], shape->groups[2]);
    return {};
}

}  // namespace vkrope
