// SPDX-License-Identifier: MIT
// Checks that a batch that is split over all devices of the machine has the bits that one device
// computes for the whole. VKROPE_SHARDING_DEVICES is the number of devices that must be present.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "sharded_batch.hpp"

namespace vkrope::sharding {
namespace {

std::vector<Device> all;
std::size_t validation_errors = 0;

// Rotates each shard on the next device in turn; `first` is the index of the first device.
Tensors rotate_in_shards(const Batch& batch, const Tensors& input, Split split, std::uint32_t ranks,
                         std::size_t first) {
    Tensors whole{Bytes(input.q.size()), Bytes(input.k.size())};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const Shard shard(batch, split, rank, ranks);
        shard.put(shard.rotate(all[(first + rank) % all.size()], shard.part_of(input)), whole);
    }
    return whole;
}

}  // namespace

TEST_CASE(
    "a batch in shards has the bits of the whole, by heads and by sequence, for any assignment of "
    "shards to devices") {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        const Batch batch = test_batch(element);
        const Tensors input = random_tensors(batch, 7 + std::uint32_t(element));
        const Tensors expected = rotate_whole(all[0], batch, input);
        CHECK(expected != input);
        for (const Split split : splits) {
            for (const std::uint32_t ranks : {2u, 3u, 4u}) {
                CAPTURE(element);
                CAPTURE(word_for(split));
                CAPTURE(ranks);
                const Tensors whole = rotate_in_shards(batch, input, split, ranks,
                                                       ranks % all.size());
                CHECK(whole.q == expected.q);
                CHECK(whole.k == expected.k);
            }
        }
    }
}

TEST_CASE("every device computes the same bits for the whole") {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        const Batch batch = test_batch(element);
        const Tensors input = random_tensors(batch, 99);
        for (Device& device : all)
            CHECK(rotate_whole(device, batch, input) == rotate_whole(all[0], batch, input));
    }
}

}  // namespace vkrope::sharding

int main(int argc, char** argv) {
    using namespace vkrope::sharding;
    try {
        all = open_all(validation_errors);
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "no device to test on: %s\n", error.what()), 1;
    }
    for (vkrope::Device& device : all)
        std::printf("device: %s; %s\n", device.info().name, device.info().driver);
    const char* wanted = std::getenv("VKROPE_SHARDING_DEVICES");
    if (all.empty() || (wanted && all.size() != std::size_t(std::atoi(wanted)))) {
        return std::fprintf(stderr, "%zu devices, not %s\n", all.size(),
                            wanted ? wanted : "one or more"),
               1;
    }
    doctest::Context context(argc, argv);
    const int failed = context.run();
    all.clear();  // the layer may report errors when devices are destroyed
    return failed != 0 ? failed : validation_errors != 0;
}
