// SPDX-License-Identifier: MIT
#include "tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/terminal.hpp"
#include "copy_roof/median.hpp"
#include "rows.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::ExitCode;
using tools::Subject;

constexpr std::size_t finalists = 5, rounds_of_search = 5, rounds_of_finalists = 20,
                      max_rounds = 100;

struct Field {
    const char* name;
    std::uint32_t Tuning::*value;
    std::vector<std::uint32_t> values;
};

const std::vector<Field>& fields() {
    static const std::vector<Field> all = {
        {"lane_heads", &Tuning::lane_heads, {1, 2, 3, 4, 6, 8, 12, 16}},
        {"group_lanes", &Tuning::group_lanes, {32, 64, 128, 256, 512, 1024}},
        {"group_tokens", &Tuning::group_tokens, {1, 2, 4, 8, 16, 32}}};
    return all;
}

bool same(const Tuning& a, const Tuning& b) {
    return std::all_of(
        fields().begin(), fields().end(),
        [&](const Field& field) { return a.*field.value == b.*field.value; });
}

bool is_in(const std::vector<Tuning>& all, const Tuning& tuning) {
    return std::any_of(
        all.begin(), all.end(), [&](const Tuning& other) { return same(tuning, other); });
}

void sort(std::vector<Tried>& tried) {
    std::stable_sort(
        tried.begin(), tried.end(),
        [](const Tried& a, const Tried& b) { return a.speedup > b.speedup; });
}

// Returns the tuning as C++ initialises it.
std::string text(const Tuning& tuning) {
    return fmt::format("{{{}, {}, {}}}", tuning.lane_heads, tuning.group_lanes,
                       tuning.group_tokens);
}

// A difference below this may be noise.
constexpr double least_speedup = 1.02;

// Returns what to write for the fastest tuning; empty: nothing is faster than the default.
std::string to_paste(const Tuned& tuned) {
    const auto& tried = tuned.search.tried;
    // With the default's mapping, the tuning of zeros is the default.
    const auto best = std::find_if(tried.begin(), tried.end(), [&](const Tried& of) {
        return tuned.needs_gpu_mapping || !same(of.tuning, {});
    });
    if (best == tried.end() || best->speedup < least_speedup) return "";
    std::string line = tuned.needs_gpu_mapping ? "info.mapping = VKROPE_MAPPING_GPU;" : "";
    if (same(best->tuning, {})) return line;
    if (!line.empty()) line += " ";
    return line + "info.tuning = " + text(best->tuning) + ";";
}

double gigabytes_per_second(const Tuned& tuned, double ns) {
    return tuned.bytes / ns;
}

}  // namespace

Search search(const Try& try_tuning) {
    std::vector<Tuning> seen;
    Search found;
    const auto visit = [&](const Tuning& tuning) {
        if (is_in(seen, tuning)) return;
        seen.push_back(tuning);
        if (const auto tried = try_tuning(tuning, rounds_of_search))
            found.tried.push_back(*tried);
        else
            ++found.refused;
    };
    visit({});
    for (std::size_t before = 0; before != seen.size();) {
        before = seen.size();
        for (const Field& field : fields()) {
            sort(found.tried);
            Tuning tuning = found.tried.empty() ? Tuning{} : found.tried[0].tuning;
            for (const std::uint32_t value : field.values) {
                tuning.*field.value = value;
                visit(tuning);
            }
        }
    }
    // The fastest of many was also lucky. The first ones are those of them that stay so.
    std::vector<Tuning> again;
    for (bool timed = true; timed;) {
        timed = false;
        sort(found.tried);
        for (std::size_t i = 0; i < std::min(finalists, found.tried.size()) && !timed; ++i) {
            Tried& tried = found.tried[i];
            if (is_in(again, tried.tuning)) continue;
            again.push_back(tried.tuning);
            if (const auto anew = try_tuning(tried.tuning, rounds_of_finalists)) tried = *anew;
            timed = true;
        }
    }
    return found;
}

std::string table(const Tuned& tuned) {
    std::string lines = fmt::format("{}: {}\n", tuned.row, tuned.label);
    for (const Field& field : fields()) lines += fmt::format("{:>13}", field.name);
    lines += fmt::format("{:>11}{:>9}{:>7}{:>9}\n", "us", "GB/s", "roof%", "speedup");
    const auto figures = [&](double ns, double speedup) {
        lines += fmt::format("{:>11.2f}{:>9.4g}{:>7.0f}{:>9.2f}\n", ns / 1e3,
                             gigabytes_per_second(tuned, ns), 100 * tuned.roof_ns / ns, speedup);
    };
    lines += fmt::format("{:>{}}", "default", 13 * fields().size());
    figures(tuned.default_ns, 1);
    for (const Tried& tried : tuned.search.tried) {
        for (const Field& field : fields())
            lines += fmt::format("{:>13}", tried.tuning.*field.value);
        figures(tried.ns, tried.speedup);
    }
    const std::string line = to_paste(tuned);
    lines += fmt::format("{} tunings, {} more refused by create(); 0: the library chooses\n",
                         tuned.search.tried.size(), tuned.search.refused);
    if (tuned.needs_gpu_mapping)
        lines +=
            "the device is a CPU: its default mapping has no tuning, so that these have "
            "VKROPE_MAPPING_GPU\n";
    lines += line.empty() ? fmt::format("none is {:.0f} % faster than the default\n",
                                        100 * (least_speedup - 1))
                          : "the fastest: " + line + "\n";
    return lines;
}

std::string json(const Tuned& tuned, const tools::KnownDevice& device, const std::string& commit) {
    nlohmann::ordered_json tunings = nlohmann::ordered_json::array();
    for (const Tried& tried : tuned.search.tried) {
        nlohmann::ordered_json one;
        for (const Field& field : fields()) one[field.name] = tried.tuning.*field.value;
        one["ns"] = tried.ns;
        one["speedup"] = tried.speedup;
        tunings.push_back(one);
    }
    const nlohmann::ordered_json all = {{"device", tools::device_json(device)},
                                        {"vkrope_version", VKROPE_PROJECT_VERSION},
                                        {"commit", commit},
                                        {"row", tuned.row},
                                        {"bytes", tuned.bytes},
                                        {"roof_ns", tuned.roof_ns},
                                        {"default_ns", tuned.default_ns},
                                        {"gpu_mapping", tuned.needs_gpu_mapping},
                                        {"refused", tuned.search.refused},
                                        {"tunings", tunings},
                                        {"to_paste", to_paste(tuned)}};
    return all.dump(1) + "\n";
}

const std::pair<const std::string, Bench::Make>& Bench::tunable(const std::string& name) const {
    const bool names_type = std::count(name.begin(), name.end(), '/') >= 2;
    for (const auto& row : calls_)
        if (names_type && (row.first + "/").starts_with(name + "/")) return row;
    for (const std::string& sentence : left_out_) tools::print_note(sentence);
    tools::fail(ExitCode::usage,
                "--tune: '{}' is no row that records a kernel: name rope/SHAPE/DTYPE[/ANGLES["
                "/PLACE]], ops/SHAPE/DTYPE, cache/SHAPE/TYPE or layer/SHAPE/TYPE of "
                "--benchmark_list_tests",
                name);
}

Tuned Bench::tune(const std::string& name) {
    const auto& [row_name, make] = tunable(name);
    try {
        return tune(row_name, make());
    } catch (const tools::Failure& failure) {
        tools::fail(failure.code(), "{}: {}", row_name, failure.what());
    }
}

Tuned Bench::tune(const std::string& name, const Row& row) {
    Tuned tuned{.row = name, .label = row.label, .bytes = row.bytes};
    tuned.needs_gpu_mapping = device_.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    roof().aim(row.copies, row.repeat);
    check(roof().settle(true), Subject::device);
    std::vector<double> defaults;
    tools::ProgressLine progress("tuning");
    std::size_t tries = 0;
    tuned.search = search([&](const Tuning& tuning, std::size_t rounds) -> std::optional<Tried> {
        progress.update(1 - 1 / (1 + double(tries++) / 20));
        const std::optional<Time> time = tuned_time(row, tuning, tuned.needs_gpu_mapping);
        if (!time) return std::nullopt;
        constexpr double enough_ns = 50e6;
        std::vector<double> times, speedups;
        for (double ns = 0; times.size() < rounds || (ns < enough_ns && times.size() < max_rounds);
             ns += defaults.back() * row.repeat.calls) {
            check(roof().round(), Subject::device);
            defaults.push_back(row.time());
            times.push_back((*time)());
            speedups.push_back(defaults.back() / times.back());
        }
        return Tried{tuning, tools::median(times), tools::median(speedups)};
    });
    tuned.roof_ns = roof().best_ns();
    tuned.default_ns = tools::median(defaults);
    return tuned;
}

// Returns what times the row's call with a tuning, after a check of its outputs; nothing if
// create() refuses the tuning.
std::optional<Bench::Time> Bench::tuned_time(const Row& row, const Tuning& tuning,
                                             bool gpu_mapping) {
    Layer& layer = *row.tensors;
    verify::Operation operation = layer.operation();
    operation.info.tuning = tuning;
    if (gpu_mapping) operation.info.mapping = VKROPE_MAPPING_GPU;
    std::shared_ptr<Pass> pass;
    try {
        pass = std::make_shared<Pass>(device_, operation, row.repeat.calls);
    } catch (const tools::Failure& failure) {
        // The call itself works, so that these errors concern the tuning.
        if (failure.code() == ExitCode::usage || failure.code() == ExitCode::no_device)
            return std::nullopt;
        throw;
    }
    layer.fill();
    running(recording(pass), {})();
    layer.check_outputs(layer.operation(), {}, ("tuning = " + text(tuning) + ": ").c_str());
    return running(recording(pass), row.repeat);
}

}  // namespace vkrope::bench
