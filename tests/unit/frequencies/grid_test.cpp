// SPDX-License-Identifier: MIT
// Checks grids: the angle of whole id times folded frequency, plus phase, must be that of the
// model's coordinate times its frequency, in long double, modulo a turn.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;
using vkrope::test::check_invalid;

namespace {

constexpr long double two_pi = 6.283185307179586476925286766559005768L;

RopeParams plain(std::uint32_t axes, std::uint32_t rotary_dim = 24) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = rotary_dim;
    rotation.base = 10000;
    const std::uint32_t each = axes == 0 ? 0 : rotary_dim / 2 / axes;
    for (std::uint32_t j = 0; j < rotary_dim / 2; ++j) {
        rotation.inv_freq.push_back(
            std::pow(10000.0, -2.0 * (axes == 0 ? j : j % each) / rotary_dim));
    }
    rotation.sections.axes = axes;
    for (std::uint32_t axis = 0; axis < axes; ++axis) rotation.sections.pairs[axis] = each;
    return rotation;
}

GridAxis value_of(const Result<GridAxis>& axis) {
    REQUIRE_MESSAGE(axis, axis.status.what);
    return axis.value;
}

// Checks every element of an axis that is folded into the rotation.
void check_axis(const GridAxis& axis, const std::function<long double(std::uint32_t)>& coordinate) {
    const RopeParams before = plain(0);
    RopeParams after = before;
    REQUIRE(fold_grid(&axis, 1, after));
    std::vector<std::int32_t> ids(axis.count);
    REQUIRE(status_of(vkrope_grid_ids, &axis, 1, ids.data(), ids.size()));
    for (std::uint32_t i = 0; i < axis.count; ++i) {
        for (std::size_t j = 0; j < before.inv_freq.size(); ++j) {
            CAPTURE(i);
            CAPTURE(j);
            const long double phase = after.phase.empty() ? 0 : after.phase[j];
            const long double difference = ids[i] * (long double)after.inv_freq[j] + phase -
                                           coordinate(i) * (long double)before.inv_freq[j];
            CHECK(std::fabs(std::remainder(difference, two_pi)) < 1e-12L);
        }
    }
}

}  // namespace

TEST_CASE("grid: frames of a video, counted in frames of the base rate") {
    const GridAxis axis = value_of(result_of<GridAxis>(vkrope_frame_axis, 21, 24, 30));
    check_axis(axis, [](std::uint32_t i) { return i / 30.0L * 24; });
    CHECK(axis.origin == 0);
    CHECK(value_of(result_of<GridAxis>(vkrope_frame_axis, 3, 24, 24)).unit == 1);
}

TEST_CASE("grid: patches stretched to the grid that the model was trained with") {
    check_axis(
        value_of(result_of<GridAxis>(vkrope_resized_axis, 32, 0, 16)),
        [](std::uint32_t i) { return i / 32.0L * 16; });
    check_axis(value_of(result_of<GridAxis>(vkrope_resized_axis, 27, 1, 24)),
               [](std::uint32_t i) { return (i + 1) / 27.0L * 24; });
}

TEST_CASE("grid: centres of patches") {
    // DINOv3 with an even and an odd number of patches: the ids are odd, or even around 0.
    const GridAxis even = value_of(result_of<GridAxis>(vkrope_interval_axis, 14, -1, 1)),
                   odd = value_of(result_of<GridAxis>(vkrope_interval_axis, 3, -1, 1));
    check_axis(
        even, [](std::uint32_t i) { return 2 * (i + 0.5L) / 14 - 1; });
    check_axis(odd, [](std::uint32_t i) { return 2 * (i + 0.5L) / 3 - 1; });
    CHECK(even.first == -13);
    CHECK(odd.first == -2);
    CHECK(odd.step == 2);
    // Mochi: an area of 192^2 spread over 60 by 106 patches.
    const double scale = std::sqrt(192.0 * 192 / (60 * 106));
    check_axis(
        value_of(result_of<GridAxis>(vkrope_interval_axis, 60, -60 * scale / 2, 60 * scale / 2)),
        [&](std::uint32_t i) { return (i + 0.5L - 30) * (long double)scale; });
    // LTX-2: patches of 32 pixels, from 0 on.
    const GridAxis pixels = value_of(result_of<GridAxis>(vkrope_interval_axis, 24, 0, 768));
    check_axis(pixels, [](std::uint32_t i) { return 32 * i + 16.0L; });
    CHECK(pixels.first == 1);
    CHECK(pixels.unit == 16);
    CHECK(pixels.origin == 0);
}

TEST_CASE("grid: any other start is a phase, without whole turns") {
    const GridAxis axis = value_of(
        result_of<GridAxis>(vkrope_interval_axis, 10, 12345.25, 12350.25));
    CHECK(axis.origin == 12345.25);
    check_axis(axis, [](std::uint32_t i) { return 12345.25L + (i + 0.5L) / 2; });
    RopeParams rotation = plain(0);
    rotation.phase.assign(12, 0.5);
    REQUIRE(fold_grid(&axis, 1, rotation));
    for (std::size_t j = 0; j < 12; ++j) {
        CHECK(std::fabs(rotation.phase[j]) <= double(two_pi / 2));
        const long double exact = 0.5L + 12345.25L * (long double)plain(0).inv_freq[j];
        CHECK(std::fabs(std::remainder(rotation.phase[j] - exact, two_pi)) < 1e-11L);
    }
}

TEST_CASE("grid: each axis has its own unit, and base is unknown after that") {
    RopeParams rotation = plain(3);
    const GridAxis axes[] = {value_of(result_of<GridAxis>(vkrope_frame_axis, 5, 24, 12)),
                             value_of(result_of<GridAxis>(vkrope_resized_axis, 4, 0, 4)),
                             value_of(result_of<GridAxis>(vkrope_interval_axis, 6, -1, 1))};
    REQUIRE(fold_grid(axes, 3, rotation));
    for (std::size_t j = 0; j < 12; ++j) {
        const double unit[] = {2, 1, 1.0 / 6};
        CHECK(rotation.inv_freq[j] == plain(3).inv_freq[j] * unit[j / 4]);
    }
    CHECK(rotation.base == 0);
    CHECK(rotation.phase.empty());
    RopeParams same = plain(0);
    const GridAxis one = value_of(result_of<GridAxis>(vkrope_frame_axis, 5, 24, 24));
    REQUIRE(fold_grid(&one, 1, same));
    CHECK(same.base == 10000);
    CHECK(same.inv_freq == plain(0).inv_freq);
}

TEST_CASE("grid: sums over axes and frequencies of head groups") {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.head_groups = 2;
    rotation.sections.axes = 3;
    rotation.sections.order = VKROPE_SECTIONS_SUM;
    for (int i = 1; i <= 12; ++i) rotation.inv_freq.push_back(i / 16.0);  // [2, 3, 2]
    GridAxis axes[3];
    for (int a = 0; a < 3; ++a) axes[a] = {2, 0, 1, 1.0 + a, 0.125 * a};
    RopeParams folded = rotation;
    REQUIRE(fold_grid(axes, 3, folded));
    REQUIRE(folded.phase.size() == 4);
    for (std::size_t group = 0; group < 2; ++group) {
        for (std::size_t pair = 0; pair < 2; ++pair) {
            double phase = 0;
            for (std::size_t a = 0; a < 3; ++a) {
                const std::size_t at = (group * 3 + a) * 2 + pair;
                CHECK(folded.inv_freq[at] == rotation.inv_freq[at] * (1.0 + double(a)));
                phase += 0.125 * double(a) * rotation.inv_freq[at];
            }
            CHECK(folded.phase[group * 2 + pair] == doctest::Approx(phase));
        }
    }
    rotation.inv_freq.pop_back();
    check_invalid(fold_grid(axes, 3, rotation), "rotation.inv_freq_count 11 12");
}

TEST_CASE("grid: ids by axis, the last axis fastest") {
    const GridAxis axes[] = {{2, 5, 3, 1, 0}, {1, -7, 1, 1, 0}, {3, 0, -1, 1, 0}};
    CHECK(vkrope_grid_tokens(axes, 3) == 6);
    std::vector<std::int32_t> ids(18);
    REQUIRE(status_of(vkrope_grid_ids, axes, 3, ids.data(), 6));
    CHECK(ids == std::vector<std::int32_t>{5, 5, 5, 8, 8, 8, -7, -7, -7, -7, -7, -7, 0, -1, -2, 0,
                                           -1, -2});
    const GridAxis wide = {4294967295u, 0, 1, 1, 0};
    const GridAxis many[] = {wide, wide, wide};
    CHECK(vkrope_grid_tokens(many, 2) == 18446744065119617025u);
    CHECK(vkrope_grid_tokens(many, 3) == 0);
    CHECK(vkrope_grid_tokens(nullptr, 3) == 0);
}

TEST_CASE("grid: an id outside int32 is an error, and nothing is written") {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::vector<std::int32_t> ids(4, 77);
    const auto of = [&](const GridAxis& axis) {
        return status_of(vkrope_grid_ids, &axis, 1, ids.data(), 2);
    };
    CHECK(of({2, most - 1, 1, 1, 0}));
    CHECK(ids[1] == most);
    CHECK(of({2, -most, -1, 1, 0}));
    CHECK(ids[1] == std::numeric_limits<std::int32_t>::min());
    ids.assign(4, 77);
    check_error(of({2, most, 1, 1, 0}), VKROPE_ERROR_LIMIT_EXCEEDED,
                "axes[0].ids 2147483648 int32");
    check_error(of({2, -most, -2, 1, 0}), VKROPE_ERROR_LIMIT_EXCEEDED, "axes[0].ids -2147483649");
    check_error(of({2, std::numeric_limits<std::int64_t>::max(), 1, 1, 0}),
                VKROPE_ERROR_LIMIT_EXCEEDED, "axes[0].first 9223372036854775807");
    check_invalid(of({2, 0, std::numeric_limits<std::int64_t>::min(), 1, 0}),
                  "axes[0].step -9223372036854775808");
    check_invalid(of({0, 0, 1, 1, 0}), "axes[0].count 0");
    check_invalid(of({3, 0, 1, 1, 0}), "tokens 2 3");
    check_invalid(status_of(vkrope_grid_ids, nullptr, 1, ids.data(), 2), "axes null");
    const GridAxis good = {2, 0, 1, 1, 0};
    check_invalid(status_of(vkrope_grid_ids, &good, 1, nullptr, 2), "ids null");
    check_invalid(status_of(vkrope_grid_ids, &good, 0, ids.data(), 2), "axis_count 0");
    check_invalid(status_of(vkrope_grid_ids, &good, 9, ids.data(), 2), "axis_count 9");
    CHECK(ids == std::vector<std::int32_t>(4, 77));
}

TEST_CASE("grid: arguments outside their range are named") {
    const double inf = std::numeric_limits<double>::infinity();
    check_invalid(result_of<GridAxis>(vkrope_frame_axis, 0, 24, 30).status, "frames 0");
    check_invalid(result_of<GridAxis>(vkrope_frame_axis, 1, 0, 30).status, "base_fps 0");
    check_invalid(result_of<GridAxis>(vkrope_frame_axis, 1, 24, inf).status, "fps inf");
    check_invalid(result_of<GridAxis>(vkrope_frame_axis, 1, 1e308, 1e-300).status, "base_fps inf");
    check_invalid(result_of<GridAxis>(vkrope_resized_axis, 0, 0, 16).status, "patches 0");
    check_invalid(result_of<GridAxis>(vkrope_resized_axis, 4, 0, -1).status, "reference -1");
    check_invalid(result_of<GridAxis>(vkrope_interval_axis, 4, 1, 1).status, "low 1 1");
    check_invalid(result_of<GridAxis>(vkrope_interval_axis, 4, -inf, 1).status, "low -inf");
    RopeParams rotation = plain(0);
    const RopeParams before = rotation;
    const auto fold = [&](const GridAxis& axis) { return fold_grid(&axis, 1, rotation); };
    check_invalid(fold({1, 0, 1, -1, 0}), "axes[0].unit -1");
    check_invalid(fold({0, 0, 1, 1, 0}), "axes[0].count 0");
    check_invalid(fold({1, 0, std::int64_t{1} << 33, 1, 0}), "axes[0].step 8589934592");
    const GridAxis turned = {.count = 1, .unit = -1};
    std::int32_t id = 7;
    check_invalid(status_of(vkrope_grid_ids, &turned, 1, &id, 1), "axes[0].unit -1");
    CHECK(id == 7);
    check_invalid(fold({1, 0, 1, 1, inf}), "axes[0].origin inf");
    check_error(fold({1, 0, 1, 4096, 0}), VKROPE_ERROR_LIMIT_EXCEEDED,
                "axes[0].unit 4096 inv_freq[0] 4096");
    check_invalid(fold_grid(nullptr, 1, rotation), "axes null");
    const GridAxis two[2] = {};
    check_invalid(fold_grid(two, 2, rotation), "axis_count 2");
    CHECK(rotation.inv_freq == before.inv_freq);
    rotation.phase = {1};
    check_invalid(fold({1, 0, 1, 1, 0}), "rotation.phase_count 1 12");
}
