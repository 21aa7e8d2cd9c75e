// SPDX-License-Identifier: MIT
// Properties of a `general.architecture` that the keys of a GGUF file do not state.
#pragma once

#include <cstdint>
#include <string>

#include "vkrope/types.hpp"

namespace vkrope {

/// How the RoPE of an architecture differs between its layers.
enum class GgufLayers {
    same,              ///< all layers have the same RoPE
    local_base,        ///< sliding layers have rope.freq_base_swa and no factor: Gemma 3
    unscaled_sliding,  ///< sliding layers have no scaling: OLMo 3
    none_on_full,      ///< full-attention layers have no RoPE: Cohere 2
    compressed,        ///< attention.compress_ratios says which layers are scaled, and have
                       ///< attention.compress_rope_freq_base: DeepSeek V4
};

/// Whether tokens have a position on each of several axes.
enum class GgufSections {
    none,
    if_given,  ///< if the file has rope.dimension_sections
    required,
};

/// One row of the table. A row says what differs from Llama.
struct GgufArchitecture {
    const char* name = nullptr;
    Pairing pairing = VKROPE_INTERLEAVED;
    GgufSections sections = GgufSections::none;
    bool sections_interleaved = false;
    bool latent = false;           ///< multi-head latent attention
    double yarn_log_unit = 1;      ///< unit of rope.scaling.yarn_log_multiplier
    bool yarn_in_softmax = false;  ///< that multiplier also scales the softmax
    bool rounds_yarn = false;  ///< llama.cpp rounds the range of YaRN, the model's code does not
    bool softmax_differs = false;    ///< readers disagree on what YaRN does to its softmax
    double yarn_beta_fast = 32;      ///< default if the file does not give it
    bool finetuned_is_rope = false;  ///< rope.scaling.finetuned says whether there is RoPE at all
    GgufLayers layers = GgufLayers::same;
    std::uint32_t period = 0;  ///< of full-attention layers among sliding ones; 0: no sliding
                               ///< layers unless the file says which
    bool full_first = false;   ///< the full-attention layer is the first of a period, not the last
    bool window_decides = false;     ///< sliding layers only if attention.sliding_window is above 0
    bool window_by_default = false;  ///< with window_decides: also if the key is missing
    std::uint32_t sliding_layer_count = 0;      ///< the same, for a model with this many layers
    const char* sliding = "sliding_attention";  ///< layer type of sliding layers
    std::uint32_t linear_period =
        0;  ///< all but the last layer of a period are not softmax attention; 0: all layers are
    std::uint32_t no_rope_interval = 0;  ///< every n-th layer has no RoPE; 0: all have
    bool rope_pattern = false;  ///< attention.rope_pattern, if given, says which layers have RoPE
    bool half_on_full = false;  ///< full-attention layers turn half of rope.dimension_count
    std::uint32_t alibi_layer_count =
        0;  ///< a model with this many layers has ALiBi instead; 0: none has
};

/// The row of an architecture; null if the table does not have it.
const GgufArchitecture* find_gguf_architecture(const std::string& name);

/// Why the RoPE of an architecture cannot be imported, even if its keys look plain; null if it can.
const char* unsupported_gguf_architecture(const std::string& name);

}  // namespace vkrope
