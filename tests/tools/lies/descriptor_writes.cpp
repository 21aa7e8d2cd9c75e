// SPDX-License-Identifier: MIT
#include "descriptor_writes.hpp"

namespace vkrope::lies {
namespace {

void (*change_writes)(DescriptorWrites&) = nullptr;

VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer commands, VkPipelineBindPoint point,
                                VkPipelineLayout layout, std::uint32_t set, std::uint32_t count,
                                const VkWriteDescriptorSet* given) {
    DescriptorWrites writes(count, given);
    change_writes(writes);
    next.vkCmdPushDescriptorSetKHR(commands, point, layout, set, writes.count(),
                                   writes.into(VK_NULL_HANDLE));
}

VKAPI_ATTR void VKAPI_CALL update(VkDevice device, std::uint32_t count,
                                  const VkWriteDescriptorSet* given, std::uint32_t copies,
                                  const VkCopyDescriptorSet* copied) {
    if (count == 0) return next.vkUpdateDescriptorSets(device, 0, nullptr, copies, copied);
    DescriptorWrites writes(count, given);
    change_writes(writes);
    next.vkUpdateDescriptorSets(device, writes.count(), writes.into(given->dstSet), copies, copied);
}

}  // namespace

void change_descriptors(Functions& told, void (*change)(DescriptorWrites&)) {
    change_writes = change;
    told.vkCmdPushDescriptorSetKHR = push;
    told.vkUpdateDescriptorSets = update;
}

}  // namespace vkrope::lies
