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
#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::test {

struct DestroyRotation {
    void operator()(vkrope_rotation* rotation) const { vkrope_rotation_destroy(rotation); }
};
using OwnedRotation = std::unique_ptr<vkrope_rotation, DestroyRotation>;

template <class Struct>
Struct sized() {
    Struct s = {};
    s.struct_size = sizeof s;
    return s;
}

inline const std::vector<double> frequencies = {1.0, 0.01};

inline vkrope_rotation_info four_channels() {
    auto info = sized<vkrope_rotation_info>();
    info.head_dim = info.rotary_dim = 4;
    info.inv_freq = frequencies.data();
    info.inv_freq_count = frequencies.size();
    return info;
}

inline OwnedRotation rotation_of(const vkrope_rotation_info& info) {
    vkrope_rotation* rotation = nullptr;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_SUCCESS, error.what);
    return OwnedRotation(rotation);
}

inline vkrope_rotation_info info_of(const OwnedRotation& rotation) {
    auto info = sized<vkrope_rotation_info>();
    REQUIRE(vkrope_rotation_get_info(rotation.get(), &info, nullptr) == VKROPE_SUCCESS);
    return info;
}

/// Checks that an error names `words`, and nothing that only C++ has.
inline void check_names_in_c(const vkrope_error& error, const std::string& words) {
    check_names(error.what, words);
    for (const char* name :
         {"AnglePlan", "AnglePrecision", "AngleSource", "DeviceFeature", "DualChunkRole", "Element",
          "QueryScaling", "axis_ids", "by_default", "cos_sin_cache", "direct_buffer",
          "direct_texture", "plan_angles", "plan_cos_sin_cache"})
        CHECK_MESSAGE(!names(error.what, name), error.what);
}

/// Of a call that refused an argument.
inline void check_refused(vkrope_result result, const vkrope_error& error,
                          const std::string& words) {
    CHECK(result == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.code == result);
    check_names_in_c(error, words);
}

inline PFN_vkVoidFunction VKAPI_PTR no_functions(VkInstance, const char*) {
    return nullptr;
}

}  // namespace vkrope::test
