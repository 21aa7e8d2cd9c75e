// SPDX-License-Identifier: MIT
// Tier "model": from the files that models come with to a Rotation.
// Every function is thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Which RoPE of a model that has several.
struct ModelQuery {
    std::string_view layer_type = {};     ///< one of the model's layer types: "full_attention", "sliding_attention", ...
    std::uint64_t seq_len = 0;            ///< length of the sequence, for scalings that depend on it; 0: unknown. At most 2^31
    int layer = -1;                       ///< a single layer; -1: none in particular. Not together with layer_type
    std::string_view tower = "text";      ///< "text" or "vision"
    std::optional<Pairing> pairing = {};  ///< instead of the one that the model_type has: for weights that were permuted
};

/// Reads the RoPE of a Hugging Face config.json.
///
/// Both generations are read: `rope_parameters` (transformers 5; also one per layer type) and `rope_theta` with `rope_scaling` (4),
/// the type under `rope_type` or `type`. Types: default, linear, dynamic, yarn, longrope (su), llama3, proportional, and mrope and
/// xdrope, which name positions on several axes. Of a multi-modal model it is the language model's, in text_config and its like,
/// or that of the vision tower. Where layers differ and the query names none it is full attention's, or, where those have none,
/// that of the layers that rotate.
///
/// Multi-head latent attention: head_dim is qk_rope_head_dim, the channels that turn. A query row turns from q_rotary_offset on,
/// which is qk_nope_head_dim, and a row of the latent cache from k_rotary_offset on, which is kv_lora_rank; both end there. YaRN
/// is DeepSeek's, which sets softmax_scale.
///
/// A layer without RoPE has rotates = false, and neither rotary_dim nor frequencies.
///
/// A type or model without RoPE that we know is Code::not_supported and names it; a field that is missing, of the wrong kind or out
/// of range, or that another contradicts, is Code::invalid_data and names it. What was assumed or ignored is in Rotation::warnings.
/// Out of memory is Code::out_of_host_memory; but where memory runs out while the JSON document is destroyed, the JSON library,
/// whose destructor allocates, ends the program.
///
/// json_text  the content of the file, UTF-8
/// query      what it asks for and the model does not have is Code::invalid_argument
Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query = {});

}  // namespace vkrope
