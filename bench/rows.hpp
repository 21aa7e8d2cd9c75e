// SPDX-License-Identifier: MIT
// Runs the benchmarks: names, runs, checks and times rows.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.hpp"
#include "layer.hpp"
#include "rivals.hpp"

namespace vkrope::bench {

/// A device with at most one row set up, because Google Benchmark calls the function of a row
/// several times, and the tensors of the next row need the memory.
class Bench {
   public:
    explicit Bench(Device device) : device_(std::move(device)) {}

    Device& device() noexcept { return device_; }
    /// Returns one sentence for each row that did not fit in the device memory and was not
    /// registered.
    const std::vector<std::string>& left_out() const noexcept { return left_out_; }

    /// Returns success or the exit code of the first row that failed.
    tools::ExitCode outcome() const noexcept { return outcome_; }

    /// Registers every row with Google Benchmark. The bench must outlive the rows.
    void register_rows();

   private:
    /// A row that was set up and checked.
    struct Row {
        std::unique_ptr<Layer> layer;
        std::function<Status(VkCommandBuffer)> record;  // null: only the copy is timed
        std::function<Status(VkCommandBuffer)> ours =
            nullptr;  // for rivals: the rotation by vkrope, timed alternately
        std::optional<double> bound_u = {};  // none: the output is not a rotation
        double checked = 0, error_u = 0;     // compared share of elements, largest error
        double first_ns = 0;                 // time of the checked run
        std::string label;
    };
    using Make = std::function<Row()>;

    void add(const std::string& name, std::function<void(benchmark::State&)> function);
    void add_row(const std::string& name, Make make, void (Bench::*time)(benchmark::State&, Row&));
    Row& set_up(const std::string& name, const Make& make);
    void check_row(Row& row);
    std::uint64_t memory() const;
    /// Returns whether the shape fits in memory; if not, adds a sentence to left_out().
    bool fits(const Shape& shape, Element element);
    CopyRoof& roof();
    void aim_roof(const Row& row);

    Row empty_row(const Shape& shape, Element element, bool in_place);
    Row rope_row(const Shape& shape, Element element, AngleSource angles, bool in_place);
    Row unfused_row(const Shape& shape, Element element);
    Row rival_row(const Shape& shape, Element element, Way way);
    Row copy_buffer_row(const Shape& shape, Element element);

    void time_rotation(benchmark::State& state, Row& row);
    void time_copy(benchmark::State& state, Row& row);
    void time_empty(benchmark::State& state, const Shape& shape, Element element);
    void time_cpu(benchmark::State& state, const Shape& shape, Element element);

    void register_ropes();
    void register_growth();
    void register_rivals();
    void register_ops();  // ops_rows.cpp
    void time_ops(benchmark::State& state, void* layer, const char* model);
    void register_host_rows();  // host_rows.cpp

    Device device_;
    std::unique_ptr<CopyRoof> roof_;
    std::string set_up_;
    Row row_;
    std::shared_ptr<void> ops_;  // state of the current row of register_ops()
    tools::ExitCode outcome_ = tools::ExitCode::success;
    std::vector<std::string> left_out_;
};

}  // namespace vkrope::bench
