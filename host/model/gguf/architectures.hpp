// SPDX-License-Identifier: MIT
// Describes properties of a `general.architecture` that the keys of a GGUF file do not state.
#pragma once

#include <cstdint>
#include <string>

#include "model/layers.hpp"
#include "model/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// The use of positions on several axes by an architecture.
enum class GgufSections {
    none,
    if_given,  // if the file has rope.dimension_sections
    required,
};

// Differences of an architecture's norms from RMS norms of Q and K before the rotation.
struct GgufNorms {
    NormKind kind = VKROPE_NORM_RMS;
    NormPlace place = VKROPE_NORM_PLACE_BEFORE;
    bool of_v_too = false;        // V has the norm too, without a weight
    bool unread = false;          // the norms use other tensors, which are not read
    bool without_weight = false;  // norms without a weight after the rotation, in layers with
                                  // RoPE, unless the model has 128 experts: Llama 4
};

// One row of the table: differences from Llama.
struct GgufArchitecture {
    Names names = {};
    Pairing pairing = VKROPE_PAIRING_NONE;  // none: the architecture is not known
    GgufSections sections = GgufSections::none;
    bool sections_interleaved = false;
    bool latent = false;        // multi-head latent attention
    bool without_rope = false;  // no layer has RoPE
    // DeepSeek's YaRN: the unit of rope.scaling.yarn_log_multiplier is 0.1, and this multiplier
    // also scales the softmax.
    bool deepseek_yarn = false;
    const char* yarn_differs = nullptr;  // warning of other readers of its YaRN
    double yarn_beta_fast = 32;          // default if the file has no value
    bool finetuned_is_rope = false;      // rope.scaling.finetuned false: the model has no RoPE
    LayerPattern layers = {};
    // Has sliding layers only if attention.sliding_window is above 0.
    bool window_decides = false;
    bool window_by_default = false;             // with window_decides: also if the key is missing
    std::uint32_t sliding_layer_count = 0;      // a model of this many layers has sliding ones
    const char* sliding = "sliding_attention";  // layer type of sliding layers
    std::uint32_t linear_period = 0;     // the last layer of a period has softmax attention; 0: all
    std::uint32_t no_rope_interval = 0;  // every n-th layer has no RoPE; 0: all layers have RoPE
    bool half_on_full = false;  // full-attention layers rotate half of rope.dimension_count
    std::uint32_t alibi_layer_count = 0;  // a model of this many layers has ALiBi instead
    bool rotates_whole = false;           // rope.dimension_count must be the width of a head
    const char* score_key = nullptr;  // key of the scale of the scores; 0 or missing: score_scale
    double score_scale = 0;           // 0: (width of a query row)^-0.5
    // A model of this many layers has the scale (embedding_length / attention.head_count)^-0.5.
    std::uint32_t shared_width_layer_count = 0;
    double score_cap = 0;  // default of attn_logit_softcapping
    GgufNorms norms = {};
    QueryScaling query_scale = VKROPE_QUERY_SCALING_NONE;  // scale by position in its graph

    bool known() const { return pairing != VKROPE_PAIRING_NONE; }
};

// Returns the properties of an architecture.
GgufArchitecture find_gguf_architecture(const std::string& name);

// Returns the reason why the RoPE of an architecture cannot be imported although its keys look
// plain; null if it can be imported.
const char* unsupported_gguf_architecture(const std::string& name);

}  // namespace vkrope
