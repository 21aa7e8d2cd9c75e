// SPDX-License-Identifier: MIT
// Checks YaRN, and DeepSeek's form of it, against the paper.
#include <doctest/doctest.h>

#include "scaling_checks.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("YaRN without truncation blends by the logarithm of the turns") {
    struct Numbers {
        double base, factor, original, beta_fast, beta_slow;
        std::uint32_t rotary_dim;
    };
    for (const Numbers& n : {Numbers{10000, 40, 4096, 32, 1, 64},
                             {1e6, 4, 32768, 32, 1, 128},
                             {150000, 32, 4096, 32, 1, 64},
                             {10000, 16, 2048, 8, 2, 80},
                             {10000, 40, 262144, 32, 1, 64},  // ends beyond the last pair
                             {500000, 1, 8192, 32, 1, 128}}) {
        const std::vector<double> before = plain(n.base, n.rotary_dim);
        std::vector<double> after = before;
        double attention_factor = -1;
        const YarnScaling scaling = {.factor = n.factor,
                                     .original_max_position_embeddings = n.original,
                                     .beta_fast = n.beta_fast,
                                     .beta_slow = n.beta_slow,
                                     .no_truncate = true};
        REQUIRE(scale_yarn(after, n.base, scaling, attention_factor));
        CHECK(close(attention_factor, 1 + 0.1L * std::log((long double)n.factor)));
        for (std::size_t j = 0; j < before.size(); ++j) {
            CAPTURE(j);
            const long double share = yarn_share_divided(before[j], n.original, n.beta_fast,
                                                         n.beta_slow);
            // The range is clamped to rotary_dim - 1, which none of these reaches.
            CHECK(std::fabs(after[j] - before[j] * (share / n.factor + 1 - share)) <=
                  1e-12L * before[j]);
        }
    }
}

TEST_CASE("YaRN with truncation blends between whole pairs") {
    // 64 ln(4096 / (32 * 2 pi)) / (2 ln 10000) = 10.47 and 64 ln(4096 / (2 pi)) / (2 ln 10000) =
    // 22.51, so the blend covers pairs 10 to 23.
    const std::vector<double> before = plain(10000, 64);
    std::vector<double> after = before;
    double attention_factor = 0;
    REQUIRE(scale_yarn(after, 10000, {.factor = 40, .original_max_position_embeddings = 4096},
                       attention_factor));
    for (std::size_t j = 0; j < 32; ++j) {
        CAPTURE(j);
        const long double share = j <= 10 ? 0 : j >= 23 ? 1 : (j - 10) / 13.0L;
        CHECK(close(after[j], before[j] * (share / 40 + 1 - share)));
    }
}

TEST_CASE("YaRN at its edges") {
    double attention_factor = 0;
    // Equal betas make a step, one thousandth of a pair wide. 64 ln(4096 / (8 * 2 pi)) / (2 ln
    // 10000) = 15.29.
    const std::vector<double> before = plain(10000, 64);
    std::vector<double> after = before;
    const YarnScaling step = {.factor = 4,
                              .original_max_position_embeddings = 4096,
                              .beta_fast = 8,
                              .beta_slow = 8,
                              .no_truncate = true};
    REQUIRE(scale_yarn(after, 10000, step, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) CHECK(after[j] == (j <= 15 ? before[j] : before[j] / 4));
    // A factor of 1 changes nothing but rounding, and its magnitude is 1; factors below 1 also have
    // magnitude 1.
    after = before;
    REQUIRE(scale_yarn(after, 10000, {.factor = 1, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(attention_factor == 1);
    for (std::size_t j = 0; j < 32; ++j) CHECK(close(after[j], before[j]));
    REQUIRE(scale_yarn(after, 10000, {.factor = 0.5, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(attention_factor == 1);
    // With one pair, low is max(0, floor(2 ln(...) / ...)) = 0, so the pair does not change.
    std::vector<double> one = {1.0};
    REQUIRE(scale_yarn(one, 10000, {.factor = 4, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(one[0] == 1);
}

TEST_CASE("YaRN: the frequencies must be the powers of the base, as exactly as floats are") {
    const YarnScaling yarn = {.factor = 4, .original_max_position_embeddings = 4096};
    const DeepseekYarnScaling deepseek = {.factor = 4, .original_max_position_embeddings = 4096};
    const GgmlScaling ggml = {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 4096};
    const auto accepted = [&](const std::vector<double>& given, double base) {
        double factor = 0, softmax = 0;
        std::vector<double> a = given, b = given, c = given;
        const Status made[] = {scale_yarn(a, base, yarn, factor),
                               scale_deepseek_yarn(b, base, deepseek, factor, softmax),
                               scale_ggml(c, base, ggml, factor)};
        for (const Status& status : made) {
            CHECK(bool(status) == bool(made[0]));
            if (!status) test::check_error(status, VKROPE_ERROR_INVALID_ARGUMENT, "base");
        }
        return bool(made[0]);
    };
    const std::vector<double> powers = plain(10000, 64);
    std::vector<double> floats(powers.begin(), powers.end()), negative, scaled, still(64);
    for (double& number : floats) number = float(number);
    for (const double number : powers) {
        negative.push_back(-number);
        scaled.push_back(number / 4);
    }
    CHECK(accepted(powers, 10000));
    CHECK(accepted(floats, 10000));
    CHECK(accepted(negative, 10000));
    CHECK(!accepted(powers, 500000));
    CHECK(!accepted(powers, 10001));
    CHECK(!accepted(scaled, 10000));
    CHECK(!accepted(still, 10000));
    // Without YaRN ggml does not use the base.
    double factor = 0;
    CHECK(scale_ggml(scaled, 10000, {.freq_scale = 0.25}, factor));
}

TEST_CASE("YaRN's attention factor: given, of both mscales, or of the factor") {
    const long double ln = std::log(40.0L);
    const auto of = [](double given, double mscale, double all_dim) {
        std::vector<double> inv_freq = {1, 0.01};
        double attention_factor = 0;
        REQUIRE(scale_yarn(inv_freq, 10000,
                           {.factor = 40,
                            .original_max_position_embeddings = 4096,
                            .attention_factor = given,
                            .mscale = mscale,
                            .mscale_all_dim = all_dim},
                           attention_factor));
        return attention_factor;
    };
    CHECK(of(1.25, 0.707, 0.5) == 1.25);
    CHECK(close(of(0, 0.707, 0.5), (0.0707L * ln + 1) / (0.05L * ln + 1)));
    CHECK(of(0, 0.707, 0.707) == 1);
    CHECK(close(of(0, 0.707, 0), 0.1L * ln + 1));
    CHECK(close(of(0, 0, 0.707), 0.1L * ln + 1));
}

TEST_CASE("YaRN: a beta that is 0 has its default") {
    std::vector<double> given = {1, 0.1, 0.01, 1e-3}, left = given;
    double attention_factor = 0;
    REQUIRE(scale_yarn(given, 1e4, {4, 4096, 32, 1}, attention_factor));
    REQUIRE(scale_yarn(left, 1e4, {4, 4096}, attention_factor));
    CHECK(left == given);
}

TEST_CASE("YaRN names the number that breaks its rule") {
    double attention_factor = -3;
    const auto bad = [&](double base, const YarnScaling& scaling, const std::string& text) {
        refused(scale_yarn(unscaled, base, scaling, attention_factor), text);
    };
    for (const double number : not_positive) {
        bad(1e4, {number, 4096}, "factor");
        bad(1e4, {4, number}, "original_max_position_embeddings");
        if (number != 0) bad(1e4, {4, 4096, number}, "beta_fast");
        if (number != 0) bad(1e4, {4, 4096, 32, number}, "beta_slow");
        bad(number, {4, 4096}, "base");
    }
    bad(1, {4, 4096}, "base 1");
    bad(1e4, {4, 4096, 1, 32}, "beta_fast 1 beta_slow 32");
    bad(1e4, {4, 4096, 32, 1, true, -1}, "attention_factor -1");
    bad(1e4, {4, 4096, 32, 1, true, 0, infinity}, "mscale inf");
    bad(1e4, {4, 4096, 32, 1, true, 0, 1, not_a_number}, "mscale_all_dim");
    CHECK(attention_factor == -3);
}

TEST_CASE("DeepSeek's YaRN splits the magnitude between rotation and softmax") {
    const long double ln = std::log(40.0L);
    std::vector<double> yarn = plain(10000, 64), deepseek = yarn;
    double attention_factor = 0, softmax_scale = 0;
    REQUIRE(scale_yarn(yarn, 10000, {.factor = 40, .original_max_position_embeddings = 4096},
                       attention_factor));
    DeepseekYarnScaling scaling = {.factor = 40,
                                   .original_max_position_embeddings = 4096,
                                   .mscale = 0.707,
                                   .mscale_all_dim = 0.707};
    REQUIRE(scale_deepseek_yarn(deepseek, 10000, scaling, attention_factor, softmax_scale));
    CHECK(deepseek == yarn);
    CHECK(attention_factor == 1);
    CHECK(close(softmax_scale, (0.0707L * ln + 1) * (0.0707L * ln + 1)));

    const auto scale = [&](double mscale, double all_dim) {
        scaling.mscale = mscale, scaling.mscale_all_dim = all_dim;
        std::vector<double> unscaled = plain(10000, 64);
        REQUIRE(scale_deepseek_yarn(unscaled, 10000, scaling, attention_factor, softmax_scale));
    };
    for (const double one : {1.0, 0.0}) {  // 1 is the default
        scale(one, 0);
        CHECK(close(attention_factor, 0.1L * ln + 1));
        CHECK(softmax_scale == 1);
    }
    scale(-1, 1);  // without the magnitude of mscale
    CHECK(close(attention_factor, 1 / (0.1L * ln + 1)));
    CHECK(close(softmax_scale, (0.1L * ln + 1) * (0.1L * ln + 1)));

    refused(scale_deepseek_yarn(unscaled, 1e4, {0, 4096}, attention_factor, softmax_scale),
            "factor 0");
    refused(scale_deepseek_yarn(unscaled, 1e4, {4, 4096, 32, 1, -infinity}, attention_factor,
                                softmax_scale),
            "mscale -inf");
    refused(scale_deepseek_yarn(unscaled, 1e4, {4, 4096, 32, 1, 1, infinity}, attention_factor,
                                softmax_scale),
            "mscale_all_dim inf");
}
