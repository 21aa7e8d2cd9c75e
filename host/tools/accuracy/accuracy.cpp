// SPDX-License-Identifier: MIT
// vkrope accuracy: the command and its measurement.
#include "accuracy/accuracy.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "files/model_options.hpp"
#include "reference/oracle.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/device_text.hpp"
#include "shell/output_file.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint32_t heads_measured = 4;
constexpr std::size_t positions_an_octave = 32;
/// The minimum maxStorageBufferRange that Vulkan requires: every device can bind a table of this
/// size, so the picture is the same everywhere.
constexpr std::uint64_t table_bytes_everywhere = std::uint64_t{1} << 27;

struct AccuracyOptions {
    ModelOptions model;
    std::string device;
    std::optional<std::string> svg;  // a path
    bool json = false;
};

/// The RoPE of Llama 3 before its scaling.
Rotation default_rotation() {
    Rotation rotation;
    rotation.base = 500000;
    rotation.rotary_dim = 128;
    rotation.inv_freq.resize(rotation.rotary_dim / 2);
    check(default_inv_freq(rotation.base, rotation.rotary_dim, rotation.inv_freq.data()),
          Subject::model_file);
    return rotation;
}

/// Keeps only what affects the error, not the position of the rotated channels in a row.
Rotation rotation_of(const AccuracyOptions& options) {
    Rotation rotation = options.model.path.empty() ? default_rotation()
                                                   : load_model(options.model).rotation;
    if (!rotation.rotates) {
        fail(ExitCode::usage, "--model: this layer has no rotary position embedding");
    }
    rotation.pairing = Pairing::half_split;
    rotation.head_dim = rotation.rotary_dim;
    rotation.q_rotary_offset = rotation.k_rotary_offset = 0;
    for (Window& window : rotation.windows) window = {};
    rotation.sections = {};
    return rotation;
}

/// The ends of each octave, where the digits of a position change, and random positions between
/// them.
std::vector<Octave> octaves() {
    std::mt19937_64 random(
        1);  // the standard fixes its output, but not the output of distributions
    std::vector<Octave> all;
    for (int power = 0; power <= 31; ++power) {
        const std::uint64_t last = std::min(std::uint64_t{1} << power, std::uint64_t{INT32_MAX});
        const std::uint64_t first = power == 0 ? 1 : (std::uint64_t{1} << (power - 1)) + 1,
                            count = last - first + 1;
        std::set<std::int32_t> positions;
        const auto add = [&](std::uint64_t position) {
            positions.insert(static_cast<std::int32_t>(position));
        };
        add(first);
        add(std::max(first, last - 1));
        add(last);
        while (positions.size() < std::min<std::uint64_t>(count, positions_an_octave)) {
            add(first + random() % count);
        }
        all.push_back({static_cast<std::uint32_t>(last), {positions.begin(), positions.end()}});
    }
    return all;
}

class Measurement {
   public:
    Measurement(Device& device, Accuracy& accuracy) : device_(device), accuracy_(accuracy) {
        for (const Octave& octave : accuracy.octaves) {
            positions_.insert(positions_.end(), octave.positions.begin(), octave.positions.end());
        }
        row_ = std::size_t{accuracy.heads} * accuracy.rotation.rotary_dim;
        input_ = random_values(positions_.size() * row_);
    }

    /// Measures on the device, for positions below `reach`.
    void measure(AngleSource source, std::uint64_t reach) {
        const auto end = std::find_if(positions_.begin(), positions_.end(),
                                      [=](std::int32_t p) { return std::uint64_t(p) >= reach; });
        const std::size_t count = static_cast<std::size_t>(end - positions_.begin());
        const auto output = rotated_on(device_, accuracy_.rotation, source,
                                       {positions_.data(), count}, accuracy_.heads, input_);
        const char* word = word_for(angle_sources, source);
        accuracy_.lines.push_back({word, word,
                                   error_bound(source, accuracy_.rotation.attention_factor),
                                   errors_of(output)});
    }

    void measure(const FloatAngles& way) {
        const auto output = rotated_by(way, accuracy_.rotation, positions_, accuracy_.heads,
                                       input_);
        accuracy_.lines.push_back({way.name, way.label, std::nullopt, errors_of(output)});
    }

   private:
    /// Returns the error of each octave that `output` covers.
    std::vector<double> errors_of(const std::vector<float>& output) const {
        std::vector<double> errors;
        std::size_t row = 0;
        for (const Octave& octave : accuracy_.octaves) {
            const std::size_t count = std::min(octave.positions.size(), output.size() / row_ - row);
            if (count == 0) {
                break;
            }
            errors.push_back(error_of(accuracy_.rotation, {octave.positions.data(), count},
                                      accuracy_.heads, &input_[row * row_], &output[row * row_]));
            row += count;
        }
        return errors;
    }

    Device& device_;
    Accuracy& accuracy_;
    std::vector<std::int32_t> positions_;  // of all octaves, ascending
    std::size_t row_ = 0;                  // elements of a token
    std::vector<float> input_;
};

Accuracy measure(const AccuracyOptions& options) {
    Accuracy accuracy = {.device = {},
                         .rotation = rotation_of(options),
                         .heads = heads_measured,
                         .octaves = octaves(),
                         .lines = {},
                         .grids = {}};
    DeviceOptions device_options;
    device_options.select = options.device;
    device_options.on_message = print_message;
    Device device = value_of(Device::open(device_options), Subject::device);
    accuracy.device = device.info();
    const std::uint64_t direct_row_bytes = accuracy.rotation.inv_freq.size() * 2 * sizeof(float);
    Measurement measurement(device, accuracy);
    measurement.measure(AngleSource::factored_texture, max_factored_positions);
    measurement.measure(AngleSource::computed, max_positions);
    measurement.measure(AngleSource::direct_buffer, table_bytes_everywhere / direct_row_bytes);
    for (const FloatAngles& way : float_angles(accuracy.rotation)) {
        measurement.measure(way);
    }
    if (options.model.path.empty()) {
        accuracy.grids = measure_grids(device);
    }
    return accuracy;
}

void write_picture(const AccuracyOptions& options, const Accuracy& accuracy) {
    const std::string picture = svg_of(accuracy);
    std::vector<OutputFile> files;
    files.emplace_back("--svg", *options.svg, picture.size());
    files.front().check_distinct_from("--model", options.model.path);
    files.front().write(picture);
    OutputFile::publish(files);
}

ExitCode print_accuracy(const AccuracyOptions& options) {
    const Accuracy accuracy = measure(options);
    if (options.svg) {
        write_picture(options, accuracy);
    }
    options.json ? write_json(json_of(accuracy)) : write_output(text_of(accuracy));
    const std::string breach = breach_of(accuracy);
    if (!breach.empty()) {
        fail(ExitCode::verification_failed, "{}", breach);
    }
    return ExitCode::success;
}

}  // namespace

std::vector<float> rotated_on(Device& device, const Rotation& rotation, AngleSource source,
                              std::span<const std::int32_t> positions, std::uint32_t heads,
                              const std::vector<float>& input) {
    HostShape shape;
    shape.positions.assign(positions.begin(), positions.end());
    shape.tokens = static_cast<std::uint32_t>(positions.size());
    shape.q_heads = heads;
    shape.angles = source;
    auto work = value_of(HostRotation::make(device, rotation, shape), Subject::device);
    std::vector<float> output(positions.size() * heads * rotation.rotary_dim);
    check(work.upload(input.data(), nullptr), Subject::device);
    value_of(work.run(), Subject::device);
    check(work.download(output.data(), nullptr), Subject::device);
    return output;
}

double error_of(const Rotation& rotation, std::span<const std::int32_t> positions,
                std::uint32_t heads, const float* input, const float* output) {
    reference::Operation operation;
    operation.inv_freq = rotation.inv_freq;
    operation.attention_factor = rotation.attention_factor;
    operation.absolute_allowance =
        0x1p-123 + 0x1p-148;  // allows for flushed subnormals, which a device does not report
    operation.positions.assign(positions.begin(), positions.end());
    reference::Tensor tensor;
    tensor.tokens = positions.size();
    tensor.heads = heads;
    tensor.head_dim = tensor.head_stride = rotation.rotary_dim;
    tensor.token_stride = std::size_t{heads} * rotation.rotary_dim;
    tensor.batch_stride = tensor.token_stride * tensor.tokens;
    const auto verdict = reference::compare(tensor, operation, input, output);
    return verdict.nan_mismatch ? std::numeric_limits<double>::quiet_NaN()
                                : verdict.largest_error_u;
}

std::vector<float> random_values(std::size_t count) {
    std::mt19937_64 random(2);
    std::vector<float> values(count);
    for (float& value : values) {
        value = static_cast<float>(static_cast<std::int32_t>(random() >> 39) - (1 << 24)) *
                0x1p-24F;
    }
    return values;
}

std::string breach_of(const Accuracy& accuracy) {
    const auto breach = [](const std::vector<AccuracyLine>& lines, const auto& place_of) {
        for (const AccuracyLine& line : lines) {
            for (std::size_t i = 0; line.bound_u && i < line.error_u.size(); ++i) {
                if (!(line.error_u[i] <= *line.bound_u)) {  // a NaN error is a breach
                    return fmt::format("{} is {:.3g} u off at {}; its bound is {} u", line.name,
                                       line.error_u[i], place_of(i), *line.bound_u);
                }
            }
        }
        return std::string();
    };
    std::string found = breach(accuracy.lines, [&](std::size_t i) {
        return fmt::format("a position up to {}", accuracy.octaves[i].last);
    });
    if (found.empty() && accuracy.grids) {
        found = breach(accuracy.grids->lines, [&](std::size_t i) {
            return fmt::format("{} patches on a side", accuracy.grids->patches[i]);
        });
    }
    return found;
}

void add_accuracy(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "accuracy",
        "Measure how exact rotated values are, from position 1 to 2^31 - 1: the library's, and "
        "other ways in float32.");
    const auto options = std::make_shared<AccuracyOptions>();
    Option model = add_model_options(command, options->model);
    model.required(false).append_help(
        " Without it: base 500000, 128 channels; and DINOv3's patches of images.");
    for (const char* part : {"--seq-len", "--layer-type", "--layer", "--tower", "--pairing"}) {
        command.option(part).needs(model);
    }
    command.add_text("--svg", "FILE", options->svg, "Draw it as well, as one file.");
    command
        .add_text("--device", "DEVICE", options->device,
                  "Index, UUID or part of the name of the device (the best one).")
        .from_environment("VKROPE_DEVICE");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return print_accuracy(*options); });
}

}  // namespace vkrope::tools
