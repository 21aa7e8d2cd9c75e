// SPDX-License-Identifier: MIT
// What a report says of a device beside its checks: who made it, which features are used, what the
// kernels chose on it, and its error at positions near and far.
#pragma once

#include <nlohmann/json.hpp>

namespace vkrope::conformance {

class DeviceUnderTest;

/// {"vendor", "vendor_id", "device_id", "driver_version", "features": [word],
///  "choices": [{"kernel", "chosen", "why"}], "errors": [{"source", "bound_u", "points":
///  [[position, error_u]]}]}. Runs a few dozen small rotations.
nlohmann::ordered_json find_facts(DeviceUnderTest& device);

}  // namespace vkrope::conformance
