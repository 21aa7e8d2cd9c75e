// SPDX-License-Identifier: MIT
// Checks angle sources: factored and computed angles over their whole range and with every option
// of a call; direct tables in a texture and in a buffer, with the same bits; a cos_sin_cache.
#include <cmath>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 24, head_dim = 40, rotary_dim = 28;

Trial from_source(AngleSource source, Element element, Pairing pairing = VKROPE_HALF_SPLIT) {
    Trial trial = trial_of(element, head_dim, tokens, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.tensor[Q].rotary_offset = 6;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.angles = source;
    trial.shape.q_per_group = 3;
    return trial;
}

constexpr AngleSource far_sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED};
constexpr double factors[] = {1, 1.01, 1.1386, 1.19, 2};
constexpr std::uint32_t max_rows = max_factored_positions;

// Returns 0, +-1, 2^k - 1, 2^k and 2^k + 1 of either sign, and the ends of the source's range.
std::vector<std::int64_t> special_positions(AngleSource source) {
    std::vector<std::int64_t> positions = {0, 1, -1};
    const int bits = source == VKROPE_ANGLES_COMPUTED ? 31 : 22;
    for (int k = 1; k < bits; ++k) {
        for (const std::int64_t near : {-1, 0, 1}) {
            const std::int64_t position = (std::int64_t{1} << k) + near;
            positions.insert(positions.end(), {position, -position});
        }
    }
    const std::int64_t last = (std::int64_t{1} << bits) - 1;
    positions.insert(positions.end(), {last, -last, last - 1, 1 - last});
    if (source == VKROPE_ANGLES_COMPUTED) positions.push_back(INT32_MIN);
    return positions;
}

// Returns random positions over the range that the source covers.
std::vector<std::int64_t> far_positions(AngleSource source, std::size_t count, std::uint32_t seed) {
    const std::int64_t last = source == VKROPE_ANGLES_COMPUTED ? INT32_MAX
                                                               : std::int64_t{max_rows} - 1;
    return random_positions(count, source == VKROPE_ANGLES_COMPUTED ? INT32_MIN : -last, last,
                            seed);
}

// Puts every third token at a special position, in the order of the list and starting at index
// `part` * (tokens / 3); the other tokens are at random positions.
Trial far_trial(AngleSource source, Element element, Pairing pairing, std::uint32_t part) {
    Trial trial = from_source(source, element, pairing);
    trial.max_position = max_rows;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.ids = far_positions(source, tokens, part);
    const std::vector<std::int64_t> special = special_positions(source);
    for (std::uint32_t i = 0; i < tokens / 3; ++i)
        trial.ids[3 * i] = special[(part * (tokens / 3) + i) % special.size()];
    trial.seed = part + 1;
    return trial;
}

void add_far(Checks& checks, AngleSource source) {
    const std::string name = name_of(source);
    for (const Element element : elements) {
        const Pairing pairing = pairings[std::size_t(element) % 2];
        checks.add(fmt::format("{}_{}_{}", name, name_of(element), name_of(pairing)),
                   [=](Test& test) {
                       std::uint32_t part = 0;
                       for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
                           for (const Gain gain :
                                {VKROPE_GAIN_APPLY, VKROPE_GAIN_OMIT, VKROPE_GAIN_DIVIDE_OUT}) {
                               for (const double factor : factors) {
                                   Trial trial = far_trial(source, element, pairing, part++);
                                   trial.call.direction = direction;
                                   trial.call.gain = gain;
                                   trial.attention_factor = factor;
                                   test.run(trial);
                               }
                           }
                       }
                   });
    }
    checks.add(name + "_special_positions", [=](Test& test) {
        Trial trial = from_source(source, VKROPE_F32);
        trial.max_position = max_rows;
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.ids = special_positions(source);
        trial.shape.tokens = std::uint32_t(trial.ids.size());
        const Rotated rotated = test.run(trial);
        test.expect(rotated.has_outside(0),
                    "positions are counted as outside although the table covers them");
    });
    checks.add(name + "_one_position_too_far", [=](Test& test) {
        Trial trial = far_trial(source, VKROPE_F32, VKROPE_HALF_SPLIT, 3);
        const std::int64_t edge = source == VKROPE_ANGLES_COMPUTED ? std::int64_t{1} << 31
                                                                   : std::int64_t{max_rows};
        trial.call.positions.int64 = true;
        trial.ids[1] = edge;
        trial.ids[4] = source == VKROPE_ANGLES_COMPUTED ? -edge - 1 : -edge;
        const Rotated rotated = test.run(trial);
        test.expect(rotated.has_outside(2), "other tokens than these are counted as outside");
    });
}

// Checks that the number of positions of a table does not change the bits at any position.
void add_table_sizes(Checks& checks) {
    for (const AngleSource source : our_sources) {
        checks.add(
            fmt::format("{}_size_changes_no_bit", name_of(source)),
            [=](Test& test) {
                Trial trial = from_source(source, VKROPE_F32);
                trial.attention_factor = 1.1386;
                trial.info.positions = VKROPE_POSITIONS_IDS;
                trial.ids = random_positions(tokens, -99, 99, 54);
                trial.max_position = 100;
                const Rotated small = test.run(trial);
                const bool direct = source == VKROPE_ANGLES_DIRECT_TEXTURE ||
                                    source == VKROPE_ANGLES_DIRECT_BUFFER;
                for (const std::uint32_t rows :
                     {2047u, 2048u, 2049u, 131072u, direct ? 131073u : max_rows}) {
                    trial.max_position = rows;
                    const Rotated large = test.run(trial);
                    test.expect(same_bits(small, large),
                                "a table for {} positions gives different bits than one for 100",
                                rows);
                }
            });
    }
    // Below 2048 the coarse angle is 0, with cos 1 and sin 0: adding it changes no bit. The same is
    // true of the fine angle at multiples of 2048, if the factor, which is in the fine rows, is 1.
    checks.add("factored_with_one_digit_has_the_bits_of_direct", [](Test& test) {
        for (const double factor : factors) {
            Trial trial = from_source(VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_F32);
            trial.attention_factor = factor;
            trial.max_position = 1 << 17;
            trial.info.positions = VKROPE_POSITIONS_IDS;
            const auto same = [&] {
                trial.info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
                const Rotated factored = test.run(trial);
                trial.info.angles = VKROPE_ANGLES_DIRECT_TEXTURE;
                const Rotated direct = test.run(trial);
                return same_bits(factored, direct);
            };
            trial.ids = random_positions(tokens, -2047, 2047, 55);
            test.expect(same(),
                        "below 2048, factored and direct angles give different bits (factor {})",
                        factor);
            for (std::int64_t& position : trial.ids) {
                position = (position % 64) * 2048;
            }
            test.expect(factor != 1 || same(),
                        "at multiples of 2048, factored and direct angles give different bits");
            trial.ids = random_positions(tokens, 4096, 131071, 56);
            test.expect(!same(),
                        "factored and direct angles never give different bits: they may be the "
                        "same source");
        }
    });
}

// Records the largest f32 errors at positions around each power of two that a source covers.
void add_errors_by_position(Checks& checks) {
    checks.add(
        "error_by_position",
        [](Test& test) {
            for (const AngleSource source : our_sources) {
                ErrorCurve curve = {
                    .source = name_of(source), .bound_u = error_bound(source, 1), .points = {}};
                for (std::uint32_t log2 = 0; log2 <= 30; log2 += 2) {
                    Trial trial = trial_of(VKROPE_F32, 64, 4);
                    trial.info.angles = source;
                    trial.shape.q_per_group = 4;
                    trial.call.positions.first = (1 << log2) - 1;
                    const std::int64_t last = std::int64_t{trial.call.positions.first} + 3;
                    const bool direct = source == VKROPE_ANGLES_DIRECT_TEXTURE ||
                                        source == VKROPE_ANGLES_DIRECT_BUFFER;
                    if (source != VKROPE_ANGLES_COMPUTED && last >= (direct ? 1 << 13 : 1 << 21))
                        break;  // the table would be too large
                    trial.max_position = std::uint32_t(
                        std::min<std::int64_t>(last + 1, std::int64_t{1} << 30));
                    Test found(test.device);
                    test.run(trial);
                    const Outcome outcome = found.outcome();
                    test.expect(!found.wrong(), "{}", outcome.reason);
                    test.measure_u(outcome.max_u.value_or(0));
                    curve.points.emplace_back(trial.call.positions.first,
                                              outcome.max_u.value_or(0));
                }
                test.add_curve(std::move(curve));
            }
        });
}

}  // namespace

void add_angles(Checks& checks) {
    checks.add("texture_that_folds", [](Test& test) {
        Trial trial = from_source(VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_F32);
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.max_position = 3 * test.device.info().limits->maxImageDimension2D + 5;
        trial.ids = random_positions(tokens, -std::int64_t{trial.max_position} - 9,
                                     trial.max_position + 9, 43);
        const Rotated texture = test.run(trial);
        trial.info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
        const Rotated buffer = test.run(trial);
        test.expect(same_bits(texture, buffer),
                    "angles from a buffer give different bits than from a texture");
    });
    checks.add("cos_sin_cache_with_our_values", [](Test& test) {
        const Rotated ours = test.run(from_source(VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_F32));
        Trial trial = from_source(VKROPE_ANGLES_COS_SIN_CACHE, VKROPE_F32);
        add_cos_sin_cache(trial, VKROPE_F32, rotary_dim / 2, true);
        const Rotated callers = test.run(trial);
        test.expect(same_bits(ours, callers),
                    "a cos_sin_cache with our values gives different bits");
    });
    for (const Element table : elements) {
        checks.add(
            fmt::format("cos_sin_cache_{}", name_of(table)),
            [=](Test& test) {
                for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
                    Trial trial = from_source(VKROPE_ANGLES_COS_SIN_CACHE, VKROPE_F32,
                                              VKROPE_INTERLEAVED);
                    trial.info.positions = VKROPE_POSITIONS_IDS;
                    trial.ids = random_positions(tokens, -9, 72, 44);  // some are out of range
                    trial.call.direction = direction;
                    add_cos_sin_cache(trial, table, rotary_dim / 2 + 3, false);
                    test.run(trial);
                }
            });
    }
    for (const AngleSource source : far_sources) add_far(checks, source);
    add_table_sizes(checks);
    add_errors_by_position(checks);
}

}  // namespace vkrope::conformance
