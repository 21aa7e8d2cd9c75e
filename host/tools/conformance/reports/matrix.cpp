// SPDX-License-Identifier: MIT
#include "conformance/reports/matrix.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>

#include "conformance/report.hpp"
#include "conformance/reports/bench_rows.hpp"
#include "conformance/reports/html.hpp"
#include "conformance/suite.hpp"
#include "files/svg.hpp"
#include "shell/failure.hpp"
#include "shell/terminal.hpp"

namespace vkrope::conformance {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Row {
    std::string vendor, device, driver, date, verdict, reason, checks, file;
    std::optional<BenchRow> fastest = {};  // if it was timed
    bool joined = false;                   // to the row of a report
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

/// The rotation with the best share of the roof, among those that are not bound by their launch.
std::optional<BenchRow> fastest_of(const Json& bench) {
    std::optional<BenchRow> best;
    for (const BenchRow& row : bench_rows(bench)) {
        if (row.name.starts_with("rope/prefill") && (!best || row.roof > best->roof)) {
            best = row;
        }
    }
    return best;
}

std::string percent(const BenchRow& row) {
    return fmt::format("{:.0f} %", row.roof * 100);
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
                       .file = named.name};
            for (std::size_t i = 0; i < named.file.benches.size(); ++i) {
                if (!shown[i] && bench_device(named.file.benches[i]) == row.device) {
                    row.fastest = fastest_of(named.file.benches[i]);
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
                            .file = named.name,
                            .fastest = fastest_of(bench)});
        }
    }
}

/// Benchmark files name no vendor: they take it from a report of the same device.
void find_vendors(std::vector<Row>& rows) {
    for (Row& row : rows) {
        for (const Row& other : rows) {
            if (row.vendor == "unknown" && other.device == row.device) {
                row.vendor = other.vendor;
            }
        }
    }
}

/// A report and a benchmark of the same device and driver, each in a file of its own, are one row.
void join_speeds(std::vector<Row>& rows) {
    for (Row& row : rows) {
        const auto speed = std::find_if(rows.begin(), rows.end(), [&row](const Row& other) {
            return other.verdict.empty() && !other.joined && other.device == row.device &&
                   other.driver == row.driver;
        });
        if (!row.verdict.empty() && !row.fastest && speed != rows.end()) {
            row.fastest = speed->fastest;
            row.file += ", " + speed->file;
            speed->joined = true;
        }
    }
    std::erase_if(rows, [](const Row& row) { return row.joined; });
}

/// Text of a driver without control characters, cut to `limit` characters of UTF-8.
std::string shortened(const std::string& raw, std::size_t limit) {
    const std::string text = tools::printable(raw);
    std::size_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && count++ == limit) {
            return text.substr(0, i) + "\u2026";
        }
    }
    return text;
}

/// Two lines for each row: who the device is at the left, what was found at the right.
std::string picture_of(const std::vector<Row>& rows) {
    constexpr double width = 720, margin = 14, line = 18, height = 46, dot = 5;
    constexpr std::size_t left = 64, right = 40;  // characters
    tools::svg::Drawing drawing(width, margin + 22 + height * double(rows.size()),
                                "vkrope: devices and drivers");
    drawing.text({margin, margin + 14}, "Devices and drivers, and what vkrope found there",
                 "title");
    double y = margin + 22;
    for (const Row& row : rows) {
        drawing.line({margin, y + 6}, {width - margin, y + 6}, "grid");
        const double first = y + 6 + line, text_at = margin + 3 * dot, end = width - margin;
        const char* look = row.verdict == conformant                          ? "d2"
                           : row.verdict.empty() || row.verdict == not_judged ? "quiet"
                                                                              : "d1";
        drawing.circle({margin + dot, first - 4}, dot, look);
        drawing.text({text_at, first}, shortened(row.device, left));
        drawing.text({text_at, first + line - 2}, shortened(row.driver + ", " + row.date, left),
                     "quiet");
        drawing.text({end, first}, row.verdict.empty() ? "only timed" : row.verdict, look,
                     tools::svg::Anchor::end);
        std::string found = row.checks;
        if (row.fastest) {
            found += (found.empty() ? "" : "; ") + percent(*row.fastest) + " of the roof";
        }
        drawing.text({end, first + line - 2}, shortened(found, right), "quiet",
                     tools::svg::Anchor::end);
        y += height;
    }
    return drawing.file();
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
    join_speeds(rows);
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
        cells.push_back(
            {html::text(row.vendor), html::text(row.device), html::text(row.driver),
             html::text(row.date),
             verdict + (row.reason.empty() ? "" : ": " + html::text(row.reason)),
             or_none(row.checks),
             row.fastest ? html::text(percent(*row.fastest) + " in " + row.fastest->name) : "-",
             html::text(row.file)});
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
    return {.page = html::page("vkrope: devices and drivers", body),
            .picture = picture_of(rows),
            .rows = rows.size()};
}

}  // namespace vkrope::conformance
