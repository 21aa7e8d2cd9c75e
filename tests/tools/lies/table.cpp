// SPDX-License-Identifier: MIT
#include <cstring>

#include "lies.hpp"

namespace vkrope::lies {

Functions next;
VkPhysicalDevice physical_device = VK_NULL_HANDLE;

const Lie* find_lie(const char* name) {
    for (const std::span<const Lie> list :
         {shader_lies(), command_lies(), device_lies(), liberties()}) {
        for (const Lie& lie : list) {
            if (std::strcmp(lie.name, name) == 0) return &lie;
        }
    }
    return nullptr;
}

}  // namespace vkrope::lies
