// SPDX-License-Identifier: MIT
// Checks the error bound and the bits, for random and adversarial values at near and far positions
// of either sign.
#include <cmath>
#include <limits>
#include <random>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/device_properties.hpp"
#include "verify/shader_source/angles.hpp"

namespace vkrope::conformance {
namespace {

constexpr double yarn_factor = 1.2079441541679836;  // 0.1 ln 8 + 1

// Returns 8 pairs, 4 heads, and 512 tokens at positions between -131071 and 131071.
Trial far_positions(Element element, Pairing pairing, std::uint32_t seed) {
    Trial trial = trial_of(element, 16, 512, pairing);
    trial.shape.q_per_group = 4;
    trial.max_position = 1 << 17;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.ids = random_positions(512, -131071, 131071, seed);
    const std::int64_t special[] = {0, 1, -1, 131071, -131071, 65536};
    std::copy(std::begin(special), std::end(special), trial.ids.begin());
    trial.seed = seed;
    return trial;
}

// Calls visit(token, pair, first, second) with the elements of each pair of Q, packed.
template <class Visit>
void each_pair(const Trial& trial, Visit visit) {
    const std::uint32_t D = trial.info.tensor[Q].head_dim, pairs = trial.info.rotary_dim / 2;
    const bool half = trial.info.pairing == VKROPE_HALF_SPLIT;
    for (std::size_t row = 0; row < elements_of(trial, Q) / D; ++row) {
        for (std::size_t j = 0; j < pairs; ++j) {
            const std::size_t first = row * D + (half ? j : 2 * j);
            visit(row / trial.shape.q_heads(), j, first, first + (half ? pairs : 1));
        }
    }
}

// Returns pairs that a rotation turns onto an axis: the two products nearly cancel, and only
// rounding error is left.
Bytes cancelling(const Trial& trial, Element element) {
    Bytes q = random_elements(element, elements_of(trial, Q), trial.seed + 7);
    const shader_source::Angles angles(inv_freq_of(trial), trial.attention_factor);
    each_pair(trial, [&](std::size_t token, std::size_t j, std::size_t first, std::size_t second) {
        const CosSin angle = angles.at(trial.info.angles, trial.ids[token], j);
        const long double c = angle.cos, s = angle.sin;
        const long double x0 = value(element, q, first);
        if (s != 0 && std::fabs(x0 * c / s) < 60000) set(element, q, second, x0 * c / s);
    });
    return q;
}

// Returns pairs whose members differ by a factor of up to 2^`spread`.
Bytes unequal(const Trial& trial, Element element, int spread) {
    Bytes q = random_elements(element, elements_of(trial, Q), trial.seed + 8);
    std::mt19937 random(trial.seed);
    each_pair(trial, [&](std::size_t, std::size_t, std::size_t first, std::size_t second) {
        const int exponent = int(random() % unsigned(spread));
        const std::size_t member = random() % 2 == 0 ? first : second;
        set(element, q, member,
            std::ldexp(static_cast<long double>(value(element, q, member)), -exponent));
    });
    return q;
}

// Returns random values, of which at most one per pair is replaced by one of `specials`.
Bytes with_specials(const Trial& trial, Element element, const std::vector<float>& specials) {
    Bytes q = random_elements(element, elements_of(trial, Q), trial.seed + 9);
    std::mt19937 random(trial.seed);
    each_pair(trial, [&](std::size_t, std::size_t, std::size_t first, std::size_t second) {
        const std::size_t member = random() % 2 == 0 ? first : second;
        if (random() % 5 == 0) set(element, q, member, specials[random() % specials.size()]);
    });
    return q;
}

// Returns values below 2^-120, whose operands, products and sums are subnormal in f32.
Bytes tiny(const Trial& trial, Element element) {
    Bytes q = random_elements(element, elements_of(trial, Q), trial.seed + 10);
    std::mt19937 random(trial.seed);
    const int deepest = element == VKROPE_F16 ? 24 : 150, from = element == VKROPE_F16 ? 10 : 120;
    for (std::size_t i = 0; i < elements_of(trial, Q); ++i) {
        const int exponent = from + int(random() % unsigned(deepest - from));
        set(element, q, i, std::ldexp(static_cast<long double>(value(element, q, i)), -exponent));
    }
    return q;
}

// Returns values near the largest value, whose sums may overflow.
Bytes huge(const Trial& trial, Element element) {
    Bytes q(elements_of(trial, Q) * element_bytes(element));
    std::mt19937 random(trial.seed);
    for (std::size_t i = 0; i < elements_of(trial, Q); ++i) {
        const long double largest = element == VKROPE_F16 ? 65504 : 0x1.fep127L;
        const long double x = largest * (static_cast<long double>(random()) / 0x1p33L + 0.5L);
        set(element, q, i, random() % 2 == 0 ? x : -x);
    }
    return q;
}

using Fill = Bytes (*)(const Trial&, Element);

void add_values(Checks& checks, const char* name, Fill values) {
    for (const Element element : elements) {
        checks.add(
            fmt::format("{}_{}", name, name_of(element)),
            [=](Test& test) {
                for (const AngleSource source :
                     {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                      VKROPE_ANGLES_DIRECT_TEXTURE}) {
                    const auto sum = std::size_t(element) + std::size_t(source);
                    Trial trial = far_positions(element, pairings[sum % 2], 11);
                    trial.info.angles = source;
                    trial.rows[Q] = values(trial, element);
                    test.run(trial);
                }
            });
    }
}

// Checks that the device treats f32 as it reports. Kernels declare these reported properties on
// all devices that are not CPUs.
void hold_promises(Test& test) {
    VkPhysicalDeviceFloatControlsProperties promised = {};
    promised.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    const bool declared = (test.device.device().ref().enabled &
                           VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS) &&
                          test.device.info().type != VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (declared) add_properties(test.device.device().ref(), &promised);
    const Traits& does = test.device.traits();
    test.expect(!promised.shaderDenormPreserveFloat32 || does.subnormals == "kept",
                "shaders declare DenormPreserve, which the device reports "
                "(shaderDenormPreserveFloat32), but f32 subnormals are {}",
                does.subnormals);
    test.expect(!promised.shaderRoundingModeRTEFloat32 || does.rounding == "to nearest even",
                "shaders declare RoundingModeRTE, which the device reports "
                "(shaderRoundingModeRTEFloat32), but the rounding of f32 is: {}",
                does.rounding);
    test.expect(!promised.shaderSignedZeroInfNanPreserveFloat32 || does.specials == "kept",
                "shaders declare SignedZeroInfNanPreserve, which the device reports "
                "(shaderSignedZeroInfNanPreserveFloat32), but NaN, infinities and zeros are {}",
                does.specials);
}

}  // namespace

void add_arithmetic(Checks& checks) {
    add_values(
        checks, "random",
        [](const Trial& trial, Element element) {
            return random_elements(element, elements_of(trial, Q), trial.seed);
        });
    add_values(checks, "random_bits", [](const Trial& trial, Element element) {
        return random_bits(element, elements_of(trial, Q), trial.seed);
    });
    add_values(checks, "cancellation", cancelling);
    add_values(checks, "unequal_members", [](const Trial& trial, Element element) {
        return unequal(trial, element, element == VKROPE_F16 ? 12 : 60);
    });
    add_values(checks, "subnormals", tiny);
    add_values(checks, "largest", huge);
    add_values(
        checks, "infinities",
        [](const Trial& trial, Element element) {
            return with_specials(trial, element, {INFINITY, -INFINITY});
        });
    add_values(
        checks, "nan_stays_in_its_pair",
        [](const Trial& trial, Element element) {
            return with_specials(trial, element, {NAN, -NAN});
        });
    add_values(checks, "signed_zeros", [](const Trial& trial, Element element) {
        Bytes q(elements_of(trial, Q) * element_bytes(element));
        for (std::size_t i = 0; i < elements_of(trial, Q); ++i) {
            set(element, q, i, i % 3 == 0 || i % 7 == 0 ? -0.0L : 0.0L);
        }
        return q;
    });
    for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
        for (const tools::Choice<Gain>& gain : tools::gains) {
            const bool inverse = direction == VKROPE_INVERSE;
            checks.add(fmt::format("factor_{}{}", gain.word, inverse ? "_inverse" : ""),
                       [=](Test& test) {
                           for (const Element element : elements) {
                               Trial trial = far_positions(element, VKROPE_HALF_SPLIT, 12);
                               trial.attention_factor = yarn_factor;
                               trial.call.direction = direction;
                               trial.call.gain = gain.value;
                               test.run(trial);
                           }
                       });
        }
    }
    checks.add("float_controls", hold_promises);
    checks.add("inverse", [](Test& test) {
        for (const Element element : elements) {
            Trial trial = far_positions(element, VKROPE_INTERLEAVED, 13);
            trial.call.direction = VKROPE_INVERSE;
            test.run(trial);
        }
    });
}

}  // namespace vkrope::conformance
