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

std::vector<double> turns_per_unit() {
    std::vector<double> inv_freq(channels / 2);
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
        inv_freq[j] = 2 * std::numbers::pi * std::pow(base, -2.0 * double(j) / channels);
    }
    return inv_freq;
}

Side side_of(std::uint32_t patches) {
    const GridAxis axis = value_of(interval_axis(patches, -1, 1), Subject::device);
    Side side = {patches, {}, {}};
    side.rotation.head_dim = side.rotation.rotary_dim = channels;
    side.rotation.inv_freq = turns_per_unit();
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

/// The angles of a side, with every number of it rounded by `round`.
FloatAngles angles_of(const Side& side, float (*round)(double)) {
    const auto fill = [patches = side.patches, round, inv_freq = turns_per_unit()](
                          std::int32_t position, std::vector<float>& angles) {
        const std::int64_t index = (std::int64_t{position} + patches - 1) / 2;
        const float centre = round(double(round(double(index) + 0.5)) / patches);
        const float coordinate = round(round(2 * double(centre)) - 1.0);
        const float turned = round(2 * std::numbers::pi * double(coordinate));
        for (std::size_t j = 0; j < angles.size(); ++j) {
            const float frequency = round(inv_freq[j] / (2 * std::numbers::pi));
            angles[j] = round(double(turned) * double(frequency));
        }
    };
    return {"", "", fill};
}

float to_float32(double x) {
    return static_cast<float>(x);
}

float to_bf16(double x) {
    return reference::widen(reference::Type::bf16, reference::narrow(reference::Type::bf16, x));
}

std::vector<float> rotated_on(Device& device, const Side& side, AngleSource source,
                              const std::vector<float>& input) {
    HostShape shape;
    shape.positions = side.positions;
    shape.tokens = static_cast<std::uint32_t>(side.positions.size());
    shape.q_heads = heads;
    shape.angles = source;
    auto rotation = value_of(HostRotation::make(device, side.rotation, shape), Subject::device);
    check(rotation.upload(input.data(), nullptr), Subject::device);
    value_of(rotation.run(), Subject::device);
    std::vector<float> output(input.size());
    check(rotation.download(output.data(), nullptr), Subject::device);
    return output;
}

}  // namespace

GridAccuracy measure_grids(Device& device) {
    constexpr AngleSource source = AngleSource::computed;
    GridAccuracy all = {{7, 14, 28, 37, 64, 128, 256, 512, 1024, 2048, 4096}, {}};
    all.lines = {{"odd_integers", "vkrope: odd integers", error_bound(source, 1), {}},
                 {"float32_centres", "float32 centres (Hugging Face)", {}, {}},
                 {"bf16_centres", "centres in bf16", {}, {}}};
    for (const std::uint32_t patches : all.patches) {
        const Side side = side_of(patches);
        const std::vector<float> input = random_values(side.positions.size() * heads * channels);
        const std::vector<float> outputs[] = {
            rotated_on(device, side, source, input),
            rotated_by(angles_of(side, to_float32), side.rotation, side.positions, heads, input),
            rotated_by(angles_of(side, to_bf16), side.rotation, side.positions, heads, input)};
        for (std::size_t i = 0; i < all.lines.size(); ++i) {
            all.lines[i].error_u.push_back(
                error_of(side.rotation, side.positions, heads, input.data(), outputs[i].data()));
        }
    }
    return all;
}

}  // namespace vkrope::tools
