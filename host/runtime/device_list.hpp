// SPDX-License-Identifier: MIT
// Enumeration of devices.
#pragma once

#include "runtime/instance.hpp"

namespace vkrope {

inline constexpr std::uint32_t no_queue_family = ~0u;

struct Candidate {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    DeviceInfo info;
    Requirements requirements;
    std::uint32_t queue_family =
        no_queue_family;               ///< has compute; without graphics if there is such a family
    std::uint32_t timestamp_bits = 0;  ///< of the queue family
    VkDeviceSize largest_allocation = 0;  ///< bytes
    bool portability_subset = false;      ///< must be enabled if the device offers it
};

/// Every device of the instance, best first.
Result<std::vector<Candidate>> list_candidates(const Instance& instance);

}  // namespace vkrope
