// SPDX-License-Identifier: MIT
// Describes one rotation with the structs of vkrope.h over host memory. Devices and the oracle
// compute the same description.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkrope/vkrope.h"

namespace vkrope::verify {

using Bytes = std::vector<std::byte>;

// Weights, biases and scales of a tensor, as in vkrope_parameter_sources. Empty: absent.
struct Parameters {
    std::vector<float> bias, weight, norm_bias, store_scale;
};
using TensorParameters = std::array<Parameters, VKROPE_TENSORS>;

struct Operation {
    vkrope_kernel_info info = {};
    // The buffers of the call are parts of `memory`: offsets count from its start, and range 0
    // means no buffer. On a device, a part with a handle is a buffer of its own. `angles` has only
    // the buffers of a cos_sin_cache; other tables are made from the fields below.
    vkrope_call call = {};
    std::vector<double> inv_freq = {}, phase = {};  // as in vkrope_rotation_info
    double attention_factor = 1;
    vkrope_angle_precision precision = VKROPE_ANGLE_PRECISION_EXACT;
    // A table covers |position| < max_position; a cos_sin_cache has max_position rows.
    std::uint32_t max_position = 64;
    std::uint32_t row_stride = 0;  // of a cos_sin_cache, in elements
    // Replace vkrope_call::parameters, which is not used. `second` is for two_parameter_sets.
    TensorParameters parameters = {}, second = {};
    Bytes memory = {};
    // Where a new buffer begins on a device, ascending from 0; every part of the call lies in one
    // buffer. Empty: one buffer contains all.
    std::vector<std::size_t> buffers = {};
};

}  // namespace vkrope::verify
