// SPDX-License-Identifier: MIT
// vkrope explain: computes the meaning of a model's RoPE, and implements the command.
#include "explain/explain.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "files/model_options.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/output_file.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr double turn = 2 * std::numbers::pi;
constexpr double assumed_length = 4096;

struct ExplainOptions {
    ModelOptions model;
    std::optional<Pairing> pairing;
    std::optional<std::string> svg;  // a path
    bool all = false, json = false;
};

ExitCode print_explanation(const ExplainOptions& options) {
    Rotation rotation = load_model(options.model).rotation;
    rotation.pairing = options.pairing.value_or(rotation.pairing);
    const Explanation explanation = explain(std::move(rotation));
    if (options.svg) {
        if (!explanation.rotation.rotates) {
            fail(ExitCode::usage,
                 "--svg: this layer has no rotary position embedding, so there is nothing to draw");
        }
        const std::string picture = svg_of(explanation);
        std::vector<OutputFile> files;
        files.emplace_back("--svg", *options.svg, picture.size());
        files.front().check_distinct_from("--model", options.model.path);
        files.front().write(picture);
        OutputFile::publish(files);
    }
    options.json ? write_json(json_of(explanation))
                 : write_output(text_of(explanation, options.all));
    return ExitCode::success;
}

}  // namespace

Explanation explain(Rotation rotation) {
    Explanation explanation;
    const std::uint64_t length = rotation.longest_seq_len > 0 ? rotation.longest_seq_len
                                                              : rotation.max_position;
    explanation.knows_length = length > 0;
    explanation.length = explanation.knows_length ? double(length) : assumed_length;
    const auto count = static_cast<std::uint32_t>(rotation.inv_freq.size());
    std::vector<double> unscaled(count);
    explanation.knows_unscaled = count > 0 && rotation.base > 0 &&
                                 bool(default_inv_freq(rotation.base, rotation.rotary_dim,
                                                       unscaled.data()));
    const bool half_split = rotation.pairing == Pairing::half_split;
    for (std::uint32_t j = 0; j < count; ++j) {
        ExplainedPair pair;
        pair.first = half_split ? j : 2 * j;
        pair.second = half_split ? j + count : 2 * j + 1;
        pair.axis = axis_of(rotation.sections, j);
        pair.inv_freq = rotation.inv_freq[j];
        pair.unscaled = explanation.knows_unscaled ? unscaled[j] : 0;
        pair.wavelength = pair.inv_freq == 0 ? std::numeric_limits<double>::infinity()
                                             : turn / pair.inv_freq;
        // A formula that leaves a frequency unchanged may still round it again; that is not
        // scaling.
        const double slower = pair.inv_freq == 0 ? std::numeric_limits<double>::infinity()
                                                 : std::fabs(pair.unscaled / pair.inv_freq);
        pair.slower = !explanation.knows_unscaled ? 0 : std::fabs(slower - 1) < 1e-12 ? 1 : slower;
        pair.turns = std::fabs(pair.inv_freq) * explanation.length / turn;
        explanation.pairs.push_back(pair);
    }
    explanation.rotation = std::move(rotation);
    return explanation;
}

double decay_bound(const std::vector<double>& inv_freq, double distance) {
    std::complex<double> sum = 0;
    double total = 0;
    for (const double frequency : inv_freq) {
        sum += std::polar(1.0, distance * frequency);
        total += std::abs(sum);
    }
    return inv_freq.empty() ? 0 : total / double(inv_freq.size());
}

void add_explain(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "explain", "Say what a model's RoPE means: wavelengths, scaling, pairs, factors.");
    const auto options = std::make_shared<ExplainOptions>();
    add_model_options(command, options->model);
    add_pairing(command, options->pairing);
    command.add_text("--svg", "FILE", options->svg,
                     "Draw it as well: wavelengths, clock hands, decay with distance.");
    command.add_flag("--all", options->all,
                     "Print a line for every pair, even if there are more than 64.");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return print_explanation(*options); });
}

}  // namespace vkrope::tools
