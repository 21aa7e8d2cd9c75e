// SPDX-License-Identifier: MIT
// Creates and destroys vkrope's own device.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/defaults.hpp"
#include "base/no_throw.hpp"
#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

Result<const Kernel*> DeviceState::kernel_for(const KernelInfo& info) {
    for (const auto& [made_for, kernel] : kernels)
        if (vkrope_kernel_info_equal(&made_for, &info)) return {{}, kernel.get()};
    Result<Owned<Kernel>> made = own(vkrope::create(ref, info));
    if (made) kernels.emplace_back(info, std::move(made.value));
    return {made.status, made ? kernels.back().second.get() : nullptr};
}

Status DeviceState::create(const OwnedOptions& options, std::unique_ptr<Instance> made,
                           Candidate chosen) {
    instance = std::move(made);
    candidate = std::move(chosen);
    properties = candidate.info();
    // A software device compiles a pipeline in the first submission that uses it, which takes
    // seconds of a processor that may be busy.
    const bool compiles = properties.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    timeout_ns = value_or(options.timeout_ns,
                          (compiles ? 300u : 30u) * std::uint64_t{1'000'000'000});
    if (Status s = create_device(options); !s) return s;
    if (Status s = create_allocator(*this); !s) return s;
    if (Status s = create_commands(); !s) return s;
    pipeline_cache.open(options, *instance, ref, vk);
    ref.pipeline_cache = pipeline_cache.handle();
    return {};
}

Status DeviceState::create_device(const OwnedOptions& options) {
    ref.instance = instance->handle();
    ref.physical = candidate.handle;
    ref.get_instance_proc_addr = instance->get_instance_proc_addr();
    std::vector<const char*> extensions;
    const Requirements& needs = candidate.requirements;
    ref.enabled = needs.enabled;
    if (!options.push_descriptors)
        ref.enabled &= ~std::uint32_t{VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR};
    for (std::uint32_t i = 0; i < needs.optional_extension_count; ++i) {
        const char* name = needs.optional_extensions[i];
        if (options.push_descriptors ||
            std::strcmp(name, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME) != 0)
            extensions.push_back(name);
    }
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    half.shaderFloat16 = VK_TRUE;
    if (needs.offers_shader_float16) ref.enabled |= VKROPE_DEVICE_FEATURE_SHADER_FLOAT16;
    if (options.validation)
        ref.enabled |= VKROPE_DEVICE_FEATURE_DEBUG_UTILS;  // the instance has the extension
    if (candidate.portability_subset) extensions.push_back("VK_KHR_portability_subset");

    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info = {};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueFamilyIndex = candidate.queue_family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    if (needs.offers_shader_float16) info.pNext = &half;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    info.enabledExtensionCount = std::uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    const VkResult result = instance->vkCreateDevice(candidate.handle, &info, nullptr, &ref.device);
    if (Status s = created(result, ref.device, "vkCreateDevice"); !s) return s;

    // Loads all functions before returning an error: the destructor needs some.
    Status loaded;
#define VKROPE_LOAD(name)                                                                     \
    vk.name = reinterpret_cast<PFN_##name>(instance->vkGetDeviceProcAddr(ref.device, #name)); \
    if (!vk.name && loaded) loaded = error(VKROPE_ERROR_NO_DEVICE, "the device lacks " #name);
    VKROPE_RUNTIME_DEVICE_FUNCTIONS(VKROPE_LOAD)
#undef VKROPE_LOAD
    if (!loaded) return loaded;
    vk.vkGetDeviceQueue(ref.device, candidate.queue_family, 0, &queue);
    return {};
}

void DeviceState::abandon(const Abandoned& object) noexcept {
    try {
        abandoned.push_back(object);
    } catch (const std::bad_alloc&) {
        // The object is leaked, because freeing it could crash.
    }
}

void DeviceState::free_abandoned() noexcept {
    for (const Abandoned& object : abandoned) {
        vkrope_arena_destroy(object.arena);
        if (object.view) vk.vkDestroyImageView(ref.device, object.view, nullptr);
        free_image(*this, object.image, object.allocation);
        free_buffer(*this, object.buffer, object.allocation);
    }
    abandoned.clear();
}

Status DeviceState::create_commands() {
    VkCommandPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool_info.queueFamilyIndex = candidate.queue_family;
    VkResult result = vk.vkCreateCommandPool(ref.device, &pool_info, nullptr, &command_pool);
    if (Status s = created(result, command_pool, "vkCreateCommandPool"); !s) return s;

    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = command_pool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    result = vk.vkAllocateCommandBuffers(ref.device, &info, &commands);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkAllocateCommandBuffers");

    VkFenceCreateInfo fence_info = {};
    fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    result = vk.vkCreateFence(ref.device, &fence_info, nullptr, &fence);
    if (Status s = created(result, fence, "vkCreateFence"); !s) return s;

    if (candidate.timestamp_bits == 0 || candidate.limits.timestampPeriod <= 0) return {};
    VkQueryPoolCreateInfo query_info = {};
    query_info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    query_info.queryCount = 2;
    result = vk.vkCreateQueryPool(ref.device, &query_info, nullptr, &timestamps);
    return created(result, timestamps, "vkCreateQueryPool");
}

DeviceState::~DeviceState() {
    if (pending) static_cast<void>(wait());  // the result is in `pending`
    if (pending) {
        // The queue did not answer in time. Its objects are leaked on purpose, because freeing
        // objects that the queue may use could crash the process.
        static_cast<void>(instance.release());
        for (auto& [made_for, kernel] : kernels) static_cast<void>(kernel.release());
        return;
    }
    free_abandoned();
    kernels.clear();
    destroy_allocator(*this);
    if (!ref.device || !vk.vkDestroyDevice) return;
    pipeline_cache.close();
    if (timestamps) vk.vkDestroyQueryPool(ref.device, timestamps, nullptr);
    if (fence) vk.vkDestroyFence(ref.device, fence, nullptr);
    if (command_pool) vk.vkDestroyCommandPool(ref.device, command_pool, nullptr);
    vk.vkDestroyDevice(ref.device, nullptr);
}

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_device_open(const vkrope_device_options* options, vkrope_device** device,
                                 vkrope_error* failure) {
    return make_all(
        device, "device", failure,
        [&]() -> Result<std::unique_ptr<vkrope_device>> {
            const OwnedOptions asked(options);
            auto instance = Instance::make(asked);
            if (!instance) return {instance.status, {}};
            auto candidates = list_candidates(*instance.value);
            if (!candidates) return {candidates.status, {}};
            const auto chosen = select_device(candidates.value, asked.select);
            if (!chosen) return {chosen.status, {}};
            auto made = std::make_unique<vkrope_device>();
            const Status status = made->create(asked, std::move(instance.value),
                                               std::move(candidates.value[chosen.value]));
            return {status, std::move(made)};
        });
}

const vkrope_device_info* vkrope_device_get_info(const vkrope_device* device) {
    return device ? &device->properties : nullptr;
}

const vkrope_device_ref* vkrope_device_get_ref(const vkrope_device* device) {
    return device ? &device->ref : nullptr;
}

VkQueue vkrope_device_get_queue(const vkrope_device* device, uint32_t* family) {
    if (family) *family = device ? device->candidate.queue_family : 0;
    return device ? device->queue : VK_NULL_HANDLE;
}

vkrope_result vkrope_device_submit(vkrope_device* device, vkrope_record_callback record,
                                   void* user_data, double* nanoseconds, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(device, "device"); !s) return s;
            if (!record) return error(VKROPE_ERROR_INVALID_ARGUMENT, "record is null");
            const auto spent = device->submit([&](VkCommandBuffer commands) -> Status {
                try {
                    vkrope_error refused = {};  // the code from the callback may be any number
                    refused.code = record(user_data, commands, &refused);
                    return refused.code == VKROPE_SUCCESS ? Status{} : Status(refused);
                } catch (const std::bad_alloc&) {
                    throw;
                } catch (const std::exception& exception) {
                    return error(VKROPE_ERROR_INVALID_ARGUMENT, "record threw: %s",
                                 exception.what());
                } catch (...) {
                    return error(VKROPE_ERROR_INVALID_ARGUMENT, "record threw");
                }
            });
            if (nanoseconds) *nanoseconds = spent.value.value_or(-1);
            return spent.status;
        });
}

vkrope_result vkrope_device_save_pipeline_cache(vkrope_device* device, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(device, "device"); !s) return s;
            return device->pipeline_cache.save();
        });
}

void vkrope_device_destroy(vkrope_device* device) {
    delete device;
}
