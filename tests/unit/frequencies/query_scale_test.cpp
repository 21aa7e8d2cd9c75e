// SPDX-License-Identifier: MIT
// Checks factors of the queries by position against values of the models' own formulas.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

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

TEST_CASE("query scale table: each position has the bits that query_scales returns") {
    for (const QueryScale& scale : {QueryScale{VKROPE_QUERY_SCALING_LOGN, 64, 0},
                                    {VKROPE_QUERY_SCALING_LLAMA4, 1, 0.1},
                                    {VKROPE_QUERY_SCALING_LLAMA4, 7, 0.1},
                                    {VKROPE_QUERY_SCALING_LLAMA4, 7.5, 0.1},
                                    {VKROPE_QUERY_SCALING_LLAMA4, 0.5, 0.1},
                                    {VKROPE_QUERY_SCALING_MINISTRAL3, 1, 0.3},
                                    {VKROPE_QUERY_SCALING_MINISTRAL3, 8, 0.3},
                                    {VKROPE_QUERY_SCALING_MINISTRAL3, 8192, 0.3}}) {
        CAPTURE(int(scale.kind));
        CAPTURE(scale.length);
        for (const std::uint64_t max_position : {1u, 6u, 7u, 8u, 9u, 1000u}) {
            CAPTURE(max_position);
            const auto layout = plan_query_scales(scale, max_position);
            REQUIRE_MESSAGE(layout, layout.status.what);
            CHECK(layout->scale.kind == scale.kind);
            CHECK(layout->bytes == layout->rows * sizeof(float));
            std::vector<float> rows(layout->rows + 1, -7.0f);
            const Status filled = fill_query_scales(layout.value, rows.data(), layout->bytes);
            REQUIRE_MESSAGE(filled, filled.what);
            CHECK(rows.back() == -7);
            for (std::uint64_t p = 0; p < max_position; ++p) {
                const std::uint64_t row = (p + layout->shift) / layout->positions_per_row;
                REQUIRE(row < layout->rows);
                CHECK(rows[row] == scales_of<1>(scale, {std::int32_t(p)})[0]);
            }
            CHECK((max_position - 1 + layout->shift) / layout->positions_per_row + 1 ==
                  layout->rows);
        }
    }
}

TEST_CASE("query scale table: a row is a step of whole positions, or else a position") {
    const auto rows_of = [](const QueryScale& scale, std::uint64_t max_position) {
        const auto layout = plan_query_scales(scale, max_position);
        REQUIRE_MESSAGE(layout, layout.status.what);
        return layout->rows;
    };
    CHECK(rows_of({VKROPE_QUERY_SCALING_MINISTRAL3, 8192, 0.1}, 1048576) == 128);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LLAMA4, 8192, 0.1}, 1048575) == 128);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LLAMA4, 8192, 0.1}, 1048576) == 129);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LLAMA4, 8192.5, 0.1}, 5000) == 5000);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LOGN, 8192, 0}, 5000) == 5000);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LLAMA4, 8192, 0.1}, max_positions) == (1 << 18) + 1);
    CHECK(rows_of({VKROPE_QUERY_SCALING_LLAMA4, 0x1p31, 0.1}, max_positions) == 2);
    // Steps so long that there is one: the last position of a longer step has the row 1 with the
    // factor of the first.
    for (const double length : {0x1p32, 0x1p40, 1e300}) {
        const QueryScale scale{VKROPE_QUERY_SCALING_LLAMA4, length, 0.1};
        const auto layout = plan_query_scales(scale, max_positions);
        REQUIRE(layout);
        std::vector<float> rows(layout->rows);
        REQUIRE(fill_query_scales(layout.value, rows.data(), layout->bytes));
        for (const float factor : rows) CHECK(factor == 1);
    }
}

TEST_CASE("query scale table: errors name the field, the value and the rule") {
    const QueryScale llama{VKROPE_QUERY_SCALING_LLAMA4, 16, 0.1};
    const auto plan_refused = [](const QueryScale& scale, std::uint64_t max_position,
                                 const char* words) {
        test::check_invalid(plan_query_scales(scale, max_position).status, words);
    };
    plan_refused({}, 8, "scale.kind none");
    plan_refused({VKROPE_QUERY_SCALING_LOGN, 1, 0}, 8, "scale.length 1");
    plan_refused(llama, 0, "max_position 0 1 2147483648");
    plan_refused(llama, max_positions + 1, "max_position 2147483649");
    plan_refused({VKROPE_QUERY_SCALING_MINISTRAL3, 1, 1e39}, 6, "scale.beta 1e+39 5");
    test::check_error(plan_query_scales({VKROPE_QUERY_SCALING_LOGN, 16, 0}, max_positions).status,
                      VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 2147483648 4294967295");
    test::check_invalid(status_of(vkrope_plan_query_scales, &llama, 8u, nullptr), "layout");

    const auto layout = plan_query_scales(llama, 64);
    REQUIRE(layout);
    std::array<float, 6> memory = {};
    const auto fill_refused = [&](const char* words, auto change) {
        QueryScaleLayout changed = layout.value;
        change(changed);
        test::check_invalid(fill_query_scales(changed, memory.data(), sizeof memory), words);
    };
    fill_refused(
        "layout.scale.kind 0 1 3",
        [](QueryScaleLayout& of) {
            of.scale = {VKROPE_QUERY_SCALING_NONE, 0, 0};
        });
    fill_refused(
        "layout.scale.length -1", [](QueryScaleLayout& of) { of.scale.length = -1; });
    fill_refused(
        "layout.scale.beta", [](QueryScaleLayout& of) { of.scale.beta = 1e300; });
    fill_refused(
        "layout.positions_per_row 16 15", [](QueryScaleLayout& of) { of.scale.length = 15; });
    fill_refused(
        "layout.positions_per_row 15 16", [](QueryScaleLayout& of) { of.positions_per_row = 15; });
    fill_refused(
        "layout.shift 0 1", [](QueryScaleLayout& of) { of.shift = 0; });
    fill_refused(
        "layout.rows 0 1 134217729", [](QueryScaleLayout& of) { of.rows = 0; });
    fill_refused(
        "layout.rows 134217730",
        [](QueryScaleLayout& of) {
            of.rows = (1u << 27) + 2, of.bytes = std::size_t{of.rows} * 4;
        });
    fill_refused("layout.bytes 24 20", [](QueryScaleLayout& of) { of.bytes = 24; });
    test::check_invalid(fill_query_scales(layout.value, nullptr, 20), "memory");
    test::check_invalid(
        fill_query_scales(layout.value, reinterpret_cast<char*>(memory.data()) + 2, 20), "memory");
    test::check_invalid(fill_query_scales(layout.value, memory.data(), 19), "bytes 19 20");
    for (const float number : memory) CHECK(number == 0);
}
