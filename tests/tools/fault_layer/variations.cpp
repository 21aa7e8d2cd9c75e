// SPDX-License-Identifier: MIT
// Variations that Vulkan permits and some drivers have. They must not make any check fail.
#include <algorithm>
#include <cstring>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

void fresh_memory_is_garbage(Functions& replaced) {
    replaced.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info,
                                   const VkAllocationCallbacks* allocator, VkDeviceMemory* made) {
        const VkResult result = next.vkAllocateMemory(device, info, allocator, made);
        VkPhysicalDeviceMemoryProperties memory;
        next.vkGetPhysicalDeviceMemoryProperties(physical_device, &memory);
        const VkMemoryPropertyFlags flags = memory.memoryTypes[info->memoryTypeIndex].propertyFlags;
        void* mapped = nullptr;
        if (result == VK_SUCCESS && (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0 &&
            next.vkMapMemory(device, *made, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS) {
            // 0xff bytes are NaN in f32, f16 and bf16. 64 MiB suffice, and 4 GiB may not fit.
            constexpr VkDeviceSize most = VkDeviceSize{64} << 20;
            std::memset(mapped, 0xff, std::min(info->allocationSize, most));
            next.vkUnmapMemory(device, *made);
        }
        return result;
    };
}

void out_of_bounds_reads_0(Functions& replaced) {
    replaced.vkCreateDevice = [](VkPhysicalDevice physical, const VkDeviceCreateInfo* given,
                                 const VkAllocationCallbacks* allocator, VkDevice* made) {
        VkDeviceCreateInfo info = *given;
        VkPhysicalDeviceFeatures features = {};
        if (info.pEnabledFeatures != nullptr) features = *info.pEnabledFeatures;
        features.robustBufferAccess = VK_TRUE;
        info.pEnabledFeatures = &features;
        return next.vkCreateDevice(physical, &info, allocator, made);
    };
}

void small_storage_range(Functions& replaced) {
    constexpr std::uint32_t range = 1 << 22;
    change_properties(
        replaced,
        [](const Reported& reported) { reported.properties.limits.maxStorageBufferRange = range; });
    change_descriptors(replaced, [](DescriptorWrites& writes) {
        for (VkDescriptorBufferInfo& buffer : writes.buffers()) {
            buffer.range = std::min(buffer.range, VkDeviceSize{range});
        }
    });
}

// Reports a range of 4 GiB, which a driver that reports less may be able to bind.
void large_storage_range(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            reported.properties.limits.maxStorageBufferRange = 0xffffffff;
        });
}

void coarse_offsets(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            VkPhysicalDeviceLimits& limits = reported.properties.limits;
            limits.minStorageBufferOffsetAlignment = limits.minUniformBufferOffsetAlignment = 256;
        });
}

void four_storage_buffers(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            reported.properties.limits.maxPerStageDescriptorStorageBuffers = 4;
        });
}

void reports_no_float_controls(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            VkPhysicalDeviceFloatControlsProperties* const controls = reported.float_controls;
            if (controls == nullptr) return;
            void* const chain = controls->pNext;
            *controls = {};
            controls->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
            controls->pNext = chain;
        });
}

// Makes the library choose workgroups, batches and units as for a GPU.
void is_a_gpu(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            reported.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
        });
}

constexpr Fault all[] = {
    {"fresh_memory_is_garbage", "gives memory that is full of NaN", fresh_memory_is_garbage},
    {"out_of_bounds_reads_0", "reads 0 outside of a buffer", out_of_bounds_reads_0},
    {"small_storage_range", "binds 4 MiB at once", small_storage_range},
    {"large_storage_range", "binds 4 GiB at once", large_storage_range},
    {"coarse_offsets", "binds at multiples of 256 bytes", coarse_offsets},
    {"four_storage_buffers", "binds 4 storage buffers", four_storage_buffers},
    {"no_float_controls", "promises nothing of subnormals, rounding, infinities and zeros",
     reports_no_float_controls},
    {"subnormals_flushed", "flushes subnormals, and does not report DenormPreserve",
     reports_no_float_controls, flush_subnormals},
    {"one_nan", "makes one quiet NaN of each NaN", nullptr, unify_nan},
    {"is_a_gpu", "is a GPU", is_a_gpu},
};

}  // namespace

std::span<const Fault> variations() {
    return all;
}

}  // namespace vkrope::faults
