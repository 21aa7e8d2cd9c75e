// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include "model/hf_scaling.hpp"

namespace vkrope {

/// Fails with not_supported where a key of the configuration changes RoPE in a way that we do not implement, and names it:
/// reading on as if it were not there would give wrong angles without a word.
void refuse_unsupported_keys(const nlohmann::json& config, const ScalingSection& section);

/// Keys at the top level that look like RoPE, or like another configuration, and that are not read; for the warnings.
std::vector<std::string> ignored_keys(const nlohmann::json& config);

}  // namespace vkrope
