// SPDX-License-Identifier: MIT
// vkrope accuracy: detection of a broken bound, and the angles of other methods.
#include "accuracy/accuracy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

Rotation rotation_of(std::uint32_t rotary_dim, double base) {
    Rotation rotation;
    rotation.base = base;
    rotation.head_dim = rotation.rotary_dim = rotary_dim;
    rotation.inv_freq.resize(rotary_dim / 2);
    REQUIRE(default_inv_freq(base, rotary_dim, rotation.inv_freq.data()));
    return rotation;
}

std::vector<float> angles_of(const Rotation& rotation, const char* name, std::int32_t position) {
    std::vector<float> angles(rotation.inv_freq.size());
    for (const FloatAngles& way : float_angles(rotation)) {
        if (way.name == name) {
            way.fill(position, angles);
            return angles;
        }
    }
    return {};
}

}  // namespace

TEST_CASE(
    "an error beyond its bound is a breach, and so is one that is not a number; other ways have no "
    "bound") {
    Accuracy accuracy;
    accuracy.octaves = {{1, {1}}, {2, {2}}};
    accuracy.lines = {{"ours", "ours", 2.5, {1, 2.5}},
                      {"other", "other", std::nullopt, {1e9, 1e9}}};
    CHECK(breach_of(accuracy).empty());
    accuracy.lines[0].error_u[1] = std::nextafter(2.5, 3);
    test::check_names(breach_of(accuracy), "ours 2.5 2 2.5");
    accuracy.lines[0].error_u = {std::numeric_limits<double>::quiet_NaN()};
    CHECK(!breach_of(accuracy).empty());
    accuracy.lines[0].error_u = {1, 1};
    accuracy.grids = {{7, 14}, {{"grid", "grid", 4.5, {1, 4.5}}}};
    CHECK(breach_of(accuracy).empty());
    accuracy.grids->lines[0].error_u[1] = 5;
    test::check_names(breach_of(accuracy), "grid 5 14 4.5");
}

TEST_CASE("the float32 product rounds inv_freq, position and product") {
    const Rotation rotation = rotation_of(4, 10);  // 1 and 10^-0.5
    const float frequency = static_cast<float>(rotation.inv_freq[1]);
    const auto near = angles_of(rotation, "float32_product", 3),
               far = angles_of(rotation, "float32_product", (1 << 24) + 1);
    CHECK(near[0] == 3);
    CHECK(near[1] == static_cast<float>(3.0 * double(frequency)));
    CHECK(far[0] == 0x1p24F);
    CHECK(far[1] == 0x1p24F * frequency);
}

TEST_CASE("ggml's angles are powers of a rounded base, and scaling divides them") {
    Rotation rotation = rotation_of(128, 500000);
    const auto scale = static_cast<float>(std::pow(500000.0, -2.0 / 128));
    const auto angles = angles_of(rotation, "ggml_pow", 1000);
    for (std::size_t j = 0; j < angles.size(); ++j) {
        const auto power = static_cast<float>(std::pow(double(scale), double(j)));
        CHECK(angles[j] == static_cast<float>(1000.0 * double(power)));
    }
    rotation.inv_freq[5] /= 8;
    CHECK(angles_of(rotation, "ggml_pow", 1000)[5] == angles[5] / 8);
    rotation.base = 0;
    CHECK(angles_of(rotation, "ggml_pow", 1000).empty());
}

TEST_CASE("bf16 keeps eight bits of inv_freq") {
    Rotation rotation = rotation_of(2, 10);
    rotation.inv_freq = {1.0 + 0x1p-8 + 0x1p-20};
    CHECK(angles_of(rotation, "bf16_inv_freq", 2) == std::vector<float>{2 * (1.0F + 0x1p-7F)});
    rotation.inv_freq = {1.0 + 0x1p-9};
    CHECK(angles_of(rotation, "bf16_inv_freq", 2) == std::vector<float>{2});
}

TEST_CASE("position 0 turns nothing, and half a turn negates a pair") {
    const Rotation rotation = rotation_of(2, 10);
    const FloatAngles still = float_angles(rotation)[0];
    CHECK(rotated_by(still, rotation, {0}, 2, {1, 2, 3, 4}) == std::vector<float>{1, 2, 3, 4});
    const FloatAngles half = {"half", "half",
                              [](std::int32_t position, std::vector<float>& angles) {
                                  angles[0] = static_cast<float>(position) * 3.14159265F;
                              }};
    const auto turned = rotated_by(half, rotation, {1, 2}, 1, {1, 2, 3, 4});
    CHECK(turned[0] == doctest::Approx(-1));
    CHECK(turned[1] == doctest::Approx(-2));
    CHECK(turned[2] == doctest::Approx(3));
    CHECK(turned[3] == doctest::Approx(4));
}
