// SPDX-License-Identifier: MIT
// The part of a Hugging Face configuration that names and parametrises the scaling:
// `rope_parameters` (transformers 5) or `rope_scaling` (4), one for all layers or one per layer
// type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/config_field.hpp"
#include "model/hf_model_types.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {

struct ScalingSection {
    std::string name;  ///< as messages call it: "rope_parameters", "rope_scaling"; empty where the
                       ///< configuration has neither
    nlohmann::json object = nlohmann::json::object();

    Scope scope() const { return {&object, name + "."}; }
    ScalingSection without_scaling() const;  ///< what it says of the rest: base, width, sections
};

struct ScalingSections {
    ScalingSection all;  ///< of every layer; empty where there is one per layer type
    std::vector<std::pair<std::string, ScalingSection>>
        by_type;  ///< of each layer type that has one

    std::vector<std::string> types() const;
    const ScalingSection* of(const std::string& type) const;  ///< null where a layer type has none
};

/// Finds them; that both generations say different things is an error. Of a model whose class has a
/// scaling of its own it is that where the file says nothing, with a warning. InternLM's object
/// called rotary becomes such a section.
ScalingSections scaling_sections(const Scope& config, const ModelType& model,
                                 std::vector<std::string>& warnings);

/// The type under its present name: "su" is "longrope" and "mrope", which is no scaling, is
/// "default". An unknown one is not_supported.
std::string scaling_type(const ScalingSection& section);

/// The share of the head that turns, under any of its names.
Field partial_rotary_factor(const Scopes& scopes);

/// What a scaling needs to know beside its own parameters.
struct ScalingInput {
    Scope config;     ///< the language model's own object
    double base = 0;  ///< that the frequencies were made of
    double partial_rotary_factor = 1;
    bool deepseek_yarn = false;  ///< latent attention, a part of whose YaRN is in the softmax
    std::uint64_t seq_len = 0;
};

/// Applies the scaling rotation.rope_type to frequencies without any; sets the attention factor and
/// the softmax scale. Adds to the warnings what the section holds and the type does not use, and
/// what was assumed.
void apply_scaling(const ScalingSection& section, const ScalingInput& input, Rotation& rotation);

}  // namespace vkrope
