// SPDX-License-Identifier: MIT
// Pictures as one SVG file each: no script, nothing loaded from elsewhere, as wide as the reader's
// screen, in light and in dark. The same input gives the same bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::tools::svg {

/// Text for XML and HTML, and for attributes in double quotes.
std::string escaped(std::string_view text);

struct Point {
    double x = 0, y = 0;
};

struct Box {
    double x = 0, y = 0, width = 0, height = 0;
};

enum class Anchor { start, middle, end };

/// Shapes in the units of the viewBox, y downwards. What a shape looks like is its CSS class:
/// title, label, tick, quiet (text); axis, grid, bound (lines); s0 to s5 (lines of a series), d0 to
/// d5 (its dots).
class Drawing {
   public:
    Drawing(double width, double height, std::string_view title);

    void text(Point at, std::string_view text, std::string_view look = "label",
              Anchor anchor = Anchor::start);
    /// Bottom to top.
    void upright_text(Point at, std::string_view text, std::string_view look = "label");
    void line(Point from, Point to, std::string_view look);
    void polyline(const std::vector<Point>& points, std::string_view look);
    void circle(Point centre, double radius, std::string_view look);

    /// The whole file.
    std::string file() const;

   private:
    double width_, height_;
    std::string title_, shapes_;
};

enum class Scale { linear, logarithmic };

struct Tick {
    double value = 0;
    std::string label;
};

struct Axis {
    std::string label;
    Scale scale = Scale::linear;
    double low = 0, high = 1;      // low below high; above 0 where logarithmic
    std::vector<Tick> ticks = {};  // none: round numbers
};

/// An axis that all values fit on; those that it cannot show (not finite; not above 0 where
/// logarithmic) do not count.
Axis axis_over(std::string label, Scale scale, const std::vector<double>& values);

struct Series {
    std::string label;
    std::vector<Point> points;  // one that the axes cannot show interrupts the line
    bool dots = false;          // as well as the line
};

/// A horizontal line that values are held against.
struct Bound {
    std::string label;
    double y = 0;
    /// That it holds for: the label then stands on the line, in the colour of this series, and not
    /// in the legend.
    std::optional<std::size_t> series = {};
};

struct Plot {
    std::string title;
    Axis x, y;
    std::vector<Series> series;  // six looks; a seventh has that of the first
    std::vector<Bound> bounds;
};

/// Title, legend, axes with ticks and all lines, inside `box`.
void draw(Drawing& drawing, const Plot& plot, const Box& box);

/// 0.1, 2048, 10⁶
std::string number_text(double number);

}  // namespace vkrope::tools::svg
