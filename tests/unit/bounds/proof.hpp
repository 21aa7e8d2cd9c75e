// SPDX-License-Identifier: MIT
// Proves bounds by branch and bound, which finds the largest value of an error estimate over a box
// of angles and factors.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <queue>

#include "error.hpp"

namespace vkrope::bounds {

struct Interval {
    double low = 0, high = 0;
};

// Returns the largest rounding error, in units of u, of a result of at most this magnitude: half
// the spacing of f32 just below it.
inline double half_ulp(double magnitude) {
    if (magnitude <= 0) return 0;
    int exponent = 0;
    const double mantissa = std::frexp(magnitude, &exponent);  // [0.5, 1)
    return std::ldexp(1.0, mantissa == 0.5 ? exponent - 2 : exponent - 1);
}

// Returns the same for a result that earlier errors may have raised above a power of two.
inline double half_ulp_near(double magnitude) {
    return half_ulp(magnitude * (1 + 1e-6));
}

// Returns an upper bound of `estimate` over the box, at most `gap` above its largest value at the
// centres of parts. `estimate` of a box must be at least its value at each point of the box.
template <std::size_t N, class Estimate>
double supremum(const std::array<Interval, N>& whole, double gap, Estimate estimate) {
    struct Part {
        double upper = 0;
        std::array<Interval, N> box = {};
        bool operator<(const Part& other) const { return upper < other.upper; }
    };
    double attained = 0;
    std::priority_queue<Part> parts;
    const auto add = [&](const std::array<Interval, N>& box) {
        std::array<Interval, N> centre;
        for (std::size_t i = 0; i < N; ++i) {
            const double middle = (box[i].low + box[i].high) / 2;
            centre[i] = {middle, middle};
        }
        attained = std::fmax(attained, estimate(centre));
        parts.push({estimate(box), box});
    };
    add(whole);
    while (parts.top().upper > attained + gap) {
        const Part part = parts.top();
        parts.pop();
        std::size_t widest = 0;
        for (std::size_t i = 1; i < N; ++i)
            if (part.box[i].high - part.box[i].low > part.box[widest].high - part.box[widest].low)
                widest = i;
        const double middle = (part.box[widest].low + part.box[widest].high) / 2;
        std::array<Interval, N> half = part.box;
        half[widest].high = middle;
        add(half);
        half[widest] = {middle, part.box[widest].high};
        add(half);
    }
    return parts.top().upper;
}

// Return upper bounds of |cos| and |sin| in [0, pi / 2], which include the error of double.
inline double max_cos(Interval angle) {
    return std::fmin(1.0, std::cos(angle.low) + 1e-15);
}
inline double max_sin(Interval angle) {
    return std::fmin(1.0, std::sin(angle.high) + 1e-15);
}

}  // namespace vkrope::bounds
