// SPDX-License-Identifier: MIT
// Runs the benchmarks: names, runs, checks and times rows.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.hpp"
#include "layer.hpp"
#include "rivals.hpp"
#include "shapes.hpp"
#include "tune.hpp"

namespace vkrope::bench {

// Returns the time since some moment.
double now_ns();

// A device with at most one row set up, because Google Benchmark calls the function of a row
// several times, and the tensors of the next row need the memory.
class Bench {
   public:
    explicit Bench(Device device) : device_(std::move(device)) {}

    Device& device() noexcept { return device_; }
    // Returns one sentence for each row that did not fit in the device memory and was not
    // registered.
    const std::vector<std::string>& left_out() const noexcept { return left_out_; }

    // Returns success or the exit code of the first row that failed.
    tools::ExitCode outcome() const noexcept { return outcome_; }

    // Registers every row with Google Benchmark. The bench must outlive the rows.
    void register_rows();

    // Times tunings of the call of a registered row. `name` may leave out the last parts of the
    // row's name.
    Tuned tune(const std::string& name);

   private:
    using Time = std::function<double()>;  // runs something and returns nanoseconds of one call

    // A call that a command buffer takes several times.
    struct Repeatable {
        std::function<Status()> begin;  // before a new command buffer
        Record next;
    };

    // Something timed alternately with the row, and the counter for the quotient of both times.
    struct Other {
        const char* counter;
        Time time;
        bool divides = false;  // the row's time is divided by the other's, not the reverse
    };
    // A row that was set up and checked.
    struct Row {
        std::string label;
        std::shared_ptr<Layer> tensors = {};  // what the copies access
        double bytes = 0, tokens = 0;  // read, written and rotated in one call; 0: no counter
        std::vector<tools::Copied> copies = {};  // timed alternately; none: the row has no roof
        tools::Repeat repeat = {};               // of `time`, and of the copies
        Time time = nullptr;                     // null: the fastest copy is timed
        std::vector<Other> others = {};
        std::map<std::string, double> counters = {};  // further counters by name
        double first_ns = 0;                          // time of the checked call
    };
    using Make = std::function<Row()>;

    void add(const std::string& name, std::function<void(benchmark::State&)> function);
    void add_row(const std::string& name, Make make);
    // Adds a row that times one call, whose tensors are those of the row.
    void add_call(const std::string& name, Make make);
    const std::pair<const std::string, Make>& tunable(const std::string& name) const;
    Tuned tune(const std::string& name, const Row& row);
    std::optional<Time> tuned_time(const Row& row, const Tuning& tuning, bool gpu_mapping);
    void free_row();
    void time(benchmark::State& state, Row& row);
    double run(const Record& record, const tools::Repeat& repeat = {});
    Time running(const Record& record);
    Time running(const Repeatable& repeatable, const tools::Repeat& repeat);
    static Repeatable recording(const std::shared_ptr<Pass>& pass);
    std::shared_ptr<Pass> pass_of(const Shape& shape, const Layer& layer);
    // Returns how calls of the bytes of these copies follow each other.
    tools::Repeat repeat_of(Pace pace, const std::vector<tools::Copied>& copies);
    // Copies more bytes than caches hold.
    Status evict();
    std::uint64_t memory() const;
    // Returns whether there are more tokens than a software device should have; a GPU is busy only
    // with many.
    bool takes_minutes(const Shape& shape) const;
    // Returns whether the shape fits in memory; if not, adds a sentence to left_out().
    bool fits(const Shape& shape);
    tools::CopyRoof& roof();

    Row copy_row(const Shape& shape, const std::shared_ptr<Layer>& layer);
    Row checked_row(const Shape& shape, const std::shared_ptr<Layer>& layer,
                    const Repeatable& repeatable, std::optional<double> bound_u = {});
    Row rope_row(const Shape& shape, bool in_place);
    // way  none: vkrope's Q, then K
    Row rival_row(const Shape& shape, std::optional<Way> way = {});
    Row copy_buffer_row(const Shape& shape);
    Row empty_row(const Shape& shape);
    Row cpu_row(const Shape& shape);
    Row ops_row(const Shape& shape);    // ops_rows.cpp
    Row layer_row(const Shape& shape);  // ops_rows.cpp

    void register_ropes();
    void register_rivals();
    void register_ops();        // ops_rows.cpp
    void register_host_rows();  // host_rows.cpp
    void register_step_rows();  // step_rows.cpp

    Device device_;
    std::unique_ptr<tools::CopyRoof> roof_;
    Buffer evicting_;
    std::string set_up_;
    Row row_;
    double host_ns_ = 0;  // to record a call of the last run
    tools::ExitCode outcome_ = tools::ExitCode::success;
    std::vector<std::string> left_out_;
    std::vector<std::pair<const std::string, Make>> calls_;  // by name, as registered
};

}  // namespace vkrope::bench
