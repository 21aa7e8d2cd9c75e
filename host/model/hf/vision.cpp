// SPDX-License-Identifier: MIT
#include "model/hf/vision.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/hf/field.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// The frequencies of the two axes, n = rotary_dim / 2.
enum class Spectrum {
    same,         ///< both base^(-2j / n): Qwen2-VL's VisionRotaryEmbedding
    alternating,  ///< the even and the odd of base^(-2j / (2 n)): Pixtral's PixtralRotaryEmbedding
};

struct Tower {
    const char* name;  ///< model_type of the vision_config, or of the whole
    Spectrum spectrum = Spectrum::same;
    Pairing pairing = Pairing::half_split;
    std::uint32_t hidden_size = 0, heads = 0;  ///< the defaults of its configuration class; 0: none
    const char* axes = "row, column";
};

// Not sorted: there are few.
constexpr Tower towers[] = {
    {.name = "qwen2_vl", .hidden_size = 1280, .heads = 16},
    {.name = "qwen2_vl_vision", .hidden_size = 1280, .heads = 16},
    {.name = "qwen2_5_vl", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_vl_vision", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni_thinker", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni_vision_encoder", .hidden_size = 3584, .heads = 16},
    {.name = "qwen3_vl", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_moe_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_moe_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe_thinker", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe_vision_encoder", .hidden_size = 1152, .heads = 16},
    {.name = "glm4v", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_vision", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_moe", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_moe_vision", .hidden_size = 1536, .heads = 12},
    {.name = "ernie4_5_vl_moe"},
    {.name = "ernie4_5_vl_moe_vision"},
    {.name = "dots_ocr"},
    {.name = "dots_vit"},
    {.name = "paddleocr_vl"},
    {.name = "paddleocr_vl_vision"},
    {.name = "pixtral", .spectrum = Spectrum::alternating, .hidden_size = 1024, .heads = 16},
    {.name = "llama4",
     .pairing = Pairing::interleaved,
     .hidden_size = 768,
     .heads = 16,
     .axes = "column + 1, row + 1"},
    {.name = "llama4_vision_model",
     .pairing = Pairing::interleaved,
     .hidden_size = 768,
     .heads = 16,
     .axes = "column + 1, row + 1"},
};

const Tower* find_tower(const std::string& name) {
    const auto* found = std::find_if(std::begin(towers), std::end(towers),
                                     [&](const Tower& tower) { return name == tower.name; });
    return found == std::end(towers) ? nullptr : found;
}

std::string type_of(const json& object) {
    const Field field = find({{&object, ""}}, {"model_type"});
    return field ? text(field) : std::string();
}

/// vision_config, at the top level, or in the thinker_config of an omni model or the vlm_config of
/// a retriever.
Scope vision_config(const json& config) {
    if (const Field field = find_first({{&config, ""}}, {"vision_config"});
        field && field.value->is_object()) {
        return {field.value, "vision_config."};
    }
    for (const char* name : {"thinker_config", "vlm_config"}) {
        if (const Field outer = find_first({{&config, ""}}, {name});
            outer && outer.value->is_object()) {
            Scope inner = vision_config(*outer.value);
            inner.prefix = outer.name + "." + inner.prefix;
            return inner;
        }
    }
    fail(Code::invalid_argument, "tower is 'vision': the model has no vision_config");
}

std::uint32_t head_dim(const Scope& vision, const Tower& tower,
                       std::vector<std::string>& warnings) {
    if (const Field field = find({vision}, {"head_dim"})) {
        return std::uint32_t(whole_number(field, 4, 65532));
    }
    const auto number = [&](std::initializer_list<const char*> names,
                            std::uint32_t otherwise) -> std::uint64_t {
        // embed_dim first: Qwen2-VL calls the language model's width hidden_size.
        if (const Field field = find_first({vision}, names)) {
            return whole_number(field, 1, 1 << 24);
        }
        const std::string missing = vision.prefix + *names.begin() + " is missing";
        if (otherwise == 0) {
            fail(Code::invalid_data, "%s", missing.c_str());
        }
        warnings.push_back(missing + ": assuming " + std::to_string(otherwise) +
                           ", the default of " + tower.name);
        return otherwise;
    };
    const std::uint64_t width = number({"embed_dim", "hidden_size"}, tower.hidden_size);
    const std::uint64_t heads = number({"num_heads", "num_attention_heads"}, tower.heads);
    if (width % heads != 0 || width / heads < 4 || width / heads > 65532) {
        fail(Code::invalid_data,
             "%shidden_size is %llu and num_heads is %llu: their quotient, head_dim, must be "
             "whole, 4 to 65532",
             vision.prefix.c_str(), static_cast<unsigned long long>(width),
             static_cast<unsigned long long>(heads));
    }
    return std::uint32_t(width / heads);
}

}  // namespace

Rotation vision_rotation(const json& config) {
    const Scope vision = vision_config(config);
    const std::string own = type_of(*vision.object);
    const std::string outer = type_of(config);
    const Tower* tower = find_tower(own.empty() ? outer : own);
    if (tower == nullptr) {
        fail(Code::not_supported,
             "tower is 'vision': the vision tower \"%s\" is not known to have a rotary embedding",
             shown_key(own.empty() ? outer : own).c_str());
    }
    Rotation rotation;
    rotation.pairing = tower->pairing;
    rotation.head_dim = head_dim(vision, *tower, rotation.warnings);
    rotation.rotary_dim = rotation.head_dim;
    if (rotation.head_dim % 4 != 0) {
        fail(Code::invalid_data,
             "%shead_dim is %u: it must be a multiple of 4, for two axes of whole pairs",
             vision.prefix.c_str(), rotation.head_dim);
    }
    double base = 10000;
    if (const Field theta = find({vision}, {"rope_theta"})) {
        base = positive_number(theta);
    } else if (const Field parameters = find({vision}, {"rope_parameters"});
               parameters && parameters.value->is_object()) {
        const Field inner = find({{parameters.value, parameters.name + "."}}, {"rope_theta"});
        base = inner ? positive_number(inner) : base;
    }
    const std::uint32_t quarter = rotation.head_dim / 4;
    for (std::uint32_t axis = 0; axis < 2; ++axis) {
        for (std::uint32_t j = 0; j < quarter; ++j) {
            const double exponent = tower->spectrum == Spectrum::same ? 4.0 * j
                                                                      : 4.0 * j + 2.0 * axis;
            rotation.inv_freq.push_back(std::pow(base, -exponent / rotation.head_dim));
        }
    }
    require_usable(rotation, rotation.inv_freq.size(), base, "vision_config.rope_theta");
    rotation.sections.axes = 2;
    rotation.sections.pairs[0] = rotation.sections.pairs[1] = quarter;
    rotation.warnings.push_back(std::string("positions of the vision tower: ") + tower->axes);
    return rotation;
}

}  // namespace vkrope
