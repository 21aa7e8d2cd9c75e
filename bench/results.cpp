// SPDX-License-Identifier: MIT
#include "results.hpp"

namespace vkrope::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

// Returns the error of a run, or empty. The names differ between Google Benchmark 1.7 and 1.8.
template <class AnyRun>
std::string failure_of(const AnyRun& run) {
    if constexpr (requires { run.error_occurred; })
        return run.error_occurred ? run.error_message : "";
    else
        return run.skipped ? run.skip_message : "";
}

bool is_median(const Run& run) {
    return run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
}

}  // namespace

MedianReporter::MedianReporter(std::unique_ptr<benchmark::BenchmarkReporter> shown)
    : medians_only_(shown != nullptr), shown_(std::move(shown)) {
    if (!shown_) shown_.reset(benchmark::CreateDefaultDisplayReporter());
}

void MedianReporter::ReportRuns(const std::vector<Run>& runs) {
    std::vector<Run> rows;
    for (const Run& run : runs) {
        const std::string failure = failure_of(run);
        if (!failure.empty()) failures_.insert(run.run_name.function_name + ": " + failure);
        // Repetitions are reported first, and their aggregates in a separate call.
        if (is_median(run) || run.repetitions <= 1 || !failure.empty()) rows.push_back(run);
    }
    shown_->SetOutputStream(&GetOutputStream());
    shown_->SetErrorStream(&GetErrorStream());
    const std::vector<Run>& shown = medians_only_ ? rows : runs;
    if (!shown.empty()) shown_->ReportRuns(shown);
}

}  // namespace vkrope::bench
