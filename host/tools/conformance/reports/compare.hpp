// SPDX-License-Identifier: MIT
// Compares the outcomes of checks in two reports.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vkrope::conformance {

struct Changes {
    std::string text;          // for people, one line for each change
    std::size_t worse = 0;     // checks that were good or unsupported and have now failed or erred
    std::size_t compared = 0;  // checks that both reports contain
};

// Compares devices of the same name; several devices of one name are matched in order.
Changes compare(const nlohmann::ordered_json& older, const nlohmann::ordered_json& newer);

}  // namespace vkrope::conformance
