// SPDX-License-Identifier: MIT
// Checks several positions per token and the axis of each pair, for sections in sequence,
// interleaved and repeated.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 6, pairs = 20;
constexpr std::int32_t rows_covered = 5000;

Trial with_sections(const Sections& sections, Element element, Pairing pairing,
                    AngleSource source) {
    Trial trial = trial_of(element, 48, tokens, pairing);
    trial.info.rotary_dim = 2 * pairs;
    trial.info.tensor[Q].rotary_offset = 4;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.angles = source;
    trial.info.positions = VKROPE_POSITIONS_AXIS_IDS;
    trial.info.sections = sections;
    trial.shape = {.batch = 2, .tokens = tokens, .groups = 1, .q_per_group = 3};
    trial.max_position = rows_covered;
    trial.ids = random_positions(std::size_t{sections.axes} * trial.shape.rows(), 1 - rows_covered,
                                 rows_covered - 1, sections.axes);
    return trial;
}

}  // namespace

void add_axes(Checks& checks) {
    struct Case {
        const char* name;
        Sections sections;
    };
    const Case cases[] = {
        {"sequential", {.axes = 3, .pairs = {6, 7, 7}}},
        {"sequential_whole_units", {.axes = 3, .pairs = {4, 8, 8}}},
        {"sequential_repeated", {.axes = 3, .pairs = {3, 0, 2}}},
        {"two_axes", {.axes = 2, .pairs = {10, 10}}},
        {"eight_axes", {.axes = 8, .pairs = {1, 2, 3, 4, 4, 3, 2, 1}}},
        {"interleaved", {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {10, 5, 5}}},
        {"interleaved_repeated",
         {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {4, 3, 3}}},
        {"interleaved_leftover",
         {.order = VKROPE_SECTIONS_INTERLEAVED,
          .axes = 4,
          .pairs = {4, 4, 4, 8},
          .leftover_axis = 3}},
    };
    for (std::size_t i = 0; i < std::size(cases); ++i) {
        const Sections sections = cases[i].sections;
        const Pairing pairing = pairings[i % 2];
        checks.add(fmt::format("{}_{}", cases[i].name, name_of(pairing)), [=](Test& test) {
            const bool half = pairing == VKROPE_HALF_SPLIT;
            test.run(with_sections(sections, half ? VKROPE_F32 : VKROPE_BF16, pairing,
                                   half ? VKROPE_ANGLES_FACTORED_TEXTURE : VKROPE_ANGLES_COMPUTED));
        });
    }
    checks.add("one_axis_outside", [](Test& test) {
        for (const bool wide : {false, true}) {
            Trial trial = with_sections({.axes = 3, .pairs = {6, 7, 7}}, VKROPE_F16,
                                        VKROPE_HALF_SPLIT, VKROPE_ANGLES_FACTORED_TEXTURE);
            const std::size_t rows = trial.shape.rows();
            trial.call.positions.int64 = wide;
            trial.ids[rows + 1] = rows_covered;       // the second axis of token 1
            trial.ids[2 * rows + 4] = -rows_covered;  // the third axis of token 4
            trial.ids[5] = wide ? (std::int64_t{1} << 32) + 1 : INT32_MIN;
            const Rotated rotated = test.run(trial);
            test.hold(rotated.has_outside(3), "other tokens than these are counted as outside");
        }
    });
}

}  // namespace vkrope::conformance
