// SPDX-License-Identifier: MIT
// Collects and shows the results of the rows: on the console, and as a page.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vkrope::bench {

/// One row: the median of its repetitions.
struct Measured {
    std::string name;  // name as registered
    std::string label;
    double ns = 0;
    std::map<std::string, double> counters;

    double counter(const std::string& of) const {
        const auto found = counters.find(of);
        return found == counters.end() ? 0 : found->second;
    }
};

/// Shows and keeps only the median of each row, whereas Google Benchmark shows every repetition and
/// aggregate.
class Collector : public benchmark::BenchmarkReporter {
   public:
    /// `shown` is the reporter; null: the reporter that --benchmark_format selects, unchanged.
    explicit Collector(std::unique_ptr<benchmark::BenchmarkReporter> shown);

    bool ReportContext(const Context& context) override { return shown_->ReportContext(context); }
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override { shown_->Finalize(); }

    const std::vector<Measured>& results() const noexcept { return results_; }
    /// Returns the rows that were not timed because of an error, with the error.
    const std::set<std::string>& failures() const noexcept { return failures_; }

   private:
    bool medians_only_;
    std::unique_ptr<benchmark::BenchmarkReporter> shown_;
    std::vector<Measured> results_;
    std::set<std::string> failures_;
    // An aggregate has no label if the labels of its repetitions differ.
    std::map<std::string, std::string> labels_;
};

/// Returns the results as one self-contained HTML page without script or external resources, in
/// light and dark mode, for any screen width.
///
/// context  names and values that describe the measurement
std::string html_report(const std::vector<Measured>& results,
                        const std::vector<std::pair<std::string, std::string>>& context);

}  // namespace vkrope::bench
