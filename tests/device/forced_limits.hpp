// SPDX-License-Identifier: MIT
// Kernels on a device that reports smaller limits than it has, and calls of many dispatches.
#pragma once

#include "support/recording.hpp"

namespace vkrope::test {

/// Limits that the device reports in place of its own.
struct Forced {
    std::uint32_t range = 0, workgroups = 0;  ///< 0: the device's limit
    Mapping mapping = VKROPE_MAPPING_AUTOMATIC;
    std::uint32_t storage_buffers = 0;  ///< 0: as many as it has
};

inline Owned<Kernel> make_kernel(Device& on, KernelInfo info, const Forced& limits) {
    // 2 along y: calls of this size would not be cut if 7 were allowed.
    const DeviceRef ref = reporting(on, {.storage_buffers = limits.storage_buffers,
                                         .storage_range = limits.range,
                                         .workgroups_x = limits.workgroups,
                                         .workgroups_y = limits.workgroups ? 2u : 0u,
                                         .workgroups_z = limits.workgroups});
    info.mapping = limits.mapping;
    return Owned<Kernel>(must(create(ref, info)));
}

/// An entry point of the device.
template <class Function>
Function function(Device& on, const char* name) {
    return reinterpret_cast<Function>(on.ref().get_instance_proc_addr(on.ref().instance, name));
}

/// Records and submits one call. Returns its number of dispatches.
inline std::uint64_t run(Device& on, const Kernel& kernel, const Call& call) {
    const std::uint64_t count = must(dispatches(&kernel, call));
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(&kernel, std::uint32_t(count))));
    const auto barrier = function<PFN_vkCmdPipelineBarrier>(on, "vkCmdPipelineBarrier");
    must(on.submit([&](VkCommandBuffer commands) {
        const Status status = record(commands, &kernel, call, arena.get());
        VkMemoryBarrier to_host = {};
        to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        to_host.srcAccessMask = boundary().output_access;
        to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
        barrier(commands, boundary().stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr,
                0, nullptr);
        return status;
    }));
    return count;
}

}  // namespace vkrope::test
