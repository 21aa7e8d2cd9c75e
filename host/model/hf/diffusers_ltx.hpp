// SPDX-License-Identifier: MIT
// The config.json of LTX-Video and LTX-2 of diffusers, whose angles have a phase.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vkrope/model.hpp"

namespace vkrope {

/// Whether a class of diffusers is one of these.
bool is_ltx(const std::string& class_name);

/// The rotation of the attention that the query names by its layer_type; LTX-Video has only one.
///
/// The frequencies are w = theta^(f / (n - 1)), f = 0 to n - 1, and the angle of an axis is
/// pi / 2 * w * (2 x - 1) for a coordinate x in [0, 1]: a frequency of pi * w for a unit of x, and
/// a phase of -pi / 2 * w. They go to the axes in turn, over the channels of all heads of a token.
Rotation ltx_rotation(const nlohmann::json& config, const ModelQuery& query);

}  // namespace vkrope
