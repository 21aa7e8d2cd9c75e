// SPDX-License-Identifier: MIT
// How far rotated values are from exact, position by position: the library's sources of angles on a
// device, and other ways of making angles in the arithmetic that is theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vkrope/runtime.hpp"

namespace vkrope::tools {

/// Positions above half of `last`, up to it: what one point of the picture stands for.
struct Octave {
    std::uint32_t last = 0;  // a power of two, or 2^31 - 1
    std::vector<std::int32_t> positions;
};

/// One way of making angles.
struct AccuracyLine {
    std::string name;               // in tables and JSON
    std::string label;              // in the picture
    std::optional<double> bound_u;  // of the library's own
    /// By octave, ending where the way does: the largest error of an f32 output, in u a (|x0| +
    /// |x1|), u = 2^-24, a = attention factor.
    std::vector<double> error_u;
};

struct Accuracy {
    DeviceInfo device;
    Rotation rotation;  // one window from channel 0 on, half_split, one position a token
    std::uint32_t heads = 0;
    std::vector<Octave> octaves;
    std::vector<AccuracyLine> lines;  // the library's own first
};

/// Angles of all pairs in float32, as others make them.
struct FloatAngles {
    std::string name, label;
    std::function<void(std::int32_t position, std::vector<float>& angles)> fill;
};
std::vector<FloatAngles> float_angles(const Rotation& rotation);

/// Rotates rows of [positions, heads, rotary_dim] in float32 by such angles, whose cos and sin are
/// exact and rounded once.
std::vector<float> rotated_by(const FloatAngles& way, const Rotation& rotation,
                              const std::vector<std::int32_t>& positions, std::uint32_t heads,
                              const std::vector<float>& input);

/// Which of the library's own is beyond its bound, and where; empty: none.
std::string breach_of(const Accuracy& accuracy);

/// A row an octave, errors in u.
std::string text_of(const Accuracy& accuracy);
nlohmann::ordered_json json_of(const Accuracy& accuracy);

/// All ways, and below them the library's own with their bounds. It names no device: the bits are
/// the same on every one.
std::string svg_of(const Accuracy& accuracy);

}  // namespace vkrope::tools
