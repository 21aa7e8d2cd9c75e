// SPDX-License-Identifier: MIT
// Faults of a device that supports less than it reports, or does not respond.
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

void range_too_large(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            reported.properties.limits.maxStorageBufferRange = 0xffffffff;
        });
    change_descriptors(replaced, [](DescriptorWrites& writes) {
        for (VkDescriptorBufferInfo& buffer : writes.buffers()) {
            buffer.range = std::min(buffer.range, VkDeviceSize{1} << 27);
        }
    });
}

// Also reports a GPU, because the library asks no CPU device to preserve subnormals.
void reports_subnormals(Functions& replaced) {
    change_properties(
        replaced,
        [](const Reported& reported) {
            reported.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
            if (reported.float_controls != nullptr)
                reported.float_controls->shaderDenormPreserveFloat32 = VK_TRUE;
        });
}

void fence_never_signals(Functions& replaced) {
    replaced.vkWaitForFences = [](VkDevice, std::uint32_t, const VkFence*, VkBool32,
                                  std::uint64_t timeout_ns) {
        constexpr std::uint64_t second = 1'000'000'000;
        const timespec time = {time_t(timeout_ns / second), long(timeout_ns % second)};
        ::nanosleep(&time, nullptr);
        return VK_TIMEOUT;
    };
}

void memory_runs_out(Functions& replaced) {
    replaced.vkAllocateMemory = [](VkDevice, const VkMemoryAllocateInfo*,
                                   const VkAllocationCallbacks*,
                                   VkDeviceMemory*) { return VK_ERROR_OUT_OF_DEVICE_MEMORY; };
}

void timestamps_run_backwards(Functions& replaced) {
    replaced.vkGetQueryPoolResults = [](VkDevice device, VkQueryPool pool, std::uint32_t first,
                                        std::uint32_t count, std::size_t bytes, void* values,
                                        VkDeviceSize stride, VkQueryResultFlags flags) {
        const VkResult result = next.vkGetQueryPoolResults(device, pool, first, count, bytes,
                                                           values, stride, flags);
        auto* ticks = static_cast<std::uint64_t*>(values);
        if (flags & VK_QUERY_RESULT_64_BIT && stride == sizeof *ticks)
            std::reverse(ticks, ticks + count);
        return result;
    };
}

constexpr Fault all[] = {
    {"range_too_large", "reports a maxStorageBufferRange of 4 GiB and binds 128 MiB",
     range_too_large},
    {"flushes_subnormals", "flushes subnormals in spite of DenormPreserve, which it reports",
     reports_subnormals, flush_subnormals},
    {"fence_never_signals", "never signals a fence", fence_never_signals},
    {"memory_runs_out", "has no memory", memory_runs_out},
    {"timestamps_run_backwards", "has timestamps that run backwards", timestamps_run_backwards},
};

}  // namespace

std::span<const Fault> device_faults() {
    return all;
}

}  // namespace vkrope::faults
