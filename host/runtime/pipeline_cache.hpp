// SPDX-License-Identifier: MIT
// The pipeline cache of a Device, filled from a file and kept in it.
#pragma once

#include "runtime/cache_file.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

class Instance;
struct OwnedOptions;
struct DeviceTable;

/// Without a folder it is off, and does nothing. What fails is a message to the application, never
/// an error of another call: pipelines are then compiled as without it.
class PipelineCache {
   public:
    PipelineCache() = default;
    PipelineCache(const PipelineCache&) = delete;
    PipelineCache& operator=(const PipelineCache&) = delete;

    /// Makes the cache from the file of the device, if there is one that is whole. The device and
    /// the table must outlive close().
    void open(const OwnedOptions& options, const Instance& instance, const DeviceRef& device,
              const DeviceTable& functions);

    /// Null if it is off.
    VkPipelineCache handle() const noexcept { return handle_; }

    /// Writes what the driver has compiled, if that has changed since it was read or written.
    Status save();

    /// Saves, and destroys the cache; failures are messages.
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
    std::uint64_t kept_checksum_ = 0;  ///< of the data in the file; 0: there is none
};

}  // namespace vkrope
