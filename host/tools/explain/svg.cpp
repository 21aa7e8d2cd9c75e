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

// The picture is narrow, so that the text is large enough on a phone.
constexpr double width = 480, margin = 12, panel_width = width - 2 * margin;
constexpr double plot_height = 300, head_height = 44, gap = 22;

// Returns at most `most` evenly spaced numbers below `count`, with the first and the last, each
// once.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < std::min(count, most); ++i)
        numbers.push_back(count <= most ? i : (i * (count - 1) + (most - 1) / 2) / (most - 1));
    return numbers;
}

bool scaled(const Explanation& explanation) {
    return explanation.knows_unscaled &&
           std::any_of(
               explanation.pairs.begin(), explanation.pairs.end(),
               [](const ExplainedPair& pair) { return pair.slower != 1; });
}

std::vector<double> unscaled_of(const Explanation& explanation) {
    std::vector<double> inv_freq;
    for (const ExplainedPair& pair : explanation.pairs) inv_freq.push_back(pair.unscaled);
    return inv_freq;
}

// The maximum number of axes drawn: the number of line styles, less one for the unscaled series.
constexpr std::uint32_t drawn_axes = 5;

// Returns a series of dots for each axis, so that the frequencies of each axis are recognisable.
std::vector<svg::Series> by_axis(const Explanation& explanation,
                                 const std::vector<std::size_t>& shown) {
    const std::uint32_t axes = explanation.rotation.sections.axes;
    if (axes == 0 || axes > drawn_axes) return {};
    std::vector<svg::Series> series;
    for (std::uint32_t axis = 0; axis < axes; ++axis)
        series.push_back({fmt::format("axis {}", axis), {}, true});
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
    const std::vector<std::size_t> shown = spread(count, 512);  // more dots look like one line
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
    if (std::vector<svg::Series> axes = by_axis(explanation, shown); !axes.empty())
        plot.series = std::move(axes);
    if (!one_each(explanation)) plot.x.label = "pairs of all head groups and axes";
    if (scaled(explanation)) plot.series.push_back(before);
    const char* length = explanation.rotation.longest_seq_len != 0
                             ? "longest sequence for these frequencies, {}"
                         : explanation.knows_length ? "length of the model, {}"
                                                    : "{} positions";
    plot.bounds.push_back(
        {fmt::format(fmt::runtime(length), explanation.length), explanation.length});
    return plot;
}

// Returns the bound at distances evenly spaced on a logarithmic axis. Each value is the mean over
// the distances up to the next one, because at large distances, where many share a point, a single
// value would be random.
std::vector<svg::Point> decay_of(const std::vector<double>& inv_freq, double length) {
    constexpr int places = 300;
    const auto distance = [length](int place) {
        return std::round(std::pow(length, double(place) / places));
    };
    const double most = std::clamp(2048.0 / double(inv_freq.size()), 1.0, 32.0);
    std::vector<svg::Point> points;
    for (int place = 0; place < places; ++place) {
        const double first = distance(place), end = distance(place + 1);
        if (first == end) continue;
        const double count = std::min(end - first, std::floor(most));
        double sum = 0;
        for (double i = 0; i < count; ++i)
            sum += decay_bound(inv_freq, first + std::floor(i * (end - first) / count));
        points.push_back({first, sum / count});
    }
    return points;
}

svg::Plot decay(const Explanation& explanation) {
    const double length = std::max(2.0, explanation.length);
    std::vector<svg::Series> series = {
        {scaled(explanation) ? "as the model scales it" : "bound of q.k",
         decay_of(joint_frequencies(explanation.rotation), length)}};
    if (scaled(explanation))
        series.push_back({"unscaled", decay_of(unscaled_of(explanation), length)});
    std::vector<double> all = {0};
    for (const svg::Series& each : series)
        for (const svg::Point& point : each.points) all.push_back(point.y);
    return {.title = "Decay of q.k with distance",
            .x = {"distance of q and k (positions)", svg::Scale::logarithmic, 1, length},
            .y = svg::axis_over("bound of q.k, mean of |S_j|", svg::Scale::linear, all),
            .series = std::move(series),
            .bounds = {}};
}

}  // namespace

std::string svg_of(const Explanation& explanation) {
    const RopeParams& rotation = explanation.rotation;
    const double decay_top = margin + head_height + plot_height + gap;
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
    svg::draw(drawing, decay(explanation), {margin, decay_top, panel_width, plot_height});
    return drawing.file();
}

}  // namespace vkrope::tools
