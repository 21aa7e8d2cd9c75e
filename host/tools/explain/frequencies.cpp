// SPDX-License-Identifier: MIT
// vkrope frequencies: prints a model's RoPE as numbers, or writes its rotary matrix, which has the
// sines and cosines of consecutive positions.
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/terminal.hpp"
#include "explain/explain.hpp"
#include "io/model_file.hpp"
#include "io/npy.hpp"
#include "verify/oracle/oracle.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1}
                                         << 34;  // a mistyped range must not fill the disk
constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min(),
                       past_highest = std::int64_t{1} << 31;

// The positions from `first` up to but not including `end`.
struct PositionRange {
    std::int64_t first = 0, end = 0;
};

// Parses "A:B", two integers with A < B; every position must fit in int32. Throws BadValue.
PositionRange parse_range(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
        throw BadValue(
            fmt::format("'{}' must be two positions A:B, for A up to but not including B", text));
    }
    const PositionRange range = {parse_integer(text.substr(0, colon), lowest, past_highest - 1),
                                 parse_integer(text.substr(colon + 1), lowest + 1, past_highest)};
    if (range.first >= range.end) {
        throw BadValue(
            fmt::format("'{}' has no positions: A must be below B, which is not included", text));
    }
    return range;
}

// Writes float32 [end - first, rotary_dim]: each row has the sines of all pairs, then their
// cosines, each multiplied by the attention factor and rounded once. Throws Failure.
void write_matrix(const RopeParams& rotation, const PositionRange& range, const std::string& path,
                  const std::string& model_path) {
    const auto rows = std::uint64_t(range.end - range.first);
    const std::uint64_t pairs = rotation.inv_freq.size();
    const std::uint64_t shape[] = {rows, 2 * pairs};
    const std::uint64_t bytes = npy::data_bytes(npy::Type::f4, shape);
    if (bytes > max_file_bytes) {
        fail(ExitCode::usage,
             "--matrix: {} positions of {} numbers have {} bytes; at most {} are written", rows,
             2 * pairs, bytes, max_file_bytes);
    }
    std::vector<OutputFile> files;
    files.emplace_back("--out", path);
    files.front().check_distinct_from("--model", model_path);
    files.front().write(npy::make_header(npy::Type::f4, shape));
    std::vector<float> row(2 * pairs);
    for (std::int64_t position = range.first; position < range.end; ++position) {
        for (std::uint64_t j = 0; j < pairs; ++j) {
            const oracle::CosSin turned = oracle::exact_cos_sin(position, rotation.inv_freq[j]);
            row[j] = float(rotation.attention_factor * turned.sin);
            row[pairs + j] = float(rotation.attention_factor * turned.cos);
        }
        files.front().write(std::as_bytes(std::span(row)));
    }
    OutputFile::publish(files);
}

struct FrequenciesOptions {
    ModelOptions model;
    std::optional<PositionRange> matrix;
    std::string out;
    bool json = false;
};

// Returns null if a token has one position.
nlohmann::ordered_json json_of(const Sections& sections) {
    if (sections.axes == 0) return nullptr;
    if (sections.order == VKROPE_SECTIONS_SUM) return {{"mode", "sum"}, {"axes", sections.axes}};
    const bool interleaved = sections.order == VKROPE_SECTIONS_INTERLEAVED;
    nlohmann::ordered_json json = {
        {"mode", interleaved ? "interleaved" : "sequential"},
        {"sizes", std::vector(sections.pairs, sections.pairs + sections.axes)}};
    if (interleaved) json["leftover_axis"] = sections.leftover_axis;
    return json;
}

nlohmann::ordered_json frequencies_json(const RopeParams& rotation) {
    nlohmann::ordered_json json = rotation_json(rotation);
    json.update({{"sections", json_of(rotation.sections)},
                 {"inv_freq", rotation.inv_freq},
                 {"phase", rotation.phase}});
    return json;
}

ExitCode print_frequencies(const FrequenciesOptions& options) {
    const RopeParams rotation = load_model(options.model).rotation;
    if (options.matrix) {
        if (rotation.no_rope)
            fail(ExitCode::usage, "--matrix: this layer has no rotary position embedding");
        write_matrix(rotation, *options.matrix, options.out, options.model.path);
    }
    if (options.json)
        write_json(frequencies_json(rotation));
    else if (!options.matrix)
        write_output(text_of(explain(rotation), true));
    return ExitCode::success;
}

}  // namespace

void add_frequencies(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "frequencies", "Print the frequency of every channel pair of a model's RoPE.");
    const auto options = std::make_shared<FrequenciesOptions>();
    add_model_options(command, options->model);
    const auto set_range = [options](const std::string& text) {
        options->matrix = parse_range(text);
    };
    Option matrix = command.add_value(
        "--matrix", "A:B", set_range,
        "Write the rotary matrix of positions A to B - 1 to --out "
        "instead: float32 [B - A, rotary_dim], in each row the "
        "sines of all pairs and then their cosines, times the attention "
        "factor. A may be negative.");
    Option out = command.add_text("--out", "FILE", options->out, "The .npy file of --matrix.");
    matrix.needs(out);
    out.needs(matrix);
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return print_frequencies(*options); });
}

}  // namespace vkrope::tools
