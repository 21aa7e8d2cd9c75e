// SPDX-License-Identifier: MIT
// What each entry point may return besides VK_SUCCESS.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>
#include <vector>

namespace vkrope::test {

/// Of the Vulkan registry (vk.xml), attributes successcodes and errorcodes; and VK_ERROR_UNKNOWN,
/// which any may return. Empty for an entry point that is not in the table.
std::vector<VkResult> result_codes(const std::string& entry, bool fills_array);

}  // namespace vkrope::test
