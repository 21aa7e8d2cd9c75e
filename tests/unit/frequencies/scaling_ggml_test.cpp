// SPDX-License-Identifier: MIT
// Checks the form of ggml_rope_ext, which has linear scaling, divisors and YaRN in one.
#include <doctest/doctest.h>

#include "scaling_checks.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("ggml's form: linear, factors that divide, YaRN") {
    double attention_factor = 0;
    std::vector<double> inv_freq = {1, 0.5};
    const double factors[] = {1, 4};
    REQUIRE(scale_ggml(
        inv_freq, 10000,
        {.freq_scale = 0.5, .attn_factor = 1.5, .freq_factors = factors, .freq_factor_count = 2},
        attention_factor));
    CHECK(inv_freq == std::vector<double>{0.5, 0.0625});
    CHECK(attention_factor == 1.5);

    // With the full blend the result is YaRN with truncation, and both magnitudes multiply.
    std::vector<double> yarn = plain(10000, 64), ggml = yarn, half = yarn;
    REQUIRE(scale_yarn(yarn, 10000, {.factor = 4, .original_max_position_embeddings = 4096},
                       attention_factor));
    GgmlScaling scaling = {
        .freq_scale = 0.25, .ext_factor = 1, .attn_factor = 0.5, .n_ctx_orig = 4096};
    REQUIRE(scale_ggml(ggml, 10000, scaling, attention_factor));
    CHECK(close(attention_factor, 0.5L * (1 + 0.1L * std::log(4.0L))));
    for (std::size_t j = 0; j < 32; ++j) CHECK(close(ggml[j], yarn[j]));
    // Half of the blend is halfway to plain interpolation.
    const std::vector<double> before = half;
    scaling.ext_factor = 0.5;
    REQUIRE(scale_ggml(half, 10000, scaling, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) CHECK(close(half[j], (ggml[j] + before[j] / 4.0L) / 2));
    // Factors divide before the blend and do not change its range.
    std::vector<double> divided = before;
    const std::vector<double> eights(32, 8.0);
    scaling.ext_factor = 1, scaling.freq_factors = eights.data(), scaling.freq_factor_count = 32;
    REQUIRE(scale_ggml(divided, 10000, scaling, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) CHECK(close(divided[j], ggml[j] / 8.0L));
    // The betas are equal, and the range is so narrow that it is a step.
    std::vector<double> step = before;
    REQUIRE(scale_ggml(
        step, 10000,
        {.freq_scale = 0.25, .ext_factor = 1, .beta_fast = 8, .beta_slow = 8, .n_ctx_orig = 4096},
        attention_factor));
    CHECK(close(step[15], before[15]));
    CHECK(close(step[16], before[16] / 4.0L));
}

TEST_CASE("ggml's form ignores freq_factors beyond the frequencies, whatever they are") {
    double attention_factor = 0;
    std::vector<double> inv_freq = {1, 0.5};
    const double factors[] = {2, 4, 0, not_a_number};
    REQUIRE(scale_ggml(inv_freq, 10000, {.freq_factors = factors, .freq_factor_count = 4},
                       attention_factor));
    CHECK(inv_freq == std::vector<double>{0.5, 0.125});
}

TEST_CASE("ggml's form: a number that is not set has the value that llama.cpp assumes without it") {
    double attention_factor = 0;
    // No scaling is set.
    std::vector<double> plain_too = plain(10000, 64);
    const std::vector<double> before = plain_too;
    const GgmlScaling nothing = {
        .freq_scale = 0, .ext_factor = -1, .attn_factor = -1, .beta_fast = -1, .beta_slow = -1};
    REQUIRE(scale_ggml(plain_too, 10000, nothing, attention_factor));
    CHECK(plain_too == before);
    CHECK(attention_factor == 1);
    // Without a share of YaRN a factor means linear scaling, whatever the original length is.
    std::vector<double> linear = {1, 0.5};
    REQUIRE(scale_ggml(linear, 10000, {.freq_scale = 0.25, .ext_factor = -1, .n_ctx_orig = 4096},
                       attention_factor));
    CHECK(linear == std::vector<double>{0.25, 0.125});
    CHECK(attention_factor == 1);
    // YaRN's betas are 32 and 1. With base 10000, 64 channels and 4096 positions the pair with 32
    // turns is 64 ln(4096 / (32 * 2 pi)) / (2 ln 10000) = 10.47, and the pair with one turn is
    // 22.51, so the blend goes from 10 to 23.
    std::vector<double> yarn = before;
    const GgmlScaling betas = {.freq_scale = 0.25,
                               .ext_factor = 1,
                               .attn_factor = -1,
                               .beta_fast = -1,
                               .beta_slow = -1,
                               .n_ctx_orig = 4096};
    REQUIRE(scale_ggml(yarn, 10000, betas, attention_factor));
    CHECK(close(attention_factor, 1 + 0.1L * std::log(4.0L)));
    for (std::size_t j = 0; j < 32; ++j) {
        const long double divided = std::min(std::max((j - 10.0L) / 13, 0.0L), 1.0L);
        CHECK(close(yarn[j], before[j] * (divided / 4 + 1 - divided)));
    }
}

TEST_CASE("ggml's form names the number that breaks its rule") {
    const double factors[] = {1, 0};
    double attention_factor = -3;
    const auto bad = [&](double base, const GgmlScaling& scaling, const std::string& text) {
        refused(scale_ggml(unscaled, base, scaling, attention_factor), text);
    };
    for (const double number : not_positive) {
        const bool not_set = std::isfinite(number) && number <= 0;
        if (number != 0) bad(1e4, {.freq_scale = number}, "freq_scale");
        if (!not_set) bad(1e4, {.attn_factor = number}, "attn_factor");
        bad(number, {}, "base");
        if (number != 0) bad(1e4, {.ext_factor = 1, .n_ctx_orig = number}, "n_ctx_orig");
        if (!not_set)
            bad(1e4, {.ext_factor = 1, .beta_fast = number, .n_ctx_orig = 4096}, "beta_fast");
        if (!not_set)
            bad(1e4, {.ext_factor = 1, .beta_slow = number, .n_ctx_orig = 4096}, "beta_slow");
    }
    bad(1, {.ext_factor = 1, .n_ctx_orig = 4096}, "base 1");
    bad(1e4, {.ext_factor = 1.5}, "ext_factor 1.5");
    bad(1e4, {.ext_factor = -infinity}, "ext_factor");
    bad(1e4, {.ext_factor = 1, .beta_fast = -1, .beta_slow = 64, .n_ctx_orig = 4096},
        "beta_fast 32 beta_slow");
    bad(1e4, {.ext_factor = not_a_number}, "ext_factor");
    bad(1e4, {.freq_factors = factors, .freq_factor_count = 1}, "freq_factors 1 2");
    bad(1e4, {.freq_factors = factors, .freq_factor_count = 2}, "freq_factors[1] 0");
    CHECK(attention_factor == -3);
}

TEST_CASE(
    "ggml without an original length: the blend is that of pair 0 alone, and its range follows "
    "from n_dims where that is given") {
    std::vector<double> before(32);
    REQUIRE(default_inv_freq(10000, 64, before.data()));
    double attention_factor = 0;
    std::vector<double> none = before;
    REQUIRE(scale_ggml(none, 10000, {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 0},
                       attention_factor));
    CHECK(close(none[0], before[0]));
    for (std::size_t j = 1; j < 32; ++j) CHECK(close(none[j], before[j] / 4.0L));
    // With n_dims = 32 the first 16 of 32 pairs are blended exactly as a list of only 16 pairs. In
    // vision mode the frequencies begin again after them.
    std::vector<double> half(16), twice;
    REQUIRE(default_inv_freq(10000, 32, half.data()));
    for (std::size_t j = 0; j < 32; ++j) twice.push_back(std::pow(10000, -double(j) / 16));
    const std::vector<double> again = {half.begin(), half.end()};
    GgmlScaling scaling = {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 4096};
    REQUIRE(scale_ggml(half, 10000, scaling, attention_factor));
    scaling.n_dims = 32;
    REQUIRE(scale_ggml(twice, 10000, scaling, attention_factor));
    const Result<RopeParams> vision = rope_params_from_ggml({.head_dim = 64,
                                                             .n_dims = 32,
                                                             .mode = 24,
                                                             .n_ctx_orig = 4096,
                                                             .freq_scale = 0.25,
                                                             .ext_factor = 1,
                                                             .sections = {16, 16}});
    REQUIRE_MESSAGE(vision, vision.status.what);
    for (std::size_t j = 0; j < 16; ++j) {
        CHECK(twice[j] == half[j]);
        CHECK(vision->inv_freq[j] == half[j]);
        CHECK(close(vision->inv_freq[j + 16], again[j] / 4.0L));  // beyond the blended range
    }
}
