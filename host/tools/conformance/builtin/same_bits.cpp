// SPDX-License-Identifier: MIT
// Checks that the bits are the same on every device: compares each device with the source of the
// shader on the host, for 10^6 and 10^8 elements. Uses only inputs for which devices have no
// choice: no NaN, and nothing subnormal in f32.
#include <bit>
#include <cstring>
#include <random>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

using Random = std::mt19937_64;

constexpr std::uint32_t head_dim = 32, heads = 4, direct_rows = 1 << 16;

struct Combination {
    Element element;
    Pairing pairing;
    AngleSource source;
};

// Returns any finite f16 values; for the other types magnitudes from 2^-40 to 2^24, so that no
// product or sum is subnormal or overflows.
Bytes random_words(Element element, std::size_t bytes, Random& random) {
    Bytes words(bytes);
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
        const auto bits = std::uint32_t(random() >> 32);
        const auto exponent = [bits](int from) { return ((bits >> from & 0x3fu) + 87) << 23; };
        const std::uint32_t beyond = bits & (bits << 1) & (bits << 2) & (bits << 3) & (bits << 4) &
                                     0x40004000u;
        const std::uint32_t word = element == VKROPE_F32 ? (bits & 0x807fffffu) | exponent(23)
                                   : element == VKROPE_BF16
                                       ? (bits & 0x807f807fu) | exponent(23) | exponent(7) >> 16
                                       : bits & ~beyond;
        std::memcpy(&words[at], &word, sizeof word);
    }
    return words;
}

std::vector<std::int64_t> random_ids(AngleSource source, std::uint32_t tokens, Random& random) {
    const std::int64_t last = source == VKROPE_ANGLES_COMPUTED ? INT32_MAX
                              : source == VKROPE_ANGLES_FACTORED_TEXTURE
                                  ? std::int64_t{max_factored_positions} - 1
                                  : std::int64_t{direct_rows} - 1;
    std::vector<std::int64_t> ids(tokens);
    for (std::int64_t& id : ids) {
        // Covers all magnitudes: half of the ids are large, the others increasingly small.
        const auto magnitude = std::int64_t(random() % std::uint64_t(last + 1)) >>
                               std::min<int>(std::countr_zero(random()), 31);
        id = random() % 2 == 0 ? magnitude : -magnitude;
    }
    const std::int64_t ends[] = {0,    1,     -1,
                                 last, -last, source == VKROPE_ANGLES_COMPUTED ? INT32_MIN : -last};
    std::copy(std::begin(ends), std::end(ends), ids.begin());
    return ids;
}

void hold_same_bits(Test& test, const Combination& of, std::uint32_t rounds, std::uint32_t tokens) {
    constexpr double bases[] = {1e4, 5e5, 1e7}, factors[] = {1, 1.01, 1.1386, 1.19, 2};
    const bool native = of.element == VKROPE_F16 && test.device.traits().converts_f16;
    Random random(71);
    for (std::uint32_t i = 0; i < rounds; ++i) {
        Trial trial = trial_of(of.element, head_dim, tokens, of.pairing);
        trial.shape.q_per_group = heads;
        trial.in_place.fill(true);
        trial.info.angles = of.source;
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.info.conversion = native && i / 2 % 2 == 0 ? VKROPE_CONVERSION_NATIVE
                                                         : VKROPE_CONVERSION_INTEGER;
        trial.inv_freq.resize(head_dim / 2);
        check(default_inv_freq(bases[i % 3], head_dim, trial.inv_freq.data()));
        trial.attention_factor = factors[i % 5];
        trial.call.direction = i % 2 == 0 ? VKROPE_FORWARD : VKROPE_INVERSE;
        trial.max_position = of.source == VKROPE_ANGLES_FACTORED_TEXTURE ? max_factored_positions
                                                                         : direct_rows;
        trial.rows[Q] = random_words(of.element, elements_of(trial, Q) * element_bytes(of.element),
                                     random);
        trial.ids = random_ids(of.source, tokens, random);
        test.run(trial);
    }
}

}  // namespace

void add_same_bits(Checks& checks) {
    for (const Element element : elements) {
        for (const Pairing pairing : pairings) {
            for (const AngleSource source : our_sources) {
                const Combination of = {element, pairing, source};
                const std::string name = fmt::format("{}_{}_{}", name_of(element), name_of(pairing),
                                                     name_of(source));
                // Quick runs each source with one type and pairing; group arithmetic has more.
                const auto sum = std::size_t(element) + std::size_t(source);
                const bool quick = sum % 3 == 0 && pairing == pairings[std::size_t(source) % 2];
                checks.add(
                    name, [=](Test& test) { hold_same_bits(test, of, 6, 1303); },
                    quick ? Level::quick : Level::full);
                checks.add(
                    name + "_100_million", [=](Test& test) { hold_same_bits(test, of, 30, 26042); },
                    Level::full);
            }
        }
    }
}

}  // namespace vkrope::conformance
