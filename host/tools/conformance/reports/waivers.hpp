// SPDX-License-Identifier: MIT
// Failures that are known, with a reason and a link each: they fail no run, and a waiver that is no
// longer needed does.
#pragma once

#include <string>
#include <vector>

#include "conformance/report.hpp"

namespace vkrope::conformance {

struct Waiver {
    std::string check;   ///< an id
    std::string device;  ///< part of the name of a device; empty: every one
    std::string reason, link;
};

/// Reads {"waivers": [{"check", "device", "reason", "link"}]}, "device" being optional. Throws
/// tools::Failure, which names the file and the field.
std::vector<Waiver> read_waivers(const std::string& file);

/// Turns failed and erred checks of `device` that have a waiver into waived ones, and returns a
/// sentence for each waiver whose check has run and has not failed.
std::vector<std::string> waive(DeviceReport& device, const std::vector<Waiver>& waivers);

/// A sentence for each waiver of a check that is not among these groups.
std::vector<std::string> unknown_waivers(const std::vector<Waiver>& waivers,
                                         const std::vector<Group>& groups);

}  // namespace vkrope::conformance
