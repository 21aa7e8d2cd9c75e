// SPDX-License-Identifier: MIT
#include "conformance/builtin/variant_trials.hpp"

#include "base/meaning.hpp"

namespace vkrope::conformance {
namespace {

// Returns sections of Qwen3-VL, sections that end within a unit, or sections of whole units.
Sections sections_for(Turn turn, std::uint32_t pairs) {
    const std::uint32_t third = pairs / 3;
    switch (turn) {
        case Turn::interleaved:
            return {.order = VKROPE_SECTIONS_INTERLEAVED,
                    .axes = 3,
                    .pairs = {pairs - 2 * third, third, third}};
        case Turn::unaligned:
            return {.axes = 3, .pairs = {third, third + 3, pairs - 2 * third - 3}};
        case Turn::whole_units: return {.axes = 3, .pairs = {pairs / 4, pairs / 4, pairs / 2}};
    }
    return {};
}

}  // namespace

void run_each_access(Test& test, Trial trial) {
    const KernelInfo& info = trial.info;
    const bool in_place = !info.scatter_kv && output_pairing(info) == info.pairing &&
                          info.tensor[Q].in == info.tensor[Q].out;
    for (const NamedArrangement& rows : widest_first) {
        trial.in = trial.out = rows.value;
        trial.in_place.fill(false);
        const Rotated apart = test.run(trial);
        if (in_place) {
            trial.in_place.fill(true);
            const Rotated same_place = test.run(trial);
            test.hold(same_bits(apart, same_place), "{} at a time, in place gives different bits",
                      rows.name);
        }
    }
}

Trial two_tensors(Element element, std::uint32_t rotary_dim, std::uint32_t around,
                  Pairing pairing) {
    Trial trial = trial_of(element, rotary_dim + around, 5, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.tensor[Q].rotary_offset = around / 2;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.shape = {.batch = 2, .tokens = 5, .groups = 2, .q_per_group = 1};
    trial.call.positions.first = 3;
    return trial;
}

void turn_by_axes(Trial& trial, Turn turn) {
    trial.info.positions = VKROPE_POSITIONS_AXIS_IDS;
    trial.info.sections = sections_for(turn, trial.info.rotary_dim / 2);
    const std::int64_t lowest = trial.info.angles == VKROPE_ANGLES_COS_SIN_CACHE
                                    ? 0
                                    : 1 - std::int64_t{trial.max_position};
    trial.ids = random_positions(std::size_t{3} * trial.shape.rows(), lowest,
                                 trial.max_position - 1, 91);
    trial.ids[trial.shape.rows() + 2] =
        trial.max_position;  // the third token is out of range on its second axis
}

}  // namespace vkrope::conformance
