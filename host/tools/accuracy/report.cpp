// SPDX-License-Identifier: MIT
// vkrope accuracy: output as text, as JSON and as a picture.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "accuracy/accuracy.hpp"
#include "files/svg.hpp"
#include "shell/device_text.hpp"

namespace vkrope::tools {
namespace {

constexpr double unit = 0x1p-24;
constexpr double width = 800, margin = 12, head_height = 26, all_height = 440, own_height = 260,
                 grids_height = 300, gap = 14;

// Widths of the cells of the table.
constexpr int position_width = 10, error_width = 16;

std::string rotation_text(const Rotation& rotation) {
    const std::string base = rotation.base > 0 ? fmt::format("base {}, ", rotation.base) : "";
    const std::string type = rotation.rope_type == "default" ? "" : ", " + rotation.rope_type;
    return fmt::format("{}{} channels{}", base, rotation.rotary_dim, type);
}

std::size_t positions_in(const Accuracy& accuracy) {
    std::size_t count = 0;
    for (const Octave& octave : accuracy.octaves) {
        count += octave.positions.size();
    }
    return count;
}

std::string error_text(double error_u) {
    return error_u < 1000 ? fmt::format("{:.2f}", error_u) : fmt::format("{:.2e}", error_u);
}

svg::Axis position_axis() {
    // Common context lengths, and the largest positions of a table, a float and an int32.
    return {.label = "position",
            .scale = svg::Scale::logarithmic,
            .low = 1,
            .high = 0x1p31,
            .ticks = {{1, "1"},
                      {16, "16"},
                      {128, "128"},
                      {1024, "1024"},
                      {8192, "8192"},
                      {131072, "131 072"},
                      {0x1p20, "2²⁰"},
                      {0x1p22, "2²²"},
                      {0x1p24, "2²⁴"},
                      {0x1p28, "2²⁸"},
                      {0x1p31, "2³¹"}}};
}

std::vector<std::uint32_t> lasts_of(const Accuracy& accuracy) {
    std::vector<std::uint32_t> lasts;
    for (const Octave& octave : accuracy.octaves) {
        lasts.push_back(octave.last);
    }
    return lasts;
}

svg::Series series_of(const AccuracyLine& line, const std::vector<std::uint32_t>& along,
                      double scale) {
    svg::Series series = {line.label, {}};
    for (std::size_t i = 0; i < line.error_u.size(); ++i) {
        series.points.push_back({double(along[i]), line.error_u[i] * scale});
    }
    return series;
}

svg::Plot all_ways(const Accuracy& accuracy) {
    svg::Plot plot = {
        .title =
            "All, as a share of the pair's size |x0| + |x1|; 100 % and more: the angle is lost",
        .x = position_axis(),
        .y = {.label = "largest error / (|x0| + |x1|)",
              .scale = svg::Scale::logarithmic,
              .low = 3e-8,
              .high = 3,
              .ticks = {{1e-7, "10⁻⁷"},
                        {1e-6, "10⁻⁶"},
                        {1e-5, "10⁻⁵"},
                        {1e-4, "10⁻⁴"},
                        {1e-3, "10⁻³"},
                        {1e-2, "1 %"},
                        {1e-1, "10 %"},
                        {1, "100 %"}}},
        .series = {},
        .bounds = {}};
    for (const AccuracyLine& line : accuracy.lines) {
        plot.series.push_back(
            series_of(line, lasts_of(accuracy), unit * accuracy.rotation.attention_factor));
    }
    return plot;
}

svg::Plot own(const Accuracy& accuracy) {
    svg::Plot plot = {
        .title = "vkrope's own and their bounds, in u (|x0| + |x1|), u = 2⁻²⁴ = 6·10⁻⁸",
        .x = position_axis(),
        .y = {.label = "largest error / u", .scale = svg::Scale::linear, .low = 0, .high = 7},
        .series = {},
        .bounds = {}};
    for (const AccuracyLine& line : accuracy.lines) {
        if (line.bound_u) {
            plot.bounds.push_back({fmt::format("{}: at most {} u", line.label, *line.bound_u),
                                   *line.bound_u, plot.series.size()});
            plot.series.push_back(series_of(line, lasts_of(accuracy), 1));
        }
    }
    return plot;
}

svg::Plot grids(const GridAccuracy& accuracy) {
    svg::Plot plot = {.title = "DINOv3's patch centres in [-1, 1], in u (|x0| + |x1|)",
                      .x = {.label = "patches on a side",
                            .scale = svg::Scale::logarithmic,
                            .low = 7,
                            .high = 4096,
                            .ticks = {{7, "7"},
                                      {14, "14"},
                                      {37, "37"},
                                      {128, "128"},
                                      {512, "512"},
                                      {1024, "1024"},
                                      {4096, "4096"}}},
                      .y = {.label = "largest error / u",
                            .scale = svg::Scale::logarithmic,
                            .low = 1,
                            .high = 1e6,
                            .ticks = {{1, "1"},
                                      {10, "10"},
                                      {100, "100"},
                                      {1e3, "1000"},
                                      {1e4, "10⁴"},
                                      {1e5, "10⁵"},
                                      {1e6, "10⁶"}}},
                      .series = {},
                      .bounds = {}};
    for (const AccuracyLine& line : accuracy.lines) {
        plot.series.push_back(series_of(line, accuracy.patches, 1));
    }
    return plot;
}

/// A table with a row for each of `firsts`, in which a line has its error or "-".
std::string table_of(const char* head, const std::vector<std::uint32_t>& firsts,
                     const std::vector<AccuracyLine>& lines) {
    std::string text;
    const auto row = [&](const std::string& first, const auto& cell_of) {
        text += fmt::format("{:>{}}", first, position_width);
        for (const AccuracyLine& line : lines) {
            text += fmt::format("  {:>{}}", cell_of(line), error_width);
        }
        text += '\n';
    };
    row(head, [](const AccuracyLine& line) { return line.name; });
    for (std::size_t i = 0; i < firsts.size(); ++i) {
        row(fmt::format("{}", firsts[i]), [i](const AccuracyLine& line) {
            return i < line.error_u.size() ? error_text(line.error_u[i]) : "-";
        });
    }
    row("bound",
        [](const AccuracyLine& line) { return line.bound_u ? error_text(*line.bound_u) : "-"; });
    return text;
}

nlohmann::ordered_json json_of(const std::vector<AccuracyLine>& lines) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const AccuracyLine& line : lines) {
        all.push_back({{"name", line.name},
                       {"bound_u", line.bound_u ? nlohmann::ordered_json(*line.bound_u)
                                                : nlohmann::ordered_json(nullptr)},
                       {"error_u", line.error_u}});
    }
    return all;
}

}  // namespace

std::string text_of(const Accuracy& accuracy) {
    std::string text = fmt::format(
        "device     {}\nmodel      {}\nmeasured   {} positions, {} heads, f32\n"
        "errors     the largest of an octave, in u a (|x0| + |x1|); u = 2^-24, attention factor a "
        "= {}\n"
        "           1.68e+05 u are 1 %; from 1e+07 u on nothing is left of the angle\n\n",
        device_text(accuracy.device), rotation_text(accuracy.rotation), positions_in(accuracy),
        accuracy.heads, accuracy.rotation.attention_factor);
    text += table_of("up to", lasts_of(accuracy), accuracy.lines);
    if (accuracy.grids) {
        text += "\npatches    centres in [-1, 1] as in DINOv3, base 100; by patches on a side\n\n" +
                table_of("patches", accuracy.grids->patches, accuracy.grids->lines);
    }
    return text;
}

nlohmann::ordered_json json_of(const Accuracy& accuracy) {
    nlohmann::ordered_json json = {{"device", device_json(accuracy.device)},
                                   {"model",
                                    {{"rope_type", accuracy.rotation.rope_type},
                                     {"base", accuracy.rotation.base},
                                     {"rotary_dim", accuracy.rotation.rotary_dim},
                                     {"attention_factor", accuracy.rotation.attention_factor}}},
                                   {"positions", positions_in(accuracy)},
                                   {"up_to", lasts_of(accuracy)},
                                   {"ways", json_of(accuracy.lines)}};
    if (accuracy.grids) {
        json["grids"] = {{"patches", accuracy.grids->patches},
                         {"ways", json_of(accuracy.grids->lines)}};
    }
    return json;
}

std::string svg_of(const Accuracy& accuracy) {
    const std::string title = "Error of rotated f32 values against position";
    const double own_top = margin + head_height + all_height + gap;
    const double grids_top = own_top + own_height + gap;
    svg::Drawing drawing(
        width, accuracy.grids ? grids_top + grids_height + margin : own_top + own_height + margin,
        title);
    drawing.text({margin, margin + 14},
                 fmt::format("{}: {}", title, rotation_text(accuracy.rotation)), "title");
    svg::draw(drawing, all_ways(accuracy),
              {margin, margin + head_height, width - 2 * margin, all_height});
    svg::draw(drawing, own(accuracy), {margin, own_top, width - 2 * margin, own_height});
    if (accuracy.grids) {
        svg::draw(drawing, grids(*accuracy.grids),
                  {margin, grids_top, width - 2 * margin, grids_height});
    }
    return drawing.file();
}

}  // namespace vkrope::tools
