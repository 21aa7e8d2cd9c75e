// SPDX-License-Identifier: MIT
// What a worker tells its parent, as JSON values. Both are one program, so the form may change at
// any time.
#pragma once

#include <nlohmann/json.hpp>

#include "conformance/suite.hpp"
#include "conformance/traits.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

nlohmann::json message_of(const DeviceInfo& device);
nlohmann::json message_of(const Traits& traits);
nlohmann::json message_of(const Outcome& outcome);

// These throw nlohmann::json::exception for a message of another form.
DeviceInfo device_of(const nlohmann::json& message);
Traits traits_of(const nlohmann::json& message);
Outcome outcome_of(const nlohmann::json& message);

}  // namespace vkrope::conformance
