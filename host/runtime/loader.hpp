// SPDX-License-Identifier: MIT
#pragma once

#include <vulkan/vulkan_core.h>

namespace vkrope {

// Returns vkGetInstanceProcAddr of the system's Vulkan loader; null if there is none.
PFN_vkGetInstanceProcAddr find_vulkan_loader() noexcept;

}  // namespace vkrope
