// SPDX-License-Identifier: MIT
// record(): resolve -> plan -> descriptors and push constants -> dispatch. No step goes back to an
// earlier one.
#include "kernel/dispatch_sequence.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// A binding that the call leaves unused gets a buffer that the call already reads, or writes if the
// binding is written, so that the caller synchronises only what the call really touches.
const VkDescriptorBufferInfo& buffer_for(const Bindings& of, std::uint32_t binding) noexcept {
    const auto read = [&](std::uint32_t place) -> const VkDescriptorBufferInfo& {
        if (of.read[place].buffer) return of.read[place];
        std::uint32_t t = Q;
        while (t != V && !of.read[read_in + t].buffer) ++t;
        return of.read[read_in + t];
    };
    const auto written = [&](std::uint32_t place) -> const VkDescriptorBufferInfo& {
        if (of.written[place].buffer) return of.written[place];
        std::uint32_t t = Q;
        while (t != V && !of.written[written_out + t].buffer) ++t;
        return of.written[written_out + t];
    };
    switch (binding) {
        case shader::binding_q_in: return read(read_in + Q);
        case shader::binding_q_out: return written(written_out + Q);
        case shader::binding_k_in: return read(read_in + K);
        case shader::binding_k_out: return written(written_out + K);
        case shader::binding_v_in: return read(read_in + V);
        case shader::binding_v_out: return written(written_out + V);
        case shader::binding_ids: return read(read_ids);
        case shader::binding_slot_mapping: return read(read_slot_mapping);
        case shader::binding_table:
        case shader::binding_turns: return read(read_table);
        case shader::binding_table_sin: return read(read_table_sin);
        case shader::binding_parameters: return read(read_parameters);
        case shader::binding_q_scales:
        case shader::binding_k_scales:
        case shader::binding_v_scales:
            return read(read_scales + binding - shader::binding_q_scales);
        case shader::binding_q_scales_out:
        case shader::binding_k_scales_out:
        case shader::binding_v_scales_out:
            return written(written_scales + binding - shader::binding_q_scales_out);
        default: return written(written_status);
    }
}

Descriptors descriptors_of(const Program& program, const Bindings& bindings,
                           VkImageView view) noexcept {
    Descriptors descriptors;
    for (const Binding& binding : program.binds)
        descriptors.buffers[binding.number] = buffer_for(bindings, binding.number);
    descriptors.view = view;
    return descriptors;
}

void record_barrier(VkCommandBuffer commands, const Kernel& kernel) noexcept {
    const Boundary at = boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = at.output_access;
    barrier.dstAccessMask = at.in_place_access;
    kernel.vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0, nullptr, 0,
                                   nullptr);
}

}  // namespace

Boundary boundary() noexcept {
    return {.stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            .input_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT,
            .texture_access = VK_ACCESS_SHADER_READ_BIT,
            .output_access = VK_ACCESS_SHADER_WRITE_BIT,
            .in_place_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
}

Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept {
    if (!kernel) return {error(VKROPE_ERROR_INVALID_ARGUMENT, "kernel is null"), 0};
    const Result<ResolvedCall> resolved = resolve(*kernel, call);
    if (!resolved || resolved->tokens == 0) return {resolved.status, 0};
    const Result<Jobs> jobs = plan(*kernel, resolved.value);
    return {jobs.status, jobs ? jobs->dispatches() : 0};
}

Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call,
              DescriptorArena* arena) noexcept {
    if (!commands) return error(VKROPE_ERROR_INVALID_ARGUMENT, "commands is null");
    if (!kernel) return error(VKROPE_ERROR_INVALID_ARGUMENT, "kernel is null");
    const Result<ResolvedCall> resolved = resolve(*kernel, call);
    if (!resolved || resolved->tokens == 0) return resolved.status;
    const Result<Jobs> jobs = plan(*kernel, resolved.value);
    if (!jobs) return jobs.status;
    const std::uint64_t count = jobs->dispatches();
    if (Status s = check_arena(*kernel, arena, count); !s) return s;

    begin_label(commands, *kernel);
    DispatchSequence sequence(*kernel, call, resolved.value, jobs.value);
    for (std::uint64_t i = 0; i < count; ++i) {
        const Dispatch next = sequence.at(i);
        if (sequence.needs_barrier(next.bindings)) record_barrier(commands, *kernel);
        bind(commands, *kernel, descriptors_of(*kernel, next.bindings, call.angles.view), arena);
        dispatch(commands, *kernel, next.pipeline->handle, &next.push, sizeof next.push,
                 next.shape);
    }
    end_label(commands, *kernel);
    return {};
}

}  // namespace vkrope
