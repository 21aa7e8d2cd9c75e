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

#include "base/meaning.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/terminal.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {
namespace {

constexpr double turn = 2 * std::numbers::pi;
constexpr double assumed_length = 4096;

struct ExplainOptions {
    ModelOptions model;
    std::optional<std::string> svg;  // path of the picture
    bool all = false, json = false;
};

ExitCode print_explanation(const ExplainOptions& options) {
    RopeParams rotation = load_model(options.model).rotation;
    const Explanation explanation = explain(std::move(rotation));
    if (options.svg) {
        if (explanation.rotation.no_rope) {
            fail(ExitCode::usage,
                 "--svg: this layer has no rotary position embedding, so there is nothing to draw");
        }
        std::vector<OutputFile> files;
        files.emplace_back("--svg", *options.svg);
        files.front().check_distinct_from("--model", options.model.path);
        files.front().write(svg_of(explanation));
        OutputFile::publish(files);
    }
    options.json ? write_json(json_of(explanation))
                 : write_output(text_of(explanation, options.all));
    return ExitCode::success;
}

bool is_sum(const RopeParams& rotation) {
    return rotation.sections.axes != 0 && rotation.sections.order == VKROPE_SECTIONS_SUM;
}

// Returns channels, frequency and phase of a pair; `row` is the axis if pairs sum over axes.
ExplainedPair pair_of(const RopeParams& rotation, std::uint32_t group, std::uint32_t j,
                      std::uint32_t row) {
    const std::size_t count = rotation.rotary_dim / 2;
    const std::size_t rows = is_sum(rotation) ? rotation.sections.axes : 1;
    const bool half_split = rotation.pairing == VKROPE_HALF_SPLIT;
    ExplainedPair pair;
    std::uint32_t before = 0;  // number of pairs in earlier windows
    for (const Window& window : windows_of(rotation)) {
        const std::uint32_t in_window = j - before, pairs = window.rotary_dim / 2;
        if (in_window < pairs) {
            pair.first = window.offset + (half_split ? in_window : 2 * in_window);
            pair.second = pair.first + (half_split ? pairs : 1);
            break;
        }
        before += pairs;
    }
    pair.pair = j;
    pair.group = group;
    pair.phase = rotation.phase.empty() ? 0 : rotation.phase[group * count + j];
    pair.inv_freq = rotation.inv_freq[(group * rows + row) * count + j];
    return pair;
}

// Computes the fields that follow from the frequency.
void measure(ExplainedPair& pair, const Explanation& explanation) {
    pair.wavelength = pair.inv_freq == 0 ? std::numeric_limits<double>::infinity()
                                         : turn / pair.inv_freq;
    // A formula that leaves a frequency unchanged may still round it, which is not scaling.
    const double slower = pair.inv_freq == 0 ? std::numeric_limits<double>::infinity()
                                             : std::fabs(pair.unscaled / pair.inv_freq);
    pair.slower = !explanation.knows_unscaled ? 0 : std::fabs(slower - 1) < 1e-12 ? 1 : slower;
    pair.turns = std::fabs(pair.inv_freq) * explanation.length / turn;
}

}  // namespace

std::vector<double> joint_frequencies(const RopeParams& rotation) {
    const std::size_t count = rotation.rotary_dim / 2;
    std::vector<double> joint(rotation.inv_freq.begin(),
                              rotation.inv_freq.begin() + std::ptrdiff_t(count));
    for (std::size_t row = 1; is_sum(rotation) && row < rotation.sections.axes; ++row)
        for (std::size_t j = 0; j < count; ++j) joint[j] += rotation.inv_freq[row * count + j];
    return joint;
}

Explanation explain(RopeParams rotation) {
    Explanation explanation;
    const std::uint64_t length = rotation.longest_seq_len > 0 ? rotation.longest_seq_len
                                                              : rotation.max_position;
    explanation.knows_length = length > 0;
    explanation.length = explanation.knows_length ? double(length) : assumed_length;
    const std::uint32_t count = !rotation.no_rope ? rotation.rotary_dim / 2 : 0;
    const bool sum = is_sum(rotation);
    std::vector<double> unscaled(count);
    explanation.knows_unscaled =
        count > 0 && rotation.base > 0 && rotation.inv_freq.size() == count &&
        bool(default_inv_freq(rotation.base, rotation.rotary_dim, unscaled.data()));
    const std::uint32_t rows = sum ? rotation.sections.axes : 1;
    for (std::uint32_t group = 0; group < rotation.head_groups; ++group) {
        for (std::uint32_t j = 0; j < count; ++j) {
            const std::size_t before = explanation.pairs.size();
            for (std::uint32_t row = 0; row < rows; ++row) {
                ExplainedPair pair = pair_of(rotation, group, j, row);
                pair.axis = sum ? row : axis_of(rotation.sections, j);
                pair.unscaled = explanation.knows_unscaled ? unscaled[j] : 0;
                measure(pair, explanation);
                const bool last = row + 1 == rows && explanation.pairs.size() == before;
                if (!sum || pair.inv_freq != 0 || last) explanation.pairs.push_back(pair);
            }
        }
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
    command.add_text("--svg", "FILE", options->svg,
                     "Draw it as well: wavelengths, and decay with distance.");
    command.add_flag("--all", options->all,
                     "Print a line for every pair, even if there are more than 64.");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return print_explanation(*options); });
}

}  // namespace vkrope::tools
