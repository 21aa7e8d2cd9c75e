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

inline const std::vector<double> frequencies = {1.0, 0.01};

inline vkrope_rotation_info four_channels() {
    vkrope_rotation_info info = {};
    info.pairing = VKROPE_HALF_SPLIT;
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
    vkrope_rotation_info info = {};
    REQUIRE(vkrope_rotation_get_info(rotation.get(), &info, nullptr) == VKROPE_SUCCESS);
    return info;
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
