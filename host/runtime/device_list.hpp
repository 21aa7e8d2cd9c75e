// SPDX-License-Identifier: MIT
// What there is to choose from, and the choice.
#pragma once

#include "runtime/instance.hpp"

namespace vkrope {

inline constexpr std::uint32_t no_queue_family = ~0u;

struct Candidate {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    DeviceInfo info;
    Requirements requirements;
    std::uint32_t queue_family =
        no_queue_family;                  ///< with compute; one without graphics where there is one
    std::uint32_t timestamp_bits = 0;     ///< of that family
    VkDeviceSize largest_allocation = 0;  ///< bytes
    bool portability_subset = false;      ///< has to be enabled where it is offered
};

/// Every device of the instance, best first.
Result<std::vector<Candidate>> list_candidates(const Instance& instance);

}  // namespace vkrope
