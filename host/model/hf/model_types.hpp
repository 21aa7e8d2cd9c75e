// SPDX-License-Identifier: MIT
// Properties of a `model_type` that the fields of a configuration do not state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/layers.hpp"
#include "vkrope/types.hpp"

namespace vkrope {

/// Which layers are full attention if `layer_types` is missing.
enum class FullLayers {
    last_of_period,   ///< layers period - 1, 2 period - 1, ...
    first_of_period,  ///< layers 0, period, ...
};

/// Axes that alternate between the pairs; the frequencies are those of one axis.
enum class Alternating {
    no,
    two,        ///< row, column, row, ...: HunyuanImage 3
    then_time,  ///< the same, and then the pairs of time: ERNIE 4.5 VL
};

/// One row of the table; it says what differs from Llama. The defaults, for files that leave a
/// field out, are those of the configuration class in transformers, or of the model's own code if
/// transformers has no such class.
struct ModelType {
    const char* name = nullptr;
    Pairing pairing = VKROPE_HALF_SPLIT;
    double rope_theta = 10000;  ///< 0: versions of the class disagree, so the file must give it
    double rope_theta_since_5 =
        0;  ///< default of the class in transformers 5, if it differs; 0: the same
    double partial_rotary_factor = 1;
    std::uint32_t rotary_dim = 0;  ///< 0: from partial_rotary_factor
    std::uint32_t head_dim = 0;    ///< 0: hidden_size / num_attention_heads
    bool doubled_heads =
        false;  ///< attention is twice as wide as hidden_size, and so are its heads: Zamba 2
    std::uint32_t hidden_size = 0;          ///< 0: the file must give it
    std::uint32_t num_attention_heads = 0;  ///< 0: the file must give it
    std::uint32_t qk_nope_head_dim =
        0;  ///< multi-head latent attention: channels of a query before the rotated ones
    std::uint32_t qk_rope_head_dim =
        0;  ///< rotated channels; 0: no latent attention unless the file says so
    std::uint32_t kv_lora_rank = 512;     ///< latent channels of a key row before the rotated ones
    const char* scaling = nullptr;        ///< rope_parameters, as JSON
    std::uint32_t mrope_section[3] = {};  ///< pairs of time, height and width
    bool mrope_interleaved = false;
    Alternating alternating = Alternating::no;  ///< sections in the order row, column, time
    LayerRule layers = LayerRule::same;
    double local_rope_theta = 10000;    ///< with LayerRule::local_base
    std::uint32_t global_head_dim = 0;  ///< head_dim of full-attention layers; 0: as in all layers
    std::uint32_t period = 0;  ///< of layer types; 0: no layer types unless the file says so
    FullLayers full_layers = FullLayers::last_of_period;
    std::uint32_t no_rope_layer_interval = 0;  ///< every n-th layer has no RoPE; 0: all have
    bool full_without_rope =
        false;  ///< layers without RoPE are full attention, the others chunked: Llama 4
    bool grows_by_doubling = false;       ///< use_dynamic_ntk is a key of its class
    const char* rope_asked_by = nullptr;  ///< no RoPE unless this key is present
    bool absolute_is_meant =
        false;                   ///< has RoPE unless position_embedding_type says something else
    bool rotary_object = false;  ///< its scaling is in an object called rotary: the first InternLM
    bool mixed_ntk = false;      ///< its rope_type ntk is the formula of kexue.fm/archives/9706
    bool tail_window = false;    ///< the rotated channels are the last of the head: DeepSeek V4
    std::optional<Pairing> indexer = {};  ///< of the indexer of its sparse attention, if it has one
    bool softmax_differs = false;         ///< readers disagree on what YaRN does to its softmax
    bool custom_scales_nothing = false;   ///< its rope_type custom is default: HunyuanImage 3
};

/// The row of a model_type, under any of its names; null if the table does not have it.
const ModelType* find_model_type(const std::string& name);

/// All rows, for whoever goes through them.
std::span<const ModelType> all_model_types();

/// Why the RoPE of a model_type cannot be imported, even if its fields look plain; null if it can.
const char* unsupported_model_type(const std::string& name);

}  // namespace vkrope
