// SPDX-License-Identifier: MIT
// Tests that damaged files of a pipeline cache never reach a driver, which trusts the data and may
// crash on other data. The fake checks that its driver receives the bytes that it had returned.
#include <doctest/doctest.h>

#include <algorithm>

#include "cached_device.hpp"

namespace vkrope::test {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

// Saves data of the fake's driver, and returns the content of the file.
Bytes fill(const Folder& folder) {
    CachedDevice first(folder.path());
    CHECK(given_to_driver().empty());
    first.compile(64);
    first.compile(32);
    first.close();
    CHECK(first.warnings().empty());
    return content(only_file(folder));
}

Bytes payload(const Bytes& file) {
    return {file.begin() + std::ptrdiff_t(cache_header_bytes), file.end()};
}

}  // namespace

TEST_CASE("pipeline cache: damaged files are ignored, and replaced") {
    const Folder folder;
    const Bytes good = fill(folder);
    REQUIRE(good.size() > cache_header_bytes);
    const fs::path file = only_file(folder);
    int count = 0;
    const auto tries = [&](const Bytes& bad, const char* what) {
        if (bad == good) return;
        CAPTURE(what);
        CAPTURE(count);
        replace(file, bad);
        CachedDevice device(folder.path());
        CHECK(given_to_driver().empty());
        CHECK(device.warnings().size() == 1);
        CHECK(device.warns("replaced"));
        if (++count % 1000 != 0) return;
        device.compile(64);
        device.compile(32);
        device.close();
        CHECK(content(file) == good);
    };
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
        tries({good.begin(), good.begin() + std::ptrdiff_t(bytes)}, "truncated");
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        Bytes bad = good;
        bad[bit / 8] ^= std::byte{1} << bit % 8;
        tries(bad, "one bit");
    }
    for (std::size_t at = 1; at < good.size(); ++at) {
        Bytes bad = good;
        std::rotate(bad.begin(), bad.begin() + std::ptrdiff_t(at), bad.end());
        tries(bad, "two blocks in another order");
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
        Bytes bad = good;
        std::fill(bad.begin() + std::ptrdiff_t(at), bad.end(), std::byte{});
        tries(bad, "zeros at the end");
    }
    Bytes longer = good;
    for (int i = 0; i < 200; ++i) {
        longer.push_back(std::byte(i));
        tries(longer, "more at the end");
    }
    MESSAGE(count, " damaged files");
}

TEST_CASE("pipeline cache: the driver receives the data that it returned, byte for byte") {
    const Folder folder;
    const Bytes good = fill(folder);
    CachedDevice again(folder.path(), {}, {payload(good)});
    CHECK(given_to_driver() == payload(good));
    CHECK(again.warnings().empty());
    again.compile(64);
    CHECK(again.save());
    CHECK(content(only_file(folder)) == good);
    again.compile(16);
    CHECK(again.save());
    CHECK(content(only_file(folder)) != good);
}

TEST_CASE("pipeline cache: each device and driver has its own file") {
    const Folder folder;
    const FakeConfig devices[] = {{},
                                  {.vendor = 1},
                                  {.device_id = 1},
                                  {.driver_version = 8},
                                  {.pipeline_cache_uuid = 1},
                                  {.driver_uuid = 1}};
    for (const FakeConfig& config : devices) {
        CachedDevice device(folder.path(), config);
        CHECK(given_to_driver().empty());
        CHECK(device.warnings().empty());
        device.compile(64);
    }
    CHECK(folder.names().size() == std::size(devices));
}

TEST_CASE("pipeline cache: an undamaged file of another driver is ignored under any name") {
    const Folder of_another, folder;
    {
        CachedDevice device(of_another.path(), {.driver_version = 8});
        device.compile(64);
    }
    const Bytes other = content(only_file(of_another));
    fill(folder);
    replace(only_file(folder), other);
    CachedDevice device(folder.path());
    CHECK(given_to_driver().empty());
    CHECK(device.warns("device driver"));
}

}  // namespace vkrope::test
