// SPDX-License-Identifier: MIT
// Reads the figures of vkrope-bench from the file of its option --benchmark_out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

struct BenchRow {
    std::string name;
    double ns = 0;      ///< median of the repetitions, nanoseconds
    double spread = 0;  ///< coefficient of variation; 0: not measured
    double roof = 0;    ///< fraction of the speed of the fastest copy; 0: not in the row
};

/// Throws nlohmann::json::exception if the document is not a benchmark report.
std::vector<BenchRow> bench_rows(const nlohmann::ordered_json& bench);

}  // namespace vkrope::conformance
