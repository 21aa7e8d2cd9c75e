// SPDX-License-Identifier: MIT
// What a Vulkan layer of the tests learns from the loader.
#pragma once

#include <vulkan/vk_layer.h>

namespace vkrope::test {

/// Returns the functions of the next layer, from the structures that the loader appends to a create
/// info, and moves the loader's link on for that layer; null if the loader gave none.
///
/// LayerInfo   VkLayerInstanceCreateInfo or VkLayerDeviceCreateInfo
template <class LayerInfo>
auto* take_link(const void* chain, VkStructureType type) {
    auto* info = static_cast<LayerInfo*>(const_cast<void*>(chain));
    while (info != nullptr && (info->sType != type || info->function != VK_LAYER_LINK_INFO)) {
        info = static_cast<LayerInfo*>(const_cast<void*>(info->pNext));
    }
    decltype(info->u.pLayerInfo) next = nullptr;
    if (info != nullptr) {
        next = info->u.pLayerInfo;
        info->u.pLayerInfo = next->pNext;
    }
    return next;
}

}  // namespace vkrope::test
