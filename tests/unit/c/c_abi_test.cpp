// SPDX-License-Identifier: MIT
// The rules that the C interface adds to the C++ one: zero as the default, codes,
// and that nothing but a code comes out. Linked with the shared library, to test what other
// languages call.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "c_rotation.hpp"
#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;

TEST_CASE("C: the header's version is the library's and the project's") {
    CHECK(vkrope_version() == VKROPE_VERSION);
    const std::string header = std::to_string(VKROPE_VERSION_MAJOR) + "." +
                               std::to_string(VKROPE_VERSION_MINOR) + "." +
                               std::to_string(VKROPE_VERSION_PATCH);
    CHECK(header == VKROPE_TEST_VERSION);
}

TEST_CASE("C: every code has words of its own, any other number has some") {
    std::vector<std::string> seen;
    for (int code = VKROPE_SUCCESS; code >= VKROPE_ERROR_INTERNAL; --code) {
        const std::string words = vkrope_status_string(vkrope_result(code));
        CHECK(words != "unknown result");
        for (const std::string& other : seen) CHECK(words != other);
        seen.push_back(words);
    }
    CHECK(std::string(vkrope_status_string(vkrope_result(-12))) == "unknown result");
    CHECK(std::string(vkrope_status_string(vkrope_result(1))) == "unknown result");
}

TEST_CASE("C: an error is written whole, success clears it, and nobody has to ask for it") {
    vkrope_error error = {VKROPE_ERROR_INTERNAL, VK_INCOMPLETE, "left by someone else"};
    double inv_freq[2];
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.code == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.vk_result == VK_SUCCESS);
    check_names(error.what, "base -1");
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, nullptr) == VKROPE_ERROR_INVALID_ARGUMENT);

    CHECK(vkrope_default_inv_freq(10000.0, 4, inv_freq, &error) == VKROPE_SUCCESS);
    CHECK(error.code == VKROPE_SUCCESS);
    CHECK(std::string(error.what).empty());
}

TEST_CASE("C: without Vulkan there is no device, and no crash") {
    vkrope_error error;
    vkrope_device_options options = {};
    options.get_instance_proc_addr = no_functions;
    vkrope_device* device = nullptr;
    vkrope_device_list* list = nullptr;
    CHECK(vkrope_device_open(&options, &device, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(vkrope_device_list_create(&options, &list, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(device == nullptr);
    CHECK(list == nullptr);
}

TEST_CASE("C: a count that no memory holds is an error") {
    double inv_freq[1] = {1};
    vkrope_error error;
    check_refused(vkrope_scale_linear(inv_freq, SIZE_MAX / 8, 2, &error), error, "count");
    CHECK(inv_freq[0] == 1);
}
