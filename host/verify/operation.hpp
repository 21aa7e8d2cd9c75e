// SPDX-License-Identifier: MIT
// One rotation, by the structs of vkrope.h, over host memory: what a device is to compute, and what
// the oracle computes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkrope/vkrope.h"

namespace vkrope::verify {

using Bytes = std::vector<std::byte>;

/// Weights, biases and scales of a tensor, as vkrope_parameter_sources has them; empty: absent.
struct Parameters {
    std::vector<float> bias, weight, norm_bias, store_scale;
};
using TensorParameters = std::array<Parameters, VKROPE_TENSORS>;

struct Operation {
    vkrope_kernel_info info = {};
    /// Its buffers are parts of `memory`: their offsets count from its start, and range 0 is none.
    /// `angles` has only the buffers of a cos_sin_cache; the other tables are made from what
    /// follows.
    vkrope_call call = {};
    std::vector<double> inv_freq = {}, phase = {};  // as vkrope_rotation_info has them
    double attention_factor = 1;
    vkrope_angle_precision precision = VKROPE_ANGLE_PRECISION_EXACT;
    /// A table covers |position| < max_position; a cos_sin_cache has so many rows.
    std::uint32_t max_position = 64;
    std::uint32_t row_stride = 0;  // of a cos_sin_cache, in elements
    /// The sets of vkrope_call::parameters, which is not used; `second` with two_parameter_sets.
    TensorParameters parameters = {}, second = {};
    Bytes memory = {};
};

}  // namespace vkrope::verify
