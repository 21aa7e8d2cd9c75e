// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vkrope::conformance {

/// Returns a report as JUnit XML, which CI systems show, with a test suite for each group on each
/// device. Failed checks are failures, checks that could not run are errors, and unsupported or
/// waived checks are skipped.
std::string junit_of(const nlohmann::ordered_json& report);

}  // namespace vkrope::conformance
