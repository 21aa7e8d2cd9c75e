// SPDX-License-Identifier: MIT
// Checks factors of the queries by position against values of the models' own formulas.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;

namespace {

template <std::size_t count>
std::array<float, count> scales_of(const QueryScale& scale,
                                   const std::array<std::int32_t, count>& positions) {
    std::array<float, count> scales = {};
    const Status status = status_of(vkrope_query_scales, &scale, positions.data(), count,
                                    scales.data());
    CHECK_MESSAGE(bool(status), status.what);
    return scales;
}

void check_refused(const QueryScale& scale, const char* words, std::int32_t position = 0) {
    float factor = 7;
    test::check_invalid(status_of(vkrope_query_scales, &scale, &position, 1, &factor), words);
    CHECK(factor == 7);
}

}  // namespace

TEST_CASE("query scale: logn is 1 within the trained length and a logarithm beyond") {
    // log(i, 2048) if i > 2048 else 1, for i = position + 1.
    const auto scales = scales_of<4>({VKROPE_QUERY_SCALING_LOGN, 2048, 0},
                                     {0, 2047, 2048, 4194303});
    CHECK(scales[0] == 1);
    CHECK(scales[1] == 1);
    CHECK(scales[2] == float(std::log(2049.0) / std::log(2048.0)));
    CHECK(scales[3] == 2);  // 2048 squared
}

TEST_CASE("query scale: Llama 4 counts positions from 1, Ministral 3 from 0") {
    // log1p(floor((p + 1) / 8192)) * 0.1 + 1
    const auto llama = scales_of<4>({VKROPE_QUERY_SCALING_LLAMA4, 8192, 0.1},
                                    {0, 8190, 8191, 81919});
    CHECK(llama[0] == 1);
    CHECK(llama[1] == 1);
    CHECK(llama[2] == float(1 + 0.1 * std::log(2.0)));
    CHECK(llama[3] == float(1 + 0.1 * std::log(11.0)));
    const auto mistral = scales_of<3>({VKROPE_QUERY_SCALING_MINISTRAL3, 8192, 0.1},
                                      {8191, 8192, 81920});
    CHECK(mistral[0] == 1);
    CHECK(mistral[1] == float(1 + 0.1 * std::log(2.0)));
    CHECK(mistral[2] == float(1 + 0.1 * std::log(11.0)));
    CHECK(scales_of<1>({}, {5})[0] == 1);
}

TEST_CASE("query scale: errors name the field, the value and the rule") {
    check_refused({VKROPE_QUERY_SCALING_LOGN, 1, 0}, "scale.length 1");
    check_refused({VKROPE_QUERY_SCALING_LLAMA4, 0, 0.1}, "scale.length 0");
    check_refused({VKROPE_QUERY_SCALING_MINISTRAL3, 8192, -1}, "scale.beta -1");
    check_refused({QueryScaling(9), 1, 1}, "scale.kind 9");
    check_refused({VKROPE_QUERY_SCALING_NONE, 2, 0}, "scale.length");
    check_refused({VKROPE_QUERY_SCALING_NONE, 0, 1}, "scale.beta 1");
    check_refused({VKROPE_QUERY_SCALING_LOGN, 8192, 1}, "scale.beta 1");
    check_refused({}, "positions[0] -3", -3);
    check_refused({VKROPE_QUERY_SCALING_MINISTRAL3, 1, 1e39}, "scale.beta 1e+39 5", 5);
    const QueryScale none = {};
    CHECK(status_of(vkrope_query_scales, &none, nullptr, 1, nullptr).code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(status_of(vkrope_query_scales, &none, nullptr, 0, nullptr).code == VKROPE_SUCCESS);
}
