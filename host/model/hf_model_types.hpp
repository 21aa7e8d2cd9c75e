// SPDX-License-Identifier: MIT
// What a `model_type` says that the fields of a configuration do not.
#pragma once

#include <cstdint>
#include <string>

#include "vkrope/types.hpp"

namespace vkrope {

/// How the RoPE of a model differs between its layers.
enum class LayerRule {
    same,        ///< it does not
    local_base,  ///< sliding layers have a base of their own and no scaling: Gemma 3, ModernBERT
    scaled_on_full,           ///< sliding layers have no scaling: OLMo 3
    none_on_full,             ///< full-attention layers have no RoPE: Cohere 2
    none_on_full_of_sliding,  ///< the same, where `sliding_window` is set: EXAONE 4
};

/// Which layers are full attention where `layer_types` is missing.
enum class FullLayers {
    last_of_period,   ///< layers period - 1, 2 period - 1, ...
    first_of_period,  ///< layers 0, period, ...
};

/// One row of the table. The defaults are those of the configuration class in transformers, or of
/// the model's own code where it is in neither, for files that leave a field out. A row says what
/// differs from Llama.
struct ModelType {
    const char* name = nullptr;
    Pairing pairing = Pairing::half_split;
    double rope_theta = 10000;  ///< 0: versions of the class disagree, so the file has to say it
    double rope_theta_since_5 =
        0;  ///< of the class in transformers 5, where it has another one; 0: the same
    double partial_rotary_factor = 1;
    std::uint32_t rotary_dim = 0;  ///< 0: from partial_rotary_factor
    std::uint32_t head_dim = 0;    ///< 0: hidden_size / num_attention_heads
    bool doubled_heads =
        false;  ///< attention is twice as wide as hidden_size, and so are its heads: Zamba 2
    std::uint32_t hidden_size = 0;          ///< 0: the file has to say it
    std::uint32_t num_attention_heads = 0;  ///< 0: the file has to say it
    std::uint32_t qk_nope_head_dim =
        0;  ///< multi-head latent attention: channels of a query before those that turn
    std::uint32_t qk_rope_head_dim =
        0;  ///< the channels that turn; 0: no latent attention unless the file says so
    std::uint32_t kv_lora_rank = 512;     ///< latent channels of a key row before those that turn
    const char* scaling = nullptr;        ///< rope_parameters, as JSON
    std::uint32_t mrope_section[3] = {};  ///< pairs of time, height and width
    bool mrope_interleaved = false;
    LayerRule layers = LayerRule::same;
    double local_rope_theta = 10000;    ///< with LayerRule::local_base
    std::uint32_t global_head_dim = 0;  ///< head_dim of full-attention layers; 0: as all
    std::uint32_t period = 0;  ///< of layer types; 0: no layer types unless the file says so
    FullLayers full_layers = FullLayers::last_of_period;
    std::uint32_t no_rope_layer_interval = 0;  ///< every so many-th layer has no RoPE; 0: none
    bool full_without_rope =
        false;  ///< those layers are the full-attention ones, the others chunked: Llama 4
    bool grows_by_doubling = false;       ///< use_dynamic_ntk is a key of its class
    const char* rope_asked_by = nullptr;  ///< without RoPE unless this key is there
    bool absolute_is_meant =
        false;                   ///< with RoPE unless position_embedding_type says something else
    bool rotary_object = false;  ///< its scaling is in an object called rotary: InternLM, the first
    bool mixed_ntk = false;      ///< its rope_type ntk is that of kexue.fm/archives/9706
    bool plain_yarn =
        false;  ///< latent attention whose YaRN is not DeepSeek's: nothing of it in the softmax
};

/// The row of a model_type, under any of its names; null for one that the table does not have.
const ModelType* find_model_type(const std::string& name);

/// Why the RoPE of a model_type cannot be imported, however plain its fields look; null where it
/// can.
const char* unsupported_model_type(const std::string& name);

}  // namespace vkrope
