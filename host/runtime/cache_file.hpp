// SPDX-License-Identifier: MIT
// The files in which compiled pipelines are kept between processes: one for each device and driver.
//
// A driver trusts the data that vkCreatePipelineCache gets, so a file is only read if its checksum,
// its length and its device are right. A checksum finds damage, not malice.
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

/// What the data of a pipeline cache depends on: data of another driver must not be read.
struct CacheIdentity {
    std::uint32_t pointer_bytes = sizeof(void*);
    std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
    std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid = {}, driver_uuid = {};

    friend bool operator==(const CacheIdentity&, const CacheIdentity&) = default;
};

using CacheData = std::vector<std::byte>;

/// Bytes that a file has in front of the driver's data.
inline constexpr std::size_t cache_header_bytes = 80;

/// FNV-1a of 64 bits, continued from `hash`; any change of one byte changes it.
std::uint64_t checksum(const void* bytes, std::size_t count,
                       std::uint64_t hash = 0xcbf29ce484222325) noexcept;

/// The file for `identity` in `folder`.
std::filesystem::path cache_file(const std::filesystem::path& folder,
                                 const CacheIdentity& identity);

/// The driver's data in a file; nothing if there is no file. A file that is damaged, belongs to
/// another device or driver, or has more than `most` bytes returns invalid_data, and no data.
Result<std::optional<CacheData>> read_cache_file(const std::filesystem::path& file,
                                                 const CacheIdentity& identity, std::uint64_t most);

/// Replaces a file as a whole: a reader sees the old content or the new. Then removes the oldest
/// files of this library in the folder until all of them together have at most `most` bytes.
/// Nothing is left of a file that could not be written.
Status write_cache_file(const std::filesystem::path& file, const CacheIdentity& identity,
                        const CacheData& data, std::uint64_t most);

}  // namespace vkrope
