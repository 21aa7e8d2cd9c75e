// SPDX-License-Identifier: MIT
// Allocates device memory with Vulkan Memory Allocator; no other file includes it.
#include <algorithm>
#include <cinttypes>

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

namespace {

constexpr VkDeviceSize largest_staging = VkDeviceSize{64} << 20;

VmaAllocation allocation_of(void* allocation) {
    return VmaAllocation(allocation);
}

Status check_size(const DeviceState& device, VkDeviceSize bytes) {
    const VkDeviceSize largest = device.candidate.largest_allocation;
    if (bytes <= largest || largest == 0) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "a buffer of %" PRIu64 " bytes: the device allocates at most %" PRIu64
                 " (maxMemoryAllocationSize)",
                 bytes, largest);
}

}  // namespace

Status create_allocator(DeviceState& device) {
    VmaVulkanFunctions functions = {};
    functions.vkGetInstanceProcAddr = device.ref.get_instance_proc_addr;
    functions.vkGetDeviceProcAddr = device.instance->vkGetDeviceProcAddr;
    VmaAllocatorCreateInfo info = {};
    info.physicalDevice = device.ref.physical;
    info.device = device.ref.device;
    info.instance = device.ref.instance;
    info.vulkanApiVersion = VK_API_VERSION_1_1;
    info.pVulkanFunctions = &functions;
    info.flags = VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT;
    const VkResult result = vmaCreateAllocator(&info, &device.allocator);
    return created(result, device.allocator, "vmaCreateAllocator");
}

void destroy_allocator(DeviceState& device) noexcept {
    if (!device.allocator) return;
    free_buffer(device, device.staging.buffer, device.staging.allocation);
    vmaDestroyAllocator(device.allocator);
}

Status make_buffer(DeviceState& device, VkDeviceSize bytes, VkBufferUsageFlags usage,
                   VkBuffer& buffer, void*& allocation, std::byte** mapped) {
    if (Status s = check_size(device, bytes); !s) return s;
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = usage;
    VmaAllocationCreateInfo memory = {};
    memory.usage = mapped ? VMA_MEMORY_USAGE_AUTO_PREFER_HOST : VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    if (mapped)
        memory.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT |
                       VMA_ALLOCATION_CREATE_MAPPED_BIT;
    VmaAllocation made = nullptr;
    VmaAllocationInfo made_info = {};
    const VkResult result = vmaCreateBuffer(device.allocator, &info, &memory, &buffer, &made,
                                            &made_info);
    if (Status s = created(result, buffer, "vmaCreateBuffer"); !s) return s;
    allocation = made;
    if (mapped) *mapped = static_cast<std::byte*>(made_info.pMappedData);
    return {};
}

Status make_image(DeviceState& device, const VkImageCreateInfo& info, VkImage& image,
                  void*& allocation) {
    VmaAllocationCreateInfo memory = {};
    memory.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    VmaAllocation made = nullptr;
    const VkResult result = vmaCreateImage(device.allocator, &info, &memory, &image, &made,
                                           nullptr);
    if (Status s = created(result, image, "vmaCreateImage"); !s) return s;
    allocation = made;
    return {};
}

void free_buffer(DeviceState& device, VkBuffer buffer, void* allocation) noexcept {
    if (!buffer) return;
    if (device.pending) return device.abandon({.buffer = buffer, .allocation = allocation});
    vmaDestroyBuffer(device.allocator, buffer, allocation_of(allocation));
}

void free_image(DeviceState& device, VkImage image, void* allocation) noexcept {
    if (!image) return;
    if (device.pending) return device.abandon({.image = image, .allocation = allocation});
    vmaDestroyImage(device.allocator, image, allocation_of(allocation));
}

Status prepare_staging(DeviceState& device, VkDeviceSize wanted) {
    if (Status s = device.ready(); !s) return s;
    wanted = std::clamp<VkDeviceSize>(wanted, 1 << 16, largest_staging);
    Staging& staging = device.staging;
    if (staging.bytes >= wanted) return {};
    free_buffer(device, staging.buffer, staging.allocation);
    staging = {};
    const Status status = make_buffer(
        device, wanted, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        staging.buffer, staging.allocation, &staging.mapped);
    if (status) staging.bytes = wanted;
    return status;
}

Status flush_staging(DeviceState& device, VkDeviceSize bytes) {
    const VkResult result = vmaFlushAllocation(device.allocator,
                                               allocation_of(device.staging.allocation), 0, bytes);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkFlushMappedMemoryRanges");
}

Status invalidate_staging(DeviceState& device, VkDeviceSize bytes) {
    const VkResult result = vmaInvalidateAllocation(
        device.allocator, allocation_of(device.staging.allocation), 0, bytes);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkInvalidateMappedMemoryRanges");
}

}  // namespace vkrope
