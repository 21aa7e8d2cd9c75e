// SPDX-License-Identifier: MIT
// Changes the properties that a device reports, and the descriptors that are written.
#include <algorithm>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

std::vector<void (*)(const Reported&)> property_changes;
std::vector<void (*)(DescriptorWrites&)> write_changes;

template <class Change>
void add(std::vector<Change>& to, Change change) {
    if (std::find(to.begin(), to.end(), change) == to.end()) to.push_back(change);
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties* made) {
    next.vkGetPhysicalDeviceProperties(physical, made);
    for (const auto change : property_changes) change({*made});
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical,
                                       VkPhysicalDeviceProperties2* made) {
    next.vkGetPhysicalDeviceProperties2(physical, made);
    Reported reported = {made->properties};
    for (auto* link = static_cast<VkBaseOutStructure*>(made->pNext); link != nullptr;
         link = link->pNext) {
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES)
            reported.float_controls = reinterpret_cast<VkPhysicalDeviceFloatControlsProperties*>(
                link);
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)
            reported.driver = reinterpret_cast<VkPhysicalDeviceDriverProperties*>(link);
    }
    for (const auto change : property_changes) change(reported);
}

VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer commands, VkPipelineBindPoint point,
                                VkPipelineLayout layout, std::uint32_t set, std::uint32_t count,
                                const VkWriteDescriptorSet* given) {
    DescriptorWrites writes(count, given);
    for (const auto change : write_changes) change(writes);
    next.vkCmdPushDescriptorSetKHR(commands, point, layout, set, writes.count(),
                                   writes.into(VK_NULL_HANDLE));
}

VKAPI_ATTR void VKAPI_CALL update(VkDevice device, std::uint32_t count,
                                  const VkWriteDescriptorSet* given, std::uint32_t copies,
                                  const VkCopyDescriptorSet* copied) {
    if (count == 0) return next.vkUpdateDescriptorSets(device, 0, nullptr, copies, copied);
    DescriptorWrites writes(count, given);
    for (const auto change : write_changes) change(writes);
    next.vkUpdateDescriptorSets(device, writes.count(), writes.into(given->dstSet), copies, copied);
}

}  // namespace

void change_properties(Functions& replaced, void (*change)(const Reported&)) {
    add(property_changes, change);
    replaced.vkGetPhysicalDeviceProperties = properties;
    replaced.vkGetPhysicalDeviceProperties2 = properties2;
}

void change_descriptors(Functions& replaced, void (*change)(DescriptorWrites&)) {
    add(write_changes, change);
    replaced.vkCmdPushDescriptorSetKHR = push;
    replaced.vkUpdateDescriptorSets = update;
}

DescriptorWrites::DescriptorWrites(std::uint32_t count, const VkWriteDescriptorSet* given)
    : writes_(given, given + count), buffers_(count), images_(count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        if (given[i].pBufferInfo != nullptr) buffers_[i] = *given[i].pBufferInfo;
        if (given[i].pImageInfo != nullptr) images_[i] = *given[i].pImageInfo;
    }
}

const VkWriteDescriptorSet* DescriptorWrites::into(VkDescriptorSet set) {
    for (std::size_t i = 0; i < writes_.size(); ++i) {
        writes_[i].dstSet = set;
        if (writes_[i].pBufferInfo != nullptr) writes_[i].pBufferInfo = &buffers_[i];
        if (writes_[i].pImageInfo != nullptr) writes_[i].pImageInfo = &images_[i];
    }
    return writes_.data();
}

}  // namespace vkrope::faults
