// SPDX-License-Identifier: MIT
// Tests that every copy shader copies all bytes of every range and nothing else, as a roof must,
// and how timings repeat.
#include <doctest/doctest.h>

#include <algorithm>
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

Device device_of_test(std::size_t& messages) {
    const char* wanted = std::getenv("VKROPE_DEVICE");
    DeviceOptions options;
    options.select = wanted == nullptr ? "" : wanted;
    options.validation = true;
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
    return must(std::move(opened));
}

std::vector<std::uint32_t> numbers(std::uint32_t bytes) {
    std::vector<std::uint32_t> all(bytes / 4);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = (i + 1) * 2654435761u;
    return all;
}

}  // namespace

TEST_CASE("every copy shader copies every byte of its ranges, and touches nothing else") {
    std::size_t messages = 0;
    Device device = device_of_test(messages);
    CopyRoof roof = must(CopyRoof::make(device));
    CHECK(roof.shader_count() == 30);

    // One vector, one less and one more than workgroups copy at a time, and an arbitrary number.
    constexpr std::uint32_t around = 256;  // number of bytes before and after
    for (const std::uint32_t vectors : {1u, 3u, 1023u, 1025u, 16385u, 100003u}) {
        const std::uint32_t bytes = 16 * vectors;
        const std::vector<std::uint32_t> source = numbers(bytes);
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

TEST_CASE("a copy in place keeps every byte") {
    std::size_t messages = 0;
    Device device = device_of_test(messages);
    CopyRoof roof = must(CopyRoof::make(device));
    constexpr std::uint32_t bytes = 16 * 100003;
    const std::vector<std::uint32_t> source = numbers(bytes);
    Buffer buffer = must(Buffer::make(device, bytes));
    must(buffer.upload(source.data(), bytes));
    roof.aim({{buffer.whole(), buffer.whole()}});
    for (std::size_t shader = 0; shader < roof.shader_count(); ++shader) must(roof.copy(shader));
    std::vector<std::uint32_t> after(source.size());
    must(buffer.download(after.data(), bytes));
    CHECK(after == source);
    CHECK(messages == 0);
}

TEST_CASE("a timing repeats a copy as it is told, and its time is that of one copy") {
    std::size_t messages = 0;
    Device device = device_of_test(messages);
    CopyRoof roof = must(CopyRoof::make(device));
    const std::uint32_t bytes = 16 << 20;
    Buffer from = must(Buffer::make(device, bytes)), to = must(Buffer::make(device, bytes));
    const std::vector<Copied> copies = {{from.whole(), to.whole()}};
    std::uint32_t between = 0, before = 0;
    const Repeat repeat = {.calls = 16,
                           .between =
                               [&](VkCommandBuffer) {
                                   ++between;
                                   return Status{};
                               },
                           .before =
                               [&] {
                                   ++before;
                                   return Status{};
                               }};
    double one_ns = 1e18, repeated_ns = 1e18;
    for (std::uint32_t i = 1; i <= 5; ++i) {
        roof.aim(copies);
        one_ns = std::min(one_ns, must(roof.copy(0)));
        roof.aim(copies, repeat);
        repeated_ns = std::min(repeated_ns, must(roof.copy(0)));
        CHECK(between == 15 * i);
        CHECK(before == i);
    }
    CHECK(repeated_ns < 4 * one_ns);
    CHECK(repeated_ns > one_ns / 8);
    roof.aim(copies, {.before = [] { return Status(VKROPE_ERROR_OUT_OF_DEVICE_MEMORY); }});
    CHECK(roof.copy(0).status.code == VKROPE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(messages == 0);
}

}  // namespace vkrope::tools
