// SPDX-License-Identifier: MIT
// Checks XPos against torchscale's formula in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;
using vkrope::test::check_invalid;

namespace {

RopeParams of_head(std::uint32_t head_dim) {
    RopeParams rotation;
    rotation.pairing = VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = head_dim;
    rotation.inv_freq.resize(head_dim / 2);
    REQUIRE(default_inv_freq(10000, head_dim, rotation.inv_freq.data()));
    return rotation;
}

struct Table {
    std::vector<float> cos, sin;
};

Table table_of(const RopeParams& rotation, const XposScaling& scaling, bool keys,
               std::int64_t first, std::size_t rows) {
    Table table;
    table.cos.resize(rows * rotation.inv_freq.size());
    table.sin.resize(table.cos.size());
    const vkrope_rope_params params = rotation.view();
    const Status status = status_of(vkrope_xpos_cos_sin, &params, &scaling, keys, first, rows,
                                    table.cos.data(), table.sin.data());
    REQUIRE_MESSAGE(status, status.what);
    return table;
}

}  // namespace

TEST_CASE("XPos: torchscale's scale times cos and sin, rounded once") {
    const RopeParams rotation = of_head(64);
    for (const bool keys : {false, true}) {
        const Table table = table_of(rotation, {.centre = 100}, keys, 0, 200);
        for (int p = 0; p < 200; ++p) {
            for (int j = 0; j < 32; ++j) {
                CAPTURE(p);
                CAPTURE(j);
                // (2j + 0.4 d) / (1.4 d), to the power of the position by scale_base
                const long double zeta = (2 * j + 0.4L * 64) / (1.4L * 64);
                const long double power = std::pow(zeta, (p - 100) / 512.0L);
                const long double scale = keys ? 1 / power : power;
                const long double angle = p * (long double)rotation.inv_freq[std::size_t(j)];
                const std::size_t at = std::size_t(p * 32 + j);
                // Half a unit in the last place of float, and the error of double.
                CHECK(std::fabs(table.cos[at] - scale * std::cos(angle)) <= 6.0e-8L * scale);
                CHECK(std::fabs(table.sin[at] - scale * std::sin(angle)) <= 6.0e-8L * scale);
            }
        }
    }
}

TEST_CASE("XPos: attention factor, negative positions, and parts of a table") {
    RopeParams rotation = of_head(16);
    const Table whole = table_of(rotation, {}, false, -10, 20),
                part = table_of(rotation, {}, false, 3, 2);
    for (std::size_t j = 0; j < 8; ++j) {
        CHECK(part.cos[8 + j] == whole.cos[14 * 8 + j]);
        CHECK(part.sin[8 + j] == whole.sin[14 * 8 + j]);
    }
    CHECK(whole.sin[0] < 0.7);  // sin(-10) times a scale above 1
    rotation.attention_factor = 2;
    const Table twice = table_of(rotation, {}, false, -10, 20);
    for (std::size_t i = 0; i < whole.cos.size(); ++i) CHECK(twice.cos[i] == 2 * whole.cos[i]);
}

TEST_CASE("XPos: errors name what it cannot do") {
    RopeParams rotation = of_head(64);
    std::vector<float> cos(64, 7), sin(64, 7);
    const auto refused = [&](const XposScaling& scaling, std::int64_t first, std::size_t rows,
                             ErrorCode code, const char* text) {
        const vkrope_rope_params params = rotation.view();
        check_error(status_of(vkrope_xpos_cos_sin, &params, &scaling, VK_TRUE, first, rows,
                              cos.data(), sin.data()),
                    code, text);
    };
    refused({.scale_base = -1}, 0, 1, VKROPE_ERROR_INVALID_ARGUMENT, "scaling.scale_base -1");
    refused({.gamma = -1}, 0, 1, VKROPE_ERROR_INVALID_ARGUMENT, "scaling.gamma -1");
    refused({}, std::int64_t{1} << 32, 1, VKROPE_ERROR_INVALID_ARGUMENT, "first 4294967296");
    refused({.centre = std::int64_t{-1} << 32}, 0, 1, VKROPE_ERROR_INVALID_ARGUMENT,
            "scaling.centre -4294967296");
    refused({}, 0, std::size_t{1} << 32, VKROPE_ERROR_INVALID_ARGUMENT, "rows 4294967296");
    // 0.2857^-(131072 / 512) is 10^139.
    refused({}, 131072, 1, VKROPE_ERROR_LIMIT_EXCEEDED, "131072 1.9117e+139");
    const vkrope_rope_params params = rotation.view();
    const XposScaling plain = {};
    check_invalid(
        status_of(vkrope_xpos_cos_sin, &params, &plain, VK_TRUE, 0, 1, nullptr, sin.data()),
        "cos null");
    rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    refused({}, 0, 1, VKROPE_ERROR_NOT_SUPPORTED, "rotation.precision 1");
    rotation.precision = VKROPE_ANGLE_PRECISION_EXACT;
    rotation.phase.assign(32, 1);
    refused({}, 0, 1, VKROPE_ERROR_NOT_SUPPORTED, "rotation 0 1 32");
    rotation.phase.clear();
    rotation.inv_freq.pop_back();
    refused({}, 0, 1, VKROPE_ERROR_INVALID_ARGUMENT, "rotation.inv_freq_count 31");
    CHECK(cos == std::vector<float>(64, 7));
}

TEST_CASE("FoPE: pairs that do not complete a turn stop") {
    std::vector<double> inv_freq(64);
    REQUIRE(default_inv_freq(10000, 128, inv_freq.data()));
    const std::vector<double> before = inv_freq;
    REQUIRE(stop_slow_pairs(inv_freq, 512));
    for (std::size_t j = 0; j < 64; ++j) {
        const bool turns = before[j] * 512 >= 6.283185307179586;
        CHECK(inv_freq[j] == (turns ? before[j] : 0));
    }
    CHECK(inv_freq[63] == 0);
    CHECK(inv_freq[0] == 1);
    check_invalid(stop_slow_pairs(inv_freq, 0), "length 0");
}
