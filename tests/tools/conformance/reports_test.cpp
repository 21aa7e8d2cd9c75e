// SPDX-License-Identifier: MIT
// Archives that are whole, cut off or changed; logs without names; what is escaped; figures of
// benchmarks.
#include <doctest/doctest.h>

#include "conformance/reports/archive.hpp"
#include "conformance/reports/bench_rows.hpp"
#include "conformance/reports/html.hpp"
#include "conformance/reports/run_log.hpp"
#include "files/zip.hpp"

namespace vkrope::conformance {
namespace {

using tools::zip::BadArchive;
using tools::zip::entries_of;

std::string archive() {
    return tools::zip::archive_of(
        {{"a.txt", "first"}, {"empty", ""}, {"b.bin", std::string(300, '\0')}});
}

TEST_CASE("the checksum of ZIP") {
    CHECK(tools::zip::crc32("123456789") == 0xcbf43926u);  // the check value of CRC-32/ISO-HDLC
    CHECK(tools::zip::crc32("") == 0);
}

TEST_CASE("an archive gives back what went in") {
    const auto entries = entries_of(archive());
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].name == "a.txt");
    CHECK(entries[0].content == "first");
    CHECK(entries[1].content.empty());
    CHECK(entries[2].content == std::string(300, '\0'));
}

TEST_CASE("an archive that is cut off anywhere is refused") {
    const std::string whole = archive();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        CHECK_THROWS_AS(entries_of(whole.substr(0, bytes)), BadArchive);
    }
}

TEST_CASE("a changed byte is seen, or changes nothing that is read") {
    const std::string whole = archive();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const char flip : {'\x01', '\x80'}) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ flip);
            try {
                const auto entries = entries_of(changed);
                for (const auto& entry : entries) {
                    CHECK(entry.content.size() <= 300);
                }
                if (entries.size() == 3) {
                    CHECK(entries[0].content == "first");
                    CHECK(entries[2].content == std::string(300, '\0'));
                }
            } catch (const BadArchive&) {
            }
        }
    }
}

TEST_CASE("names are replaced where they are words") {
    CHECK(without("bob", "<user>", "bob /home/bob bobby kebob bob's") ==
          "<user> /home/<user> bobby kebob <user>'s");
    CHECK(without("", "<user>", "text") == "text");
    CHECK(without("/home/bob", "<home>", "in /home/bob/x") == "in <home>/x");
    RunLog log;
    log.hide("/opt/kit", "<programs>");
    log.add("from /opt/kit/bin\n");
    CHECK(log.text() == "from <programs>/bin\n");
}

TEST_CASE("a log does not grow without end") {
    RunLog log;
    for (int i = 0; i < 3000; ++i) {
        log.add(std::string(1000, 'x'));
    }
    CHECK(log.text().size() < (1 << 20) + 100);
    CHECK(log.text().ends_with("(the rest was left out)\n"));
}

TEST_CASE("text cannot become markup") {
    CHECK(html::text("<b a=\"x\">&\033") == "&lt;b a=&quot;x&quot;&gt;&amp;?");
    CHECK(html::bar(7, "700 %").find("width:100.0%") != std::string::npos);
}

TEST_CASE("a report in a folder is named after its devices") {
    Report report(1);
    report[0].device.name = "GPU (x) / ../y";
    CHECK(archive_name("a.zip", report) == "a.zip");
    CHECK(archive_name("/tmp", report) == "/tmp/vkrope-report-GPU_x_.._y-" + today() + ".zip");
    report.emplace_back();
    CHECK(archive_name("/tmp", report) == "/tmp/vkrope-report-2_devices-" + today() + ".zip");
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
