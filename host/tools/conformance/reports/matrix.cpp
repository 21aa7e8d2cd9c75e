// SPDX-License-Identifier: MIT
#include "conformance/reports/matrix.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "conformance/report.hpp"
#include "conformance/reports/bench_rows.hpp"
#include "conformance/reports/html.hpp"
#include "conformance/suite.hpp"
#include "shell/failure.hpp"

namespace vkrope::conformance {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Row {
    std::string vendor, device, driver, date, verdict, reason, checks, roof, file;
};

std::string counts_of(const Json& device) {
    std::string counts;
    for (const Verdict verdict : verdicts) {
        std::size_t count = 0;
        for (const Json& check : device.at("cases")) {
            count += check.at("status") == word_for(verdict) ? 1 : 0;
        }
        counts += count == 0 ? ""
                             : fmt::format("{}{} {}", counts.empty() ? "" : ", ", count,
                                           word_for(verdict));
    }
    return counts;
}

/// The best share of the roof among rotations that are not bound by their launch.
std::string roof_of(const Json& bench) {
    const BenchRow* best = nullptr;
    const std::vector<BenchRow> rows = bench_rows(bench);
    for (const BenchRow& row : rows) {
        if (row.name.starts_with("rope/prefill") && (best == nullptr || row.roof > best->roof)) {
            best = &row;
        }
    }
    return best == nullptr ? "" : fmt::format("{:.0f} % in {}", best->roof * 100, best->name);
}

void add_rows(const NamedReport& named, std::vector<Row>& rows) {
    std::vector<bool> shown(named.file.benches.size());
    if (!named.file.report.is_null()) {
        for (const Json& device : named.file.report.at("devices")) {
            const Json& facts = device.at("facts");
            Row row = {.vendor = facts.empty() ? "unknown" : facts.at("vendor").get<std::string>(),
                       .device = device.at("name").get<std::string>(),
                       .driver = device.at("driver").get<std::string>(),
                       .date = named.file.report.at("date").get<std::string>(),
                       .verdict = device.at("verdict").get<std::string>(),
                       .reason = device.at("verdict_reason").get<std::string>(),
                       .checks = counts_of(device),
                       .roof = {},
                       .file = named.name};
            for (std::size_t i = 0; i < named.file.benches.size(); ++i) {
                if (!shown[i] && bench_device(named.file.benches[i]) == row.device) {
                    row.roof = roof_of(named.file.benches[i]);
                    shown[i] = true;
                }
            }
            rows.push_back(std::move(row));
        }
    }
    for (std::size_t i = 0; i < named.file.benches.size(); ++i) {
        if (const Json& bench = named.file.benches[i]; !shown[i]) {
            rows.push_back({.vendor = "unknown",
                            .device = bench_device(bench),
                            .driver = bench_driver(bench),
                            .date = bench_date(bench),
                            .verdict = {},
                            .reason = {},
                            .checks = {},
                            .roof = roof_of(bench),
                            .file = named.name});
        }
    }
}

/// Files of a benchmark name no vendor: they get that of a report of the same device.
void find_vendors(std::vector<Row>& rows) {
    for (Row& row : rows) {
        for (const Row& other : rows) {
            if (row.vendor == "unknown" && other.device == row.device) {
                row.vendor = other.vendor;
            }
        }
    }
}

}  // namespace

std::vector<NamedReport> reports_below(const std::string& folder,
                                       std::vector<std::string>& foreign) {
    std::vector<fs::path> files;
    std::error_code problem;
    fs::recursive_directory_iterator entry(folder, problem);
    for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
        std::error_code none;
        if (!entry->is_directory(none)) {
            files.push_back(entry->path());
        }
    }
    if (problem) {
        tools::fail(tools::ExitCode::bad_file, "--matrix: '{}' cannot be read: {}", folder,
                    problem.message());
    }
    std::sort(files.begin(), files.end());
    std::vector<NamedReport> reports;
    for (const fs::path& file : files) {
        try {
            reports.push_back({file.lexically_relative(folder).generic_string(),
                               report_from("--matrix", file.string())});
        } catch (const tools::Failure& failure) {
            // A page for others does not say where this folder is.
            std::string sentence = failure.what();
            if (const std::size_t at = sentence.find(file.string()); at != std::string::npos) {
                sentence.replace(at, file.string().size(),
                                 file.lexically_relative(folder).generic_string());
            }
            foreign.push_back(std::move(sentence));
        }
    }
    return reports;
}

Matrix matrix_of(const std::vector<NamedReport>& reports, const std::vector<std::string>& foreign) {
    std::vector<Row> rows;
    for (const NamedReport& report : reports) {
        add_rows(report, rows);
    }
    find_vendors(rows);
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        // The newest date first, all else in the order of letters.
        return std::tie(a.vendor, a.device, b.date, a.driver) <
               std::tie(b.vendor, b.device, a.date, b.driver);
    });
    std::vector<std::vector<std::string>> cells;
    for (const Row& row : rows) {
        const auto or_none = [](const std::string& text) {
            return text.empty() ? std::string("-") : html::text(text);
        };
        const char* meaning = row.verdict == conformant   ? "good"
                              : row.verdict == not_judged ? "none"
                                                          : "bad";
        const std::string verdict = row.verdict.empty() ? "-" : html::mark(row.verdict, meaning);
        cells.push_back({html::text(row.vendor), html::text(row.device), html::text(row.driver),
                         html::text(row.date),
                         verdict + (row.reason.empty() ? "" : ": " + html::text(row.reason)),
                         or_none(row.checks), or_none(row.roof), html::text(row.file)});
    }
    std::string body = html::section(
        "Devices", html::table({"vendor", "device", "driver", "date", "verdict", "checks",
                                "share of the roof", "file"},
                               cells));
    if (!foreign.empty()) {
        std::string items;
        for (const std::string& sentence : foreign) {
            items += "<li>" + html::text(sentence) + "</li>\n";
        }
        body += html::section("Other files", "<ul>\n" + items + "</ul>\n");
    }
    return {.page = html::page("vkrope: devices and drivers", body), .rows = rows.size()};
}

}  // namespace vkrope::conformance
