// SPDX-License-Identifier: MIT
// Defines the state of a vkrope_device, and the runtime's functions for it.
#pragma once

#include <functional>
#include <memory>

#include "runtime/device_list.hpp"
#include "runtime/pipeline_cache.hpp"

// Opaque here: only allocator.cpp uses Vulkan Memory Allocator.
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
    X(vkCreatePipelineCache)               \
    X(vkCreateQueryPool)                   \
    X(vkDestroyCommandPool)                \
    X(vkDestroyDevice)                     \
    X(vkDestroyFence)                      \
    X(vkDestroyImageView)                  \
    X(vkDestroyPipelineCache)              \
    X(vkDestroyQueryPool)                  \
    X(vkEndCommandBuffer)                  \
    X(vkGetDeviceQueue)                    \
    X(vkGetPipelineCacheData)              \
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

// Host-visible memory for transfers.
struct Staging {
    VkBuffer buffer = VK_NULL_HANDLE;
    void* allocation = nullptr;
    std::byte* mapped = nullptr;
    VkDeviceSize bytes = 0;
};

// Objects whose owner was destroyed while the queue might still use them.
struct Abandoned {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    void* allocation = nullptr;  // allocation of the buffer or the image
    DescriptorArena* arena = nullptr;
};

struct DeviceState {
    std::unique_ptr<Instance> instance;
    Candidate candidate;
    DeviceInfo properties = {};  // refers to `candidate`
    DeviceTable vk;
    DeviceRef ref;
    VkQueue queue = VK_NULL_HANDLE;
    VmaAllocator_T* allocator = nullptr;
    VkCommandPool command_pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    VkQueryPool timestamps = VK_NULL_HANDLE;  // null if the queue has none
    bool timestamps_run_backwards = false;    // seen in a submission
    std::uint64_t timeout_ns = 0;
    Staging staging;
    PipelineCache pipeline_cache;
    bool recording = false;  // a callback of submit() is recording into the command buffer
    bool pending = false;    // a wait failed: the queue may still be working, so none of its
                             // objects may be freed
    std::vector<Abandoned> abandoned;  // freed once the queue has finished
    // Kernels, each compiled once per device, because a kernel works for every shape.
    std::vector<std::pair<KernelInfo, Owned<Kernel>>> kernels;
    Status lost;  // error of every later submission after a fatal one

    ~DeviceState();
    Status create(const OwnedOptions& options, std::unique_ptr<Instance> made, Candidate chosen);
    Result<std::optional<double>> submit(
        const std::function<Status(VkCommandBuffer)>& record_commands);

    // Returns an error if a callback is recording into the command buffer.
    Status check_not_recording() const;

    // Waits for work that an earlier wait left unfinished. Call it before reusing staging memory
    // or the command buffer.
    Status ready();

    // Frees `object` once the queue has finished.
    void abandon(const Abandoned& object) noexcept;

    // Returns the kernel for `info`, created on first use.
    Result<const Kernel*> kernel_for(const KernelInfo& info);

   private:
    Status create_device(const OwnedOptions& options);
    Status create_commands();
    Status wait();
    Status begin();
    Status keep(const Status& status);
    void free_abandoned() noexcept;
    Result<std::optional<double>> elapsed_ns();
};

// ---- allocator.cpp ----

Status create_allocator(DeviceState& device);
void destroy_allocator(DeviceState& device) noexcept;

// Creates a buffer with `usage`: device-local, or mapped for transfers if `mapped` is given. On
// failure nothing stays allocated.
Status make_buffer(DeviceState& device, VkDeviceSize bytes, VkBufferUsageFlags usage,
                   VkBuffer& buffer, void*& allocation, std::byte** mapped = nullptr);
Status make_image(DeviceState& device, const VkImageCreateInfo& info, VkImage& image,
                  void*& allocation);
void free_buffer(DeviceState& device, VkBuffer buffer, void* allocation) noexcept;
void free_image(DeviceState& device, VkImage image, void* allocation) noexcept;

// Provides at least `wanted` bytes of staging memory, or its maximum size if that is less.
Status prepare_staging(DeviceState& device, VkDeviceSize wanted);
// These functions synchronise host and device accesses if staging memory is not coherent.
Status flush_staging(DeviceState& device, VkDeviceSize bytes);
Status invalidate_staging(DeviceState& device, VkDeviceSize bytes);

}  // namespace vkrope

struct vkrope_device : vkrope::DeviceState {};

struct vkrope_buffer {
    vkrope::DeviceState* device = nullptr;
    VkBuffer handle = VK_NULL_HANDLE;
    void* allocation = nullptr;
    VkDeviceSize bytes = 0;

    explicit vkrope_buffer(vkrope::DeviceState& on) : device(&on) {}
    ~vkrope_buffer();
    vkrope_buffer(const vkrope_buffer&) = delete;
    vkrope_buffer& operator=(const vkrope_buffer&) = delete;

    VkDescriptorBufferInfo whole() const noexcept { return {handle, 0, bytes}; }
    vkrope::Status upload(const void* source, std::size_t count, VkDeviceSize offset = 0);
    vkrope::Status download(void* target, std::size_t count, VkDeviceSize offset = 0);
};

struct vkrope_angle_table {
    vkrope::DeviceState* device = nullptr;
    vkrope::AngleTableLayout layout;
    VkImage image = VK_NULL_HANDLE;
    void* allocation = nullptr;
    VkImageView view = VK_NULL_HANDLE;
    vkrope::Owned<vkrope_buffer> buffer;
    vkrope::Angles angles = {};  // refers to the layout, and to the view or the buffer

    explicit vkrope_angle_table(vkrope::DeviceState& on) : device(&on) {}
    ~vkrope_angle_table();
    vkrope_angle_table(const vkrope_angle_table&) = delete;
    vkrope_angle_table& operator=(const vkrope_angle_table&) = delete;

    void refer() noexcept {
        angles = {&layout, view, buffer ? buffer->whole() : VkDescriptorBufferInfo{}, {}};
    }
    // Implements vkrope_angle_table_reach.
    vkrope::Status reach(const vkrope_rope_params& rotation, std::uint64_t max_position);
};

namespace vkrope {

// Both functions may throw if memory runs out.
Result<Owned<vkrope_buffer>> make_buffer(DeviceState& device, VkDeviceSize bytes);
Result<Owned<vkrope_angle_table>> make_angle_table(DeviceState& device,
                                                   const vkrope_rope_params& rotation,
                                                   AngleSource source, std::uint64_t max_position);

}  // namespace vkrope
