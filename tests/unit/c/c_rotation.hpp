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

inline bool says(const vkrope_error& error, const char* words) {
    INFO(error.what);
    return std::strstr(error.what, words) != nullptr;
}

inline PFN_vkVoidFunction VKAPI_PTR no_functions(VkInstance, const char*) {
    return nullptr;
}

}  // namespace vkrope::test
