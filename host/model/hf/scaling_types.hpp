// SPDX-License-Identifier: MIT
// The scalings that are supported, and the fields that each of them reads.
#pragma once

#include <string>

#include "model/hf/scaling_section.hpp"

namespace vkrope {

/// The type under its current name: "su" is "longrope", and "mrope", which is not a scaling, is
/// "default". Fails with not_supported for an unknown one.
std::string scaling_type(const ScalingSection& section);

/// Whether a field of a section is valid for every type.
bool is_common_field(const std::string& name);

/// Whether a supported type reads a field of its section.
bool reads_field(const std::string& type, const std::string& name);

/// The current name of a type that has an older one, or another one; the same name for any other.
std::string present_name(const std::string& type);

/// Whether this is the name, under any of its names, of a type that scales.
bool is_scaling_name(const std::string& type);

/// Whether a type is YaRN under a name that means DeepSeek's magnitudes: vLLM's get_rope(), and
/// initialize_rope() of mlx-lm.
bool is_deepseek_yarn(const std::string& type);

}  // namespace vkrope
