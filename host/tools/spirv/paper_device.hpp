// SPDX-License-Identifier: MIT
// A Vulkan device that exists on paper: create() makes a kernel on it as on any other, and what it
// would hand to a driver is kept. So the modules are the library's own, by its own tables.
#pragma once

#include <cstdint>
#include <vector>

#include "vkrope/kernel.hpp"

namespace vkrope::tools {

/// It has the limits that every Vulkan device has, and enough storage buffers for any kernel: the
/// manifest says how many a module needs.
DeviceRef paper_device() noexcept;

/// The words of each shader module since the last call, in order.
std::vector<std::vector<std::uint32_t>> take_modules();

}  // namespace vkrope::tools
