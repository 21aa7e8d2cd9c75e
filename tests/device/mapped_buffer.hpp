// SPDX-License-Identifier: MIT
// A buffer of more memory than a device promises, and calls of many dispatches.
#pragma once

#include <cstring>
#include <utility>

#include "support/recording.hpp"

namespace vkrope::test {

/// An entry point of the device.
template <class Function>
Function function(Device& on, const char* name) {
    return reinterpret_cast<Function>(on.ref().get_instance_proc_addr(on.ref().instance, name));
}

/// Records and submits one call. Returns its number of dispatches.
inline std::uint64_t run(Device& on, const Kernel& kernel, const Call& call) {
    const std::uint64_t count = must(dispatches(&kernel, call));
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(&kernel, std::uint32_t(count))));
    const auto barrier = function<PFN_vkCmdPipelineBarrier>(on, "vkCmdPipelineBarrier");
    must(on.submit([&](VkCommandBuffer commands) {
        const Status status = record(commands, &kernel, call, arena.get());
        VkMemoryBarrier to_host = {};
        to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        to_host.srcAccessMask = boundary().output_access;
        to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
        barrier(commands, boundary().stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr,
                0, nullptr);
        return status;
    }));
    return count;
}

/// Memory that the host maps and accesses directly. The driver may give more than it promises, and
/// Buffer asks only for what it promises.
class MappedBuffer {
   public:
    MappedBuffer() = default;
    MappedBuffer(MappedBuffer&& other) noexcept { *this = std::move(other); }
    MappedBuffer& operator=(MappedBuffer&& other) noexcept {
        std::swap(on_, other.on_);
        std::swap(handle_, other.handle_);
        std::swap(memory_, other.memory_);
        std::swap(mapped_, other.mapped_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~MappedBuffer() {
        if (!on_) return;
        function<PFN_vkDestroyBuffer>(*on_, "vkDestroyBuffer")(on_->ref().device, handle_, nullptr);
        function<PFN_vkFreeMemory>(*on_, "vkFreeMemory")(on_->ref().device, memory_, nullptr);
    }

    /// On failure the status names the failing call; the destructor frees what was made.
    static Result<MappedBuffer> make(Device& on, VkDeviceSize bytes) {
        Result<MappedBuffer> made;
        made->on_ = &on;
        made->bytes_ = bytes;
        if (const char* failed = made->allocate()) {
            made.status.code = VKROPE_ERROR_OUT_OF_DEVICE_MEMORY;
            std::strncpy(made.status.what, failed, sizeof made.status.what - 1);
        }
        return made;
    }

    Status upload(const void* source, std::size_t bytes, VkDeviceSize offset) {
        std::memcpy(mapped_ + offset, source, bytes);
        return {};
    }
    Status download(void* target, std::size_t bytes, VkDeviceSize offset) {
        std::memcpy(target, mapped_ + offset, bytes);
        return {};
    }
    VkDescriptorBufferInfo whole() const { return {handle_, 0, bytes_}; }

   private:
    const char* allocate() {
        const VkDevice device = on_->ref().device;
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = bytes_;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        if (function<PFN_vkCreateBuffer>(*on_, "vkCreateBuffer")(device, &info, nullptr, &handle_))
            return "vkCreateBuffer failed";
        VkMemoryRequirements needs = {};
        function<PFN_vkGetBufferMemoryRequirements>(*on_, "vkGetBufferMemoryRequirements")(
            device, handle_, &needs);
        VkPhysicalDeviceMemoryProperties memory = {};
        function<PFN_vkGetPhysicalDeviceMemoryProperties>(
            *on_, "vkGetPhysicalDeviceMemoryProperties")(on_->ref().physical, &memory);
        constexpr VkMemoryPropertyFlags mappable = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        VkMemoryAllocateInfo allocation = {};
        allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
        allocation.allocationSize = needs.size;
        while (
            allocation.memoryTypeIndex < memory.memoryTypeCount &&
            (!(needs.memoryTypeBits >> allocation.memoryTypeIndex & 1) ||
             (memory.memoryTypes[allocation.memoryTypeIndex].propertyFlags & mappable) != mappable))
            ++allocation.memoryTypeIndex;
        if (allocation.memoryTypeIndex == memory.memoryTypeCount)
            return "no memory that the host can map";
        if (function<PFN_vkAllocateMemory>(*on_, "vkAllocateMemory")(device, &allocation, nullptr,
                                                                     &memory_))
            return "vkAllocateMemory failed";
        if (function<PFN_vkBindBufferMemory>(*on_, "vkBindBufferMemory")(device, handle_, memory_,
                                                                         0))
            return "vkBindBufferMemory failed";
        void* at = nullptr;
        if (function<PFN_vkMapMemory>(*on_, "vkMapMemory")(device, memory_, 0, VK_WHOLE_SIZE, 0,
                                                           &at))
            return "vkMapMemory failed";
        mapped_ = static_cast<std::byte*>(at);
        return nullptr;
    }

    Device* on_ = nullptr;
    VkBuffer handle_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    std::byte* mapped_ = nullptr;
    VkDeviceSize bytes_ = 0;
};

}  // namespace vkrope::test
