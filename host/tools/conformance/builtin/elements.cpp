// SPDX-License-Identifier: MIT
// Checks the element types: every input type with every output type, all 65536 f16 values, ties and
// their neighbours, and results that are rounded twice. Checks with f16 run with integer
// conversions and, if the device supports them, with native conversions.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"
#include "verify/shader_source/angles.hpp"

namespace vkrope::conformance {
namespace {

// Returns pairs (x, 0) at position 0, which the rotation does not change: 64 per row.
Trial identity(Element in, Element out, const std::vector<std::uint32_t>& bits) {
    constexpr std::uint32_t pairs = 64;
    const auto rows = std::uint32_t((bits.size() + pairs - 1) / pairs);
    Trial trial = trial_of(in, 2 * pairs, 1);
    trial.info.tensor[Q].out = out;
    trial.shape.batch = rows;
    trial.max_position = 1;
    trial.rows[Q].resize(elements_of(trial, Q) * element_bytes(in));
    for (std::size_t i = 0; i < bits.size(); ++i)
        store(in, trial.rows[Q], i / pairs * 2 * pairs + i % pairs, bits[i]);
    return trial;
}

// Runs a trial with each conversion that the device supports.
template <class Try>
void each_conversion(Test& test, Trial trial, Try attempt) {
    for (const Conversion conversion : {VKROPE_CONVERSION_INTEGER, VKROPE_CONVERSION_NATIVE}) {
        if (conversion == VKROPE_CONVERSION_NATIVE && !test.device.traits().converts_f16)
            continue;  // the check `native` gives the reason
        trial.info.conversion = conversion;
        attempt(trial);
    }
}

void hold_identity(Test& test, const Trial& trial, const std::vector<std::uint32_t>& bits) {
    const Element in = trial.info.tensor[Q].in, out = trial.info.tensor[Q].out;
    const Rotated rotated = test.run(trial);
    const bool flushes = test.device.traits().flushes_subnormals;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        const std::size_t at = i / 64 * 128 + i % 64;
        const float x = value(in, trial.rows[Q], at);
        const std::uint32_t got = stored(out, rotated.rows[Q], at),
                            want = oracle::narrow(type_of(out), static_cast<long double>(x));
        const float y = value(out, rotated.rows[Q], at);
        const bool may_be_zero = flushes && x != 0 &&
                                 std::fabs(x) < std::numeric_limits<float>::min();
        test.expect(std::isnan(x) ? std::isnan(y) : got == want || (may_be_zero && y == 0),
                    "{} {:#x} is stored as {} {:#x}, not {:#x}", name_of(in), bits[i], name_of(out),
                    got, want);
    }
}

void hold_identities(Test& test, Element in, Element out, const std::vector<std::uint32_t>& bits) {
    each_conversion(
        test, identity(in, out, bits),
        [&](const Trial& trial) { hold_identity(test, trial, bits); });
}

std::vector<std::uint32_t> all_halves() {
    std::vector<std::uint32_t> bits(1u << 16);
    for (std::uint32_t i = 0; i < bits.size(); ++i) bits[i] = i;
    return bits;
}

// Returns the f32 values halfway between two neighbours of `type`, and the neighbours of these.
std::vector<std::uint32_t> ties(Element type) {
    std::vector<std::uint32_t> bits;
    const std::uint32_t infinity = type == VKROPE_F16 ? 0x7c00 : 0x7f80;
    for (std::uint32_t half = 0; half < infinity; ++half) {
        const double low = oracle::widen(type_of(type), half);
        const double high = half + 1 < infinity ? double{oracle::widen(type_of(type), half + 1)}
                                                : (type == VKROPE_F16 ? 65536.0 : 0x1p128);
        const auto middle = float((low + high) / 2);  // exact
        std::uint32_t of_middle = 0;
        std::memcpy(&of_middle, &middle, sizeof middle);
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
            bits.insert(bits.end(),
                        {sign | (of_middle - 1), sign | of_middle, sign | (of_middle + 1)});
        }
    }
    return bits;
}

// Pairs whose y0, rounded to f32, is halfway between two neighbours of `element`, although the
// exact sum of the two products is not. Rounding twice gives one neighbour, and rounding once
// would give the other.
struct RoundedTwice {
    Trial trial;
    std::vector<std::uint32_t> once;  // y0 of each pair without rounding the sum to f32
};

RoundedTwice rounded_twice(Element element) {
    RoundedTwice found = {.trial = trial_of(VKROPE_F32, 16, 8), .once = {}};
    Trial& trial = found.trial;
    trial.info.tensor[Q].out = element;
    trial.call.positions.first = 1;
    trial.inv_freq.assign(8, 1);  // no angle is small enough to make one product negligible
    trial.rows[Q].resize(elements_of(trial, Q) * sizeof(float));
    const oracle::Type type = type_of(element);
    const std::uint32_t pairs = trial.info.rotary_dim / 2,
                        dropped = element == VKROPE_F16 ? 13 : 16;
    const shader_source::Angles angles(inv_freq_of(trial), 1);
    std::mt19937 random(8);
    for (std::uint32_t i = 0; i < trial.shape.tokens * pairs; ++i) {
        const std::uint32_t token = i / pairs, pair = i % pairs;
        const CosSin angle = angles.at(trial.info.angles, trial.call.positions.first + token, pair);
        const std::size_t first = std::size_t{token} * 2 * pairs + pair, second = first + pairs;
        while (true) {
            // The exponents are close together, so that a double holds the exact sum. Both signs
            // occur, because a difference is often exact in f32.
            const auto member = [&random] {
                const auto bits = std::uint32_t(random());
                return (bits & 0x807fffffu) | (127 - bits % 8) << 23;
            };
            store(VKROPE_F32, trial.rows[Q], first, member());
            store(VKROPE_F32, trial.rows[Q], second, member());
            const float a = value(VKROPE_F32, trial.rows[Q], first) * angle.cos,
                        b = value(VKROPE_F32, trial.rows[Q], second) * angle.sin;
            const float sum = a - b;
            const double exact = double{a} - double{b};
            const bool tie = (std::bit_cast<std::uint32_t>(sum) & ((1u << dropped) - 1)) ==
                             1u << (dropped - 1);
            if (!tie || double{sum} == exact || std::fabs(sum) < 0x1p-10f) continue;
            const std::uint32_t once = oracle::narrow(type, static_cast<long double>(exact));
            if (once != oracle::narrow(type, static_cast<long double>(sum))) {
                found.once.push_back(once);
                break;
            }
        }
    }
    return found;
}

}  // namespace

void add_elements(Checks& checks) {
    for (const Element in : elements) {
        for (const Element out : elements) {
            checks.add(
                fmt::format("{}_to_{}", name_of(in), name_of(out)),
                [=](Test& test) {
                    // Unrotated channels contain random bits, which are kept, or rounded to the
                    // other type.
                    const auto i = std::size_t(in) + std::size_t(out);
                    Trial trial = trial_of(in, 48, 16, pairings[i % 2]);
                    trial.info.rotary_dim = 24;
                    trial.info.tensor[Q].rotary_offset = 8;
                    trial.info.tensor[Q].out = out;
                    trial.shape = {.batch = 2, .tokens = 16, .groups = 2, .q_per_group = 2};
                    trial.rows[Q] = random_bits(in, elements_of(trial, Q), 5);
                    each_conversion(
                        test, trial, [&](const Trial& each) { test.run(each); });
                });
        }
    }
    for (const Element in : {VKROPE_F16, VKROPE_BF16}) {
        for (const Element out : elements) {
            checks.add(
                fmt::format("all_65536_{}_to_{}", name_of(in), name_of(out)),
                [=](Test& test) { hold_identities(test, in, out, all_halves()); });
        }
    }
    for (const Element out : {VKROPE_F16, VKROPE_BF16}) {
        checks.add(
            fmt::format("ties_and_next_to_ties_f32_to_{}", name_of(out)),
            [=](Test& test) { hold_identities(test, VKROPE_F32, out, ties(out)); });
    }
    for (const Element element : {VKROPE_F16, VKROPE_BF16}) {
        checks.add(
            fmt::format("rounded_twice_{}", name_of(element)),
            [=](Test& test) {
                const RoundedTwice of = rounded_twice(element);
                each_conversion(
                    test, of.trial,
                    [&](const Trial& trial) {
                        const Rotated rotated = test.run(trial);
                        const std::uint32_t pairs = trial.info.rotary_dim / 2;
                        for (std::size_t i = 0; i < of.once.size(); ++i) {
                            const std::uint32_t got = stored(element, rotated.rows[Q],
                                                             i / pairs * 2 * pairs + i % pairs);
                            test.expect(
                                got != of.once[i],
                                "token {} pair {} has been rounded to {} alone, not to f32 before",
                                i / pairs, i % pairs, name_of(element));
                        }
                    });
            });
    }
    checks.add("native", [](Test& test) {
        Trial trial = trial_of(VKROPE_F16, 32, 16);
        trial.info.conversion = VKROPE_CONVERSION_NATIVE;
        test.run(trial);  // a refusal names the feature that the device lacks
    });
}

}  // namespace vkrope::conformance
