// SPDX-License-Identifier: MIT
#include "gpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace engine {

namespace {

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* message,
                                          void* count) {
    // The loader warns of drivers that it cannot open, which is no mistake of this program.
    if (message->pMessageIdName && std::strcmp(message->pMessageIdName, "Loader Message") == 0)
        return VK_FALSE;
    std::fprintf(stderr, "%s\n", message->pMessage);
    ++*static_cast<std::atomic<unsigned>*>(count);
    return VK_FALSE;
}

bool instance_offers(const char* name) {
    std::uint32_t count = 0;
    check(vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr),
          "vkEnumerateInstanceExtensionProperties");
    std::vector<VkExtensionProperties> offered(count);
    check(vkEnumerateInstanceExtensionProperties(nullptr, &count, offered.data()),
          "vkEnumerateInstanceExtensionProperties");
    for (const VkExtensionProperties& extension : offered)
        if (std::strcmp(extension.extensionName, name) == 0) return true;
    return false;
}

// Returns the index of the first compute queue family, or the number of families if there is none.
std::uint32_t compute_family(VkPhysicalDevice physical, std::uint32_t& count) {
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
    std::uint32_t family = 0;
    while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
    return family;
}

}  // namespace

void fail(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::exit(1);
}

void check(VkResult result, const char* call) {
    if (result != VK_SUCCESS)
        fail(std::string(call) + " returned VkResult " + std::to_string(result));
}

void check(const vkrope::Status& status, const char* call) {
    if (!status) fail(std::string(call) + ": " + status.what);
}

void memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
                    VkPipelineStageFlags to, VkAccessFlags accessed) {
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = written;
    barrier.dstAccessMask = accessed;
    vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Gpu::Gpu(Enable enable) {
#ifdef ENGINE_VOLK
    check(volkInitialize(), "volkInitialize");
#endif
    create_instance(enable);
    create_device(enable);
}

void Gpu::create_instance(Enable enable) {
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.pApplicationName = "engine";
    application.apiVersion = enable == Enable::vulkan_1_2 ? VK_API_VERSION_1_2 : VK_API_VERSION_1_1;
    VkDebugUtilsMessengerCreateInfoEXT messenger = {};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = &messages_;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    if (instance_offers(extension)) {
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &extension;
        enabled_ |= VKROPE_DEVICE_FEATURE_DEBUG_UTILS;
    }
    check(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
#ifdef ENGINE_VOLK
    volkLoadInstance(instance_);
#endif
    if (enabled_ & VKROPE_DEVICE_FEATURE_DEBUG_UTILS) {
        const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
            vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
        check(create(instance_, &messenger, nullptr, &messenger_),
              "vkCreateDebugUtilsMessengerEXT");
    }
}

void Gpu::create_device(Enable enable) {
    std::uint32_t count = 1;
    const VkResult found = vkEnumeratePhysicalDevices(instance_, &count, &physical_);
    if (count == 0 || found < 0) fail("no Vulkan device");
    vkGetPhysicalDeviceProperties(physical_, &properties_);
    std::uint32_t families = 0;
    queue_family_ = compute_family(physical_, families);
    if (queue_family_ == families) fail("the device has no compute queue");

    // The engine enables the extensions and features that vkrope can use along with its own.
    const auto needs = vkrope::requirements(instance_, physical_, vkGetInstanceProcAddr);
    check(needs.status, "requirements");
    std::vector<const char*> extensions;
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    VkPhysicalDeviceVulkan12Features core = {};
    core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    if (enable == Enable::extensions) {
        extensions.assign(needs.value.optional_extensions,
                          needs.value.optional_extensions + needs.value.optional_extension_count);
        enabled_ |= needs.value.enabled;
        half.shaderFloat16 = needs.value.offers_shader_float16;
        if (half.shaderFloat16) enabled_ |= VKROPE_DEVICE_FEATURE_SHADER_FLOAT16;
    } else if (enable == Enable::vulkan_1_2) {
        if (properties_.apiVersion < VK_API_VERSION_1_2) fail("the device has no Vulkan 1.2");
        enabled_ |= needs.value.enabled_in_core;
        core.shaderFloat16 = (enabled_ & VKROPE_DEVICE_FEATURE_SHADER_FLOAT16) != 0;
    }
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = queue_family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    if (half.shaderFloat16) info.pNext = &half;
    if (enable == Enable::vulkan_1_2) info.pNext = &core;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = std::uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    check(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
#ifdef ENGINE_VOLK
    volkLoadDevice(device_);
#endif
    vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
    VkPipelineCacheCreateInfo cache = {};
    cache.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    check(vkCreatePipelineCache(device_, &cache, nullptr, &pipeline_cache_),
          "vkCreatePipelineCache");
}

Gpu::~Gpu() {
    vkDestroyPipelineCache(device_, pipeline_cache_, nullptr);
    vkDestroyDevice(device_, nullptr);
    if (messenger_) {
        reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(vkGetInstanceProcAddr(
            instance_, "vkDestroyDebugUtilsMessengerEXT"))(instance_, messenger_, nullptr);
    }
    vkDestroyInstance(instance_, nullptr);
}

vkrope::DeviceRef Gpu::ref() const {
    vkrope::DeviceRef ref;
    ref.instance = instance_;
    ref.physical = physical_;
    ref.device = device_;
    ref.get_instance_proc_addr = vkGetInstanceProcAddr;
    ref.enabled = enabled_;
    ref.pipeline_cache = pipeline_cache_;
    return ref;
}

VkDeviceMemory Gpu::allocate(const VkMemoryRequirements& needs,
                             VkMemoryPropertyFlags wanted) const {
    VkPhysicalDeviceMemoryProperties memory = {};
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
    VkMemoryAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = needs.size;
    for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
        if (!(needs.memoryTypeBits >> type & 1) ||
            (memory.memoryTypes[type].propertyFlags & wanted) != wanted)
            continue;
        info.memoryTypeIndex = type;
        VkDeviceMemory allocated = VK_NULL_HANDLE;
        check(vkAllocateMemory(device_, &info, nullptr, &allocated), "vkAllocateMemory");
        return allocated;
    }
    fail("the device has no memory of the kind that was asked for");
}

Buffer Gpu::make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, bool for_host) const {
    Buffer buffer;
    buffer.bytes = bytes;
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = usage;
    check(vkCreateBuffer(device_, &info, nullptr, &buffer.handle), "vkCreateBuffer");
    VkMemoryRequirements needs = {};
    vkGetBufferMemoryRequirements(device_, buffer.handle, &needs);
    buffer.memory = allocate(
        needs, for_host ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                        : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    check(vkBindBufferMemory(device_, buffer.handle, buffer.memory, 0), "vkBindBufferMemory");
    if (for_host)
        check(vkMapMemory(device_, buffer.memory, 0, VK_WHOLE_SIZE, 0, &buffer.mapped),
              "vkMapMemory");
    return buffer;
}

Image Gpu::make_image(const VkImageCreateInfo& info, VkImageViewCreateInfo view) const {
    Image image;
    check(vkCreateImage(device_, &info, nullptr, &image.handle), "vkCreateImage");
    VkMemoryRequirements needs = {};
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    image.memory = allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    check(vkBindImageMemory(device_, image.handle, image.memory, 0), "vkBindImageMemory");
    view.image = image.handle;
    check(vkCreateImageView(device_, &view, nullptr, &image.view), "vkCreateImageView");
    return image;
}

VkCommandPool Gpu::make_command_pool() const {
    VkCommandPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.queueFamilyIndex = queue_family_;
    VkCommandPool pool = VK_NULL_HANDLE;
    check(vkCreateCommandPool(device_, &info, nullptr, &pool), "vkCreateCommandPool");
    return pool;
}

VkCommandBuffer Gpu::begin(VkCommandPool pool) const {
    VkCommandBufferAllocateInfo allocate_info = {};
    allocate_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate_info.commandPool = pool;
    allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate_info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(vkAllocateCommandBuffers(device_, &allocate_info, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin_info = {};
    begin_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin_info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vkBeginCommandBuffer(commands, &begin_info), "vkBeginCommandBuffer");
    return commands;
}

void Gpu::destroy(Buffer& buffer) const {
    vkDestroyBuffer(device_, buffer.handle, nullptr);
    vkFreeMemory(device_, buffer.memory, nullptr);
    buffer = {};
}

void Gpu::destroy(Image& image) const {
    vkDestroyImageView(device_, image.view, nullptr);
    vkDestroyImage(device_, image.handle, nullptr);
    vkFreeMemory(device_, image.memory, nullptr);
    image = {};
}

void Gpu::submit_and_wait(VkCommandBuffer commands) const {
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkFenceCreateInfo fence_info = {};
    fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence fence = VK_NULL_HANDLE;
    check(vkCreateFence(device_, &fence_info, nullptr, &fence), "vkCreateFence");
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    check(vkQueueSubmit(queue_, 1, &info, fence), "vkQueueSubmit");
    check(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkDestroyFence(device_, fence, nullptr);
}

}  // namespace engine
