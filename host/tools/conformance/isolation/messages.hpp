// SPDX-License-Identifier: MIT
// What a worker tells its parent, as JSON values. Both are one program, so the form may change at
// any time.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/device_text.hpp"
#include "conformance/suite.hpp"
#include "conformance/traits.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

nlohmann::json message_of(const tools::KnownDevice& device);
nlohmann::json message_of(const Traits& traits);
nlohmann::json message_of(const Outcome& outcome);

// These throw nlohmann::json::exception for a message of another form.
tools::KnownDevice device_of(const nlohmann::json& message);
Traits traits_of(const nlohmann::json& message);
Outcome outcome_of(const nlohmann::json& message);

}  // namespace vkrope::conformance
