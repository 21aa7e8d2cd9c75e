// SPDX-License-Identifier: MIT
// The variants of the shader.
//
// create() specialises and prunes one module by some forty constants. The remaining code of a
// branch depends on few of them at a time, so a variant is one row of the list that add_aspects()
// makes. A row names the constants that meet in one branch of rope.comp: how steps map to
// invocations and access rows; which tensor and element size a load or store is for; whether V is
// moved together with K, or alone; the angle source, and whether angles are read per unit or per
// pair; the axis of a pair; pairs in and out; windows; conversions; the work per token.
#pragma once

#include <set>
#include <string>

#include "conformance/device_under_test.hpp"
#include "kernel/kernel_object.hpp"

namespace vkrope::conformance {

using Aspects = std::set<std::string>;

/// The use of one pipeline in one dispatch.
struct Use {
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT,
                    .angles = VKROPE_ANGLES_FACTORED_TEXTURE};  // of the pipeline's part
    Geometry geometry;
    bool apart, counts;
    std::uint32_t conversion;
    bool q, k, q_in_place, k_in_place;
    bool v_joins;  // V shares the dispatch of K
    bool v_alone;  // only V: seen as Q if the kernel is apart, else as K
};

Use use_of(const Kernel& kernel, const Part& part, const Pipeline& pipeline);

/// Adds the variants that one use reaches.
void add_aspects(const Use& use, Aspects& aspects);

/// All variants that create() can make for a device.
Aspects all_aspects(DeviceUnderTest& device);

}  // namespace vkrope::conformance
