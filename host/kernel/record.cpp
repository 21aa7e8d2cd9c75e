// SPDX-License-Identifier: MIT
// Implements record(): resolve -> plan -> descriptors and push constants -> dispatch. No step
// returns to an earlier one.
#include "base/status.hpp"
#include "kernel/dispatch_sequence.hpp"
#include "kernel/vulkan/program.hpp"

namespace vkrope {

namespace {

// Returns the buffer for a binding. If the call does not use the binding, this is a buffer that the
// call reads, or writes if the binding is written, so that the caller synchronises no other buffer.
const VkDescriptorBufferInfo& buffer_for(const Bindings& bindings, std::uint32_t number) noexcept {
    if (number == shader::binding_turns || number == shader::binding_texture)
        number = shader::binding_table;
    if (bindings.of[number].buffer) return bindings.of[number];
    const bool is_read = number < shader::binding_q_out || number > shader::binding_v_second;
    const std::uint32_t first = is_read ? shader::binding_q_in : shader::binding_q_out;
    std::uint32_t t = Q;
    while (t != V && !bindings.of[first + t].buffer) ++t;
    return bindings.of[first + t];
}

Descriptors descriptors_of(const Program& program, const Bindings& bindings,
                           VkImageView view) noexcept {
    Descriptors descriptors;
    for (const Binding& binding : program.binds)
        descriptors.buffers[binding.number] = buffer_for(bindings, binding.number);
    descriptors.view = view;
    return descriptors;
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_get_boundary(vkrope_boundary* boundary, vkrope_error* failure) {
    return answer(
        failure,
        [&] {
            return hand_out(Result<Boundary>{{}, call_boundary}, boundary, "boundary");
        });
}

vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel, const vkrope_call* call,
                                    uint64_t* dispatches, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(dispatches, "dispatches"); !s) return s;
            *dispatches = 0;
            if (Status s = not_null(kernel, "kernel"); !s) return s;
            if (Status s = not_null(call, "call"); !s) return s;
            const Result<ResolvedCall> resolved = resolve(*kernel, *call);
            if (!resolved || resolved->tokens == 0) return resolved.status;
            const Result<Plan> planned = plan(*kernel, resolved.value);
            if (planned) *dispatches = planned->dispatches();
            return planned.status;
        });
}

vkrope_result vkrope_record(VkCommandBuffer commands, const vkrope_kernel* kernel,
                            const vkrope_call* call, vkrope_arena* arena, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(commands, "commands"); !s) return s;
            if (Status s = not_null(kernel, "kernel"); !s) return s;
            if (Status s = not_null(call, "call"); !s) return s;
            const Result<ResolvedCall> resolved = resolve(*kernel, *call);
            if (!resolved || resolved->tokens == 0) return resolved.status;
            const Result<Plan> planned = plan(*kernel, resolved.value);
            if (!planned) return planned.status;
            const std::uint64_t count = planned->dispatches();
            if (Status s = check_arena(*kernel, arena, count); !s) return s;

            begin_label(commands, *kernel);
            DispatchSequence sequence(*kernel, *call, resolved.value, planned.value);
            for (std::uint64_t i = 0; i < count; ++i) {
                const Dispatch next = sequence.at(i);
                if (count > 1 && sequence.needs_barrier(next, i + 1 == count))
                    record_barrier(commands, *kernel);
                bind(commands, *kernel, descriptors_of(*kernel, next.bindings, call->angles.view),
                     arena);
                dispatch(commands, *kernel, next.pipeline->handle, &next.push, sizeof next.push,
                         next.shape);
            }
            end_label(commands, *kernel);
            return {};
        });
}
