// SPDX-License-Identifier: MIT
#include "cached_device.hpp"

#include <fstream>
#include <iterator>
#include <random>

#include "support/fake_vulkan/host_memory.hpp"

namespace vkrope::test {

namespace fs = std::filesystem;

Folder::Folder() {
    std::random_device random;
    path_ = fs::temp_directory_path() / ("vkrope-cache-test-" + std::to_string(random()));
    fs::create_directory(path_);
}

Folder::~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::vector<std::string> Folder::names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_))
        all.push_back(entry.path().filename().string());
    return all;
}

CachedDevice::CachedDevice(const fs::path& folder, const FakeConfig& config,
                           const std::set<std::vector<std::byte>>& known, std::uint64_t bytes) {
    fake().restart(config);
    fake().cache_data = known;
    DeviceOptions options;
    options.get_instance_proc_addr = fake_get_instance_proc_addr;
    options.user_data = &warnings_;
    options.on_message = [](void* warnings, VkBool32 is_error, const char* id, const char* text) {
        const Unobserved unobserved;
        CHECK(!is_error);
        CHECK(std::string(id) == "vkrope-pipeline-cache");
        static_cast<std::vector<std::string>*>(warnings)->emplace_back(text);
    };
    const std::string path = folder.string();
    options.pipeline_cache_folder = path.c_str();
    options.pipeline_cache_bytes = bytes;
    auto opened = Device::open(options);
    REQUIRE_MESSAGE(opened, std::string(opened.status.what));
    device_ = std::move(opened.value);
}

void CachedDevice::compile(std::uint32_t rotary_dim) {
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    info.rotary_dim = rotary_dim;
    info.tensor[Q] = info.tensor[K] = {.head_dim = 64};
    auto kernel = own(create(device_->ref(), info));
    REQUIRE_MESSAGE(kernel, std::string(kernel.status.what));
}

void CachedDevice::close() {
    device_.reset();
    for (const std::string& fault : fake().faults()) FAIL_CHECK(fault);
    CHECK(fake().alive() == std::vector<std::string>{});
}

bool CachedDevice::warns(const char* words) const {
    for (const std::string& warning : warnings_)
        if (names(warning, words)) return true;
    return false;
}

std::vector<std::byte> given_to_driver() {
    REQUIRE(fake().initial_cache_data.size() == 1);
    return fake().initial_cache_data[0];
}

std::vector<std::byte> content(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    REQUIRE(in);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
}

void replace(const fs::path& file, const std::vector<std::byte>& with) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(with.data()), std::streamsize(with.size()));
    out.close();
    REQUIRE(out);
}

fs::path only_file(const Folder& folder) {
    const std::vector<std::string> names = folder.names();
    REQUIRE(names.size() == 1);
    return folder.path() / names[0];
}

}  // namespace vkrope::test
