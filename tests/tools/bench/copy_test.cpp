// SPDX-License-Identifier: MIT
// Tests that every copy shader copies all bytes of every range and nothing else, as a roof must.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "copy_roof/copy_roof.hpp"

namespace vkrope::tools {
namespace {

template <class T>
T must(Result<T> result) {
    INFO(result.status.what);
    REQUIRE(bool(result.status));
    return std::move(result.value);
}

void must(const Status& status) {
    INFO(status.what);
    REQUIRE(bool(status));
}

}  // namespace

TEST_CASE("every copy shader copies every byte of its ranges, and touches nothing else") {
    const char* wanted = std::getenv("VKROPE_DEVICE");
    DeviceOptions options;
    options.select = wanted == nullptr ? "" : wanted;
    options.validation = true;
    std::size_t messages = 0;
    options.user_data = &messages;
    options.on_message = [](void* count, VkBool32 is_error, const char*, const char* text) {
        if (!is_error) return;
        ++*static_cast<std::size_t*>(count);
        MESSAGE(text);
    };
    Result<Device> opened = Device::open(options);
    if (opened.status.code == VKROPE_ERROR_NOT_SUPPORTED) {  // no validation layer is installed
        options.validation = false;
        opened = Device::open(options);
    }
    Device device = must(std::move(opened));
    CopyRoof roof = must(CopyRoof::make(device));
    CHECK(roof.shader_count() == 30);

    // One vector, one less and one more than workgroups copy at a time, and an arbitrary number.
    constexpr std::uint32_t around = 256;  // number of bytes before and after
    for (const std::uint32_t vectors : {1u, 3u, 1023u, 1025u, 16385u, 100003u}) {
        const std::uint32_t bytes = 16 * vectors;
        std::vector<std::uint32_t> source(bytes / 4);
        for (std::uint32_t i = 0; i < source.size(); ++i) source[i] = (i + 1) * 2654435761u;
        Buffer from = must(Buffer::make(device, bytes)),
               to = must(Buffer::make(device, bytes + 2 * around));
        must(from.upload(source.data(), bytes));
        const std::vector<std::uint32_t> before((bytes + 2 * around) / 4, 77);
        // Two ranges, one after the other, if there is enough space for two.
        const VkDeviceSize half = vectors < 1000 ? 0 : bytes / 2 / 256 * 256;
        std::vector<Copied> copies = {
            {{from.handle(), half, bytes - half}, {to.handle(), around + half, bytes - half}}};
        if (half != 0) copies.push_back({{from.handle(), 0, half}, {to.handle(), around, half}});
        roof.aim(copies);
        for (std::size_t shader = 0; shader < roof.shader_count(); ++shader) {
            CAPTURE(vectors);
            CAPTURE(shader);
            must(to.upload(before.data(), before.size() * 4));
            must(roof.copy(shader));
            std::vector<std::uint32_t> after(before.size());
            must(to.download(after.data(), after.size() * 4));
            std::vector<std::uint32_t> expected = before;
            std::copy(source.begin(), source.end(), expected.begin() + around / 4);
            CHECK(after == expected);
        }
    }
    CHECK(messages == 0);
}

}  // namespace vkrope::tools
