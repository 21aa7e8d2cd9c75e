// SPDX-License-Identifier: MIT
// record(): resolve -> plan -> descriptors and push constants -> dispatch. No step goes back to an
// earlier one.
#include "defaults.hpp"
#include "kernel/dispatch_sequence.hpp"
#include "kernel/vulkan/program.hpp"
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
    constexpr Boundary at = call_boundary;
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = at.output_access;
    barrier.dstAccessMask = at.in_place_access;
    kernel.vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0, nullptr, 0,
                                   nullptr);
}

// An angle plan of null is an error of resolve, if the call does anything.
Status check_call(const Call* call) noexcept {
    if (Status s = not_null(call, "call"); !s) return s;
    return call->angles.layout ? check_plan(call->angles.layout, "call.angles.layout") : Status{};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_get_boundary(vkrope_boundary* boundary, vkrope_error* failure) {
    return answer(failure, [&] {
        return hand_out(Result<Boundary>{{}, call_boundary}, boundary, "boundary");
    });
}

vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel, const vkrope_call* call,
                                    uint64_t* dispatches, vkrope_error* failure) {
    return answer(failure, [&]() -> Status {
        if (Status s = not_null(dispatches, "dispatches"); !s) return s;
        *dispatches = 0;
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        if (Status s = check_call(call); !s) return s;
        const Result<ResolvedCall> resolved = resolve(*kernel, *call);
        if (!resolved || resolved->tokens == 0) return resolved.status;
        const Result<Jobs> jobs = plan(*kernel, resolved.value);
        if (jobs) *dispatches = jobs->dispatches();
        return jobs.status;
    });
}

vkrope_result vkrope_record(VkCommandBuffer commands, const vkrope_kernel* kernel,
                            const vkrope_call* call, vkrope_arena* arena, vkrope_error* failure) {
    return answer(failure, [&]() -> Status {
        if (Status s = not_null(commands, "commands"); !s) return s;
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        if (Status s = check_call(call); !s) return s;
        const Result<ResolvedCall> resolved = resolve(*kernel, *call);
        if (!resolved || resolved->tokens == 0) return resolved.status;
        const Result<Jobs> jobs = plan(*kernel, resolved.value);
        if (!jobs) return jobs.status;
        const std::uint64_t count = jobs->dispatches();
        if (Status s = check_arena(*kernel, arena, count); !s) return s;

        begin_label(commands, *kernel);
        DispatchSequence sequence(*kernel, *call, resolved.value, jobs.value);
        for (std::uint64_t i = 0; i < count; ++i) {
            const Dispatch next = sequence.at(i);
            if (sequence.needs_barrier(next.bindings)) record_barrier(commands, *kernel);
            bind(commands, *kernel, descriptors_of(*kernel, next.bindings, call->angles.view),
                 arena);
            dispatch(commands, *kernel, next.pipeline->handle, &next.push, sizeof next.push,
                     next.shape);
        }
        end_label(commands, *kernel);
        return {};
    });
}
