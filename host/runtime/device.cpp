// SPDX-License-Identifier: MIT
// Creation and destruction of vkrope's own device.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/device_impl.hpp"
#include "runtime/no_throw.hpp"
#include "status.hpp"

namespace vkrope {

Device::Device() noexcept = default;
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

const DeviceInfo& Device::info() const noexcept {
    return impl_->candidate.info;
}
const DeviceRef& Device::ref() const noexcept {
    return impl_->ref;
}
VkQueue Device::queue() const noexcept {
    return impl_->queue;
}
std::uint32_t Device::queue_family() const noexcept {
    return impl_->candidate.queue_family;
}

Result<std::optional<double>> Device::submit(
    const std::function<Status(VkCommandBuffer)>& record_commands) {
    return no_throw(
        [&]() -> Result<std::optional<double>> { return impl_->submit(record_commands); });
}

Status Device::save_pipeline_cache() {
    return no_throw([&]() -> Status { return impl_->pipeline_cache.save(); });
}

namespace {

// Compares the fields that this tier sets; table, head counts and ops keep their defaults.
bool same(const KernelInfo& a, const KernelInfo& b) {
    return a.pairing == b.pairing && a.rotary_dim == b.rotary_dim &&
           std::equal(std::begin(a.tensor), std::end(a.tensor), std::begin(b.tensor),
                      same_format) &&
           a.angles == b.angles && a.positions == b.positions && a.mapping == b.mapping &&
           a.pairing_out == b.pairing_out && a.scatter_kv == b.scatter_kv &&
           a.conversion == b.conversion && a.sections == b.sections && a.phase == b.phase &&
           a.head_groups == b.head_groups &&
           std::equal(std::begin(a.windows), std::end(a.windows), std::begin(b.windows));
}

}  // namespace

Result<const Kernel*> Device::Impl::kernel_for(const KernelInfo& info) {
    for (const auto& [made_for, kernel] : kernels) {
        if (same(made_for, info)) return {{}, kernel.get()};
    }
    Result<Owned<Kernel>> made = own(vkrope::create(ref, info));
    if (made) kernels.emplace_back(info, std::move(made.value));
    return {made.status, made ? kernels.back().second.get() : nullptr};
}

Result<Device> Device::open(const DeviceOptions& options) {
    return no_throw([&]() -> Result<Device> {
        auto instance = Instance::make(options);
        if (!instance) return {instance.status, {}};
        auto candidates = list_candidates(*instance.value);
        if (!candidates) return {candidates.status, {}};
        std::vector<DeviceInfo> found;
        for (const Candidate& candidate : candidates.value) found.push_back(candidate.info);
        const auto chosen = select_device(found, options.select);
        if (!chosen) return {chosen.status, {}};
        Result<Device> opened;
        opened->impl_ = std::make_unique<Impl>();
        opened.status = opened->impl_->create(options, std::move(instance.value),
                                              std::move(candidates.value[chosen.value]));
        if (!opened) opened->impl_.reset();
        return opened;
    });
}

Status Device::Impl::create(const DeviceOptions& options, std::unique_ptr<Instance> made,
                            Candidate chosen) {
    instance = std::move(made);
    candidate = std::move(chosen);
    timeout_ns = options.timeout_ns;
    if (Status s = create_device(options); !s) return s;
    if (Status s = create_allocator(*this); !s) return s;
    if (Status s = create_commands(); !s) return s;
    pipeline_cache.open(options, *instance, ref, vk);
    ref.pipeline_cache = pipeline_cache.handle();
    return {};
}

Status Device::Impl::create_device(const DeviceOptions& options) {
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
        ref.enabled |= VKROPE_DEVICE_FEATURE_DEBUG_UTILS;  // the instance then has the extension
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

void Device::Impl::abandon(const Abandoned& object) noexcept {
    try {
        abandoned.push_back(object);
    } catch (const std::bad_alloc&) {
        // The object is leaked; freeing it could be worse.
    }
}

void Device::Impl::free_abandoned() noexcept {
    for (const Abandoned& object : abandoned) {
        destroy(object.arena);
        if (object.view) vk.vkDestroyImageView(ref.device, object.view, nullptr);
        free_image(*this, object.image, object.allocation);
        free_buffer(*this, object.buffer, object.allocation);
    }
    abandoned.clear();
}

Status Device::Impl::create_commands() {
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

    if (candidate.timestamp_bits == 0 || candidate.info.limits.timestampPeriod <= 0) return {};
    VkQueryPoolCreateInfo query_info = {};
    query_info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    query_info.queryCount = 2;
    result = vk.vkCreateQueryPool(ref.device, &query_info, nullptr, &timestamps);
    return created(result, timestamps, "vkCreateQueryPool");
}

Device::Impl::~Impl() {
    if (pending) static_cast<void>(wait());  // the result is in `pending`
    if (pending) {
        // The queue never answered. Its objects are leaked on purpose: freeing them while it may
        // use them could crash the process.
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
