// SPDX-License-Identifier: MIT
// vkrope dequantise: the numbers that the codes of a quantised tensor stand for.
#include <cmath>
#include <limits>
#include <memory>

#include "files/array_file.hpp"
#include "files/element_type.hpp"
#include "reference/quantise.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/output_file.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<Element> quantised[] = {stored_elements[3], stored_elements[4], stored_elements[5],
                                         stored_elements[6], stored_elements[7], stored_elements[8],
                                         stored_elements[9], stored_elements[10]};

struct DequantiseOptions {
    Element type = Element::q8_0;
    std::string codes, out;
    std::optional<double> scale;
    std::optional<std::string> scales;
};

npy::Array read_codes(const DequantiseOptions& options) {
    npy::Array codes = read_array("--codes", options.codes);
    const npy::Header& header = codes.header;
    if (header.type != npy::Type::u1) {
        fail(ExitCode::bad_file, "--codes: '{}' has data of type {}; it must be |u1 (uint8)",
             options.codes, npy::name(header.type));
    }
    if (header.shape.empty()) {
        fail(ExitCode::bad_file, "--codes: '{}' has shape (); it must have rows", options.codes);
    }
    const std::uint64_t block = element_bytes(options.type);
    if (header.shape.back() % block != 0) {
        fail(ExitCode::bad_file,
             "--codes: '{}' has shape {}; rows of {} must be a multiple of {} bytes", options.codes,
             npy::shape_text(header.shape), word_for(quantised, options.type), block);
    }
    return codes;
}

/// A factor for each row.
std::vector<float> read_scales(const DequantiseOptions& options, const npy::Header& codes) {
    const std::vector<std::uint64_t> rows(codes.shape.begin(), codes.shape.end() - 1);
    return read_floats("--scales", *options.scales, rows,
                       fmt::format("--codes '{}'", options.codes), "row");
}

std::uint64_t checked_bytes(const DequantiseOptions& options,
                            const std::vector<std::uint64_t>& shape) {
    try {
        return npy::data_bytes(npy::Type::f4, shape);
    } catch (const npy::Error& error) {
        fail(ExitCode::bad_file, "--codes: '{}': the output: {}", options.codes, error.what());
    }
}

ExitCode dequantise(const DequantiseOptions& options) {
    if (block_channels(options.type) > 1 && (options.scale || options.scales)) {
        fail(ExitCode::usage,
             "{}: the blocks of {} have scales of their own; e4m3fn, e5m2 and "
             "int8 take it",
             options.scale ? "--scale" : "--scales", word_for(quantised, options.type));
    }
    const npy::Array codes = read_codes(options);
    std::vector<float> scales;
    if (options.scales) {
        scales = read_scales(options, codes.header);
    }
    std::vector<std::uint64_t> shape = codes.header.shape;
    const std::uint64_t row_bytes = shape.back();
    shape.back() = row_bytes / element_bytes(options.type) * block_channels(options.type);
    const std::uint64_t bytes = checked_bytes(options, shape);
    const std::string header = npy::make_header(npy::Type::f4, shape);
    std::vector<OutputFile> files;
    files.emplace_back("--out", options.out, header.size() + bytes);
    files.front().check_distinct_from("--codes", file_of(options.codes));
    if (options.scales) {
        files.front().check_distinct_from("--scales", file_of(*options.scales));
    }
    files.front().write(header);
    const auto* data = reinterpret_cast<const std::uint8_t*>(codes.data.data());
    for (std::uint64_t row = 0; row * row_bytes < codes.data.size(); ++row) {
        const float scale = scales.empty() ? static_cast<float>(options.scale.value_or(1))
                                           : scales[row];
        const std::vector<float> values = reference::dequantise(
            reference_store(options.type), {data + row * row_bytes, row_bytes}, scale);
        files.front().write(std::as_bytes(std::span(values)));
    }
    OutputFile::publish(files);
    return ExitCode::success;
}

}  // namespace

void add_dequantise(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "dequantise", "Write the numbers that the codes of a quantised tensor stand for.");
    const auto options = std::make_shared<DequantiseOptions>();
    command.add_choice("--type", options->type, quantised, "What the codes are.").required();
    command
        .add_text("--codes", "FILE", options->codes,
                  "The codes, .npy or .safetensors: uint8, the bytes of a row on the last axis.")
        .required();
    command.add_text("--out", "FILE", options->out, "The .npy file to write, in float32.")
        .required();
    command
        .add_number(
            "--scale", options->scale,
            [](double x) { return x != 0 && std::fabs(x) <= std::numeric_limits<float>::max(); },
            "a number other than 0 that a float holds",
            "Factor of every value of e4m3fn, e5m2 or int8 (1). For codes of x times a scale it is "
            "1 / scale.")
        .excludes(command.add_text("--scales", "FILE", options->scales,
                                   "A factor for each row, .npy or .safetensors: float32, the "
                                   "shape of the codes without the last axis."));
    command.on_run([options] { return dequantise(*options); });
}

}  // namespace vkrope::tools
