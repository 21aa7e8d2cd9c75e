// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

using reference::CosSin;
using reference::Operation;
using reference::Type;

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

Attempt tables_in_16_bits(const Evidence& evidence) {
    const Type type = evidence.out.type == Type::f32 ? evidence.in.type : evidence.out.type;
    return if_any(
        type != Type::f32, with(evidence, [&](Operation& operation) {
            const long double factor = operation.gain == reference::Gain::apply
                                           ? operation.attention_factor
                                           : 1;
            operation.cos_sin = [inv_freq = operation.inv_freq, type, factor](std::int64_t position,
                                                                              std::size_t pair) {
                const CosSin turn = reference::exact_cos_sin(position, inv_freq[pair]);
                const auto rounded = [&](long double value) {
                    return reference::widen(type, reference::narrow(type, factor * value)) / factor;
                };
                return CosSin{rounded(turn.cos), rounded(turn.sin)};
            };
        }));
}

Attempt subnormals_flushed(const Evidence& evidence) {
    return with(evidence,
                [](Operation& operation) { operation.absolute_allowance = 0x1p-123 + 0x1p-148; });
}

}  // namespace vkrope::tools
