// SPDX-License-Identifier: MIT
// What the command makes of reports that are there already.
#include "conformance/options.hpp"
#include "conformance/reports/compare.hpp"
#include "conformance/reports/matrix.hpp"
#include "conformance/table.hpp"
#include "shell/output_file.hpp"
#include "shell/terminal.hpp"

namespace vkrope::conformance {

using tools::ExitCode;

/// Prints one table of the results that other runs, on other drivers, have reported.
ExitCode merge_reports(const Options& options) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    std::string empty_report;
    for (const std::string& file : options.table) {
        nlohmann::ordered_json reported = read_devices(file);
        if (reported.empty()) {
            empty_report = fmt::format("--table: '{}' has no device: nothing was checked", file);
        }
        for (nlohmann::ordered_json& device : reported) {
            devices.push_back(std::move(device));
        }
    }
    std::vector<MissingDevice> missing;
    for (const std::string& text : options.missing) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) {
            tools::fail(ExitCode::usage, "--missing: '{}' must be NAME=REASON", text);
        }
        missing.push_back({.name = text.substr(0, equals), .reason = text.substr(equals + 1)});
    }
    tools::write_output(table_of(devices, missing));
    const std::string shortfall = shortfall_of(devices);
    if (!shortfall.empty() || !empty_report.empty()) {
        tools::print_error(shortfall.empty() ? empty_report : shortfall);
        return ExitCode::verification_failed;
    }
    return ExitCode::success;
}

ExitCode compare_reports(const Options& options) {
    if (options.compare.size() != 2) {
        tools::fail(ExitCode::usage, "--compare: takes two reports, the older one first, not {}",
                    options.compare.size());
    }
    const Changes changes = compare(report_from("--compare", options.compare[0]),
                                    report_from("--compare", options.compare[1]));
    tools::write_output(changes.text);
    if (changes.worse > 0) {
        tools::print_error(
            fmt::format("{} of {} checks have become failures", changes.worse, changes.compared));
        return ExitCode::verification_failed;
    }
    return ExitCode::success;
}

ExitCode write_matrix(const Options& options) {
    if (options.matrix.empty() || (options.page.empty() && options.picture.empty())) {
        tools::fail(ExitCode::usage, "--matrix needs --page or --picture, and these need --matrix");
    }
    std::vector<std::string> foreign;
    const std::vector<NamedReport> reports = reports_below(options.matrix, foreign);
    for (const std::string& sentence : foreign) {
        tools::print_warning(sentence);
    }
    if (reports.empty()) {
        tools::fail(ExitCode::bad_file, "--matrix: '{}' has no report", options.matrix);
    }
    const Matrix matrix = matrix_of(reports, foreign);
    std::vector<tools::OutputFile> files;
    if (!options.page.empty()) {
        files.emplace_back("--page", options.page, matrix.page.size()).write(matrix.page);
    }
    if (!options.picture.empty()) {
        files.emplace_back("--picture", options.picture, matrix.picture.size())
            .write(matrix.picture);
    }
    tools::OutputFile::publish(files);
    tools::write_output(fmt::format("{} rows of {} files; {} files are not reports\n", matrix.rows,
                                    reports.size(), foreign.size()));
    return ExitCode::success;
}

}  // namespace vkrope::conformance
