// SPDX-License-Identifier: MIT
#include "model/hf/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/hf/scaling_parameters.hpp"
#include "model/hf/scaling_types.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

/// Pair j of n is divided by factor^(((j + 1) / n)^b): Su Jianlin, kexue.fm/archives/9706,
/// equations 10 to 13, and for b = 1 the fixed form, equation 6. NTKScalingRotaryEmbedding of
/// GTE's modeling.py and of vLLM.
void ntk(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    const double factor = parameters.number("factor");
    if (factor < 1) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s.factor is %s: rope_type ntk needs at least 1",
             parameters.name().c_str(), shown_number(factor).c_str());
    }
    const double mixed_b = parameters.number("mixed_b", 1);
    const double pairs = double(rotation.inv_freq.size());
    std::vector<double> divisors;
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        divisors.push_back(std::pow(factor, std::pow(double(j + 1) / pairs, mixed_b)));
    }
    parameters.check(scale_divisors(rotation.inv_freq, divisors.data(), divisors.size()));
}

/// Fields of dynamic scaling may be present beside alpha, as in HunYuan's files, if they ask
/// for nothing else.
void fixed_ntk(const ScalingParameters& parameters, const Field& alpha) {
    Rotation& rotation = parameters.rotation();
    if (const Field factor = find(parameters.own(), {"factor"})) {
        if (positive_number(factor) != 1) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s is %s and %s is %s: it is unknown which of them applies",
                 alpha.name.c_str(), shown(*alpha.value).c_str(), factor.name.c_str(),
                 shown(*factor.value).c_str());
        }
        parameters.warn("ignored key " + factor.name + ": the scaling uses alpha instead");
    }
    if (const Field original = find(parameters.own(), {"original_max_position_embeddings"})) {
        parameters.warn("ignored key " + original.name +
                        ": alpha scales the same for every length");
    }
    parameters.check(scale_ntk(rotation.inv_freq, positive_number(alpha)));
}

void dynamic(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    if (const Field alpha = find(parameters.own(),
                                 {"alpha"})) {  // HunYuan: the same for every length
        fixed_ntk(parameters, alpha);
        return;
    }
    const Field original = find(parameters.own(), {"original_max_position_embeddings"});
    parameters.warn_without_length(
        "dynamic scaling depends on the length, which is unknown: assuming it is no longer "
        "than trained");
    const double given = original ? positive_number(original) : 0;
    const bool alone = original && rotation.max_position == 0;
    const DynamicNtkScaling scaling = {parameters.number("factor"),
                                       alone ? given : parameters.max_position()};
    if (original && given != scaling.max_position_embeddings) {
        parameters.warn(
            original.name + " is " + shown(*original.value) + " and max_position_embeddings is " +
            std::to_string(rotation.max_position) +
            ": the latter is taken for the trained length, as transformers' code does; it "
            "documents the former");
    }
    parameters.check(scale_dynamic_ntk(rotation.inv_freq, scaling, parameters.input().seq_len));
    rotation.longest_seq_len = std::max(parameters.input().seq_len,
                                        trained_length(scaling.max_position_embeddings));
}

void proportional(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    ProportionalScaling scaling;
    scaling.factor = parameters.number("factor", scaling.factor);
    scaling.partial_rotary_factor = parameters.input().partial_rotary_factor;
    parameters.check(proportional_inv_freq(parameters.input().base, rotation.head_dim, scaling,
                                           rotation.inv_freq.data()));
}

}  // namespace

void apply_scaling(const ScalingSection& section, const ScalingInput& input, Rotation& rotation) {
    const ScalingParameters parameters(section, input, rotation);
    parameters.warn_of_unused();
    const std::string& type = rotation.rope_type;
    if (type == "linear") {
        parameters.check(scale_linear(rotation.inv_freq, parameters.number("factor")));
    } else if (type == "dynamic") {
        dynamic(parameters);
    } else if (type == "ntk") {
        ntk(parameters);
    } else if (type == "xdrope") {
        if (const Field alpha = find(parameters.own(), {"alpha"})) {
            parameters.check(scale_ntk(rotation.inv_freq, positive_number(alpha)));
        }
    } else if (type == "yarn") {
        const Field stated = find_first(parameters.own(), {"rope_type", "type"});
        const bool by_name = stated && is_deepseek_yarn(text(stated));
        input.deepseek_yarn || by_name ? apply_deepseek_yarn(parameters) : apply_yarn(parameters);
        if (!input.deepseek_yarn) rotation.softmax_scale = 1;  // the class scales it, not the name
    } else if (type == "longrope") {
        apply_longrope(parameters);
    } else if (type == "llama3") {
        parameters.check(
            scale_llama3(rotation.inv_freq,
                         {parameters.number("factor"), parameters.number("low_freq_factor"),
                          parameters.number("high_freq_factor"),
                          positive_number(parameters.required(
                              parameters.everywhere(), "original_max_position_embeddings"))}));
    } else if (type == "proportional") {
        proportional(parameters);
    }
}

}  // namespace vkrope
