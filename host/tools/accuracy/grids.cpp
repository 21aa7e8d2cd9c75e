// SPDX-License-Identifier: MIT
// vkrope accuracy: patches of images. DINOv3 takes their centres, between -1 and 1, as positions:
// DINOv3ViTRopePositionEmbedding of Hugging Face's modeling_dinov3_vit.py, in float32. Here they
// are odd integers, and the distance between two centres belongs to the frequencies.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "accuracy/accuracy.hpp"
#include "reference/oracle.hpp"
#include "shell/command_line.hpp"
#include "vkrope/positions.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint32_t heads = 4, channels = 32;  // of an axis, with a head_dim of 64
constexpr double base = 100;
constexpr std::uint32_t measured_patches = 256;  // on a side

/// One axis of an image of `patches` patches on it.
struct Side {
    std::uint32_t patches = 0;
    Rotation rotation;
    std::vector<std::int32_t> positions;
};

/// Another implementation, which rounds every number.
struct Way {
    const char *name, *label;
    float (*round)(double);
};

float to_float32(double x) {
    return static_cast<float>(x);
}

float to_bf16(double x) {
    return reference::widen(reference::Type::bf16, reference::narrow(reference::Type::bf16, x));
}

constexpr Way ways[] = {{"float32_centres", "float32 centres (Hugging Face)", to_float32},
                        {"bf16_centres", "centres in bf16", to_bf16}};

/// Turns from one end of a unit to the other.
std::vector<double> turns_per_unit() {
    std::vector<double> turns(channels / 2);
    check(default_inv_freq(base, channels, turns.data()), Subject::device);
    return turns;
}

Side side_of(std::uint32_t patches) {
    const GridAxis axis = value_of(interval_axis(patches, -1, 1), Subject::device);
    Side side = {patches, {}, {}};
    side.rotation.head_dim = side.rotation.rotary_dim = channels;
    for (const double turns : turns_per_unit()) {
        side.rotation.inv_freq.push_back(2 * std::numbers::pi * turns);
    }
    check(fold_grid(&axis, 1, side.rotation), Subject::device);
    std::vector<std::int32_t> ids(patches);
    check(grid_ids(&axis, 1, ids.data(), ids.size()), Subject::device);
    const std::size_t step = std::max<std::size_t>(1, patches / measured_patches);
    for (std::size_t i = 0; i < ids.size(); i += step) {
        side.positions.push_back(ids[i]);
    }
    side.positions.back() = ids.back();
    return side;
}

FloatAngles angles_of(const Side& side, const Way& way) {
    const auto fill = [patches = side.patches, round = way.round, turns = turns_per_unit()](
                          std::int32_t position, std::vector<float>& angles) {
        const std::int64_t index = (std::int64_t{position} + patches - 1) / 2;
        const float centre = round(double(round(double(index) + 0.5)) / patches);
        const float coordinate = round(round(2 * double(centre)) - 1.0);
        const float turned = round(2 * std::numbers::pi * double(coordinate));
        for (std::size_t j = 0; j < angles.size(); ++j) {
            angles[j] = round(double(turned) * double(round(turns[j])));
        }
    };
    return {way.name, way.label, fill};
}

}  // namespace

GridAccuracy measure_grids(Device& device) {
    constexpr AngleSource source = AngleSource::computed;
    GridAccuracy all = {{7, 14, 28, 37, 64, 128, 256, 512, 1024, 2048, 4096}, {}};
    all.lines.push_back({"odd_integers", "vkrope: odd integers", error_bound(source, 1), {}});
    for (const Way& way : ways) {
        all.lines.push_back({way.name, way.label, {}, {}});
    }
    for (const std::uint32_t patches : all.patches) {
        const Side side = side_of(patches);
        const std::vector<float> input = random_values(side.positions.size() * heads * channels);
        auto line = all.lines.begin();
        const auto add = [&](const std::vector<float>& output) {
            line++->error_u.push_back(
                error_of(side.rotation, side.positions, heads, input.data(), output.data()));
        };
        add(rotated_on(device, side.rotation, source, side.positions, heads, input));
        for (const Way& way : ways) {
            add(rotated_by(angles_of(side, way), side.rotation, side.positions, heads, input));
        }
    }
    return all;
}

}  // namespace vkrope::tools
