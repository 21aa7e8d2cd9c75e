// SPDX-License-Identifier: MIT
// Reads and writes the files that keep compiled pipelines between processes: one for each device
// and driver.
//
// A driver trusts the data passed to vkCreatePipelineCache, so a file is used only if its checksum,
// length and device are right. A checksum finds damage, not malice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope {

// Identity of the device and driver that the data of a pipeline cache depends on. Data of another
// driver must not be used.
struct CacheIdentity {
    std::uint32_t pointer_bytes = sizeof(void*);
    std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
    std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid = {}, driver_uuid = {};

    friend bool operator==(const CacheIdentity&, const CacheIdentity&) = default;
};

using CacheData = std::vector<std::byte>;

// Bytes in a file before the driver's data.
inline constexpr std::size_t cache_header_bytes = 80;

// Returns the 64-bit FNV-1a, continued from `hash`. A change of any one byte changes it.
std::uint64_t checksum(const void* bytes, std::size_t count,
                       std::uint64_t hash = 0xcbf29ce484222325) noexcept;

// Returns the file for `identity` in `folder`.
std::filesystem::path cache_file(const std::filesystem::path& folder,
                                 const CacheIdentity& identity);

// Returns the driver's data in a file; nothing if there is no file. A file that is damaged,
// belongs to another device or driver, or has more than `most` bytes returns invalid_data, and no
// data.
Result<std::optional<CacheData>> read_cache_file(const std::filesystem::path& file,
                                                 const CacheIdentity& identity, std::uint64_t most);

// Replaces a file as a whole: a reader sees the old content or the new. Then removes the oldest
// files of this library in the folder until all of them together have at most `most` bytes. A file
// that could not be written is removed.
Status write_cache_file(const std::filesystem::path& file, const CacheIdentity& identity,
                        const CacheData& data, std::uint64_t most);

}  // namespace vkrope
