// SPDX-License-Identifier: MIT
// What changed from one report to another: the outcomes of checks, and speed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vkrope::conformance {

struct Changes {
    std::string text;       ///< for people, a line each
    std::size_t worse = 0;  ///< checks that were good or unsupported and have now failed or erred
    std::size_t compared = 0;  ///< checks that both reports have
};

/// Devices are matched by name, and devices of one name in their order.
Changes compare(const nlohmann::ordered_json& older, const nlohmann::ordered_json& newer);

}  // namespace vkrope::conformance
