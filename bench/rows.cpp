// SPDX-License-Identifier: MIT
#include "rows.hpp"

#include <chrono>

#include "cli/failure.hpp"
#include "cli/terminal.hpp"
#include "cli/words.hpp"
#include "meaning.hpp"
#include "rivals.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::ExitCode;
using tools::fail;
using tools::Subject;
using tools::value_of;

constexpr Element all_elements[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};

std::string name_of(Element element) {
    return tools::word_for(tools::elements, element);
}

double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Sets the bytes read and written per second, and the tokens per second, from the median time,
/// because a mean would include every interruption.
void count_throughput(benchmark::State& state, double bytes, double tokens, double ns) {
    state.counters["bytes_per_second"] = bytes / ns * 1e9;
    if (tokens > 0) state.counters["tokens_per_second"] = tokens / ns * 1e9;
}

/// Returns a function that records a whole command buffer with one of the record functions.
std::function<Status(VkCommandBuffer)> recording(const std::shared_ptr<Rope>& rope,
                                                 Status (Rope::*record)(VkCommandBuffer)) {
    return [=](VkCommandBuffer commands) {
        rope->begin();
        return (*rope.*record)(commands);
    };
}

}  // namespace

void Bench::register_rows() {
    register_ropes();
    register_rivals();
    register_ops();
    register_growth();
    register_host_rows();
}

// Registers a row. A row that fails reports its error, and the next row runs.
void Bench::add(const std::string& name, std::function<void(benchmark::State&)> function) {
    benchmark::RegisterBenchmark(name.c_str(), [this, function = std::move(function)](
                                                   benchmark::State& state) {
        try {
            function(state);
        } catch (const tools::Failure& failure) {
            if (outcome_ == ExitCode::success) outcome_ = failure.code();
            state.SkipWithError(tools::printable(failure.what()).c_str());
        }
    })->UseManualTime();
}

void Bench::add_row(const std::string& name, Make make,
                    void (Bench::*time)(benchmark::State&, Row&)) {
    add(name, [this, name, make = std::move(make), time](benchmark::State& state) {
        Row& row = set_up(name, make);
        state.SetLabel(row.label);
        (this->*time)(state, row);
    });
}

Bench::Row& Bench::set_up(const std::string& name, const Make& make) {
    if (set_up_ != name) {
        set_up_.clear();
        ops_.reset();
        row_ = {};  // freed before the next row is made, because both together may not fit
        row_ = make();
        check_row(row_);
        set_up_ = name;
    }
    return row_;
}

void Bench::check_row(Row& row) {
    if (!row.bound_u) return;
    row.first_ns = value_of(time_ns(device_, row.record), Subject::device);
    std::uint64_t elements = 0;
    for (const bool key : {false, true}) {
        const Shape& shape = row.layer->shape();
        if ((key ? shape.k_heads : shape.q_heads) == 0) continue;
        const Checked checked = row.layer->check(key, *row.bound_u);
        if (!checked.failure.empty())
            fail(ExitCode::verification_failed, "{}: {}", key ? "K" : "Q", checked.failure);
        elements += checked.elements;
        row.error_u = std::max(row.error_u, checked.error_u);
    }
    row.checked = double(elements) /
                  double(row.layer->shape().q_elements() + row.layer->shape().k_elements());
}

// Returns a quarter of the device memory, because software devices share memory with all other
// programs.
std::uint64_t Bench::memory() const {
    return device_.info().memory_bytes / 4;
}

bool Bench::fits(const Shape& shape, Element element) {
    const std::uint64_t bytes = device_bytes(shape, element);
    if (bytes <= memory()) return true;
    left_out_.push_back(
        fmt::format("{}: {} MiB of {} tensors, a quarter of the device's memory is {}", shape.name,
                    bytes >> 20, name_of(element), memory() >> 20));
    return false;
}

CopyRoof& Bench::roof() {
    if (!roof_)
        roof_ = std::make_unique<CopyRoof>(value_of(CopyRoof::make(device_), Subject::device));
    return *roof_;
}

void Bench::aim_roof(const Row& row) {
    roof().aim(row.layer->copies());
    check(roof().settle(true), Subject::device);
}

Bench::Row Bench::empty_row(const Shape& shape, Element element, bool in_place) {
    Row row;
    row.layer = std::make_unique<Layer>(device_, shape, element, in_place);
    row.label = shape.model;
    return row;
}

Bench::Row Bench::rope_row(const Shape& shape, Element element, AngleSource angles, bool in_place) {
    Row row = empty_row(shape, element, in_place);
    const auto rope = std::make_shared<Rope>(device_, *row.layer, angles);
    row.record = recording(rope, &Rope::record);
    row.bound_u = error_bound(rope->angles(), 1);
    return row;
}

Bench::Row Bench::unfused_row(const Shape& shape, Element element) {
    Row row = empty_row(shape, element, shape.scatters());
    const auto rope = std::make_shared<Rope>(device_, *row.layer, VKROPE_ANGLES_AUTOMATIC);
    row.record = recording(rope, &Rope::record_unfused);
    row.ours = recording(rope, &Rope::record);
    row.bound_u = error_bound(rope->angles(), 1);
    return row;
}

Bench::Row Bench::rival_row(const Shape& shape, Element element, Way way) {
    Row row = rope_row(shape, element, VKROPE_ANGLES_AUTOMATIC, false);
    const auto rival = std::make_shared<Rival>(device_, shape, element, way);
    row.ours = std::move(row.record);
    const Rival::Rotated q = {row.layer->in(false), row.layer->out(false), shape.q_heads},
                         k = {row.layer->in(true), row.layer->out(true), shape.k_heads};
    row.record = [=](VkCommandBuffer commands) { return rival->record(commands, q, k); };
    row.bound_u = rival->bound_u();
    return row;
}

Bench::Row Bench::copy_buffer_row(const Shape& shape, Element element) {
    Row row = empty_row(shape, element, false);
    row.record = [this, copies = row.layer->copies()](VkCommandBuffer commands) {
        for (const Copied& copied : copies) {
            const VkBufferCopy region = {copied.from.offset, copied.to.offset, copied.from.range};
            device_.get()->vk.vkCmdCopyBuffer(commands, copied.from.buffer, copied.to.buffer, 1,
                                              &region);
        }
        return Status{};
    };
    row.label = "vkCmdCopyBuffer";
    return row;
}

// Times a row alternately with the copies and, for a rival, with vkrope's rotation, so that other
// load on the machine affects all of them.
void Bench::time_rotation(benchmark::State& state, Row& row) {
    const double bytes = 2 * double(row.layer->bytes_read());
    aim_roof(row);
    std::vector<double> times, ours, host;
    const auto timed = [&](VkCommandBuffer commands) {
        const double start = now_ns();
        const Status status = row.record(commands);
        host.push_back(now_ns() - start);
        return status;
    };
    // A long row has few iterations. Each iteration is then the median of 3 runs, unless the row
    // takes a second.
    const std::size_t turns = state.max_iterations < 3 && row.first_ns < 1e9 ? 3 : 1;
    for (auto _ : state) {
        for (std::size_t turn = 0; turn < turns; ++turn) {
            check(roof().round(), Subject::device);
            if (row.ours) ours.push_back(value_of(time_ns(device_, row.ours), Subject::device));
            times.push_back(value_of(time_ns(device_, timed), Subject::device));
        }
        state.SetIterationTime(median({times.end() - std::ptrdiff_t(turns), times.end()}) * 1e-9);
    }
    const double ns = median(times);
    count_throughput(state, bytes, double(row.layer->shape().rows()), ns);
    state.counters["roof"] = roof().best_ns() / ns;
    state.counters["host_ns"] = median(host);
    if (row.ours) state.counters["vkrope_speedup"] = ns / median(ours);
    if (row.bound_u) {
        state.counters["error_u"] = row.error_u;
        state.counters["checked"] = row.checked;
    }
}

void Bench::time_copy(benchmark::State& state, Row& row) {
    aim_roof(row);
    std::vector<double> times;
    for (auto _ : state) {
        check(roof().round(), Subject::device);
        state.SetIterationTime(roof().last_ns() * 1e-9);
    }
    count_throughput(state, 2 * double(row.layer->bytes_read()), 0, roof().best_ns());
    state.SetLabel(roof().best_name());
}

// Times a dispatch with the same number and size of workgroups that do nothing.
void Bench::time_empty(benchmark::State& state, const Shape& shape, Element element) {
    row_ = {};
    set_up_.clear();
    Layer layer(device_, shape, element, shape.scatters());
    Rope rope(device_, layer, VKROPE_ANGLES_AUTOMATIC);
    const Rope::Grid grid = rope.grid();
    Idle idle(device_, grid.workgroup_size);
    const auto empty = [&](VkCommandBuffer commands) {
        return idle.record(commands, layer.in(false), grid.workgroups);
    };
    const auto rotate = [&](VkCommandBuffer commands) {
        rope.begin();
        return rope.record(commands);
    };
    std::vector<double> times, ours;
    for (auto _ : state) {
        ours.push_back(value_of(time_ns(device_, rotate), Subject::device));
        times.push_back(value_of(time_ns(device_, empty), Subject::device));
        state.SetIterationTime(times.back() * 1e-9);
    }
    state.counters["vkrope_over_empty"] = median(ours) / median(times);
}

void Bench::time_cpu(benchmark::State& state, const Shape& shape, Element element) {
    row_ = {};
    set_up_.clear();
    const Pattern pattern(element);
    const std::vector<float> table = cpu_table(shape);
    const std::vector<std::byte> q = pattern.at(0, shape.q_elements()),
                                 k = pattern.at(0, shape.k_elements());
    std::vector<std::byte> q_out(q.size()), k_out(k.size());
    const auto rotate = [&] {
        rotate_on_cpu(element, q.data(), q_out.data(), table.data(), shape.tokens, shape.q_heads,
                      shape.rotary_dim);
        rotate_on_cpu(element, k.data(), k_out.data(), table.data(), shape.tokens, shape.k_heads,
                      shape.rotary_dim);
    };
    rotate();
    for (const bool key : {false, true}) {
        const std::vector<std::byte>& out = key ? k_out : q_out;
        const auto read = [&](std::uint64_t first, std::uint64_t count) {
            const auto start = out.begin() + std::ptrdiff_t(first * element_bytes(element));
            return std::vector<std::byte>(start,
                                          start + std::ptrdiff_t(count * element_bytes(element)));
        };
        const Checked checked = verify(shape, element, key, read,
                                       error_bound(VKROPE_ANGLES_DIRECT_BUFFER, 1));
        if (!checked.failure.empty())
            fail(ExitCode::verification_failed, "{}: {}", key ? "K" : "Q", checked.failure);
    }
    row_ = rope_row(shape, element, VKROPE_ANGLES_AUTOMATIC, false);
    value_of(time_ns(device_, row_.record), Subject::device);
    std::vector<double> times, ours;
    for (auto _ : state) {
        ours.push_back(value_of(time_ns(device_, row_.record), Subject::device));
        const double start = now_ns();
        rotate();
        times.push_back(now_ns() - start);
        state.SetIterationTime(times.back() * 1e-9);
    }
    count_throughput(state, 2 * double(q.size() + k.size()), double(shape.rows()), median(times));
    state.counters["vkrope_speedup"] = median(times) / median(ours);
}

void Bench::register_ropes() {
    for (const Shape& shape : shapes()) {
        for (const Element element : all_elements) {
            // Fewer tokens would change the ids. With ascending positions, a shorter prefill is
            // still a long prefill.
            const bool may_shrink = shape.numbering == Numbering::ascending;
            const Shape shown = may_shrink ? reduced(shape, element, memory()) : shape;
            if (!fits(shown, element)) continue;
            const std::string cut = shown.tokens == shape.tokens
                                        ? ""
                                        : fmt::format(", {} of {} tokens: memory", shown.tokens,
                                                      shape.tokens);
            const std::string suffix = shape.name + "/" + name_of(element);
            for (const auto& [word, angles] : tools::angle_sources) {
                for (const bool in_place : {false, true}) {
                    if (shape.scatters() && !in_place)
                        continue;  // engines rotate the queries of a decode step in place
                    const std::string name = fmt::format("rope/{}/{}/{}", suffix, word,
                                                         in_place ? "in_place" : "out_of_place");
                    const auto make = [=, this, source = angles, s = shown] {
                        Row row = rope_row(s, element, source, in_place);
                        row.label += cut;
                        return row;
                    };
                    add_row(name, make, &Bench::time_rotation);
                }
            }
            if (shape.scatters())
                add("empty/" + suffix, [=, this, s = shown](benchmark::State& state) {
                    time_empty(state, s, element);
                });
            add_row(
                "copy/" + suffix, [=, this, s = shown] { return empty_row(s, element, false); },
                &Bench::time_copy);
            add_row(
                "copy_buffer/" + suffix,
                [=, this, s = shown] { return copy_buffer_row(s, element); },
                &Bench::time_rotation);
        }
    }
}

void Bench::register_growth() {
    const auto add_growth = [this](const Shape& shape) {
        if (!fits(shape, VKROPE_F16)) return;
        add_row(
            shape.name,
            [=, this] { return rope_row(shape, VKROPE_F16, VKROPE_ANGLES_AUTOMATIC, false); },
            &Bench::time_rotation);
    };
    for (std::uint32_t tokens = 1; tokens <= 1u << 20; tokens *= 4)
        add_growth(growing_tokens(tokens));
    for (std::uint32_t tokens = 1; tokens <= 1u << 20; tokens *= 4)
        add_growth(growing_tokens_of_one_head(tokens));
    for (std::uint32_t heads = 1; heads <= 128; heads *= 2) add_growth(growing_heads(heads));
}

void Bench::register_rivals() {
    for (const Shape& shape : shapes()) {
        for (const Element element : all_elements) {
            if (reduced(shape, element, memory()).tokens != shape.tokens) continue;
            const std::string suffix = shape.name + "/" + name_of(element);
            add_row(
                "rival/unfused/" + suffix, [=, this] { return unfused_row(shape, element); },
                &Bench::time_rotation);
            if (!shape.plain()) continue;
            // Long tensors exceed many devices' binding size, and the rivals do not split tensors.
            const std::uint64_t bytes = shape.q_elements() * element_bytes(element);
            if (bytes <= device_.info().limits->maxStorageBufferRange) {
                for (const Way way : {Way::ggml, Way::ggml_along_x, Way::onnxruntime, Way::ncnn}) {
                    add_row(
                        fmt::format("rival/{}/{}", word_for(way), suffix),
                        [=, this] { return rival_row(shape, element, way); },
                        &Bench::time_rotation);
                }
            }
            add("cpu/" + suffix,
                [=, this](benchmark::State& state) { time_cpu(state, shape, element); });
        }
    }
}

}  // namespace vkrope::bench
