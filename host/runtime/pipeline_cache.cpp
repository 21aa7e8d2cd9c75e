// SPDX-License-Identifier: MIT
#include "runtime/pipeline_cache.hpp"

#include <cstring>

#include "base/no_throw.hpp"
#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

namespace {

// Size of VkPipelineCacheHeaderVersionOne. A driver without data to keep returns only this header.
constexpr std::size_t driver_header_bytes = 16 + VK_UUID_SIZE;

CacheIdentity identity_of(const Instance& instance, VkPhysicalDevice physical) {
    VkPhysicalDeviceIDProperties id = {};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &id;
    instance.vkGetPhysicalDeviceProperties2(physical, &properties);
    CacheIdentity identity;
    identity.vendor_id = properties.properties.vendorID;
    identity.device_id = properties.properties.deviceID;
    identity.driver_version = properties.properties.driverVersion;
    std::memcpy(identity.pipeline_cache_uuid.data(), properties.properties.pipelineCacheUUID,
                VK_UUID_SIZE);
    std::memcpy(identity.driver_uuid.data(), id.driverUUID, VK_UUID_SIZE);
    return identity;
}

}  // namespace

void PipelineCache::open(const OwnedOptions& options, const Instance& instance,
                         const DeviceRef& device, const DeviceTable& functions) {
    if (options.pipeline_cache_folder.empty()) return;
    options_ = &instance.options();
    most_ = options.pipeline_cache_bytes;
    device_ = device.device;
    vk_ = &functions;
    identity_ = identity_of(instance, device.physical);
    const std::string& folder = options.pipeline_cache_folder;
    file_ = cache_file(std::filesystem::path(std::u8string(folder.begin(), folder.end())),
                       identity_);
    const auto kept = read_cache_file(file_, identity_, most_);
    if (!kept) warn(kept.status);
    if (kept && kept.value) {
        const Status made = make(*kept.value);
        if (made) kept_checksum_ = checksum(kept.value->data(), kept.value->size());
        if (made) return;
        warn(made);
    }
    if (const Status made = make({}); !made) warn(made);
}

Status PipelineCache::make(const CacheData& initial) {
    VkPipelineCacheCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    info.initialDataSize = initial.size();
    info.pInitialData = initial.data();
    const VkResult result = vk_->vkCreatePipelineCache(device_, &info, nullptr, &handle_);
    return created(result, handle_, "vkCreatePipelineCache");
}

Result<CacheData> PipelineCache::data() const {
    std::size_t bytes = 0;
    VkResult result = vk_->vkGetPipelineCacheData(device_, handle_, &bytes, nullptr);
    CacheData all(result == VK_SUCCESS && bytes <= most_ ? bytes : 0);
    if (result == VK_SUCCESS && bytes > most_) {
        return {error(VKROPE_ERROR_LIMIT_EXCEEDED,
                      "pipeline_cache_bytes is %llu: the driver's data have %zu bytes, so the "
                      "pipelines are not kept",
                      static_cast<unsigned long long>(most_), bytes),
                {}};
    }
    if (result == VK_SUCCESS)
        result = vk_->vkGetPipelineCacheData(device_, handle_, &bytes, all.data());
    if (result != VK_SUCCESS) return {vulkan_error(result, "vkGetPipelineCacheData"), {}};
    all.resize(bytes);
    return {{}, std::move(all)};
}

Status PipelineCache::save() {
    if (!handle_) return {};
    const Result<CacheData> now = data();
    if (!now) return now.status;
    if (now->size() <= driver_header_bytes) return {};
    const std::uint64_t sum = checksum(now->data(), now->size());
    if (sum == kept_checksum_) return {};
    Status written = write_cache_file(file_, identity_, now.value, most_);
    if (written) kept_checksum_ = sum;
    return written;
}

void PipelineCache::close() noexcept {
    const Status closed = no_throw([&]() -> Status {
        if (Status saved = save(); !saved) warn(saved);
        return {};
    });
    static_cast<void>(closed);  // there is no caller to report it to
    if (handle_) vk_->vkDestroyPipelineCache(device_, handle_, nullptr);
    handle_ = VK_NULL_HANDLE;
}

void PipelineCache::warn(const Status& status) const {
    options_->tell(false, "vkrope-pipeline-cache", status.what);
}

}  // namespace vkrope
