// SPDX-License-Identifier: MIT
// Enumerates devices.
#pragma once

#include "runtime/instance.hpp"

namespace vkrope {

inline constexpr std::uint32_t no_queue_family = ~0u;

struct Candidate {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    std::string name, driver, uuid, reason;  // as vkrope_device_info
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    std::uint32_t api_version = 0;
    std::uint64_t memory_bytes = 0;
    VkPhysicalDeviceLimits limits = {};
    Requirements requirements;
    std::uint32_t queue_family =
        // A family with compute, without graphics if there is such a family.
        no_queue_family;
    std::uint32_t timestamp_bits = 0;     // valid timestamp bits of the queue family
    VkDeviceSize largest_allocation = 0;  // bytes
    bool portability_subset = false;      // must be enabled if the device offers it

    bool suitable() const noexcept { return reason.empty(); }
    // Returns a view of the strings and limits of this candidate.
    DeviceInfo info() const noexcept;
};

// Lists every device of the instance, best first.
Result<std::vector<Candidate>> list_candidates(const Instance& instance);

// Returns the index of the one device that vkrope_device_options::select names.
Result<std::uint32_t> select_device(const std::vector<Candidate>& candidates,
                                    const std::string& select);

}  // namespace vkrope
