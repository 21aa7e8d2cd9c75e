// SPDX-License-Identifier: MIT
// vkrope positions: reads the options, and writes the ids.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "files/npy.hpp"
#include "positions/positions.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/output_file.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint32_t largest_count = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t farthest = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t max_sequences = 1 << 20;

struct PositionsOptions {
    std::vector<std::uint32_t> grid, video;
    std::vector<std::int64_t> first, cu_seqlens, offsets;
    bool centred = false, all = false, json = false;
    std::optional<double> reference, base_fps, fps, seconds, ids_per_second;
    std::optional<std::string> out;
};

/// "2,3,4": at least one number, with nothing between the commas but digits and a sign.
template <std::integral T>
std::vector<T> parse_list(const std::string& text, T lowest, T highest, std::size_t most) {
    std::vector<T> numbers;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        if (numbers.size() == most) {
            throw BadValue(fmt::format("'{}' has more than {} numbers", text, most));
        }
        numbers.push_back(parse_integer<T>(text.substr(start, end - start), lowest, highest));
        start = end + 1;
    }
    return numbers;
}

GridAxis value_of(Result<GridAxis> made, const char* option) {
    if (!made) fail(ExitCode::usage, "{}: {}", option, made.status.what);
    return made.value;
}

std::string unit_text(double unit) {
    return unit == 1 ? "" : fmt::format("; multiply its frequencies by {:.17g}", unit);
}

TokenIds made_grid(const PositionsOptions& options) {
    const std::size_t count = options.grid.size();
    if (!options.first.empty() && options.first.size() != count) {
        fail(ExitCode::usage, "--first: it has {} numbers; --grid has {} axes",
             options.first.size(), count);
    }
    std::vector<GridAxis> axes;
    std::vector<std::string> reasons;
    for (std::size_t a = 0; a < count; ++a) {
        const std::uint32_t elements = options.grid[a];
        if (options.centred) {
            axes.push_back(value_of(interval_axis(elements, -1, 1), "--centred"));
            reasons.push_back(
                fmt::format("{0} patches from -1 to 1: the centre of patch i is (2i + 1 - {0}) / "
                            "{0}, so its id is 2i + 1 - {0}{1}",
                            elements, unit_text(axes.back().unit)));
            continue;
        }
        const std::int64_t first = options.first.empty() ? 0 : options.first[a];
        axes.push_back(
            options.reference
                ? value_of(resized_axis(elements, first, *options.reference), "--reference")
                : GridAxis{.count = elements, .first = first});
        reasons.push_back(fmt::format("{} elements, counted from {}{}", elements, first,
                                      unit_text(axes.back().unit)));
    }
    return ids_of_grid(axes, std::move(reasons));
}

TokenIds made_video(const PositionsOptions& options) {
    if (options.video.size() != 3) {
        fail(ExitCode::usage, "--video: it has {} numbers; it must have 3: frames, rows, columns",
             options.video.size());
    }
    const std::uint32_t frames = options.video[0];
    if (frames > max_ids) {
        fail(ExitCode::usage, "--video: {} frames; at most {} ids are made", frames, max_ids);
    }
    std::vector<std::int32_t> times(frames);
    std::string reason = fmt::format("{} frames: ", frames);
    if (options.seconds) {
        const auto step = static_cast<float>(*options.seconds),
                   rate = static_cast<float>(*options.ids_per_second);
        if (Status status = timed_ids(step, rate, times.data(), frames); !status) {
            fail(ExitCode::usage, "--seconds: {}", status.what);
        }
        reason += fmt::format("frame * {:.9g} s * {:.9g} ids a second, in float32, rounded down",
                              step, rate);
    } else {
        GridAxis axis = {.count = frames};
        if (options.fps) {
            axis = value_of(frame_axis(frames, *options.base_fps, *options.fps), "--fps");
        }
        if (Status status = grid_ids(&axis, 1, times.data(), frames); !status) {
            fail(ExitCode::usage, "--video: {}", status.what);
        }
        reason += "the index of the frame" + unit_text(axis.unit);
    }
    return ids_of_video(times, options.video[1], options.video[2], std::move(reason));
}

TokenIds made_of(const PositionsOptions& options) {
    const int asked = !options.grid.empty() + !options.video.empty() + !options.cu_seqlens.empty();
    if (asked != 1) {
        fail(ExitCode::usage, "--grid, --video and --cu-seqlens: {} of them {} given; it must be 1",
             asked, asked == 1 ? "is" : "are");
    }
    return !options.grid.empty()    ? made_grid(options)
           : !options.video.empty() ? made_video(options)
                                    : ids_of_batch(options.cu_seqlens, options.offsets);
}

/// [tokens], or [axes, 1, tokens], which --positions of rotate takes.
void write_ids(const TokenIds& found, const std::string& path) {
    std::vector<std::uint64_t> shape = {found.tokens};
    if (found.axes() > 1) shape = {found.axes(), 1, found.tokens};
    const std::string header = npy::make_header(npy::Type::i4, shape);
    const auto bytes = std::as_bytes(std::span(found.ids));
    std::vector<OutputFile> files;
    files.emplace_back("--out", path, header.size() + bytes.size());
    files.front().write(header);
    files.front().write(bytes);
    OutputFile::publish(files);
}

ExitCode print_positions(const PositionsOptions& options) {
    const TokenIds found = made_of(options);
    if (options.out) write_ids(found, *options.out);
    options.json ? write_json(json_of(found)) : write_output(text_of(found, options.all));
    return ExitCode::success;
}

bool above_zero(double x) {
    return x > 0;
}
bool at_least_zero(double x) {
    return x >= 0;
}

}  // namespace

void add_positions(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "positions", "Print the ids that a grid, a video or a ragged batch gets, and why.");
    const auto options = std::make_shared<PositionsOptions>();
    const auto counts = [](std::vector<std::uint32_t>& to) {
        return [&to](const std::string& text) {
            to = parse_list<std::uint32_t>(text, 1, largest_count, max_axes);
        };
    };
    const auto numbers = [](std::vector<std::int64_t>& to, std::size_t most) {
        return [&to, most](const std::string& text) {
            to = parse_list<std::int64_t>(text, -farthest, farthest, most);
        };
    };
    Option grid = command.add_value("--grid", "N,N,...", counts(options->grid),
                                    "Elements on each of up to 8 axes, the last fastest.");
    Option first = command.add_value("--first", "A,B,...", numbers(options->first, max_axes),
                                     "Id of the first element on each axis (0).");
    Option centred = command.add_flag("--centred", options->centred,
                                      "Elements are patches of the interval from -1 to 1, at "
                                      "their centres (DINOv3).");
    Option reference = command.add_number(
        "--reference", options->reference, above_zero, "a number above 0",
        "Patches on a side of the grid that the model was trained with, to which this one is "
        "stretched (EVA-02).");
    first.needs(grid).excludes(centred);
    centred.needs(grid).excludes(reference);
    reference.needs(grid);
    Option video = command.add_value("--video", "F,R,C", counts(options->video),
                                     "Frames, rows and columns.");
    Option seconds = command.add_number("--seconds", options->seconds, at_least_zero,
                                        "a number of at least 0",
                                        "Seconds from one frame to the next, for ids by time "
                                        "(Qwen2.5-VL, Qwen2.5-Omni).");
    Option rate = command.add_number("--ids-per-second", options->ids_per_second, above_zero,
                                     "a number above 0", "Ids a second, 25 in Qwen2.5-Omni.");
    Option fps = command.add_number("--fps", options->fps, above_zero, "a number above 0",
                                    "Frames per second of the video, for models that count in "
                                    "--base-fps (Cosmos).");
    Option base = command.add_number("--base-fps", options->base_fps, above_zero,
                                     "a number above 0",
                                     "Frames per second that the model counts in, 24 in Cosmos.");
    seconds.needs(video).needs(rate).excludes(fps);
    rate.needs(seconds);
    fps.needs(video).needs(base);
    base.needs(fps);
    Option lengths = command.add_value(
        "--cu-seqlens", "0,A,B,...", numbers(options->cu_seqlens, max_sequences + 1),
        "Where the sequences of a ragged batch begin, and the number of tokens.");
    Option offsets = command.add_value("--offsets", "A,B,...",
                                       numbers(options->offsets, max_sequences),
                                       "Position of the first token of each sequence (0).");
    offsets.needs(lengths);
    command.add_text("--out", "FILE", options->out,
                     "Write the ids as well, .npy: int32 [tokens], or [axes, 1, tokens], as "
                     "--positions of rotate takes them.");
    command.add_flag("--all", options->all,
                     "Print a line for every token, even if there are more than 32.");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return print_positions(*options); });
}

}  // namespace vkrope::tools
