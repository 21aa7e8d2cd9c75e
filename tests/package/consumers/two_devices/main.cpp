// SPDX-License-Identifier: MIT
// Two devices in one process, each with its own tables and buffers, used in turn: they do not
// disturb each other, and their bits agree.
//
//     two_devices DEVICE DEVICE
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace {

struct Context {
    vkrope::Device device;
    vkrope::HostRotation work;
    std::vector<float> q, k;

    vkrope::Status open(const std::string& select, const vkrope::RopeParams& rotation,
                        const vkrope::HostShape& shape) {
        vkrope::DeviceOptions options;
        options.select = select.c_str();
        auto opened = vkrope::Device::open(options);
        if (!opened) return opened.status;
        device = std::move(opened.value);
        auto made = vkrope::HostRotation::make(device, rotation, shape);
        work = std::move(made.value);
        if (!made) return made.status;
        q.resize(work.bytes(VKROPE_Q) / sizeof(float));
        k.resize(work.bytes(VKROPE_K) / sizeof(float));
        for (std::size_t i = 0; i < q.size(); ++i) q[i] = float(i % 251) / 16 - 7;
        for (std::size_t i = 0; i < k.size(); ++i) k[i] = float(i % 127) / 8 - 5;
        return work.upload(q.data(), k.data());
    }

    vkrope::Status turn(vkrope::Direction direction) { return work.run({direction}).status; }
    vkrope::Status fetch() { return work.download(q.data(), k.data()); }
};

bool good(const vkrope::Status& status) {
    if (!status) std::fprintf(stderr, "two_devices: %s\n", status.what);
    return bool(status);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: two_devices DEVICE DEVICE\n"), 2;
    vkrope::RopeParams rotation;
    rotation.pairing = VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = 64;
    rotation.inv_freq.resize(32);
    if (!good(vkrope::default_inv_freq(500000.0, 64, rotation.inv_freq.data()))) return 1;
    vkrope::HostShape shape;
    shape.batch = 2;
    shape.tokens = 31;
    shape.heads[VKROPE_Q] = 6;
    shape.heads[VKROPE_K] = 2;
    shape.first_position = 1000;
    shape.in_place = true;

    Context first, second;
    if (!good(first.open(argv[1], rotation, shape)) || !good(second.open(argv[2], rotation, shape)))
        return 1;
    // In place, so that each run goes on from what the last one left.
    for (int round = 0; round < 4; ++round) {
        const auto direction = round == 2 ? VKROPE_INVERSE : VKROPE_FORWARD;
        if (!good(first.turn(direction)) || !good(second.turn(direction))) return 1;
        if (!good(second.fetch()) || !good(first.fetch())) return 1;
        if (std::memcmp(first.q.data(), second.q.data(), first.work.bytes(VKROPE_Q)) != 0 ||
            std::memcmp(first.k.data(), second.k.data(), first.work.bytes(VKROPE_K)) != 0) {
            return std::fprintf(stderr, "two_devices: round %d: the devices disagree\n", round), 1;
        }
    }
    std::printf("two_devices: %s and %s: 4 interleaved rotations, same bits\n",
                first.device.info().name, second.device.info().name);
}
