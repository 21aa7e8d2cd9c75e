// SPDX-License-Identifier: MIT
// Tests the escaping of text and the names of report files.
#include <doctest/doctest.h>

#include "conformance/report.hpp"
#include "conformance/reports/html.hpp"

namespace vkrope::conformance {
namespace {

TEST_CASE("text cannot become markup") {
    CHECK(html::text("<b a=\"x\">&\033") == "&lt;b a=&quot;x&quot;&gt;&amp;?");
    CHECK(html::bar(7, "700 %").find("width:100.0%") != std::string::npos);
}

TEST_CASE("a report in a folder is named after its devices") {
    Report report(1);
    report[0].device.name = "GPU (x) / ../y";
    CHECK(report_path("a.json", report) == "a.json");
    CHECK(report_path("/tmp", report).starts_with("/tmp/vkrope-report-GPU_x_.._y-20"));
    CHECK(report_path("/tmp", report).ends_with(".json"));
    report.emplace_back();
    CHECK(report_path("/tmp", report).starts_with("/tmp/vkrope-report-2_devices-20"));
}

}  // namespace
}  // namespace vkrope::conformance
