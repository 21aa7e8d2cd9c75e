// SPDX-License-Identifier: MIT
// One choice of steps around the rotation, run in every way that must give the same bits.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

/// Rows of this length also start in the middle of 16 bytes, and are written to a cache.
inline constexpr std::uint32_t usual_head_dim = 128;

/// The steps of a check, and the row that they are taken on.
struct Scene {
    Element in = VKROPE_F32, out = VKROPE_F32;
    std::uint32_t head_dim = 64, rotary_dim = 64, rotary_offset = 0;
    Pairing pairing = VKROPE_HALF_SPLIT;
    Finish q = {}, k = {}, v = {};
    float q_scale = 1;
    Bytes values = {};  // of all tensors, repeated; empty: random
};

/// Runs the scene. The first way is compared with the oracle; every other way must give its bits.
void hold(DeviceUnderTest& device, const Scene& scene, Findings& findings);

}  // namespace vkrope::conformance
