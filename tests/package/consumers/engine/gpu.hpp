// SPDX-License-Identifier: MIT
// The parts of an engine: its instance, device, queue, memory and command buffers. The engine asks
// vkrope only which extensions the device should enable.
#pragma once

#ifdef ENGINE_VOLK
#include <volk.h>
#else
#include <vulkan/vulkan.h>
#endif

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace engine {

struct Buffer {
    VkBuffer handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    void* mapped = nullptr;  ///< null unless the buffer was made for the host
    VkDeviceSize bytes = 0;

    VkDescriptorBufferInfo whole() const { return {handle, 0, bytes}; }
};

struct Image {
    VkImage handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
};

/// Ends the program with an error message, which is enough for a test.
[[noreturn]] void fail(const std::string& sentence);
void check(VkResult result, const char* call);
void check(const vkrope::Status& status, const char* call);

void memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
                    VkPipelineStageFlags to, VkAccessFlags accessed);

/// The features that an engine enables of those that vkrope can use: none; those that the device
/// offers as extensions; or, without any extension, those in the core of Vulkan 1.2.
enum class Enable { nothing, extensions, vulkan_1_2 };

/// The first device with a compute queue. Messages of validation layers are printed and counted.
class Gpu {
   public:
    explicit Gpu(Enable enable);
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    /// Returns the handles for vkrope, and the features that this engine enabled.
    vkrope::DeviceRef ref() const;

    const VkPhysicalDeviceProperties& properties() const { return properties_; }
    VkDevice device() const { return device_; }
    VkQueue queue() const { return queue_; }
    unsigned messages() const { return messages_; }

    Buffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, bool for_host) const;
    /// Makes an image and its view; the function sets the image in `view`.
    Image make_image(const VkImageCreateInfo& info, VkImageViewCreateInfo view) const;
    VkCommandPool make_command_pool() const;
    VkCommandBuffer begin(VkCommandPool pool) const;
    void destroy(Buffer& buffer) const;
    void destroy(Image& image) const;

    /// Ends and submits the commands, and waits. No other thread may use the queue.
    void submit_and_wait(VkCommandBuffer commands) const;

   private:
    void create_instance(Enable enable);
    void create_device(Enable enable);
    VkDeviceMemory allocate(const VkMemoryRequirements& needs,
                            VkMemoryPropertyFlags properties) const;

    VkInstance instance_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties_ = {};
    VkDevice device_ = VK_NULL_HANDLE;
    VkPipelineCache pipeline_cache_ = VK_NULL_HANDLE;
    std::uint32_t queue_family_ = 0;
    VkQueue queue_ = VK_NULL_HANDLE;
    std::uint32_t enabled_ = 0;
    std::atomic<unsigned> messages_{0};
};

}  // namespace engine
