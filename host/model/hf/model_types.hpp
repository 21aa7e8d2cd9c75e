// SPDX-License-Identifier: MIT
// Describes properties of a `model_type` that the fields of a configuration do not state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/layers.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// Axes that alternate between the pairs; all use the frequencies of one axis.
enum class Alternating {
    no,
    two,        // row, column, row, ...: HunyuanImage 3
    then_time,  // as two, followed by the pairs of time: ERNIE 4.5 VL
};

// Meaning of the absence of a key that enables norms.
enum class Unsaid {
    none,       // no norms
    norms,      // norms
    not_known,  // unclear: versions of the class disagree
};

// Norms of Q and K in a class of models; the defaults are those of Qwen 3. The norm of a latent row
// is not included: all classes with latent attention have the same.
struct NormRule {
    NormKind kind = VKROPE_NORM_NONE;  // none: the class has no norms, unless they are `not_known`
    NormSpan span = VKROPE_NORM_SPAN_HEAD;
    NormPlace place = VKROPE_NORM_PLACE_BEFORE;
    ParameterShape weight = VKROPE_PARAMETER_CHANNEL;
    std::uint32_t weight_offset = 0;
    ParameterShape bias = VKROPE_PARAMETER_NONE;
    const char* eps_key = "rms_norm_eps";  // null: the class has a fixed eps
    double eps = 1e-6;                     // default of the class if the key is missing
    const char* asked_by = nullptr;        // has norms only if this key is true; null: always
    const char* or_by = nullptr;           // with asked_by: another key that enables norms
    Unsaid unsaid = Unsaid::none;          // with asked_by: meaning of a missing key
    bool not_known = false;                // the class has norms that a Norm cannot represent
    bool q_without_weight = false;         // only K has a weight
    bool of_v_too = false;                 // V has the norm too, without a weight
    bool with_rope_only = false;           // layers without RoPE have no norms
    bool crossing_only = false;            // only layers that attend to an image have norms
};

constexpr NormRule rms_norm(double eps = 1e-6, const char* asked_by = nullptr,
                            Unsaid unsaid = Unsaid::none) {
    return {.kind = VKROPE_NORM_RMS, .eps = eps, .asked_by = asked_by, .unsaid = unsaid};
}

// Returns a rule for RMS norms whose weights are stored without the 1 that is added to them.
constexpr NormRule one_plus_weight(double eps = 1e-6) {
    return {.kind = VKROPE_NORM_RMS, .weight_offset = 1, .eps = eps};
}

constexpr NormRule rms_norm_of_v_too() {
    return {.kind = VKROPE_NORM_RMS, .of_v_too = true};
}

constexpr NormRule over_token(double eps = 1e-5, const char* asked_by = nullptr,
                              Unsaid unsaid = Unsaid::none) {
    return {.kind = VKROPE_NORM_RMS,
            .span = VKROPE_NORM_SPAN_TOKEN,
            .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
            .eps = eps,
            .asked_by = asked_by,
            .unsaid = unsaid};
}

constexpr NormRule after_rotation(const char* asked_by = nullptr) {
    return {.kind = VKROPE_NORM_RMS,
            .place = VKROPE_NORM_PLACE_AFTER,
            .eps = 1e-5,
            .asked_by = asked_by};
}

// Returns a rule for layer norms with the key layer_norm_eps.
constexpr NormRule layer_norm(ParameterShape weight, ParameterShape bias, const char* asked_by,
                              Unsaid unsaid = Unsaid::none) {
    return {.kind = VKROPE_NORM_LAYER,
            .weight = weight,
            .bias = bias,
            .eps_key = "layer_norm_eps",
            .eps = 1e-5,
            .asked_by = asked_by,
            .unsaid = unsaid};
}

// One row of the table: differences from Llama. Defaults for missing fields are from the
// configuration class in transformers, or from the model's own code if transformers has no such
// class. Source of the norms: the attention class of modeling_*.py; for some classes whose code is
// next to the weights, the same class in mlx-lm or chatllm.cpp.
struct ModelType {
    const char* name = nullptr;
    Pairing pairing = VKROPE_HALF_SPLIT;
    double rope_theta = 10000;  // 0: versions of the class disagree, so the file must have it
    double rope_theta_since_5 =
        0;  // default of the class in transformers 5, if it differs; 0: the same
    double partial_rotary_factor = 1;
    std::uint32_t rotary_dim = 0;  // 0: computed from partial_rotary_factor
    std::uint32_t head_dim = 0;    // 0: hidden_size / num_attention_heads
    bool doubled_heads =
        false;  // attention is twice as wide as hidden_size, and so are its heads: Zamba 2
    struct {
        std::uint32_t hidden_size = 0, num_attention_heads = 0;  // 0: the file must have it
    } size = {};
    // Multi-head latent attention.
    struct {
        std::uint32_t qk_nope_head_dim = 0;  // query channels before the rotated channels
        std::uint32_t qk_rope_head_dim = 0;  // rotated channels; 0: none unless the file sets it
        std::uint32_t kv_lora_rank = 512;    // leading latent channels of a key row
        bool scaled = false;                 // multiplies the latent channels after their norm
    } latent = {};
    // A key that must be true, because then no layer has RoPE; null: the class has no such key.
    const char* nope_key = nullptr;
    const char* scaling = nullptr;        // rope_parameters, as JSON
    std::uint32_t mrope_section[3] = {};  // pairs of time, height and width
    bool mrope_interleaved = false;
    Alternating alternating = Alternating::no;  // sections in the order row, column, time
    LayerPattern layers = {};
    double local_rope_theta = 10000;    // with LayerRule::local_base
    std::uint32_t global_head_dim = 0;  // head_dim of full-attention layers; 0: as in all layers
    // Every n-th layer has no RoPE; 0: all layers have RoPE.
    std::uint32_t no_rope_layer_interval = 0;
    bool full_without_rope =
        false;  // layers without RoPE are full attention, the others chunked: Llama 4
    bool grows_by_doubling = false;        // use_dynamic_ntk is a key of its class
    const char* dynamic_factor = nullptr;  // key of the factor of dynamic NTK beyond the length
                                           // max_trained_positions: Nomic BERT
    bool pairing_stated = false;  // a key of the file selects the pairing, as in no other class
    bool reversed = false;        // rotates in the other direction: nanochat
    // Scale of the scores, which the class fixes whatever the width of its heads; 0: head_dim^-0.5
    double fixed_scale = 0;
    const char* score_key = nullptr;  // key of the scale of the scores; null: the class has none
    const char* rope_asked_by = nullptr;  // no RoPE unless this key is present
    bool absolute_is_meant = false;  // has RoPE unless position_embedding_type has another value
    bool rotary_object = false;      // its scaling is in an object named rotary: the first InternLM
    bool mixed_ntk = false;          // its rope_type ntk is the formula of kexue.fm/archives/9706
    bool tail_window = false;        // the rotated channels are the last of the head: DeepSeek V4
    // Pairing of the indexer in its sparse attention; none: it has no indexer.
    std::optional<Pairing> indexer = {};
    bool softmax_differs = false;        // readers disagree on YaRN's effect on its softmax
    bool custom_scales_nothing = false;  // its rope_type custom is default: HunyuanImage 3
    NormRule norms = {};
    bool clips = false;  // clip_qkv clamps Q, K and V
    // Scale by position, from keys of the file.
    QueryScaling query_scale = VKROPE_QUERY_SCALING_NONE;
};

// Returns the row of a model_type under any of its names; null if the table has none.
const ModelType* find_model_type(const std::string& name);

// Returns all rows.
std::span<const ModelType> all_model_types();

// Returns the names of all classes, with those that are not supported.
std::vector<std::string_view> model_type_names();

// Returns the reason why the RoPE of a model_type cannot be imported although its fields look
// plain; null if it can be imported.
const char* unsupported_model_type(const std::string& name);

}  // namespace vkrope
