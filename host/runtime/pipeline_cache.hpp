// SPDX-License-Identifier: MIT
// Reads the pipeline cache of a device from a file and writes it back.
#pragma once

#include "runtime/cache_file.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

class Instance;
struct OwnedOptions;
struct DeviceTable;

// Pipeline cache of a device, which does nothing without a folder. Failures become messages to the
// application, not errors of another call; pipelines are then compiled without the cache.
class PipelineCache {
   public:
    PipelineCache() = default;
    PipelineCache(const PipelineCache&) = delete;
    PipelineCache& operator=(const PipelineCache&) = delete;

    // Creates the cache from the file of the device, if there is an undamaged one. The device and
    // the function table must outlive close().
    void open(const OwnedOptions& options, const Instance& instance, const DeviceRef& device,
              const DeviceTable& functions);

    // Returns null if the cache is off.
    VkPipelineCache handle() const noexcept { return handle_; }

    // Writes the driver's data, if it has changed since it was read or written.
    Status save();

    // Saves and destroys the cache, and reports failures as messages.
    void close() noexcept;

   private:
    Status make(const CacheData& initial);
    Result<CacheData> data() const;
    void warn(const Status& status) const;

    const OwnedOptions* options_ = nullptr;
    std::filesystem::path file_;
    std::uint64_t most_ = 0;
    CacheIdentity identity_;
    VkDevice device_ = VK_NULL_HANDLE;
    const DeviceTable* vk_ = nullptr;
    VkPipelineCache handle_ = VK_NULL_HANDLE;
    std::uint64_t kept_checksum_ = 0;  // checksum of the data in the file; 0: no data
};

}  // namespace vkrope
