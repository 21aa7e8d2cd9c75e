// SPDX-License-Identifier: MIT
// Waives known failures, each with a reason and a link. Waived failures do not fail a run, but a
// waiver that is no longer needed does.
#pragma once

#include <string>
#include <vector>

#include "conformance/report.hpp"

namespace vkrope::conformance {

struct Waiver {
    std::string check;   // id of a check
    std::string device;  // part of the name of a device; empty: every device
    std::string reason, link;
};

// Reads {"waivers": [{"check", "device", "reason", "link"}]}, "device" being optional. Throws
// tools::Failure, which names the file and the field.
std::vector<Waiver> read_waivers(const std::string& file);

// Marks failed and erred checks of `device` that have a waiver as waived, and returns a
// sentence for each waiver whose check has run and has not failed.
std::vector<std::string> waive(DeviceReport& device, const std::vector<Waiver>& waivers);

// Returns a sentence for each waiver of a check that is not in these groups.
std::vector<std::string> unknown_waivers(const std::vector<Waiver>& waivers,
                                         const std::vector<Group>& groups);

}  // namespace vkrope::conformance
