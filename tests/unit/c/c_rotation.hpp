// SPDX-License-Identifier: MIT
// Small rotations in C, for the tests of the C interface.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

struct DestroyModel {
    void operator()(vkrope_model* model) const { vkrope_model_destroy(model); }
};
using OwnedModel = std::unique_ptr<vkrope_model, DestroyModel>;

inline const std::vector<double> frequencies = {1.0, 0.01};

inline vkrope_rope_params four_channels() {
    vkrope_rope_params rotation = {};
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.inv_freq = frequencies.data();
    rotation.inv_freq_count = frequencies.size();
    return rotation;
}

inline const vkrope_rope_params& params_of(const OwnedModel& model) {
    const vkrope_rope_params* const rotation = vkrope_model_get_params(model.get());
    REQUIRE(rotation != nullptr);
    return *rotation;
}

/// Of a call that refused an argument.
inline void check_refused(vkrope_result result, const vkrope_error& error,
                          const std::string& words) {
    CHECK(result == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.code == result);
    check_names(error.what, words);
}

inline PFN_vkVoidFunction VKAPI_PTR no_functions(VkInstance, const char*) {
    return nullptr;
}

}  // namespace vkrope::test
