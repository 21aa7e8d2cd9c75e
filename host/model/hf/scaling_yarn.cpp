// SPDX-License-Identifier: MIT
#include "model/hf/scaling_parameters.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

/// 0 in a file turns a magnitude off.
bool is_number(const ScalingParameters& parameters, const char* name) {
    return parameters.magnitude(name, 0) != 0;
}

/// Warns of magnitudes that are present but not used, and why.
void warn_of_mscale(const ScalingParameters& parameters, const char* because) {
    for (const char* name : {"mscale", "mscale_all_dim"}) {
        if (is_number(parameters, name)) {
            const Field field = find(parameters.own(), {name});
            parameters.warn("ignored key " + field.name + ", which is " + shown(*field.value) +
                            ": " + because);
        }
    }
}

}  // namespace

void apply_yarn(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    YarnScaling scaling;
    scaling.original_max_position_embeddings = parameters.original_max_position();
    scaling.factor = parameters.factor_beyond(scaling.original_max_position_embeddings);
    scaling.beta_fast = parameters.number("beta_fast", 0);
    scaling.beta_slow = parameters.number("beta_slow", 0);
    scaling.attention_factor = parameters.number("attention_factor", 0);
    scaling.mscale = parameters.magnitude("mscale", 0);
    scaling.mscale_all_dim = parameters.magnitude("mscale_all_dim", 0);
    if (scaling.attention_factor != 0) {
        warn_of_mscale(parameters, "attention_factor is given and is used");
    } else if ((scaling.mscale != 0) != (scaling.mscale_all_dim != 0)) {
        warn_of_mscale(
            parameters,
            "mscale and mscale_all_dim count only together, as in transformers; the attention "
            "factor is YaRN's");
    }
    if (const Field truncate = find(parameters.own(), {"truncate"})) {
        scaling.no_truncate = !truth(truncate);
    }
    parameters.check(
        scale_yarn(rotation.inv_freq, parameters.input().base, scaling, rotation.attention_factor));
}

void apply_deepseek_yarn(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    DeepseekYarnScaling scaling;
    scaling.original_max_position_embeddings = parameters.original_max_position();
    scaling.factor = parameters.factor_beyond(scaling.original_max_position_embeddings);
    scaling.beta_fast = parameters.number("beta_fast", 0);
    scaling.beta_slow = parameters.number("beta_slow", 0);
    scaling.mscale = parameters.magnitude("mscale", 1);
    scaling.mscale_all_dim = parameters.magnitude("mscale_all_dim", 0);
    if (const Field truncate = find(parameters.own(), {"truncate"}); truncate && !truth(truncate)) {
        fail(VKROPE_ERROR_NOT_SUPPORTED, "%s is false: DeepSeek's YaRN truncates", truncate.name.c_str());
    }
    const bool mscale = is_number(parameters, "mscale"),
               all_dim = is_number(parameters, "mscale_all_dim");
    if (mscale != all_dim) {
        parameters.warn(parameters.name() + "." + (mscale ? "mscale_all_dim" : "mscale") +
                        " is missing: assuming " + (mscale ? "0" : "1") +
                        ", the default of DeepSeek's code; in transformers the two count for the "
                        "attention factor only together");
    }
    parameters.check(scale_deepseek_yarn(rotation.inv_freq, parameters.input().base, scaling,
                                         rotation.attention_factor, rotation.softmax_scale));
    if (const Field given = find(parameters.own(), {"attention_factor"})) {
        rotation.attention_factor = positive_number(given);
        if (mscale || all_dim) {
            parameters.warn(
                given.name + " is " + shown(*given.value) +
                ": taken for cos and sin; mscale and mscale_all_dim for the softmax alone");
        }
    }
}

}  // namespace vkrope
