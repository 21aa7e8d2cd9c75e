// SPDX-License-Identifier: MIT
// A driver trusts the data of its pipeline cache, and may crash on others: damaged files never
// reach it. What reaches it must be what it returned, byte for byte, which the fake checks.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "cached_device.hpp"

namespace vkrope::test {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

// Data of the fake's driver in a whole file.
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

class Damages {
   public:
    Damages(const Folder& folder, const Bytes& good)
        : folder_(folder), good_(good), file_(only_file(folder)) {}

    void all() {
        for (std::size_t bytes = 0; bytes < good_.size(); ++bytes)
            tries({good_.begin(), good_.begin() + std::ptrdiff_t(bytes)}, "truncated");
        for (std::size_t bit = 0; bit < good_.size() * 8; ++bit) {
            Bytes bad = good_;
            bad[bit / 8] ^= std::byte{1} << bit % 8;
            tries(bad, "one bit");
        }
        for (std::size_t at = 0; at < cache_header_bytes; ++at) {
            for (const int value : {0, 1, 0x7f, 0xff}) {
                Bytes bad = good_;
                bad[at] = std::byte(value);
                tries(bad, "a byte of the header");
            }
        }
        for (int i = 0; i < 1000; ++i) at_random();
        MESSAGE(count_, " damaged files");
    }

   private:
    std::size_t below(std::size_t end) {
        return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
    }

    void at_random() {
        Bytes bad = good_;
        switch (below(5)) {
            case 0:  // several bits
                for (std::size_t n = 2 + below(30); n != 0; --n)
                    bad[below(bad.size())] ^= std::byte{1} << below(8);
                return tries(bad, "several bits");
            case 1:  // a block that was never written
                std::fill(bad.begin() + std::ptrdiff_t(below(bad.size())), bad.end(), std::byte{});
                return tries(bad, "zeros at the end");
            case 2:  // a longer file was there before
                for (std::size_t n = 1 + below(200); n != 0; --n)
                    bad.push_back(std::byte(below(256)));
                return tries(bad, "more at the end");
            case 3:  // two blocks in another order
                std::rotate(bad.begin(), bad.begin() + std::ptrdiff_t(below(bad.size())),
                            bad.end());
                return tries(bad, "another order");
            default:  // another program's file
                bad.resize(below(2 * bad.size()));
                for (std::byte& byte : bad) byte = std::byte(below(256));
                return tries(bad, "any bytes");
        }
    }

    void tries(const Bytes& bad, const char* what) {
        if (bad == good_) return;
        CAPTURE(what);
        CAPTURE(count_);
        replace(file_, bad);
        CachedDevice device(folder_.path());
        CHECK(given_to_driver().empty());
        CHECK(device.warnings().size() == 1);
        CHECK(device.warns("replaced"));
        if (++count_ % 1000 == 0) {
            device.compile(64);
            device.compile(32);
            device.close();
            CHECK(content(file_) == good_);
        }
    }

    const Folder& folder_;
    const Bytes& good_;
    fs::path file_;
    std::mt19937 random_{1};
    int count_ = 0;
};

}  // namespace

TEST_CASE("pipeline cache: damaged files are ignored, and replaced") {
    const Folder folder;
    const Bytes good = fill(folder);
    REQUIRE(good.size() > cache_header_bytes);
    Damages(folder, good).all();
}

TEST_CASE("pipeline cache: the driver gets what it returned, byte for byte") {
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

TEST_CASE("pipeline cache: a whole file of another driver is ignored under any name") {
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
