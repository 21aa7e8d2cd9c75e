// SPDX-License-Identifier: MIT
#include "properties.hpp"

#include <algorithm>
#include <vector>

namespace vkrope::lies {
namespace {

std::vector<void (*)(const Reported&)> changes;

void change_reported(const Reported& reported) {
    for (const auto change : changes) change(reported);
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties* made) {
    next.vkGetPhysicalDeviceProperties(physical, made);
    change_reported({*made, nullptr});
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical,
                                       VkPhysicalDeviceProperties2* made) {
    next.vkGetPhysicalDeviceProperties2(physical, made);
    VkPhysicalDeviceFloatControlsProperties* controls = nullptr;
    for (auto* link = static_cast<VkBaseOutStructure*>(made->pNext); link != nullptr;
         link = link->pNext) {
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES)
            controls = reinterpret_cast<VkPhysicalDeviceFloatControlsProperties*>(link);
    }
    change_reported({made->properties, controls});
}

}  // namespace

void change_properties(Functions& told, void (*change)(const Reported&)) {
    if (std::find(changes.begin(), changes.end(), change) == changes.end())
        changes.push_back(change);
    told.vkGetPhysicalDeviceProperties = properties;
    told.vkGetPhysicalDeviceProperties2 = properties2;
}

}  // namespace vkrope::lies
