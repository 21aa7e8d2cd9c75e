// SPDX-License-Identifier: MIT
// Times a device with vkrope-bench, in a process of its own as checks are.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "conformance/isolation/drivers.hpp"

namespace vkrope::conformance {

struct BenchRun {
    nlohmann::ordered_json figures;  ///< without what names the machine; null: there are none
    std::string problem;             ///< empty: there was none
    bool by_driver = false;          ///< the driver has ended or stopped the benchmark
};

/// Runs the rows that say most, in a minute on a software device and at most in ten.
///
/// printed  receives what the program prints
BenchRun run_bench(const std::string& program, const FoundDevice& device,
                   const std::function<void(std::string_view)>& printed);

}  // namespace vkrope::conformance
