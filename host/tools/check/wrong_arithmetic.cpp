// SPDX-License-Identifier: MIT
// Mistakes of arithmetic: other precision of cos and sin, with right or with wrong frequencies.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "check/mistakes.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using oracle::CosSin;
using oracle::Operation;
using oracle::Type;

Turn float32_product(std::vector<float> inv_freq) {
    return [inv_freq = std::move(inv_freq)](std::int64_t position, std::size_t pair) {
        const long double angle = float(position) * inv_freq[pair];
        return CosSin{std::cos(angle), std::sin(angle)};
    };
}

std::vector<float> rounded(const std::vector<double>& inv_freq) {
    return {inv_freq.begin(), inv_freq.end()};
}

// Returns 1 / base^(2j / rotary_dim) in float32 throughout, as PyTorch code computes it, followed
// by the scaling.
std::vector<float> float32_powers(const Observation& observation, const Hypothesis& right) {
    const std::vector<double>& inv_freq = right.operation.inv_freq;
    const std::vector<double> unscaled = powers(observation.base, rotary_dim(right));
    std::vector<float> floats;
    for (std::size_t j = 0; j < unscaled.size(); ++j) {
        const float exponent = float(2 * j) / float(rotary_dim(right));
        const float power = 1.0f / std::pow(float(observation.base), exponent);
        floats.push_back(float(power * (inv_freq[j] / unscaled[j])));
    }
    return floats;
}

// Adds the phase of each pair to a turn by the position alone.
Turn with_phase(const Operation& operation, Turn turn) {
    if (operation.phase.empty()) return turn;
    return
        [turn = std::move(turn), phase = operation.phase](std::int64_t position, std::size_t pair) {
            return oracle::sum_of(turn(position, pair), oracle::exact_cos_sin(1, phase[pair]));
        };
}

Turn exact_turn(const Operation& operation) {
    return with_phase(
        operation,
        [inv_freq = operation.inv_freq](std::int64_t position, std::size_t pair) {
            return oracle::exact_cos_sin(position, inv_freq[pair]);
        });
}

// Returns a turn read from a table, whose numbers include the attention factor.
Turn table_of(const Operation& operation, Turn turn, Type type) {
    const long double factor = operation.gain == oracle::Gain::apply ? operation.attention_factor
                                                                     : 1;
    return [turn = std::move(turn), type, factor](std::int64_t position, std::size_t pair) {
        const CosSin exact = turn(position, pair);
        return CosSin{rounded_to(type, factor * exact.cos) / factor,
                      rounded_to(type, factor * exact.sin) / factor};
    };
}

// Returns variants that differ in the last bits of a float32 frequency. The pow() of an engine
// decides these bits, and at a far position each variant is another angle.
std::vector<Turn> float32_products(const Observation& observation, const Hypothesis& right) {
    std::vector<Turn> turns;
    for (const int ulps : {0, 1, -1, 2, -2}) {
        for (std::vector<float> inv_freq :
             {rounded(right.operation.inv_freq), float32_powers(observation, right)}) {
            for (float& frequency : inv_freq) {
                for (int step = 0; step < std::abs(ulps); ++step) {
                    frequency = std::nextafter(
                        frequency, ulps > 0 ? std::numeric_limits<float>::infinity() : 0.0f);
                }
            }
            if (!inv_freq.empty())
                turns.push_back(with_phase(right.operation, float32_product(std::move(inv_freq))));
        }
    }
    return turns;
}

// Returns tables of exact angles and of those float32 products, since an engine may use either.
// Returns none if another mistake already computes cos and sin.
std::vector<Turn> tables_of(const Observation& observation, const Hypothesis& right, Type type) {
    if (right.operation.cos_sin) return {};
    std::vector<Turn> turns = float32_products(observation, right);
    turns.insert(turns.begin(), exact_turn(right.operation));
    for (Turn& turn : turns) turn = table_of(right.operation, std::move(turn), type);
    return turns;
}

Row frequencies_in(const Rounded& rounded) {
    return {"frequencies_in_16_bits", Part::rounding,
            "rounded frequencies to 16 bits, before the product with the position",
            [rounded](const Observation&, Hypothesis& wrong) {
                wrong.detail = rounded.name;
                bool changed = false;
                for (std::vector<double>* each :
                     {&wrong.operation.inv_freq, &wrong.operation.further.summed}) {
                    for (double& frequency : *each) {
                        const double exact = std::exchange(frequency,
                                                           rounded_to(rounded.type, frequency));
                        changed = changed || frequency != exact;
                    }
                }
                return changed;
            }};
}

Row angles_in(const Rounded& rounded) {
    return {"angles_in_16_bits", Part::arithmetic,
            "rounded positions, frequencies and their products to 16 bits",
            [rounded](const Observation&, Hypothesis& wrong) {
                wrong.detail = rounded.name;
                wrong.operation.cos_sin = with_phase(
                    wrong.operation,
                    [inv_freq = wrong.operation.inv_freq, type = rounded.type](
                        std::int64_t position, std::size_t pair) {
                        const long double angle = rounded_to(
                            type, rounded_to(type, position) * rounded_to(type, inv_freq[pair]));
                        return CosSin{std::cos(angle), std::sin(angle)};
                    });
                return true;
            }};
}

Row tables_in(const Rounded& rounded) {
    return {.name = "tables_in_16_bits",
            .part = Part::tables,
            .meaning = "rounded cos and sin to 16 bits",
            .change =
                [rounded](const Observation&, Hypothesis& wrong) {
                    wrong.detail = rounded.name;
                    Operation& operation = wrong.operation;
                    Turn turn = operation.cos_sin ? operation.cos_sin : exact_turn(operation);
                    operation.cos_sin = table_of(operation, std::move(turn), rounded.type);
                    return true;
                },
            .turns = [type = rounded.type](
                         const Observation& observation,
                         const Hypothesis& right) { return tables_of(observation, right, type); }};
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): owned by std::function

bool multiply_float32(const Observation&, Hypothesis& wrong) {
    wrong.operation.cos_sin = with_phase(wrong.operation,
                                         float32_product(rounded(wrong.operation.inv_freq)));
    return true;
}

bool multiply_float32_step_by_step(const Observation& observation, Hypothesis& wrong) {
    constexpr std::size_t max_pairs = 512;  // each pair of each token computes its product anew
    const std::vector<double> scaling = multipliers(observation, wrong);
    if (scaling.empty() || scaling.size() > max_pairs) return false;
    const float step = std::pow(float(observation.base), -2.0f / float(rotary_dim(wrong)));
    wrong.operation.cos_sin = with_phase(
        wrong.operation,
        [scaling = rounded(scaling), step](std::int64_t position, std::size_t pair) {
            auto angle = float(position);
            for (std::size_t j = 0; j < pair; ++j) angle *= step;
            const long double scaled = angle * scaling[pair];
            return CosSin{std::cos(scaled), std::sin(scaled)};
        });
    return true;
}

}  // namespace

Rows arithmetic_mistakes() {
    Rows rows = {
        frequencies_in(in_16_bits[0]),
        frequencies_in(in_16_bits[1]),
        {.name = "float32_angles",
         .part = Part::arithmetic,
         .meaning = "multiplied position and frequency in float32",
         .change = multiply_float32,
         .turns = float32_products},
        {"float32_angles_by_running_product", Part::arithmetic,
         "made each float32 angle from the angle of the pair before it, by a product",
         multiply_float32_step_by_step},
        angles_in(in_16_bits[0]),
        angles_in(in_16_bits[1]),
        tables_in(in_16_bits[0]),
        tables_in(in_16_bits[1]),
        {"subnormals_flushed", Part::alone, "took subnormal numbers for 0, and did all else right",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.absolute_allowance = oracle::flushing_allowance(wrong.operation);
             return true;
         }},
    };
    for (Row& row : rows) row.precision = true;
    return rows;
}

}  // namespace vkrope::tools
