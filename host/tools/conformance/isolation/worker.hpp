// SPDX-License-Identifier: MIT
// What the processes that touch a driver do.
#pragma once

#include <optional>

#include "conformance/isolation/child.hpp"
#include "conformance/suite.hpp"
#include "conformance/traits.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

/// Sends {"devices": [device, ...]}.
void send_devices(const DeviceOptions& options, const Sender& sender, Activity& activity);

/// Opens the device and runs the checks of a group one by one. Sends {"traits"} first, if they are
/// not known, then an {"outcome"} for each check. Sends {"interrupted": signal} and returns if a
/// signal came, and returns after a check that the device did not survive.
void run_group(DeviceOptions options, const Group& group, const std::optional<Traits>& known,
               const Sender& sender, Activity& activity);

/// Opens the device and sends {"facts": text}, the JSON of find_facts().
void send_facts(DeviceOptions options, const std::optional<Traits>& known, const Sender& sender,
                Activity& activity);

}  // namespace vkrope::conformance
