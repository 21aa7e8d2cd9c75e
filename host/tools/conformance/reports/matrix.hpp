// SPDX-License-Identifier: MIT
// One page of many reports: which devices and drivers are conformant, and how fast they are.
#pragma once

#include <string>
#include <vector>

#include "conformance/reports/input_file.hpp"

namespace vkrope::conformance {

struct NamedReport {
    std::string name;  ///< of the file
    ReportFile file;
};

struct Matrix {
    std::string page;
    std::string picture;  ///< of the same rows, SVG
    std::size_t rows = 0;
};

/// Rows by vendor, device and driver, the newest of each first.
///
/// foreign  sentences about files that are not reports, for the end of the page
Matrix matrix_of(const std::vector<NamedReport>& reports, const std::vector<std::string>& foreign);

/// All reports at or below `folder`; `foreign` gets a sentence for each file that is none. Throws
/// tools::Failure if it cannot be read.
std::vector<NamedReport> reports_below(const std::string& folder,
                                       std::vector<std::string>& foreign);

}  // namespace vkrope::conformance
