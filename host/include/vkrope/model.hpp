// SPDX-License-Identifier: MIT
// Tier "model": from the files that models come with to a Rotation.
// Every function is thread-safe.
#pragma once

#include <string_view>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Reads the RoPE of a Hugging Face config.json.
///
/// Both generations are read: `rope_parameters` (transformers 5) and `rope_theta` with `rope_scaling` (4), the type under
/// `rope_type` or `type`. Types: default, linear, llama3. Any other type is Code::not_supported and names it; a field that is
/// missing, of the wrong kind or out of range is Code::invalid_data and names it. What was assumed or ignored is in
/// Rotation::warnings.
///
/// json_text  the content of the file, UTF-8
Result<Rotation> from_hf_config(std::string_view json_text);

}  // namespace vkrope
