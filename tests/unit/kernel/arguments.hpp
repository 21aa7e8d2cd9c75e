// SPDX-License-Identifier: MIT
// Arguments of create() and record() that no Vulkan call sees.
#pragma once

#include <cstdint>

#include "defaults.hpp"
#include "kernel/resolve/resolve.hpp"

namespace vkrope {

template <class Handle>
Handle fake(std::uintptr_t number) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): handles of the fake are numbers.
    return reinterpret_cast<Handle>(number);
}

inline DeviceRef device() {
    return {.instance = fake<VkInstance>(1),
            .physical = fake<VkPhysicalDevice>(2),
            .device = fake<VkDevice>(3),
            .get_instance_proc_addr = [](VkInstance, const char*) -> PFN_vkVoidFunction {
                return nullptr;
            }};
}

/// As record() of a kernel that create() made from `info`.
inline Result<ResolvedCall> resolve(const KernelInfo& info, const StorageLimits& limits,
                                    const Call& call) {
    return resolve(completed(info), ops_needs(info), limits, call);
}

}  // namespace vkrope
