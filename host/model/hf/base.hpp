// SPDX-License-Identifier: MIT
// The base of the frequencies.
#pragma once

#include <string>
#include <vector>

#include "model/hf/source.hpp"

namespace vkrope {

/// Of the kind of layer that is asked for: models with sliding layers may have two bases.
double rope_theta(const Source& source, std::vector<std::string>& warnings);

}  // namespace vkrope
