// SPDX-License-Identifier: MIT
#include "rows.hpp"

#include <chrono>

#include "cli/failure.hpp"
#include "cli/terminal.hpp"
#include "cli/words.hpp"
#include "copy_roof/median.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::ExitCode;
using tools::Subject;
using tools::value_of;

}  // namespace

double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void Bench::register_rows() {
    register_ropes();
    register_rivals();
    register_ops();
    register_host_rows();
    register_step_rows();
}

// Registers a row. A row that fails reports its error, and the next row runs.
void Bench::add(const std::string& name, std::function<void(benchmark::State&)> function) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [this, function = std::move(function)](benchmark::State& state) {
            try {
                function(state);
            } catch (const tools::Failure& failure) {
                if (outcome_ == ExitCode::success) outcome_ = failure.code();
                state.SkipWithError(tools::printable(failure.what()).c_str());
            }
        })
        ->UseManualTime();
}

void Bench::add_row(const std::string& name, Make make) {
    add(
        name,
        [this, name, make = std::move(make)](benchmark::State& state) {
            if (set_up_ != name) {
                free_row();  // before the next row is made, because both together may not fit
                row_ = make();
                set_up_ = name;
            }
            time(state, row_);
        });
}

void Bench::add_call(const std::string& name, Make make) {
    calls_.emplace_back(name, make);
    add_row(name, std::move(make));
}

void Bench::free_row() {
    set_up_.clear();
    row_ = {};
}

double Bench::run(const Record& record, const tools::Repeat& repeat) {
    host_ns_ = 0;
    return value_of(tools::time_ns(
                        device_,
                        [&](VkCommandBuffer commands) {
                            const double start = now_ns();
                            const Status status = record(commands);
                            host_ns_ += (now_ns() - start) / repeat.calls;
                            return status;
                        },
                        repeat),
                    Subject::device);
}

Bench::Time Bench::running(const Record& record) {
    return [this, record] { return run(record); };
}

Bench::Time Bench::running(const Repeatable& repeatable, const tools::Repeat& repeat) {
    return [this, repeatable, repeat] {
        check(repeatable.begin(), Subject::device);
        return run(repeatable.next, repeat);
    };
}

// Returns a quarter of the device memory, because software devices share memory with all other
// programs.
std::uint64_t Bench::memory() const {
    return device_.info().memory_bytes / 4;
}

bool Bench::takes_minutes(const Shape& shape) const {
    return device_.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU && shape.operation.call.tokens > 4096;
}

bool Bench::fits(const Shape& shape) {
    const std::uint64_t bytes = device_bytes(shape.operation);
    if (bytes <= memory()) return true;
    left_out_.push_back(fmt::format(
        "{}: {} MiB of {} tensors, a quarter of the device's memory is {}", shape.name, bytes >> 20,
        tools::word_for(tools::elements, shape.operation.info.tensor[Q].in), memory() >> 20));
    return false;
}

tools::CopyRoof& Bench::roof() {
    if (!roof_)
        roof_ = std::make_unique<tools::CopyRoof>(
            value_of(tools::CopyRoof::make(device_), Subject::device));
    return *roof_;
}

// Times a row alternately with the copies and with others, so that other load on the machine
// affects all of them.
void Bench::time(benchmark::State& state, Row& row) {
    const bool has_roof = !row.copies.empty();
    if (has_roof) {
        roof().aim(row.copies, row.repeat);
        check(roof().settle(true), Subject::device);
    }
    std::vector<double> times, host;
    std::vector<std::vector<double>> others(row.others.size());
    // A long row has few iterations. Each iteration is then the median of 3 runs, unless the row
    // takes a second.
    const std::uint32_t calls = row.repeat.calls;
    const std::size_t turns = state.max_iterations < 3 * calls && row.first_ns < 1e9 ? 3 : 1;
    while (state.KeepRunningBatch(calls)) {
        for (std::size_t turn = 0; turn < turns; ++turn) {
            if (has_roof) check(roof().round(), Subject::device);
            for (std::size_t i = 0; i < others.size(); ++i)
                others[i].push_back(row.others[i].time());
            host_ns_ = 0;
            times.push_back(row.time ? row.time() : roof().last_ns());
            host.push_back(host_ns_);
        }
        state.SetIterationTime(tools::median({times.end() - std::ptrdiff_t(turns), times.end()}) *
                               calls * 1e-9);
    }
    // Medians, because a mean would include every interruption.
    const double ns = row.time ? tools::median(times) : roof().best_ns();
    const auto count = [&](const char* name, double number) {
        if (number > 0) state.counters[name] = number;
    };
    count("bytes_per_second", row.bytes / ns * 1e9);
    count("tokens_per_second", row.tokens / ns * 1e9);
    count("host_ns", tools::median(host));
    if (has_roof && row.time) {
        state.counters["roof"] = roof().best_ns() / ns;
        state.counters["roof_bytes_per_second"] = row.bytes / roof().best_ns() * 1e9;
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
        const double quotient = tools::median(others[i]) / ns;
        state.counters[row.others[i].counter] = row.others[i].divides ? 1 / quotient : quotient;
    }
    for (const auto& [name, number] : row.counters) state.counters[name] = number;
    state.SetLabel(row.time ? row.label : roof().best_name());
}

}  // namespace vkrope::bench
