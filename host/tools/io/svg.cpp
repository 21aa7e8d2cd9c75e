// SPDX-License-Identifier: MIT
#include "io/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace vkrope::tools::svg {
namespace {

constexpr double tick_length = 4, character = 6.6;  // approximate width of a character of a label
constexpr double title_height = 22, legend_line = 18;
constexpr std::size_t looks = 6;

// The colours of Okabe and Ito, distinguishable with colour blindness; each also has a dash
// pattern, for print.
constexpr const char* style = R"(
.paper{fill:#ffffff}
text{font-family:sans-serif;font-size:12px;fill:#222222}
.title{font-size:15px;font-weight:bold}
.tick{font-size:11px;fill:#555555}
.quiet{fill:#555555}
.axis{stroke:#555555;fill:none}
.grid{stroke:#e2e2e2}
.bound{stroke:#b00020;stroke-width:1.5;stroke-dasharray:8 5}
.s0,.s1,.s2,.s3,.s4,.s5{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.s0{stroke:#0072b2}
.s1{stroke:#d55e00;stroke-dasharray:7 5}
.s2{stroke:#009e73;stroke-dasharray:2 4}
.s3{stroke:#b0568c;stroke-dasharray:10 4 2 4}
.s4{stroke:#a87400;stroke-dasharray:14 5}
.s5{stroke:#3c8fc0;stroke-dasharray:5 3}
.d0{fill:#0072b2}.d1{fill:#d55e00}.d2{fill:#009e73}.d3{fill:#b0568c}.d4{fill:#a87400}
.d5{fill:#3c8fc0}
@media (prefers-color-scheme:dark){
.paper{fill:#14171a}
text{fill:#e8e8e8}
.tick,.quiet{fill:#a8a8a8}
.axis{stroke:#a8a8a8}
.grid{stroke:#33383d}
.bound{stroke:#ff6b7d}
.s0{stroke:#56b4e9}.s1{stroke:#ff9a4d}.s2{stroke:#3fd0a4}.s3{stroke:#e39ac6}.s4{stroke:#f0c040}
.s5{stroke:#9fd3f2}
.d0{fill:#56b4e9}.d1{fill:#ff9a4d}.d2{fill:#3fd0a4}.d3{fill:#e39ac6}.d4{fill:#f0c040}
.d5{fill:#9fd3f2}
})";

// Rounds to a tenth of a unit, finer than the eye can see; adding 0 makes a negative zero
// positive.
std::string coordinate(double value) {
    return fmt::format("{}", std::round(value * 10) / 10 + 0.0);
}

double along(const Axis& axis, double value) {
    const auto place = [&axis](double v) {
        return axis.scale == Scale::logarithmic ? std::log10(v) : v;
    };
    return (place(value) - place(axis.low)) / (place(axis.high) - place(axis.low));
}

bool shows(const Axis& axis, double value) {
    return std::isfinite(value) && (axis.scale == Scale::linear || value > 0);
}

// Returns 1, 2 or 5 times a power of ten, so that about `count` steps cover `span`.
double round_step(double span, double count) {
    const double power = std::pow(10, std::floor(std::log10(span / count)));
    const double digit = span / count / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

std::vector<double> linear_ticks(const Axis& axis) {
    std::vector<double> ticks;
    const double step = round_step(axis.high - axis.low, 6);
    const double first = std::ceil(axis.low / step - 1e-9),
                 last = std::floor(axis.high / step + 1e-9);
    for (double n = first; n <= last; ++n) ticks.push_back(n * step + 0.0);  // no negative zero
    return ticks;
}

std::vector<double> log_ticks(const Axis& axis) {
    const double slack = 1e-9;
    const double first = std::ceil(std::log10(axis.low) - slack),
                 last = std::floor(std::log10(axis.high) + slack);
    std::vector<double> ticks;
    if (last - first >= 2) {
        const double step = std::ceil((last - first) / 7);
        for (double power = first; power <= last; power += step)
            ticks.push_back(std::pow(10, power));
        return ticks;
    }
    for (double power = first - 1; power <= last; ++power) {
        for (const double digit : {1.0, 2.0, 5.0}) {
            const double value = digit * std::pow(10, power);
            if (value >= axis.low * (1 - slack) && value <= axis.high * (1 + slack))
                ticks.push_back(value);
        }
    }
    return ticks;
}

std::vector<double> ticks_of(const Axis& axis) {
    return axis.scale == Scale::logarithmic ? log_ticks(axis) : linear_ticks(axis);
}

// The part of a plot between its axes.
struct Field {
    Box box;
    const Plot& plot;

    double x(double value) const { return box.x + box.width * along(plot.x, value); }
    double y(double value) const { return box.y + box.height * (1 - along(plot.y, value)); }
};

void draw_axes(Drawing& drawing, const Field& field) {
    const Box& box = field.box;
    const double bottom = box.y + box.height;
    for (const double tick : ticks_of(field.plot.x)) {
        const double x = field.x(tick);
        drawing.line({x, box.y}, {x, bottom}, "grid");
        drawing.line({x, bottom}, {x, bottom + tick_length}, "axis");
        drawing.text({x, bottom + 16}, number_text(tick), "tick", Anchor::middle);
    }
    for (const double tick : ticks_of(field.plot.y)) {
        const double y = field.y(tick);
        drawing.line({box.x, y}, {box.x + box.width, y}, "grid");
        drawing.line({box.x - tick_length, y}, {box.x, y}, "axis");
        drawing.text({box.x - 7, y + 4}, number_text(tick), "tick", Anchor::end);
    }
    drawing.polyline({{box.x, box.y}, {box.x, bottom}, {box.x + box.width, bottom}}, "axis");
    drawing.text({box.x + box.width / 2, bottom + 33}, field.plot.x.label, "quiet", Anchor::middle);
    drawing.upright_text({box.x - 40, box.y + box.height / 2}, field.plot.y.label, "quiet");
}

void draw_bounds(Drawing& drawing, const Field& field) {
    const double right = field.box.x + field.box.width;
    for (const Bound& bound : field.plot.bounds) {
        if (!shows(field.plot.y, bound.y)) continue;
        const double y = field.y(bound.y);
        drawing.line({field.box.x, y}, {right, y}, "bound");
        if (bound.series) {
            drawing.text({right, y - 5}, bound.label, fmt::format("d{}", *bound.series % looks),
                         Anchor::end);
        }
    }
}

void draw_series(Drawing& drawing, const Field& field, const Series& series, std::size_t look) {
    std::vector<Point> run;
    const auto end_run = [&] {
        if (run.size() > 1) drawing.polyline(run, fmt::format("s{}", look));
        run.clear();
    };
    for (const Point& point : series.points) {
        if (!shows(field.plot.x, point.x) || !shows(field.plot.y, point.y)) {
            end_run();
            continue;
        }
        run.push_back({field.x(point.x), field.y(point.y)});
        if (series.dots) drawing.circle(run.back(), 3, fmt::format("d{}", look));
    }
    end_run();
}

// Draws the samples and labels in as many lines as needed. Returns the number of lines.
std::size_t draw_legend(Drawing& drawing, const Plot& plot, const Box& box) {
    std::size_t lines = 0;
    double x = box.x + box.width;  // makes the first entry start a line
    const auto entry = [&](const std::string& label, const std::string& look) {
        const double width = 36 + character * double(label.size()) + 20;
        if (x + width > box.x + box.width) {
            ++lines;
            x = box.x;
        }
        const double y = box.y + title_height + legend_line * double(lines) - 7;
        drawing.line({x, y}, {x + 30, y}, look);
        drawing.text({x + 36, y + 4}, label);
        x += width;
    };
    for (std::size_t s = 0; s < plot.series.size(); ++s)
        entry(plot.series[s].label, fmt::format("s{}", s % looks));
    for (const Bound& bound : plot.bounds)
        if (!bound.series) entry(bound.label, "bound");
    return lines;
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '&': safe += "&amp;"; break;
            case '"': safe += "&quot;"; break;
            default:
                safe += static_cast<unsigned char>(c) < 0x20 ? '?'
                                                             : c;  // XML has no control characters
        }
    }
    return safe;
}

Drawing::Drawing(double width, double height, std::string_view title)
    : width_(width), height_(height), title_(title) {}

void Drawing::text(Point at, std::string_view text, std::string_view look, Anchor anchor) {
    const char* where = anchor == Anchor::middle ? " text-anchor=\"middle\""
                        : anchor == Anchor::end  ? " text-anchor=\"end\""
                                                 : "";
    shapes_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\"{}>{}</text>\n", look,
                           coordinate(at.x), coordinate(at.y), where, escaped(text));
}

void Drawing::upright_text(Point at, std::string_view text, std::string_view look) {
    shapes_ += fmt::format(
        "<text class=\"{}\" text-anchor=\"middle\" transform=\"translate({} {}) "
        "rotate(-90)\">{}</text>\n",
        look, coordinate(at.x), coordinate(at.y), escaped(text));
}

void Drawing::line(Point from, Point to, std::string_view look) {
    shapes_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", look,
                           coordinate(from.x), coordinate(from.y), coordinate(to.x),
                           coordinate(to.y));
}

void Drawing::polyline(const std::vector<Point>& points, std::string_view look) {
    std::string list;
    for (const Point& point : points) {
        list += fmt::format("{}{},{}", list.empty() ? "" : " ", coordinate(point.x),
                            coordinate(point.y));
    }
    shapes_ += fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", look, list);
}

void Drawing::circle(Point centre, double radius, std::string_view look) {
    shapes_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", look,
                           coordinate(centre.x), coordinate(centre.y), coordinate(radius));
}

std::string Drawing::file() const {
    // Without a width attribute the picture fills its container.
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "viewBox=\"0 0 {0} {1}\" "
        "role=\"img\">\n<title>{2}</title>\n<style>{3}\n</style>\n<rect class=\"paper\" "
        "width=\"{0}\" "
        "height=\"{1}\"/>\n{4}</svg>\n",
        coordinate(width_), coordinate(height_), escaped(title_), style, shapes_);
}

Axis axis_over(std::string label, Scale scale, const std::vector<double>& values) {
    Axis axis = {std::move(label), scale, 0, 0};
    bool any = false;
    for (const double value : values) {
        if (shows(axis, value)) {
            axis.low = any ? std::min(axis.low, value) : value;
            axis.high = any ? std::max(axis.high, value) : value;
            any = true;
        }
    }
    const bool logarithmic = scale == Scale::logarithmic;
    if (!any) axis.low = axis.high = 1;
    if (!(axis.low < axis.high)) {  // centres a single value
        const double margin = axis.low == 0 ? 1 : std::fabs(axis.low) / 2;
        axis.low = logarithmic ? axis.low / 2 : axis.low - margin;
        axis.high = logarithmic ? axis.high * 2 : axis.high + margin;
    }
    return axis;
}

void draw(Drawing& drawing, const Plot& plot, const Box& box) {
    drawing.text({box.x, box.y + 14}, plot.title, "title");
    const double head = title_height + legend_line * double(draw_legend(drawing, plot, box)) + 8;
    const Field field = {{box.x + 54, box.y + head, box.width - 54 - 12, box.height - head - 38},
                         plot};
    draw_axes(drawing, field);
    draw_bounds(drawing, field);
    for (std::size_t s = 0; s < plot.series.size(); ++s)
        draw_series(drawing, field, plot.series[s], s % looks);
}

std::string number_text(double number) {
    constexpr const char* raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    const double magnitude = std::fabs(number);
    if (magnitude == 0 || (magnitude < 10000 && magnitude >= 0.001))
        return fmt::format("{:.6g}", number);
    auto exponent = int(std::floor(std::log10(magnitude) + 1e-9));
    const double digits = number / std::pow(10, exponent);
    std::string text = std::fabs(digits - 1) < 1e-9 ? "10" : fmt::format("{:.3g}·10", digits);
    if (exponent < 0) {
        text += "⁻";
        exponent = -exponent;
    }
    for (const char digit : std::to_string(exponent)) text += raised[digit - '0'];
    return text;
}

}  // namespace vkrope::tools::svg
