// SPDX-License-Identifier: MIT
// Tests the escaping of text, the names of report files, and the figures of benchmarks.
#include <doctest/doctest.h>

#include "conformance/report.hpp"
#include "conformance/reports/bench_rows.hpp"
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

TEST_CASE("rows of a benchmark are medians, with the spread of their repetitions") {
    const auto bench = nlohmann::ordered_json::parse(R"({"benchmarks": [
        {"run_name": "a/manual_time", "real_time": 5, "time_unit": "us", "roof": 0.25},
        {"run_name": "a/manual_time", "aggregate_name": "median", "real_time": 4, "time_unit": "us",
         "roof": 0.5},
        {"run_name": "a/manual_time", "aggregate_name": "cv", "real_time": 0.1},
        {"run_name": "b", "real_time": 7, "time_unit": "ns"}]})");
    const auto rows = bench_rows(bench);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].name == "a");
    CHECK(rows[0].ns == 4000);
    CHECK(rows[0].spread == 0.1);
    CHECK(rows[0].roof == 0.5);
    CHECK(rows[1].ns == 7);
}

}  // namespace
}  // namespace vkrope::conformance
