// SPDX-License-Identifier: MIT
// Error of rotated values, position by position: the angle sources of the library on a device, and
// the angles of other implementations in their own arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkrope/runtime.hpp"

namespace vkrope::tools {

/// Positions above last / 2, up to `last`: one point of the picture.
struct Octave {
    std::uint32_t last = 0;  // a power of two, or 2^31 - 1
    std::vector<std::int32_t> positions;
};

/// One way of computing angles.
struct AccuracyLine {
    std::string name;               // in tables and JSON
    std::string label;              // in the picture
    std::optional<double> bound_u;  // only for the library's own sources
    /// For each octave that the line covers: the largest error of an f32 output, in u a (|x0| +
    /// |x1|), u = 2^-24, a = attention factor.
    std::vector<double> error_u;
};

/// Patches of square images whose coordinates are their centres between -1 and 1, as in DINOv3.
struct GridAccuracy {
    std::vector<std::uint32_t> patches;  // on a side, ascending
    std::vector<AccuracyLine> lines;     // an error for each of `patches`
};

struct Accuracy {
    DeviceInfo device;
    Rotation rotation;  // one window from channel 0 on, half_split, one position per token
    std::uint32_t heads = 0;
    std::vector<Octave> octaves;
    std::vector<AccuracyLine> lines;  // the library's own sources first
    std::optional<GridAccuracy> grids;
};

/// The angles of all pairs in float32, as another implementation computes them.
struct FloatAngles {
    std::string name, label;
    std::function<void(std::int32_t position, std::vector<float>& angles)> fill;
};
std::vector<FloatAngles> float_angles(const Rotation& rotation);

/// Rotates rows of [positions, heads, rotary_dim] in float32 by these angles, using exact cos and
/// sin rounded once.
std::vector<float> rotated_by(const FloatAngles& way, const Rotation& rotation,
                              const std::vector<std::int32_t>& positions, std::uint32_t heads,
                              const std::vector<float>& input);

/// Rotates such rows on the device.
std::vector<float> rotated_on(Device& device, const Rotation& rotation, AngleSource source,
                              std::span<const std::int32_t> positions, std::uint32_t heads,
                              const std::vector<float>& input);

/// The largest error of rows of [positions, heads, rotary_dim] in f32, in u a (|x0| + |x1|); NaN if
/// an output is NaN and should not be.
double error_of(const Rotation& rotation, std::span<const std::int32_t> positions,
                std::uint32_t heads, const float* input, const float* output);

/// Random multiples of 2^-24 from -1 to 1, the same ones every time.
std::vector<float> random_values(std::size_t count);

GridAccuracy measure_grids(Device& device);

/// Says which of the library's own lines exceeds its bound, and where; empty: none.
std::string breach_of(const Accuracy& accuracy);

/// One row per octave, errors in u.
std::string text_of(const Accuracy& accuracy);
nlohmann::ordered_json json_of(const Accuracy& accuracy);

/// All lines, and below them the library's lines with their bounds. Names no device: the bits are
/// the same on every one.
std::string svg_of(const Accuracy& accuracy);

}  // namespace vkrope::tools
