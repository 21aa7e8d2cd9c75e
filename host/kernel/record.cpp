// SPDX-License-Identifier: MIT
// record(): validate -> plan the dispatches -> push constants and descriptors -> dispatch. No step looks back.
#include <cinttypes>

#include "kernel/kernel_object.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// On a GPU, an invocation takes four heads only where enough invocations remain to hide the latency of their loads.
constexpr std::uint64_t many_invocations = std::uint64_t{1} << 18;

// One dispatch of a call.
struct Dispatch {
    const Part* part = nullptr;
    ResolvedCall call;  // as the part's module sees it
    const Pipeline* pipeline = nullptr;
    DispatchShape shape;
};

struct Dispatches {
    Dispatch of[2];
    std::uint32_t count = 0;
    bool barrier = false;  // between the two
};

bool call_allows(const KernelInfo& info, const ResolvedCall& call, std::uint32_t access) noexcept {
    const auto allow = [&](std::uint32_t heads, const Width& width, const Placement& in, const Placement& out) {
        return heads == 0 || (strides_allow(width.in, in.strides, access) && strides_allow(width.out, out.strides, access));
    };
    return allow(call.work.q_heads, info.q, call.q_in, call.q_out) && allow(call.work.k_heads, info.k, call.k_in, call.k_out);
}

// The widest access that the call allows. The last pipeline of a part serves every call.
const Pipeline& choose_pipeline(const Kernel& kernel, const Part& part, const ResolvedCall& call) noexcept {
    const Pipeline* pipelines = kernel.pipelines + part.first_pipeline;
    for (std::uint32_t i = 0; i + 1 < part.pipeline_count; ++i) {
        const Variant& variant = pipelines[i].variant;
        if (!call_allows(part.info, call, variant.access)) continue;
        const std::uint64_t items = items_per_token(part.info, variant, call.work) * call.work.tokens * call.work.batch;
        if (variant.heads_owned > 1 && items < many_invocations) continue;
        return pipelines[i];
    }
    return pipelines[part.pipeline_count - 1];
}

// The call of Q alone, or of K alone, which then stands where Q does.
ResolvedCall alone(const ResolvedCall& both, bool key) noexcept {
    ResolvedCall one = both;
    one.k_in = one.k_out = {};
    one.work.k_heads = 0;
    one.work.k_in_place = false;
    if (key) {
        one.q_in = both.k_in;
        one.q_out = both.k_out;
        one.work.q_heads = both.work.k_heads;
        one.work.q_in_place = both.work.k_in_place;
    }
    return one;
}

bool overlap(const VkDescriptorBufferInfo& a, const VkDescriptorBufferInfo& b) noexcept {
    return a.buffer == b.buffer && a.buffer && a.offset < b.offset + b.range && b.offset < a.offset + a.range;
}

// Whether K's dispatch touches a range that Q's writes, or writes one that Q's reads. Disjoint rows may still lie in overlapping ranges, as in
// packed QKV, or because a binding starts lower than what it is for; the counter is written by Q's dispatch alone.
bool needs_barrier(const ResolvedCall& call) noexcept {
    const VkDescriptorBufferInfo* written[] = {&call.q_out.bound, &call.status};
    const VkDescriptorBufferInfo* then_touched[] = {&call.k_in.bound, &call.k_out.bound, &call.ids, &call.table};
    for (const auto* first : written) {
        for (const auto* second : then_touched) {
            if (overlap(*first, *second)) return true;
        }
    }
    return overlap(call.q_in.bound, call.k_out.bound) || overlap(call.ids, call.k_out.bound) ||
           overlap(call.table, call.k_out.bound);
}

Status plan(const Kernel& kernel, const ResolvedCall& call, Dispatches& plan) noexcept {
    if (!kernel.module->counts && call.status.buffer) {
        // One tensor with a counter; a device that has that many is served by the wide module only, which needs more.
        const std::uint32_t wanted = kernel.max_storage_buffers == kernel.module->storage_buffers
                                         ? kernel.module->storage_buffers + 1
                                         : wide_module(kernel.info.angles).storage_buffers;
        return error(Code::limit_exceeded,
                     "out_of_range: the call needs %u storage buffers, the device allows %u (maxPerStageDescriptorStorageBuffers)",
                     wanted, kernel.max_storage_buffers);
    }
    if (!kernel.lean) {
        plan.of[plan.count++] = {&kernel.q, call, nullptr, {}};
    } else {
        if (call.work.q_heads != 0) plan.of[plan.count++] = {&kernel.q, alone(call, false), nullptr, {}};
        if (call.work.k_heads != 0) plan.of[plan.count++] = {&kernel.k, alone(call, true), nullptr, {}};
        plan.barrier = plan.count == 2 && needs_barrier(call);
        if (plan.count == 2) plan.of[1].call.status = {};  // a token counts once
    }
    for (std::uint32_t i = 0; i < plan.count; ++i) {
        Dispatch& dispatch = plan.of[i];
        dispatch.pipeline = &choose_pipeline(kernel, *dispatch.part, dispatch.call);
        const Result<DispatchShape> shape =
            dispatch_shape(dispatch.part->info, dispatch.pipeline->variant, dispatch.call.work, kernel.dispatch_limits);
        if (!shape) return shape.status;
        dispatch.shape = shape.value;
    }
    return {};
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

Status check_sets(const Kernel& kernel, const DescriptorArena* arena, std::uint32_t needed) noexcept {
    if ((kernel.device.enabled & push_descriptor) || free_sets(*arena) >= needed) return {};
    return error(Code::limit_exceeded, "arena: the call needs %u of its %u sets, %u are left; reset it or make a larger one",
                 needed, capacity(*arena), free_sets(*arena));
}

void bind(VkCommandBuffer commands, const Kernel& kernel, const ResolvedCall& call, const Angles& angles,
          DescriptorArena* arena) noexcept {
    const DeviceFunctions& vk = kernel.vk;
    const std::uint32_t count = kernel.module->binding_count;
    Writes writes;
    if (kernel.device.enabled & push_descriptor) {
        fill_writes(kernel, call, angles, VK_NULL_HANDLE, writes);
        vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, count, writes.writes);
        return;
    }
    const VkDescriptorSet set = take_set(*arena);
    fill_writes(kernel, call, angles, set, writes);
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
    bind(commands, kernel, dispatch.call, call.angles, arena);
    const shader::Push push = push_constants(dispatch.part->info, call, dispatch.call);
    kernel.vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline->handle);
    kernel.vk.vkCmdPushConstants(commands, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    kernel.vk.vkCmdDispatch(commands, dispatch.shape.groups[0], dispatch.shape.groups[1], dispatch.shape.groups[2]);
}

}  // namespace

Boundary boundary() noexcept {
    return {.stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            .input_access = VK_ACCESS_SHADER_READ_BIT,
            .output_access = VK_ACCESS_SHADER_WRITE_BIT,
            .in_place_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
}

Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call, DescriptorArena* arena) noexcept {
    if (!commands) return error(Code::invalid_argument, "commands is null");
    if (!kernel) return error(Code::invalid_argument, "kernel is null");
    const Result<ResolvedCall> resolved = validate(kernel->info, kernel->storage_limits, call);
    if (!resolved || resolved->work.tokens == 0) return resolved.status;
    if (Status s = check_arena(*kernel, arena); !s) return s;
    Dispatches dispatches;
    if (Status s = plan(*kernel, resolved.value, dispatches); !s) return s;
    if (Status s = check_sets(*kernel, arena, dispatches.count); !s) return s;

    const bool labelled = kernel->device.enabled & debug_utils;
    if (labelled) {
        VkDebugUtilsLabelEXT label = {};
        label.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT;
        label.pLabelName = "vkrope";
        kernel->vk.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
    }
    for (std::uint32_t i = 0; i < dispatches.count; ++i) {
        if (i == 1 && dispatches.barrier) record_barrier(commands, *kernel);
        record_dispatch(commands, *kernel, dispatches.of[i], call, arena);
    }
    if (labelled) kernel->vk.vkCmdEndDebugUtilsLabelEXT(commands);
    return {};
}

}  // namespace vkrope
