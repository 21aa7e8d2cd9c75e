// SPDX-License-Identifier: MIT
// Tier "model": from the files that models come with to a Rotation.
// Every function is thread-safe.
#pragma once

#include <string_view>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Which RoPE of a model that has several.
struct ModelQuery {
    std::string_view layer_type = {};  ///< one of the model's layer types; empty: its only one
    std::uint64_t seq_len = 0;         ///< length of the sequence, for scalings that depend on it; 0: unknown
    int layer = -1;                    ///< a single layer; -1: none in particular. Not together with layer_type
    std::string_view tower = "text";   ///< "text"; "vision" is not supported yet
};

/// Reads the RoPE of a Hugging Face config.json.
///
/// Both generations are read: `rope_parameters` (transformers 5) and `rope_theta` with `rope_scaling` (4), the type under
/// `rope_type` or `type`. Types: default, linear, llama3. Any other type is Code::not_supported and names it; a field that is
/// missing, of the wrong kind or out of range is Code::invalid_data and names it. What was assumed or ignored is in
/// Rotation::warnings. Out of memory is Code::out_of_host_memory; but where memory runs out while the JSON document is destroyed,
/// the JSON library, whose destructor allocates, ends the program.
///
/// json_text  the content of the file, UTF-8
/// query      what it asks for and the model does not have is Code::invalid_argument
Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query = {});

}  // namespace vkrope
