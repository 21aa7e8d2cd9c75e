// SPDX-License-Identifier: MIT
// Behaviour that may differ between devices without breaking the contract: measured, not queried,
// and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkrope::conformance {

class DeviceUnderTest;

/// A layer or another tool between the library and the driver.
struct Tool {
    std::string name, version;
    bool alters_features =
        false;  // adds or modifies features: the device itself is then not what is tested
};

struct Traits {
    std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
    std::vector<std::string> features;  // those that the library makes use of here
    bool flushes_subnormals = false;    // f32: the contract then allows 2^-123 max(a, 1) more
    std::string subnormals;             // "kept", or which ones are flushed
    std::string rounding;               // of f32 products and sums: "to nearest even"
    std::string specials;       // NaN, infinities and the sign of zero: "kept", or which are lost
    std::string nan;            // handling of the bits of a NaN
    bool converts_f16 = false;  // supports VKROPE_CONVERSION_NATIVE
    std::string
        f16;  // the f16 values that it converts: "all", "normal numbers", or "nothing" and why
    std::uint32_t subgroup_size = 0;
    std::vector<Tool> tools;
};

/// Runs a few rotations with tables of chosen values.
Traits measure_traits(DeviceUnderTest& device);

}  // namespace vkrope::conformance
