// SPDX-License-Identifier: MIT
// Tier "kernel" for C. Recording does not allocate here either.
#include "vkrope/kernel.hpp"

#include "c/handles.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

// Null is an error of the kernel tier, if the call does anything.
Status check_plan_of(const vkrope_call& call) noexcept {
    const vkrope_angle_plan* const plan = call.angles.plan;
    return plan ? check_plan(plan, "call.angles.plan") : Status{};
}

}  // namespace

vkrope_result vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                                      PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                      vkrope_requirements* requirements, vkrope_error* error) {
    return guarded(error, [&] {
        return hand_out(vkrope::requirements(instance, physical, get_instance_proc_addr),
                        requirements, "requirements");
    });
}

vkrope_result vkrope_kernel_create(const vkrope_device_ref* device, const vkrope_kernel_info* info,
                                   vkrope_kernel** kernel, vkrope_error* error) {
    return making(kernel, "kernel", error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        if (Status s = not_null(info, "info"); !s) return s;
        return hand_out(create(*device, *info), kernel, "kernel");
    });
}

void vkrope_kernel_destroy(vkrope_kernel* kernel) {
    destroy(kernel);
}

vkrope_result vkrope_arena_create(const vkrope_kernel* kernel, uint32_t calls, vkrope_arena** arena,
                                  vkrope_error* error) {
    return making(arena, "arena", error, [&]() -> Status {
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        return hand_out(create_arena(kernel, calls), arena, "arena");
    });
}

void vkrope_arena_reset(vkrope_arena* arena) {
    if (arena) reset(arena);
}

void vkrope_arena_destroy(vkrope_arena* arena) {
    destroy(arena);
}

vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel, const vkrope_call* call,
                                    uint64_t* dispatches, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(dispatches, "dispatches"); !s) return s;
        if (Status s = not_null(call, "call"); !s) return s;
        if (Status s = check_plan_of(*call); !s) return s;
        const Result<std::uint64_t> counted = vkrope::dispatches(kernel, *call);
        *dispatches = counted.value;
        return counted.status;
    });
}

vkrope_result vkrope_get_boundary(vkrope_boundary* boundary, vkrope_error* error) {
    return guarded(error, [&] {
        return hand_out(Result<Boundary>{{}, vkrope::boundary()}, boundary, "boundary");
    });
}

vkrope_result vkrope_record(VkCommandBuffer commands, const vkrope_kernel* kernel,
                            const vkrope_call* call, vkrope_arena* arena, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(call, "call"); !s) return s;
        if (Status s = check_plan_of(*call); !s) return s;
        return record(commands, kernel, *call, arena);
    });
}

vkrope_result vkrope_get_angle_image_info(const vkrope_angle_plan* plan, VkImageCreateInfo* info,
                                          vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = check_plan(plan, "plan"); !s) return s;
        return hand_out(Result<VkImageCreateInfo>{{}, angle_image_info(*plan)}, info, "info");
    });
}

vkrope_result vkrope_get_angle_view_info(const vkrope_angle_plan* plan, VkImage image,
                                         VkImageViewCreateInfo* info, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = check_plan(plan, "plan"); !s) return s;
        return hand_out(Result<VkImageViewCreateInfo>{{}, angle_view_info(*plan, image)}, info,
                        "info");
    });
}

vkrope_result vkrope_record_angle_upload(VkCommandBuffer commands, const vkrope_device_ref* device,
                                         const vkrope_angle_plan* plan,
                                         const vkrope_angle_upload* upload, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        if (Status s = check_plan(plan, "plan"); !s) return s;
        if (Status s = not_null(upload, "upload"); !s) return s;
        return record_angle_upload(commands, *device, *plan, *upload);
    });
}

vkrope_result vkrope_position_kernel_create(const vkrope_device_ref* device,
                                            vkrope_position_kernel** kernel, vkrope_error* error) {
    return making(kernel, "kernel", error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        return hand_out(create_positions(*device), kernel, "kernel");
    });
}

void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel) {
    destroy(kernel);
}

vkrope_result vkrope_position_arena_create(const vkrope_position_kernel* kernel, uint32_t calls,
                                           vkrope_arena** arena, vkrope_error* error) {
    return making(arena, "arena", error, [&]() -> Status {
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        return hand_out(create_arena(kernel, calls), arena, "arena");
    });
}

vkrope_result vkrope_record_positions(VkCommandBuffer commands,
                                      const vkrope_position_kernel* kernel,
                                      const vkrope_position_call* call, vkrope_arena* arena,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(call, "call"); !s) return s;
        return record_positions(commands, kernel, *call, arena);
    });
}
