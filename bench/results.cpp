// SPDX-License-Identifier: MIT
#include "results.hpp"

#include <algorithm>

namespace vkrope::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// Returns the error of a run, or empty. The names differ between Google Benchmark 1.7 and 1.8.
template <class AnyRun>
std::string failure_of(const AnyRun& run) {
    if constexpr (requires { run.error_occurred; }) {
        return run.error_occurred ? run.error_message : "";
    } else {
        return run.skipped ? run.skip_message : "";
    }
}

bool is_median(const Run& run) {
    return run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
}

/// Returns nanoseconds per iteration. The time of an aggregate is already a mean.
double ns_of(const Run& run) {
    return run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit) * 1e9;
}

}  // namespace

Collector::Collector(std::unique_ptr<benchmark::BenchmarkReporter> shown)
    : medians_only_(shown != nullptr), shown_(std::move(shown)) {
    if (!shown_) shown_.reset(benchmark::CreateDefaultDisplayReporter());
}

void Collector::ReportRuns(const std::vector<Run>& runs) {
    std::vector<Run> rows;
    for (const Run& run : runs) {
        const std::string failure = failure_of(run);
        if (!run.report_label.empty()) labels_[run.run_name.function_name] = run.report_label;
        if (!failure.empty()) failures_.insert(run.run_name.function_name + ": " + failure);
        // Repetitions are reported first, and their aggregates in a separate call.
        if (is_median(run) || run.repetitions <= 1 || !failure.empty()) rows.push_back(run);
    }
    shown_->SetOutputStream(&GetOutputStream());
    shown_->SetErrorStream(&GetErrorStream());
    const std::vector<Run>& shown = medians_only_ ? rows : runs;
    if (!shown.empty()) shown_->ReportRuns(shown);
    for (const Run& run : rows) {
        if (!failure_of(run).empty()) continue;
        Measured result{
            run.run_name.function_name, labels_[run.run_name.function_name], ns_of(run), {}};
        for (const auto& [name, counter] : run.counters) result.counters[name] = counter.value;
        results_.push_back(std::move(result));
    }
}

}  // namespace vkrope::bench
