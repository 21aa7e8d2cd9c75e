// SPDX-License-Identifier: MIT
// Devices of the fake Vulkan that save their pipelines in a folder of the test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/cache_file.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

// A folder that is empty at first; the destructor removes it.
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

// One run of a program: a device of the restarted fake, which saves its pipelines in `folder`.
class CachedDevice {
   public:
    // `known` is the data that the driver returned in earlier runs; it must receive no other data.
    explicit CachedDevice(const std::filesystem::path& folder, const FakeConfig& config = {},
                          const std::set<std::vector<std::byte>>& known = {},
                          std::uint64_t bytes = std::uint64_t{64} << 20);
    ~CachedDevice() { close(); }
    CachedDevice(const CachedDevice&) = delete;
    CachedDevice& operator=(const CachedDevice&) = delete;

    // Compiles the pipelines of a kernel with this rotary_dim.
    void compile(std::uint32_t rotary_dim);
    Status save() { return device_->save_pipeline_cache(); }
    // Destroys the device; the fake must not have found an error.
    void close();
    // The texts of all warnings so far.
    const std::vector<std::string>& warnings() const { return warnings_; }
    bool warns(const char* words) const;

   private:
    std::vector<std::string> warnings_;
    std::optional<Device> device_;
};

// The data of a pipeline cache that the driver received; empty if it received none.
std::vector<std::byte> given_to_driver();

std::vector<std::byte> content(const std::filesystem::path& file);
void replace(const std::filesystem::path& file, const std::vector<std::byte>& with);

// The only file in a folder.
std::filesystem::path only_file(const Folder& folder);

}  // namespace vkrope::test
