// SPDX-License-Identifier: MIT
// Weights and biases of the steps around a rotation, as a kernel and as the oracle takes them.
#pragma once

#include "meaning.hpp"
#include "support/test_device.hpp"
#include "verify/oracle/ops.hpp"

namespace vkrope::test {

/// Random weights and biases of a kernel, as the device and as the oracle have them.
struct Parameters {
    std::vector<float> of[9] = {};  ///< bias, weight, norm bias of q, k, v
    ParameterLayout plan = {};
    Bytes filled = {};
};

inline Parameters parameters_of(const KernelInfo& info) {
    Parameters made;
    made.plan = must(plan_parameters(info));
    const ParameterItem* items[] = {
        &made.plan.tensor[Q].bias, &made.plan.tensor[Q].weight, &made.plan.tensor[Q].norm_bias,
        &made.plan.tensor[K].bias, &made.plan.tensor[K].weight, &made.plan.tensor[K].norm_bias,
        &made.plan.tensor[V].bias, &made.plan.tensor[V].weight, &made.plan.tensor[V].norm_bias};
    ParameterSource sources[9];
    for (std::uint32_t i = 0; i < 9; ++i) {
        const Bytes random = random_elements(VKROPE_F32, items[i]->count, 400 + i);
        for (std::uint32_t n = 0; n < items[i]->count; ++n)
            made.of[i].push_back(value(VKROPE_F32, random, n));
        if (items[i]->count != 0) sources[i] = {made.of[i].data(), VKROPE_F32, items[i]->count};
    }
    made.filled.resize(made.plan.bytes);
    must(fill_parameters(made.plan,
                         {{{sources[0], sources[1], sources[2], {}},
                           {sources[3], sources[4], sources[5], {}},
                           {sources[6], sources[7], sources[8], {}}}},
                         made.filled.data(), made.filled.size()));
    return made;
}

/// Random factors of tokens.
inline std::vector<float> random_factors(std::size_t count) {
    const Bytes random = random_elements(VKROPE_F32, count, 77);
    std::vector<float> factors;
    for (std::size_t i = 0; i < count; ++i) factors.push_back(value(VKROPE_F32, random, i));
    return factors;
}

/// The oracle's steps of a tensor.
///
/// in          its element type
/// parameters  its bias, weight and norm bias: three of Parameters::of
/// q_scale     Call::q_scale of Q; else 1
/// factors     of its tokens, if it has any
inline oracle::Ops oracle_of(const Ops& ops, Element in, const std::vector<float>* parameters,
                             float q_scale, const std::vector<float>& factors) {
    const auto doubles = [](const std::vector<float>& of) {
        return std::vector<double>(of.begin(), of.end());
    };
    oracle::Ops made;
    made.bias = doubles(parameters[0]);
    made.norm = {.kind = oracle::NormKind(ops.norm.kind),
                 .over_token = ops.norm.span == VKROPE_NORM_SPAN_TOKEN,
                 .after = ops.norm.place == VKROPE_NORM_PLACE_AFTER,
                 .eps = ops.norm.eps,
                 .weight = doubles(parameters[1]),
                 .weight_offset = double(ops.norm.weight_offset),
                 .bias = doubles(parameters[2])};
    if (ops.norm.round_between) made.norm.round_between = type_of(in);
    made.clip = ops.clip;
    made.scale = double(scale_of(ops)) * q_scale;
    if (ops.scale_tokens) made.scale_tokens = doubles(factors);
    return made;
}

}  // namespace vkrope::test
