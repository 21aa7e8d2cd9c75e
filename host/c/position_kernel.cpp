// SPDX-License-Identifier: MIT
// The kernel that writes positions, for C.
#include "c/convert.hpp"
#include "vkrope/kernel.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

const PositionKernel* unwrap(const vkrope_position_kernel* kernel) {
    return reinterpret_cast<const PositionKernel*>(kernel);
}

Status read_position_call(const vkrope_position_call* from, PositionCall& call) {
    vkrope_position_call c;
    if (Status s = read(from, "call", c); !s) return s;
    if (c.batch != 0) call.batch = c.batch;
    call.tokens = c.tokens;
    call.first = c.first;
    call.sequences = c.sequences;
    call.ids = c.ids;
    call.offsets = c.offsets;
    call.cu_seqlens = c.cu_seqlens;
    call.offsets_int64 = c.offsets_int64;
    call.cu_seqlens_int64 = c.cu_seqlens_int64;
    if (c.cp_size != 0) call.cp_size = c.cp_size;
    call.cp_rank = c.cp_rank;
    call.out = c.out;
    call.out_of_range = c.out_of_range;
    call.ids_f32 = c.ids_f32;
    call.fraction_bits = c.fraction_bits;
    return {};
}

}  // namespace

vkrope_result vkrope_position_kernel_create(const vkrope_device_ref* device,
                                            vkrope_position_kernel** kernel, vkrope_error* error) {
    return making(kernel, "kernel", error, [&]() -> Status {
        DeviceRef ref;
        if (Status s = read_device(device, ref); !s) return s;
        const Result<PositionKernel*> made = create_positions(ref);
        *kernel = reinterpret_cast<vkrope_position_kernel*>(made.value);
        return made.status;
    });
}

void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel) {
    destroy(reinterpret_cast<PositionKernel*>(kernel));
}

vkrope_result vkrope_position_arena_create(const vkrope_position_kernel* kernel, uint32_t calls,
                                           vkrope_arena** arena, vkrope_error* error) {
    return making(arena, "arena", error, [&]() -> Status {
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        const Result<DescriptorArena*> made = create_arena(unwrap(kernel), calls);
        *arena = reinterpret_cast<vkrope_arena*>(made.value);
        return made.status;
    });
}

vkrope_result vkrope_record_positions(VkCommandBuffer commands,
                                      const vkrope_position_kernel* kernel,
                                      const vkrope_position_call* call, vkrope_arena* arena,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        PositionCall converted;
        if (Status s = read_position_call(call, converted); !s) return s;
        return record_positions(commands, unwrap(kernel), converted, unwrap(arena));
    });
}
