// SPDX-License-Identifier: MIT
// Uses the form to copy without a device: prints a hash of an angle table, which is the same on
// every system, and the error of a kernel without a device.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "vkrope/vkrope.hpp"

#ifdef VKROPE_NAMESPACE
using namespace VKROPE_NAMESPACE;
#endif

int main() {
    vkrope::RopeParams rope;
    rope.pairing = VKROPE_HALF_SPLIT;
    rope.head_dim = rope.rotary_dim = 128;
    rope.inv_freq.resize(64);
    if (!vkrope::default_inv_freq(10000, 128, rope.inv_freq.data())) return 1;
    const auto plan = vkrope::plan_angles(rope, VKROPE_ANGLES_FACTORED_TEXTURE, 131072, 16384);
    std::vector<std::uint8_t> table(plan.value.bytes);
    if (!plan || !vkrope::fill_angles(rope, plan.value, table.data(), table.size())) return 1;
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const std::uint8_t byte : table) hash = (hash ^ byte) * 0x100000001b3;
    const auto kernel = vkrope::create({}, {});
    std::printf("%zu bytes, hash %016" PRIx64 "; %s\n", table.size(), hash, kernel.status.what);
    return kernel.status.code == VKROPE_ERROR_INVALID_ARGUMENT ? 0 : 1;
}
