// SPDX-License-Identifier: MIT
// How every tier words its errors: printf, because it allocates nothing and throws nothing.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "vkrope/types.hpp"

namespace vkrope {

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
inline Status
error(Code code, const char* format, ...) noexcept {
    Status status;
    status.code = code;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(status.what, sizeof status.what, format, arguments);
    va_end(arguments);
    return status;
}

/// The status for a VkResult that `call` returned.
inline Status vulkan_error(VkResult result, const char* call) noexcept {
    const Code code = result == VK_ERROR_OUT_OF_HOST_MEMORY     ? Code::out_of_host_memory
                      : result == VK_ERROR_OUT_OF_DEVICE_MEMORY ? Code::out_of_device_memory
                      : result == VK_ERROR_DEVICE_LOST          ? Code::device_lost
                      : result == VK_TIMEOUT                    ? Code::timeout
                                                                : Code::vulkan_error;
    Status status = error(code, "%s returned VkResult %d", call, int(result));
    status.vk_result = result;
    return status;
}

}  // namespace vkrope
