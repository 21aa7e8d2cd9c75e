// SPDX-License-Identifier: MIT
// Positions on several axes: each mistake in them is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "check/judge.hpp"
#include "judge_engine.hpp"

using namespace vkrope::tools;
using namespace vkrope;

namespace {

/// Frame, height and width of a token; all axes and sequences differ.
double of_image(std::uint64_t b, std::uint64_t t, std::uint32_t axis) {
    return axis == 0   ? 5.0 + 7 * double(b) + double(t / 3)
           : axis == 1 ? 11.0 + 2 * double(b) + double(t % 3)
                       : 3.0 + 5 * double(t % 4);
}

/// A model with positions on several axes.
struct AxesCase {
    Sections sections;
    std::vector<std::uint32_t> axes;  // axis of each pair

    Case made(const std::function<void(Engine&)>& change) const {
        Engine engine;
        engine.axes = axes;
        engine.on_axis = of_image;
        change(engine);
        Case made(engine);
        made.seen.right.further.sections = sections;
        for (std::uint32_t axis = 0; axis < sections.axes; ++axis) {
            std::vector<std::int64_t> positions;
            for (std::uint64_t row = 0; row < batch * tokens; ++row) {
                positions.push_back(std::int64_t(of_image(row / tokens, row % tokens, axis)));
            }
            if (axis == 0) {
                made.seen.right.operation.positions = positions;
            } else {
                made.seen.right.further.positions.push_back(positions);
            }
        }
        return made;
    }
};

const AxesCase in_sections = {
    .sections = {.order = VKROPE_SECTIONS_SEQUENTIAL, .axes = 3, .pairs = {1, 2, 1}},
    .axes = {0, 1, 1, 2}};
const AxesCase interleaved_sections = {
    .sections = {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {1, 2, 1}},
    .axes = {0, 1, 2, 0}};
const AxesCase height_and_width = {
    .sections = {.order = VKROPE_SECTIONS_SEQUENTIAL, .axes = 2, .pairs = {2, 2}},
    .axes = {0, 0, 1, 1}};

std::function<void(Engine&)> on_axes(
    const std::function<double(std::uint64_t, std::uint64_t, std::uint32_t)>& positions) {
    return [positions](Engine& e) { e.on_axis = positions; };
}

}  // namespace

TEST_CASE("positions on several axes: right, and each mistake is named") {
    for (const AxesCase& model : {in_sections, interleaved_sections, height_and_width}) {
        CAPTURE(model.sections.axes);
        const Judgement judgement = model.made([](Engine&) {}).judged();
        CHECK(judgement.outcome == Outcome::pass);
        CHECK(judgement.right.error_u() <= 1.0);
        for (const Match& match : judgement.matches) {
            CAPTURE(match.mistake);
            CHECK(match.explains == (match.mistake == "subnormals_flushed"));
        }
        check_named("sections_ignored",
                    model.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); })));
        check_named("position_plus_one", model.made(on_axes([](auto b, auto t, auto axis) {
            return of_image(b, t, axis) + 1;
        })));
        check_named("positions_from_zero",
                    model.made(on_axes([](auto, auto t, auto) { return double(t); })));
        check_named(
            "positions_of_first_sequence",
            model.made(on_axes([](auto, auto t, auto axis) { return of_image(0, t, axis); })));
        check_named("position_offset", model.made(on_axes([](auto b, auto t, auto axis) {
            return of_image(b, t, axis) + 300;
        })));
        check_named("inverse_direction", model.made([](Engine& e) { e.direction = -1; }));
        check_named("rotated_twice", model.made([](Engine& e) {
            e.angle = [](double position, double inv_freq) { return 2 * position * inv_freq; };
            e.factor *= e.factor;
        }));
    }
    check_named("sections_in_the_other_order",
                in_sections.made([](Engine& e) { e.axes = interleaved_sections.axes; }));
    check_named("sections_in_the_other_order",
                interleaved_sections.made([](Engine& e) { e.axes = in_sections.axes; }));
    const auto exchanged = [](std::uint32_t a, std::uint32_t b) {
        return on_axes([a, b](auto sequence, auto t, auto axis) {
            return of_image(sequence, t, axis == a ? b : axis == b ? a : axis);
        });
    };
    check_named("height_and_width_exchanged", in_sections.made(exchanged(1, 2)));
    check_named("height_and_width_exchanged", interleaved_sections.made(exchanged(1, 2)));
    check_named("height_and_width_exchanged", height_and_width.made(exchanged(0, 1)));
}

TEST_CASE("positions on several axes are tried on a sample too") {
    Case made = in_sections.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); }));
    made.limits.sampled_elements = 8 * head_dim;
    const Judgement judgement = made.judged();
    CHECK(judgement.sampled < count);
    CHECK(judgement.matches.front().mistake == "sections_ignored");
    CHECK(judgement.matches.front().explains);
    Case right = in_sections.made([](Engine&) {});
    right.limits.sampled_elements = 8 * head_dim;
    // The right operation uses the same sample as the mistakes, and no mistake explains it.
    for (const Match& match : right.judged().matches) {
        CHECK(match.explains == (match.mistake == "subnormals_flushed"));
    }
}

TEST_CASE("equal positions on all axes cannot show a mistake in the sections") {
    Case made = in_sections.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); }));
    for (std::vector<std::int64_t>& positions : made.seen.right.further.positions) {
        positions = made.seen.right.operation.positions;
    }
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    int blind = 0;
    for (const Match& match : judgement.matches) {
        blind += match.explains && match.mistake != "subnormals_flushed";
    }
    CHECK(blind == 3);
}

TEST_CASE("axes that alternate beyond the end of their sections") {
    // Eight pairs: time to the last of them, but for three of height and width.
    const AxesCase model = {
        .sections = {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {6, 1, 1}},
        .axes = {0, 1, 2, 0, 0, 0, 0, 0}};
    const auto with_axes = [&](const std::vector<std::uint32_t>& axes) {
        const std::vector<double> inv_freq = {0.9, 0.4, 0.1, 0.06, 0.01, 1e-3, 4e-5, 2e-6};
        Case made = model.made([&](Engine& e) {
            e.inv_freq = inv_freq;
            e.axes = axes;
        });
        made.seen.right.operation.inv_freq = inv_freq;
        return made;
    };
    check_named("sections_without_end", with_axes({0, 1, 2, 0, 1, 2, 0, 1}));
    // Any other choice is read from the output; the slowest pairs differ by less than the
    // tolerance.
    for (const std::vector<std::uint32_t>& axes :
         {std::vector<std::uint32_t>{0, 1, 2, 0, 0, 0, 2, 1},
          {0, 1, 2, 0, 0, 0, 2, 0},
          {2, 1, 0, 0, 0, 0, 0, 0}}) {
        check_named("pairs_on_other_axes", with_axes(axes));
    }
    Case slow = with_axes({0, 1, 2, 0, 0, 0, 2, 1});
    const Judgement judgement = slow.judged();
    CHECK(judgement.odd_pairs == std::vector<std::size_t>{6, 7});
    CHECK(judgement.matches.front().meaning.find("pair 7 on axis 1") != std::string::npos);
}
