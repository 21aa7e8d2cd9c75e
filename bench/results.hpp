// SPDX-License-Identifier: MIT
// Shows the results of the rows on the console.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace vkrope::bench {

// Shows only the median of each row, whereas Google Benchmark shows every repetition and
// aggregate.
class MedianReporter : public benchmark::BenchmarkReporter {
   public:
    // `shown` is the reporter; null: the reporter that --benchmark_format selects, unchanged.
    explicit MedianReporter(std::unique_ptr<benchmark::BenchmarkReporter> shown);

    bool ReportContext(const Context& context) override { return shown_->ReportContext(context); }
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override { shown_->Finalize(); }

    // Returns the rows that were not timed because of an error, with the error.
    const std::set<std::string>& failures() const noexcept { return failures_; }

   private:
    bool medians_only_;
    std::unique_ptr<benchmark::BenchmarkReporter> shown_;
    std::set<std::string> failures_;
};

}  // namespace vkrope::bench
