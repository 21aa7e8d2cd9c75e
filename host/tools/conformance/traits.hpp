// SPDX-License-Identifier: MIT
// Measures behaviour that may differ between devices without breaking the contract. The behaviour
// is reported, and is measured rather than queried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkrope::conformance {

class DeviceUnderTest;

// A layer or another tool between the library and the driver.
struct Tool {
    std::string name, version;
    bool alters_features =
        false;  // adds or modifies features, so the run does not test the device alone
};

struct Traits {
    std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
    std::vector<std::string> features;  // features that the library uses on this device
    bool flushes_subnormals = false;    // f32: the contract then allows 2^-123 max(a, 1) more
    std::string subnormals;             // "kept", or the kinds that are flushed
    std::string rounding;               // of f32 products and sums: "to nearest even"
    std::string specials;       // NaN, infinities and the sign of zero: "kept", or the lost ones
    std::string nan;            // handling of the bits of a NaN
    bool converts_f16 = false;  // supports VKROPE_CONVERSION_NATIVE
    std::string f16;  // the f16 values that it converts: "all", "normal numbers", or "nothing" and
                      // the reason
    std::uint32_t subgroup_size = 0;
    std::vector<Tool> tools;
};

// Measures the traits with a few rotations by tables of chosen values.
Traits measure_traits(DeviceUnderTest& device);

}  // namespace vkrope::conformance
