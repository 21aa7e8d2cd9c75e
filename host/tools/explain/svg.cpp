// SPDX-License-Identifier: MIT
// vkrope explain, as a picture.
#include "io/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "cli/words.hpp"
#include "explain/explain.hpp"

namespace vkrope::tools {
namespace {

// Narrow, so that the text is large enough on a phone.
constexpr double width = 480, margin = 12, panel_width = width - 2 * margin;
constexpr double plot_height = 300, head_height = 44, gap = 22;
constexpr double cell = 60, clock_radius = 24, clock_left = 112;

/// Evenly spaced numbers below `count`, including the first and the last, each once.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < std::min(count, most); ++i) {
        numbers.push_back(count <= most ? i : (i * (count - 1) + (most - 1) / 2) / (most - 1));
    }
    return numbers;
}

bool scaled(const Explanation& explanation) {
    return explanation.knows_unscaled &&
           std::any_of(explanation.pairs.begin(), explanation.pairs.end(),
                       [](const ExplainedPair& pair) { return pair.slower != 1; });
}

std::vector<double> unscaled_of(const Explanation& explanation) {
    std::vector<double> inv_freq;
    for (const ExplainedPair& pair : explanation.pairs) {
        inv_freq.push_back(pair.unscaled);
    }
    return inv_freq;
}

/// As many as there are looks of lines, with one for the unscaled.
constexpr std::uint32_t drawn_axes = 5;

/// A series of dots for each axis, so that its frequencies stand apart from the others'.
std::vector<svg::Series> by_axis(const Explanation& explanation,
                                 const std::vector<std::size_t>& shown) {
    const std::uint32_t axes = explanation.rotation.sections.axes;
    if (axes == 0 || axes > drawn_axes) return {};
    std::vector<svg::Series> series;
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
        series.push_back({fmt::format("axis {}", axis), {}, true});
    }
    for (const std::size_t j : shown) {
        const ExplainedPair& pair = explanation.pairs[j];
        series[pair.axis].points.push_back({double(j), pair.wavelength});
    }
    std::erase_if(series, [](const svg::Series& each) { return each.points.empty(); });
    return series;
}

svg::Plot wavelengths(const Explanation& explanation) {
    const std::size_t count = explanation.pairs.size();
    svg::Series after = {
        scaled(explanation) ? "as the model scales them" : "positions a turn", {}, count <= 32};
    svg::Series before = {"unscaled", {}};
    std::vector<double> all = {explanation.length};
    const std::vector<std::size_t> shown = spread(count, 512);  // more look like one line
    for (const std::size_t j : shown) {
        const ExplainedPair& pair = explanation.pairs[j];
        after.points.push_back({double(j), pair.wavelength});
        before.points.push_back({double(j), 2 * std::numbers::pi / pair.unscaled});
        all.push_back(after.points.back().y);
        all.push_back(before.points.back().y);
    }
    svg::Plot plot = {.title = "Wavelength of each pair",
                      .x = {"pair", svg::Scale::linear, 0, std::max(1.0, double(count) - 1)},
                      .y = svg::axis_over("positions a turn", svg::Scale::logarithmic, all),
                      .series = {after},
                      .bounds = {}};
    if (std::vector<svg::Series> axes = by_axis(explanation, shown); !axes.empty()) {
        plot.series = std::move(axes);
    }
    if (!one_each(explanation)) plot.x.label = "pairs of all head groups and axes";
    if (scaled(explanation)) {
        plot.series.push_back(before);
    }
    const char* length = explanation.rotation.longest_seq_len != 0
                             ? "longest sequence for these frequencies, {}"
                         : explanation.knows_length ? "length of the model, {}"
                                                    : "{} positions";
    plot.bounds.push_back(
        {fmt::format(fmt::runtime(length), explanation.length), explanation.length});
    return plot;
}

/// The bound at distances evenly spaced on a logarithmic axis. Each value is the mean over the
/// distances up to the next one: at large distances, where many share a place, a single one would
/// be random.
std::vector<svg::Point> decay_of(const std::vector<double>& inv_freq, double length) {
    constexpr int places = 300;
    const auto distance = [length](int place) {
        return std::round(std::pow(length, double(place) / places));
    };
    const double most = std::clamp(2048.0 / double(inv_freq.size()), 1.0, 32.0);
    std::vector<svg::Point> points;
    for (int place = 0; place < places; ++place) {
        const double first = distance(place), end = distance(place + 1);
        if (first == end) {
            continue;
        }
        const double count = std::min(end - first, std::floor(most));
        double sum = 0;
        for (double i = 0; i < count; ++i) {
            sum += decay_bound(inv_freq, first + std::floor(i * (end - first) / count));
        }
        points.push_back({first, sum / count});
    }
    return points;
}

svg::Plot decay(const Explanation& explanation) {
    const double length = std::max(2.0, explanation.length);
    std::vector<svg::Series> series = {
        {scaled(explanation) ? "as the model scales it" : "bound of q.k",
         decay_of(joint_frequencies(explanation.rotation), length)}};
    if (scaled(explanation)) {
        series.push_back({"unscaled", decay_of(unscaled_of(explanation), length)});
    }
    std::vector<double> all = {0};
    for (const svg::Series& each : series) {
        for (const svg::Point& point : each.points) {
            all.push_back(point.y);
        }
    }
    return {.title = "Decay of q.k with distance",
            .x = {"distance of q and k (positions)", svg::Scale::logarithmic, 1, length},
            .y = svg::axis_over("bound of q.k, mean of |S_j|", svg::Scale::linear, all),
            .series = std::move(series),
            .bounds = {}};
}

std::vector<std::uint64_t> clock_positions(double length) {
    std::vector<std::uint64_t> positions = {0};
    const auto last = static_cast<std::uint64_t>(std::max(1.0, length - 1));
    const double decades = std::log10(double(last));
    for (int i = 0; i < 5; ++i) {
        const auto position = i == 4 ? last
                                     : static_cast<std::uint64_t>(
                                           std::pow(10, std::floor(decades * i / 4 + 1e-9)));
        if (position > positions.back()) {
            positions.push_back(position);
        }
    }
    return positions;
}

double three_digits(double value) {
    const double step = std::pow(10, std::floor(std::log10(value)) - 2);
    return std::round(value / step) * step;
}

/// At position 0 a hand points to the right, or to its phase; it turns counterclockwise.
void draw_clock(svg::Drawing& drawing, svg::Point centre, const ExplainedPair& pair,
                double unscaled, std::uint64_t position) {
    const double inv_freq = pair.inv_freq;
    const auto tip = [&](double frequency, double length) -> svg::Point {
        const long double angle = static_cast<long double>(position) * frequency + pair.phase;
        return {centre.x + length * double(std::cos(angle)),
                centre.y - length * double(std::sin(angle))};
    };
    drawing.circle(centre, clock_radius, "axis");
    if (unscaled != inv_freq && unscaled != 0) {
        drawing.line(centre, tip(unscaled, clock_radius - 4), "s1");
    }
    drawing.line(centre, tip(inv_freq, clock_radius - 4), "s0");
}

double clocks_height(const Explanation& explanation) {
    return head_height + 26 + cell * double(spread(explanation.pairs.size(), 6).size());
}

void draw_clocks(svg::Drawing& drawing, const Explanation& explanation, double top) {
    drawing.text({margin, top + 14}, "The pairs as clock hands", "title");
    drawing.text({margin, top + 32},
                 scaled(explanation) ? "solid: as the model scales them; dashed: unscaled"
                                     : "from left to right: later positions",
                 "quiet");
    const std::vector<std::uint64_t> positions = clock_positions(explanation.length);
    for (std::size_t column = 0; column < positions.size(); ++column) {
        drawing.text({clock_left + cell * (double(column) + 0.5), top + head_height + 14},
                     fmt::format("{}", positions[column]), "tick", svg::Anchor::middle);
    }
    drawing.text({margin, top + head_height + 14}, "position", "tick");
    double y = top + head_height + 26 + cell / 2;
    const bool with_unscaled = scaled(explanation);
    const std::uint32_t axes = explanation.rotation.sections.axes;
    for (const std::size_t j : spread(explanation.pairs.size(), 6)) {
        const ExplainedPair& pair = explanation.pairs[j];
        const bool grouped = explanation.rotation.head_groups > 1;
        drawing.text({margin, y}, (grouped ? fmt::format("group {}, ", pair.group) : "") +
                                      fmt::format("pair {}", pair.pair) +
                                      (axes == 0 ? "" : fmt::format(", axis {}", pair.axis)));
        drawing.text({margin, y + 15},
                     std::isinf(pair.wavelength)
                         ? "never turns"
                         : "turn in " + svg::number_text(three_digits(pair.wavelength)),
                     "tick");
        for (std::size_t column = 0; column < positions.size(); ++column) {
            draw_clock(drawing, {clock_left + cell * (double(column) + 0.5), y}, pair,
                       with_unscaled && pair.slower != 1 ? pair.unscaled : 0, positions[column]);
        }
        y += cell;
    }
}

constexpr std::uint32_t grid_side = 6;

bool has_grid(const Explanation& explanation) {
    return explanation.rotation.sections.axes >= 2;
}

double grid_height(const Explanation& explanation) {
    return has_grid(explanation) ? head_height + grid_side * cell + gap : 0;
}

/// The pair of an axis in the middle of those that it turns; null if it turns none.
const ExplainedPair* middle_of(const Explanation& explanation, std::uint32_t axis) {
    std::vector<const ExplainedPair*> turned;
    for (const ExplainedPair& pair : explanation.pairs) {
        if (pair.axis == axis && pair.group == 0) turned.push_back(&pair);
    }
    return turned.empty() ? nullptr : turned[turned.size() / 2];
}

/// One hand for a pair of each of the last two axes, at the first positions of both: where an axis
/// does not move, its hand stands. Of a sum over axes both frequencies move one hand.
void draw_grid(svg::Drawing& drawing, const Explanation& explanation, double top) {
    const std::uint32_t axes = explanation.rotation.sections.axes;
    const ExplainedPair *down = middle_of(explanation, axes - 2),
                        *across = middle_of(explanation, axes - 1);
    const bool sum = explanation.rotation.sections.order == VKROPE_SECTIONS_SUM;
    drawing.text({margin, top + 14},
                 fmt::format("A grid: axis {} down, axis {} across", axes - 2, axes - 1), "title");
    drawing.text(
        {margin, top + 32},
        sum ? "both axes turn each pair"
            : fmt::format("solid: a pair of axis {}; dashed: of axis {}", axes - 2, axes - 1),
        "quiet");
    for (std::uint32_t row = 0; row < grid_side; ++row) {
        for (std::uint32_t column = 0; column < grid_side; ++column) {
            const svg::Point centre = {clock_left + cell * (column + 0.5),
                                       top + head_height + cell * (row + 0.5)};
            const auto hand = [&](double angle, const char* look) {
                drawing.line(centre,
                             {centre.x + (clock_radius - 4) * std::cos(angle),
                              centre.y - (clock_radius - 4) * std::sin(angle)},
                             look);
            };
            drawing.circle(centre, clock_radius, "axis");
            const double by_row = down ? row * down->inv_freq : 0,
                         by_column = across ? column * across->inv_freq : 0;
            if (sum) {
                hand(by_row + by_column + (down ? down->phase : 0), "s0");
                continue;
            }
            if (across) hand(by_column + across->phase, "s1");
            if (down) hand(by_row + down->phase, "s0");
        }
    }
}

}  // namespace

std::string svg_of(const Explanation& explanation) {
    const RopeParams& rotation = explanation.rotation;
    const double clocks_top = margin + head_height + plot_height + gap;
    const double grid_top = clocks_top + clocks_height(explanation) + gap;
    const double decay_top = grid_top + grid_height(explanation);
    // For latent attention, head_dim counts only the rotated channels.
    const bool latent = rotation.q_rotary_offset + rotation.rotary_dim > rotation.head_dim;
    const std::string channels = latent ? fmt::format("{} channels", rotation.rotary_dim)
                                        : fmt::format("{} of {} channels", rotation.rotary_dim,
                                                      rotation.head_dim);
    const std::string title = fmt::format("RoPE: {}, {}, {}", rotation.rope_type,
                                          word_for(pairings, rotation.pairing), channels);
    svg::Drawing drawing(width, decay_top + plot_height + margin, title);
    drawing.text({margin, margin + 16}, title, "title");
    svg::draw(drawing, wavelengths(explanation),
              {margin, margin + head_height, panel_width, plot_height});
    draw_clocks(drawing, explanation, clocks_top);
    if (has_grid(explanation)) draw_grid(drawing, explanation, grid_top);
    svg::draw(drawing, decay(explanation), {margin, decay_top, panel_width, plot_height});
    return drawing.file();
}

}  // namespace vkrope::tools
