// SPDX-License-Identifier: MIT
// What a device may do one way or another without breaking the contract: measured, not asked for,
// and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkrope::conformance {

class DeviceUnderTest;

/// A layer or another tool that sits between the library and the driver.
struct Tool {
    std::string name, version;
    bool alters_features =
        false;  // adds or modifies what the device offers: the device is then not what is tested
};

struct Traits {
    bool flushes_subnormals = false;  // f32: the contract then allows 2^-123 more
    std::string subnormals;           // "kept", or which are flushed
    std::string rounding;             // of f32 products and sums: "to nearest even"
    std::string specials;  // what becomes of NaN, infinities and the sign of zero: "kept", or which
                           // are lost
    std::string nan;       // what becomes of the bits of a NaN
    bool converts_f16 = false;  // takes Conversion::native
    std::string
        f16;  // what of f16 it converts itself: "all", "normal numbers", or nothing, and why
    std::uint32_t subgroup_size = 0;
    std::vector<Tool> tools;
};

/// Runs a few rotations with tables of chosen values.
Traits measure_traits(DeviceUnderTest& device);

}  // namespace vkrope::conformance
