// SPDX-License-Identifier: MIT
#include "copy_roof/timing.hpp"

#include <chrono>

#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope::tools {

Result<double> time_ns(Device& device, const std::function<Status(VkCommandBuffer)>& record_call,
                       const Repeat& repeat) {
    if (repeat.before)
        if (Status s = repeat.before(); !s) return {s, {}};
    const auto start = std::chrono::steady_clock::now();
    const auto device_ns = device.submit([&](VkCommandBuffer commands) {
        Status status = record_call(commands);
        for (std::uint32_t i = 1; i < repeat.calls && status; ++i) {
            if (repeat.between) status = repeat.between(commands);
            if (status) status = record_call(commands);
        }
        return status;
    });
    const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - start;
    if (device_ns && device.get()->timestamps_run_backwards)
        return {error(VKROPE_ERROR_VULKAN,
                      "the timestamps of the device run backwards: nothing can be timed with them"),
                {}};
    return {device_ns.status, device_ns.value.value_or(wall.count()) / repeat.calls};
}

}  // namespace vkrope::tools
