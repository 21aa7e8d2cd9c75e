// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

using oracle::CosSin;
using oracle::Operation;
using oracle::Type;

Turn float32_product(std::vector<float> inv_freq) {
    return [inv_freq = std::move(inv_freq)](std::int64_t position, std::size_t pair) {
        const long double angle = static_cast<float>(position) * inv_freq[pair];
        return CosSin{std::cos(angle), std::sin(angle)};
    };
}

std::vector<float> rounded(const std::vector<double>& inv_freq) {
    return {inv_freq.begin(), inv_freq.end()};
}

/// 1 / base^(2j / rotary_dim) in float32 throughout, as PyTorch code computes it, followed by the
/// scaling.
std::vector<float> float32_powers(const Evidence& evidence) {
    const std::vector<double>& inv_freq = evidence.operation.inv_freq;
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    std::vector<float> floats;
    for (std::size_t j = 0; j < unscaled.size(); ++j) {
        const float exponent = static_cast<float>(2 * j) / static_cast<float>(rotary_dim(evidence));
        const float power = 1.0f / std::pow(static_cast<float>(evidence.base), exponent);
        floats.push_back(static_cast<float>(power * (inv_freq[j] / unscaled[j])));
    }
    return floats;
}

/// Position, frequency and their product are each rounded.
Attempt angles_in(const Evidence& evidence, Type type) {
    return with(evidence, [type](Operation& operation) {
        operation.cos_sin = [inv_freq = operation.inv_freq, type](std::int64_t position,
                                                                  std::size_t pair) {
            const long double angle = rounded_to(
                type, rounded_to(type, position) * rounded_to(type, inv_freq[pair]));
            return CosSin{std::cos(angle), std::sin(angle)};
        };
    });
}

Turn exact_turn(const Operation& operation) {
    return [inv_freq = operation.inv_freq, phase = operation.phase](std::int64_t position,
                                                                    std::size_t pair) {
        const CosSin turn = oracle::exact_cos_sin(position, inv_freq[pair]);
        return phase.empty() ? turn : oracle::sum_of(turn, oracle::exact_cos_sin(1, phase[pair]));
    };
}

/// A table has the factor in its numbers.
Turn table_of(const Operation& operation, Turn turn, Type type) {
    const long double factor = operation.gain == oracle::Gain::apply ? operation.attention_factor
                                                                     : 1;
    return [turn = std::move(turn), type, factor](std::int64_t position, std::size_t pair) {
        const CosSin exact = turn(position, pair);
        return CosSin{rounded_to(type, factor * exact.cos) / factor,
                      rounded_to(type, factor * exact.sin) / factor};
    };
}

Attempt tables_in(const Evidence& evidence, Type type) {
    return with(evidence, [type](Operation& operation) {
        Turn turn = operation.cos_sin ? operation.cos_sin : exact_turn(operation);
        operation.cos_sin = table_of(operation, std::move(turn), type);
    });
}

/// None if another mistake already computes cos and sin.
std::vector<Turn> tables_of(const Evidence& evidence, Type type) {
    if (evidence.operation.cos_sin) {
        return {};
    }
    std::vector<Turn> turns = float32_products(evidence);
    turns.insert(turns.begin(), exact_turn(evidence.operation));
    for (Turn& turn : turns) {
        turn = table_of(evidence.operation, std::move(turn), type);
    }
    return turns;
}

}  // namespace

Attempt float32_angles(const Evidence& evidence) {
    return with(evidence, [](Operation& operation) {
        operation.cos_sin = float32_product(rounded(operation.inv_freq));
    });
}

std::vector<Turn> float32_products(const Evidence& evidence) {
    std::vector<Turn> turns;
    for (const int ulps : {0, 1, -1, 2, -2}) {
        for (std::vector<float> inv_freq :
             {rounded(evidence.operation.inv_freq), float32_powers(evidence)}) {
            for (float& frequency : inv_freq) {
                for (int step = 0; step < std::abs(ulps); ++step) {
                    frequency = std::nextafter(
                        frequency, ulps > 0 ? std::numeric_limits<float>::infinity() : 0.0f);
                }
            }
            if (!inv_freq.empty()) {
                turns.push_back(float32_product(std::move(inv_freq)));
            }
        }
    }
    return turns;
}

Attempt float32_angles_by_running_product(const Evidence& evidence) {
    constexpr std::size_t max_pairs = 512;  // each pair of each token repeats the product up to it
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    const std::vector<double>& inv_freq = evidence.operation.inv_freq;
    if (unscaled.empty() || unscaled.size() > max_pairs) {
        return std::nullopt;
    }
    std::vector<float> scaling;
    for (std::size_t j = 0; j < unscaled.size(); ++j) {
        scaling.push_back(static_cast<float>(inv_freq[j] / unscaled[j]));
    }
    const float step = std::pow(static_cast<float>(evidence.base),
                                -2.0f / static_cast<float>(rotary_dim(evidence)));
    return with(evidence, [&](Operation& operation) {
        operation.cos_sin = [scaling, step](std::int64_t position, std::size_t pair) {
            auto angle = static_cast<float>(position);
            for (std::size_t j = 0; j < pair; ++j) {
                angle *= step;
            }
            const long double scaled = angle * scaling[pair];
            return CosSin{std::cos(scaled), std::sin(scaled)};
        };
    });
}

Attempt angles_in_bf16(const Evidence& evidence) {
    return angles_in(evidence, Type::bf16);
}

Attempt angles_in_f16(const Evidence& evidence) {
    return angles_in(evidence, Type::f16);
}

Attempt tables_in_bf16(const Evidence& evidence) {
    return tables_in(evidence, Type::bf16);
}

Attempt tables_in_f16(const Evidence& evidence) {
    return tables_in(evidence, Type::f16);
}

std::vector<Turn> bf16_tables(const Evidence& evidence) {
    return tables_of(evidence, Type::bf16);
}

std::vector<Turn> f16_tables(const Evidence& evidence) {
    return tables_of(evidence, Type::f16);
}

Attempt subnormals_flushed(const Evidence& evidence) {
    return with(evidence,
                [](Operation& operation) { operation.absolute_allowance = 0x1p-123 + 0x1p-148; });
}

}  // namespace vkrope::tools
