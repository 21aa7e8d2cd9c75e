// SPDX-License-Identifier: MIT
// The figures of vkrope-bench, from the file of its --benchmark_out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

struct BenchRow {
    std::string name;
    double ns = 0;      ///< median of the repetitions
    double spread = 0;  ///< coefficient of variation; 0: not measured
    double roof = 0;    ///< share of the fastest copy; 0: the row has none
};

/// Throws nlohmann::json::exception for another document.
std::vector<BenchRow> bench_rows(const nlohmann::ordered_json& bench);

}  // namespace vkrope::conformance
