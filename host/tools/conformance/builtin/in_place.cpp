// SPDX-License-Identifier: MIT
// Checks that rotating in place and out of place gives the same bits, and that data around the
// rows, as near as half a word, does not change.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

void add_in_place(Checks& checks) {
    struct Rows {
        const char* name;
        std::uint32_t head_dim, rotary_dim, offset;
    };
    // Rows are accessed in units of 16 bytes, of one word, or of one element.
    for (const Rows& rows :
         {Rows{"16_byte_units", 128, 128, 0}, {"words", 10, 4, 2}, {"single_elements", 7, 4, 1}}) {
        for (const Element element : elements) {
            for (const Pairing pairing : pairings) {
                checks.add(
                    fmt::format("{}_{}_{}", rows.name, name_of(element), name_of(pairing)),
                    [=](Test& test) {
                        for (const Arrangement arrangement :
                             {Arrangement::bshd, Arrangement::packed_qkv,
                              Arrangement::odd_offsets}) {
                            Trial trial = trial_of(element, rows.head_dim, 9, pairing);
                            trial.info.rotary_dim = rows.rotary_dim;
                            trial.info.tensor[Q].rotary_offset = rows.offset;
                            trial.info.tensor[K] = trial.info.tensor[Q];
                            trial.shape = {.batch = 2, .tokens = 9, .groups = 3, .q_per_group = 1};
                            trial.in = trial.out = arrangement;
                            trial.call.positions.first = -4;
                            trial.rows[Q] = random_bits(element, elements_of(trial, Q), 61);
                            const Rotated apart = test.run(trial);
                            trial.in_place.fill(true);
                            const Rotated in_place = test.run(trial);
                            test.hold(same_bits(apart, in_place),
                                      "in place gives different bits than out of place");
                        }
                    },
                    pairing == VKROPE_HALF_SPLIT && element != VKROPE_BF16 ? Level::quick
                                                                           : Level::full);
            }
        }
    }
    checks.add("outside_the_table", [](Test& test) {
        for (const bool in_place : {false, true}) {
            Trial trial = trial_of(VKROPE_F16, 16, 6, VKROPE_INTERLEAVED);
            trial.info.rotary_dim = 8;
            trial.info.tensor[Q].rotary_offset = 4;
            trial.info.tensor[K] = trial.info.tensor[Q];
            trial.info.positions = VKROPE_POSITIONS_IDS;
            trial.ids = {1, 40, -40, 39, -39, INT32_MAX};
            trial.max_position = 40;
            trial.in_place.fill(in_place);
            trial.shape.q_per_group = 5;
            test.run(trial);
        }
    });
}

}  // namespace vkrope::conformance
