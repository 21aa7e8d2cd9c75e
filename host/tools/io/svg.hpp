// SPDX-License-Identifier: MIT
// Self-contained SVG files: no script, no external resources, as wide as the reader's screen, in
// light and dark mode. The same input gives the same bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::tools::svg {

// Escapes text for XML and HTML, and for attributes in double quotes.
std::string escaped(std::string_view text);

struct Point {
    double x = 0, y = 0;
};

struct Box {
    double x = 0, y = 0, width = 0, height = 0;
};

enum class Anchor { start, middle, end };

// Shapes in the units of the viewBox, y downwards. The CSS class of a shape sets its look: title,
// label, tick, quiet (text); axis, grid, bound (lines); s0 to s5 (lines of a series), d0 to d5
// (its dots).
class Drawing {
   public:
    Drawing(double width, double height, std::string_view title);

    void text(Point at, std::string_view text, std::string_view look = "label",
              Anchor anchor = Anchor::start);
    // Text that runs from bottom to top.
    void upright_text(Point at, std::string_view text, std::string_view look = "label");
    void line(Point from, Point to, std::string_view look);
    void polyline(const std::vector<Point>& points, std::string_view look);
    void circle(Point centre, double radius, std::string_view look);

    std::string file() const;

   private:
    double width_, height_;
    std::string title_, shapes_;
};

enum class Scale { linear, logarithmic };

struct Axis {
    std::string label;
    Scale scale = Scale::linear;
    double low = 0, high = 1;  // low < high; low > 0 if logarithmic
};

// Returns an axis that fits all values. Ignores those that it cannot show (not finite; not above 0
// if logarithmic).
Axis axis_over(std::string label, Scale scale, const std::vector<double>& values);

struct Series {
    std::string label;
    std::vector<Point> points;  // a point that the axes cannot show interrupts the line
    bool dots = false;          // in addition to the line
};

// A horizontal line that values are compared with.
struct Bound {
    std::string label;
    double y = 0;
    // The series for which the bound is valid. If set, the label stands on the line, in the colour
    // of this series, instead of in the legend.
    std::optional<std::size_t> series = {};
};

struct Plot {
    std::string title;
    Axis x, y;
    std::vector<Series> series;  // six looks; the seventh series has the first look again
    std::vector<Bound> bounds;
};

// Draws the title, the legend, axes with ticks, and all lines inside `box`.
void draw(Drawing& drawing, const Plot& plot, const Box& box);

// Formats a number: 0.1, 2048, 10⁶
std::string number_text(double number);

}  // namespace vkrope::tools::svg
