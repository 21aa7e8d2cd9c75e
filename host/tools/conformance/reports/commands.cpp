// SPDX-License-Identifier: MIT
// Runs --compare and --page, which read existing reports.
#include "cli/output_file.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"
#include "conformance/options.hpp"
#include "conformance/reports/compare.hpp"
#include "conformance/reports/input_file.hpp"
#include "conformance/reports/page.hpp"

namespace vkrope::conformance {

using tools::ExitCode;

ExitCode compare_reports(const std::vector<std::string>& files) {
    if (files.size() != 2) {
        tools::fail(ExitCode::usage, "--compare: takes two reports, the older one first, not {}",
                    files.size());
    }
    const Changes changes = compare(report_from("--compare", files[0]),
                                    report_from("--compare", files[1]));
    tools::write_output(changes.text);
    if (changes.worse > 0) {
        tools::print_error(
            fmt::format("{} of {} checks have become failures", changes.worse, changes.compared));
        return ExitCode::verification_failed;
    }
    return ExitCode::success;
}

ExitCode write_page(const std::vector<std::string>& files) {
    // If the name of the page was forgotten, the page must not replace the first report.
    if (files.size() < 2 || !files[0].ends_with(".html"))
        tools::fail(ExitCode::usage, "--page: takes the page, FILE.html, then reports");
    std::vector<NamedReport> reports;
    for (std::size_t i = 1; i < files.size(); ++i) {
        // The page may be given to others, so it does not contain the folders of the reports.
        reports.push_back(
            {tools::text_of(tools::path_of(files[i]).filename()), report_from("--page", files[i])});
    }
    std::vector<tools::OutputFile> outputs;
    outputs.emplace_back("--page", files[0]).write(page_of(reports));
    tools::OutputFile::publish(outputs);
    return ExitCode::success;
}

}  // namespace vkrope::conformance
