// SPDX-License-Identifier: MIT
// Times a device with vkrope-bench, in a separate process, as checks are run.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "conformance/isolation/device_list.hpp"

namespace vkrope::conformance {

struct BenchRun {
    nlohmann::ordered_json figures;  ///< without the name of the machine; null: there are none
    std::string problem;             ///< empty if there was no problem
    bool by_driver = false;          ///< true if the driver ended or stopped the benchmark
};

/// Runs the most informative rows: about one minute on a software device, at most ten minutes.
///
/// printed  receives what the program prints
BenchRun run_bench(const std::string& program, const FoundDevice& device,
                   const std::function<void(std::string_view)>& printed);

}  // namespace vkrope::conformance
