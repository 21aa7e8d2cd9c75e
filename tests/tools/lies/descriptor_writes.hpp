// SPDX-License-Identifier: MIT
// Changes what is written into descriptors, pushed or in sets.
#pragma once

#include <cstdint>
#include <vector>

#include "functions.hpp"

namespace vkrope::lies {

/// Copies of descriptor writes with one buffer or image each, as the library makes them.
class DescriptorWrites {
   public:
    DescriptorWrites() = default;
    DescriptorWrites(std::uint32_t count, const VkWriteDescriptorSet* given)
        : writes_(given, given + count), buffers_(count), images_(count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (given[i].pBufferInfo != nullptr) buffers_[i] = *given[i].pBufferInfo;
            if (given[i].pImageInfo != nullptr) images_[i] = *given[i].pImageInfo;
        }
    }
    /// One for each write; of a write without a buffer it is empty.
    std::vector<VkDescriptorBufferInfo>& buffers() { return buffers_; }
    /// Of the first write to this binding; null: there is none.
    const VkDescriptorBufferInfo* buffer_of(std::uint32_t binding) const {
        for (std::size_t i = 0; i < writes_.size(); ++i) {
            if (writes_[i].dstBinding == binding) return &buffers_[i];
        }
        return nullptr;
    }
    std::uint32_t count() const { return std::uint32_t(writes_.size()); }

    /// The writes into `set`; VK_NULL_HANDLE for those that are pushed.
    const VkWriteDescriptorSet* into(VkDescriptorSet set) {
        for (std::size_t i = 0; i < writes_.size(); ++i) {
            writes_[i].dstSet = set;
            if (writes_[i].pBufferInfo != nullptr) writes_[i].pBufferInfo = &buffers_[i];
            if (writes_[i].pImageInfo != nullptr) writes_[i].pImageInfo = &images_[i];
        }
        return writes_.data();
    }

   private:
    std::vector<VkWriteDescriptorSet> writes_;
    std::vector<VkDescriptorBufferInfo> buffers_;
    std::vector<VkDescriptorImageInfo> images_;
};

/// Lets `change` see, and alter, what each call writes.
void change_descriptors(Functions& told, void (*change)(DescriptorWrites&));

}  // namespace vkrope::lies
