// SPDX-License-Identifier: MIT
// Devices of the fake that keep their pipelines in a folder of the test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/cache_file.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

/// An empty folder, removed at the end.
class Folder {
   public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::vector<std::string> names() const;

   private:
    std::filesystem::path path_;
};

/// A run of a program: a device of a fresh fake, which keeps its pipelines in `folder`.
class CachedDevice {
   public:
    /// `known` is what the driver returned in earlier runs; it must get nothing else.
    explicit CachedDevice(const std::filesystem::path& folder, const FakeConfig& config = {},
                          const std::set<std::vector<std::byte>>& known = {},
                          std::uint64_t bytes = std::uint64_t{64} << 20);
    ~CachedDevice() { close(); }
    CachedDevice(const CachedDevice&) = delete;
    CachedDevice& operator=(const CachedDevice&) = delete;

    /// Compiles the pipelines of a kernel with this rotary_dim.
    void compile(std::uint32_t rotary_dim);
    Status save() { return device_->save_pipeline_cache(); }
    /// Destroys the device; the fake must have nothing to object to.
    void close();
    /// Sentences of all warnings so far.
    const std::vector<std::string>& warnings() const { return warnings_; }
    bool warns(const char* words) const;

   private:
    std::vector<std::string> warnings_;
    std::optional<Device> device_;
};

/// Data of a pipeline cache that a driver was given; empty: none.
std::vector<std::byte> given_to_driver();

std::vector<std::byte> content(const std::filesystem::path& file);
void replace(const std::filesystem::path& file, const std::vector<std::byte>& with);

/// The only file in a folder.
std::filesystem::path only_file(const Folder& folder);

}  // namespace vkrope::test
