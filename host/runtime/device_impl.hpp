// SPDX-License-Identifier: MIT
// What a Device owns, and what the runtime calls on it.
#pragma once

#include "runtime/device_list.hpp"

// Opaque here: only allocator.cpp and buffer.cpp know Vulkan Memory Allocator.
struct VmaAllocator_T;

namespace vkrope {

#define VKROPE_RUNTIME_DEVICE_FUNCTIONS(X) \
    X(vkAllocateCommandBuffers)            \
    X(vkBeginCommandBuffer)                \
    X(vkCmdCopyBuffer)                     \
    X(vkCmdPipelineBarrier)                \
    X(vkCmdResetQueryPool)                 \
    X(vkCmdWriteTimestamp)                 \
    X(vkCreateCommandPool)                 \
    X(vkCreateFence)                       \
    X(vkCreateImageView)                   \
    X(vkCreateQueryPool)                   \
    X(vkDestroyCommandPool)                \
    X(vkDestroyDevice)                     \
    X(vkDestroyFence)                      \
    X(vkDestroyImageView)                  \
    X(vkDestroyQueryPool)                  \
    X(vkEndCommandBuffer)                  \
    X(vkGetDeviceQueue)                    \
    X(vkGetQueryPoolResults)               \
    X(vkQueueSubmit)                       \
    X(vkResetCommandPool)                  \
    X(vkResetFences)                       \
    X(vkWaitForFences)

struct DeviceTable {
#define VKROPE_DECLARE(name) PFN_##name name = nullptr;
    VKROPE_RUNTIME_DEVICE_FUNCTIONS(VKROPE_DECLARE)
#undef VKROPE_DECLARE
};

/// Host-visible memory that transfers go through.
struct Staging {
    VkBuffer buffer = VK_NULL_HANDLE;
    void* allocation = nullptr;
    std::byte* mapped = nullptr;
    VkDeviceSize bytes = 0;
};

/// What its owner let go while the queue might still be using it.
struct Abandoned {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    void* allocation = nullptr;  ///< of the buffer or the image
    DescriptorArena* arena = nullptr;
};

struct Device::Impl {
    std::unique_ptr<Instance> instance;
    Candidate candidate;
    DeviceTable vk;
    DeviceRef ref;
    VkQueue queue = VK_NULL_HANDLE;
    VmaAllocator_T* allocator = nullptr;
    VkCommandPool command_pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    VkQueryPool timestamps = VK_NULL_HANDLE;  ///< null where the queue has none
    std::uint64_t timeout_ns = 0;
    Staging staging;
    bool recording = false;  ///< a callback of submit() has the command buffer
    bool pending =
        false;  ///< a wait failed: the queue may still be working, nothing of it may be freed
    std::vector<Abandoned> abandoned;  ///< freed when the queue has answered after all
    /// Compiled once a device: a kernel serves every shape.
    std::vector<std::pair<KernelInfo, Owned<Kernel>>> kernels;
    Status lost;  ///< the status that every later submission returns, once a submission went wrong
                  ///< for good

    ~Impl();
    Status create(const DeviceOptions& options, std::unique_ptr<Instance> made, Candidate chosen);
    Result<std::optional<double>> submit(
        const std::function<Status(VkCommandBuffer)>& record_commands);

    /// Whether nothing records into the command buffer.
    Status check_not_recording() const;

    /// Before staging memory or the command buffer is used again: waits for what an earlier wait
    /// left behind.
    Status ready();

    /// Frees it as soon as the queue has answered.
    void abandon(const Abandoned& object) noexcept;

    /// The kernel for `info`, made when it is first asked for.
    Result<const Kernel*> kernel_for(const KernelInfo& info);

   private:
    Status create_device(const DeviceOptions& options);
    Status create_commands();
    Status wait();
    Status begin();
    Status keep(const Status& status);
    void free_abandoned() noexcept;
    Result<std::optional<double>> elapsed_ns() const;
};

// ---- allocator.cpp ----

Status create_allocator(Device::Impl& device);
void destroy_allocator(Device::Impl& device) noexcept;

/// A buffer of `usage`; device-local, or mapped for transfers if `mapped` is given. Nothing is left
/// behind on failure.
Status make_buffer(Device::Impl& device, VkDeviceSize bytes, VkBufferUsageFlags usage,
                   VkBuffer& buffer, void*& allocation, std::byte** mapped = nullptr);
Status make_image(Device::Impl& device, const VkImageCreateInfo& info, VkImage& image,
                  void*& allocation);
void free_buffer(Device::Impl& device, VkBuffer buffer, void* allocation) noexcept;
void free_image(Device::Impl& device, VkImage image, void* allocation) noexcept;

/// Staging memory of at least `wanted` bytes, or of its largest size if that is less.
Status prepare_staging(Device::Impl& device, VkDeviceSize wanted);
/// Between the host and the device, where staging memory is not coherent.
Status flush_staging(Device::Impl& device, VkDeviceSize bytes);
Status invalidate_staging(Device::Impl& device, VkDeviceSize bytes);

}  // namespace vkrope
