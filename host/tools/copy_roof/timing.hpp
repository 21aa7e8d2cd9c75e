// SPDX-License-Identifier: MIT
// Times calls on a device: one, several in a command buffer, or one after something else.
#pragma once

#include <functional>

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// How a timing repeats what it times.
struct Repeat {
    std::uint32_t calls = 1;                                   // in one command buffer
    std::function<Status(VkCommandBuffer)> between = nullptr;  // recorded between two calls
    std::function<Status()> before = nullptr;  // done before each timing, which leaves it out
};

// Submits what `record_call` records, `repeat.calls` times, and returns nanoseconds of one call:
// device time, or the wall time of submitting and waiting if the device has no timestamps.
Result<double> time_ns(Device& device, const std::function<Status(VkCommandBuffer)>& record_call,
                       const Repeat& repeat = {});

}  // namespace vkrope::tools
