// SPDX-License-Identifier: MIT
// Results that each entry point may return besides VK_SUCCESS.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>
#include <vector>

namespace vkrope::test {

/// From the Vulkan registry (vk.xml), attributes successcodes and errorcodes; and VK_ERROR_UNKNOWN,
/// which any entry point may return. Empty if the entry point is not in the table.
std::vector<VkResult> result_codes(const std::string& entry, bool fills_array);

}  // namespace vkrope::test
