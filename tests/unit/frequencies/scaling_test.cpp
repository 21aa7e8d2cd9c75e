// SPDX-License-Identifier: MIT
// Scalings against their papers: closed forms, fixed points and limits, without the library's own
// arithmetic.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "vkrope/frequencies.hpp"

using namespace vkrope;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr long double two_pi = 6.283185307179586476925286766559005768L;

bool mentions(const Status& status, const std::string& text) {
    return std::string(status.what).find(text) != std::string::npos;
}

bool close(double a, long double b) {
    return std::fabs(a - b) <= 1e-12L * std::fabs(b);
}

std::vector<double> plain(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    REQUIRE(default_inv_freq(base, rotary_dim, inv_freq.data()));
    return inv_freq;
}

/// Checks that `scale` fails with `text`, and leaves the frequencies unchanged.
template <class Scale>
void refused(Scale&& scale, const std::string& text) {
    std::vector<double> inv_freq = {1, 0.1};
    const Status status = scale(inv_freq);
    CHECK(status.code == Code::invalid_argument);
    CHECK_MESSAGE(mentions(status, text), status.what, " lacks ", text);
    CHECK(inv_freq == std::vector<double>{1, 0.1});
}

constexpr double not_positive[] = {0.0, -2.0, infinity, not_a_number};

/// YaRN's range ends at the pairs whose number of turns within the original length is beta_fast and
/// beta_slow, and the index of a pair is linear in the logarithm of its turns. Hence the blend of a
/// range that is not truncated follows from the turns alone.
long double yarn_share_divided(double inv_freq, double original, double beta_fast,
                               double beta_slow) {
    const long double turns = original * inv_freq / two_pi;
    return std::clamp(std::log(beta_fast / turns) / std::log((long double)beta_fast / beta_slow),
                      0.0L, 1.0L);
}

}  // namespace

TEST_CASE("inclusive spacing reaches 1 / base") {
    for (const std::uint32_t rotary_dim : {4u, 6u, 64u, 128u}) {
        std::vector<double> inv_freq(rotary_dim / 2);
        REQUIRE(inclusive_inv_freq(10000, rotary_dim, inv_freq.data()));
        CHECK(inv_freq.front() == 1.0);
        CHECK(close(inv_freq.back(), 1e-4L));
        for (std::size_t j = 1; j < inv_freq.size(); ++j) {
            CHECK(close(inv_freq[j] / inv_freq[j - 1],
                        std::exp(-std::log(10000.0L) / (rotary_dim / 2 - 1))));
        }
    }
    double one = 0;
    REQUIRE(inclusive_inv_freq(10000, 2, &one));
    CHECK(one == 1.0);
    CHECK(mentions(inclusive_inv_freq(0, 8, &one), "base is 0"));
    CHECK(mentions(inclusive_inv_freq(10000, 3, &one), "rotary_dim is 3: it must be even"));
    CHECK(mentions(inclusive_inv_freq(10000, 4, nullptr), "inv_freq is null"));
    CHECK(one == 1.0);
}

TEST_CASE("proportional: the whole head's spacing, with a tail that stands still") {
    std::vector<double> inv_freq(256, -1);
    REQUIRE(proportional_inv_freq(1e6, 512, {.factor = 1, .partial_rotary_factor = 0.25},
                                  inv_freq.data()));
    const std::vector<double> whole = plain(1e6, 512);
    for (std::size_t j = 0; j < 256; ++j) {
        CHECK(inv_freq[j] == (j < 64 ? whole[j] : 0));
    }
    REQUIRE(proportional_inv_freq(1e6, 512, {.factor = 8}, inv_freq.data()));
    for (std::size_t j = 0; j < 256; ++j) {
        CHECK(close(inv_freq[j], whole[j] / 8.0L));
    }
    // floor(0.3 * 10 / 2) = 1; 0.1 of 10 is half a pair, so none.
    REQUIRE(proportional_inv_freq(100, 10, {.partial_rotary_factor = 0.3}, inv_freq.data()));
    CHECK((inv_freq[0] == 1 && inv_freq[1] == 0 && inv_freq[4] == 0));
    REQUIRE(proportional_inv_freq(100, 10, {.partial_rotary_factor = 0.1}, inv_freq.data()));
    CHECK(inv_freq[0] == 0);

    std::vector<double> untouched(4, -7.0);
    for (const double factor : not_positive) {
        CHECK(mentions(proportional_inv_freq(1e4, 8, {.factor = factor}, untouched.data()),
                       "factor is "));
    }
    for (const double part : {0.0, -0.5, 1.5, infinity, not_a_number}) {
        CHECK(mentions(
            proportional_inv_freq(1e4, 8, {.partial_rotary_factor = part}, untouched.data()),
            "partial_rotary_factor is "));
    }
    CHECK(mentions(proportional_inv_freq(1e4, 7, {}, untouched.data()),
                   "head_dim is 7: it must be even"));
    CHECK(untouched == std::vector<double>(4, -7.0));
}

TEST_CASE("positions scaled by a number are frequencies scaled by it") {
    std::vector<double> inv_freq = {1.0, 0.3, 0};
    REQUIRE(scale_positions(inv_freq, 0.25));
    CHECK(inv_freq == std::vector<double>{0.25, 0.075, 0});
    for (const double scale : not_positive) {
        refused([&](std::vector<double>& f) { return scale_positions(f, scale); }, "seq_scale is ");
    }
}

TEST_CASE("divisors divide, pair by pair") {
    std::vector<double> inv_freq = {1.0, 0.5, 0};
    const double divisors[] = {1, 4, 8};
    REQUIRE(scale_divisors(inv_freq, divisors, 3));
    CHECK(inv_freq == std::vector<double>{1, 0.125, 0});

    const double bad[] = {1, 0};
    const double worse[] = {1, not_a_number};
    refused([&](std::vector<double>& f) { return scale_divisors(f, divisors, 3); },
            "divisors has 3 elements: it must have rotary_dim / 2 = 2");
    refused([&](std::vector<double>& f) { return scale_divisors(f, divisors, 0); },
            "divisors has 0 elements");
    refused([&](std::vector<double>& f) { return scale_divisors(f, nullptr, 2); },
            "divisors is null");
    refused([&](std::vector<double>& f) { return scale_divisors(f, bad, 2); },
            "divisors[1] is 0: it must be finite and above 0");
    refused([&](std::vector<double>& f) { return scale_divisors(f, worse, 2); }, "divisors[1] is ");
}

TEST_CASE("NTK-aware scaling is another base") {
    for (const std::uint32_t d : {4u, 64u, 128u}) {
        std::vector<double> inv_freq = plain(10000, d);
        REQUIRE(scale_ntk(inv_freq, 8));
        const long double base = 10000 * std::pow(8.0L, (long double)d / (d - 2));
        for (std::uint32_t j = 0; j < d / 2; ++j) {
            CHECK(close(inv_freq[j], std::pow(base, -2.0L * j / d)));
        }
        CHECK(close(inv_freq.back(), plain(10000, d).back() / 8.0L));
    }
    // One pair: the fastest, which does not change.
    std::vector<double> one = {1.0};
    REQUIRE(scale_ntk(one, 8));
    CHECK(one[0] == 1.0);
    std::vector<double> none;
    CHECK(scale_ntk(none, 8));
    for (const double alpha : not_positive) {
        refused([&](std::vector<double>& f) { return scale_ntk(f, alpha); }, "alpha is ");
    }
}

TEST_CASE("dynamic NTK scaling grows with the sequence, from the trained length on") {
    const DynamicNtkScaling scaling = {.factor = 2, .max_position_embeddings = 2048};
    const std::vector<double> trained = plain(10000, 64);
    for (const std::uint64_t seq_len : {0, 1, 2047, 2048}) {
        std::vector<double> inv_freq = trained;
        REQUIRE(scale_dynamic_ntk(inv_freq, scaling, seq_len));
        CHECK(inv_freq == trained);
    }
    for (const std::uint64_t seq_len : {2049, 4096, 16384}) {
        std::vector<double> inv_freq = trained;
        REQUIRE(scale_dynamic_ntk(inv_freq, scaling, seq_len));
        const long double base = 10000 * std::pow(2.0L * seq_len / 2048 - 1, 64.0L / 62);
        for (std::size_t j = 0; j < 32; ++j) {
            CHECK(close(inv_freq[j], std::pow(base, -2.0L * j / 64)));
        }
    }
    for (const double number : not_positive) {
        refused(
            [&](std::vector<double>& f) {
                return scale_dynamic_ntk(f, {number, 2048}, 4096);
            },
            "factor is ");
        refused(
            [&](std::vector<double>& f) {
                return scale_dynamic_ntk(f, {2, number}, 4096);
            },
            "max_position_embeddings is ");
    }
}

TEST_CASE("YaRN without truncation blends by the logarithm of the turns") {
    struct Numbers {
        double base, factor, original, beta_fast, beta_slow;
        std::uint32_t rotary_dim;
    };
    for (const Numbers& n : {Numbers{10000, 40, 4096, 32, 1, 64},
                             {1e6, 4, 32768, 32, 1, 128},
                             {150000, 32, 4096, 32, 1, 64},
                             {10000, 16, 2048, 8, 2, 80},
                             {500000, 1, 8192, 32, 1, 128}}) {
        const std::vector<double> before = plain(n.base, n.rotary_dim);
        std::vector<double> after = before;
        double attention_factor = -1;
        const YarnScaling scaling = {.factor = n.factor,
                                     .original_max_position_embeddings = n.original,
                                     .beta_fast = n.beta_fast,
                                     .beta_slow = n.beta_slow,
                                     .truncate = false};
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
    // 64 ln(4096 / (32 * 2 pi)) / (2 ln 10000) = 10.47 and 64 ln(4096 / (2 pi)) / (2 ln 10000)
    // = 22.51: pairs 10 to 23.
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
    // Equal betas: a step, one thousandth of a pair wide. 64 ln(4096 / (8 * 2 pi)) / (2 ln 10000)
    // = 15.29.
    const std::vector<double> before = plain(10000, 64);
    std::vector<double> after = before;
    const YarnScaling step = {.factor = 4,
                              .original_max_position_embeddings = 4096,
                              .beta_fast = 8,
                              .beta_slow = 8,
                              .truncate = false};
    REQUIRE(scale_yarn(after, 10000, step, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(after[j] == (j <= 15 ? before[j] : before[j] / 4));
    }
    // A factor of 1 changes nothing but rounding, and its magnitude is 1; factors below 1 also have
    // magnitude 1.
    after = before;
    REQUIRE(scale_yarn(after, 10000, {.factor = 1, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(attention_factor == 1);
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(after[j], before[j]));
    }
    REQUIRE(scale_yarn(after, 10000, {.factor = 0.5, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(attention_factor == 1);
    // One pair: low is max(0, floor(2 ln(...) / ...)) = 0, so it does not change; zero frequencies
    // stay zero.
    std::vector<double> one = {1.0}, still = {0, 0};
    REQUIRE(scale_yarn(one, 10000, {.factor = 4, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(one[0] == 1);
    REQUIRE(scale_yarn(still, 10000, {.factor = 4, .original_max_position_embeddings = 4096},
                       attention_factor));
    CHECK(still == std::vector<double>{0, 0});
}

TEST_CASE("YaRN's attention factor: given, of both mscales, or of the factor") {
    const long double ln = std::log(40.0L);
    const auto of = [](double given, double mscale, double all_dim) {
        std::vector<double> inv_freq = {1, 0.1};
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

TEST_CASE("YaRN names the number that breaks its rule") {
    double attention_factor = -3;
    const auto bad = [&](double base, const YarnScaling& scaling, const std::string& text) {
        refused(
            [&](std::vector<double>& f) { return scale_yarn(f, base, scaling, attention_factor); },
            text);
    };
    for (const double number : not_positive) {
        bad(1e4, {number, 4096}, "factor is ");
        bad(1e4, {4, number}, "original_max_position_embeddings is ");
        bad(1e4, {4, 4096, number}, "beta_fast is ");
        bad(1e4, {4, 4096, 32, number}, "beta_slow is ");
        bad(number, {4, 4096}, "base is ");
    }
    bad(1, {4, 4096}, "base is 1: it must be finite and above 1");
    bad(1e4, {4, 4096, 1, 32}, "beta_fast is 1: it must be at least beta_slow, which is 32");
    bad(1e4, {4, 4096, 32, 1, true, -1}, "attention_factor is -1");
    bad(1e4, {4, 4096, 32, 1, true, 0, infinity}, "mscale is inf");
    bad(1e4, {4, 4096, 32, 1, true, 0, 1, not_a_number}, "mscale_all_dim is ");
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

    scaling.mscale = 1, scaling.mscale_all_dim = 0;
    REQUIRE(scale_deepseek_yarn(deepseek, 10000, scaling, attention_factor, softmax_scale));
    CHECK(close(attention_factor, 0.1L * ln + 1));
    CHECK(softmax_scale == 1);
    scaling.mscale = 0, scaling.mscale_all_dim = 1;
    REQUIRE(scale_deepseek_yarn(deepseek, 10000, scaling, attention_factor, softmax_scale));
    CHECK(close(attention_factor, 1 / (0.1L * ln + 1)));
    CHECK(close(softmax_scale, (0.1L * ln + 1) * (0.1L * ln + 1)));

    refused(
        [&](std::vector<double>& f) {
            return scale_deepseek_yarn(f, 1e4, {0, 4096}, attention_factor, softmax_scale);
        },
        "factor is 0");
    refused(
        [&](std::vector<double>& f) {
            return scale_deepseek_yarn(f, 1e4, {4, 4096, 32, 1, -1}, attention_factor,
                                       softmax_scale);
        },
        "mscale is -1");
    refused(
        [&](std::vector<double>& f) {
            return scale_deepseek_yarn(f, 1e4, {4, 4096, 32, 1, 1, infinity}, attention_factor,
                                       softmax_scale);
        },
        "mscale_all_dim is inf");
}

TEST_CASE("LongRoPE chooses its list by the length") {
    const double near[] = {1, 2}, far[] = {1.5, 8};
    LongRopeScaling scaling = {near, far, 2, 4096, 32};
    const auto scaled = [&](std::uint64_t seq_len, double& attention_factor) {
        std::vector<double> inv_freq = {1, 0.1};
        REQUIRE(scale_longrope(inv_freq, scaling, seq_len, attention_factor));
        return inv_freq;
    };
    double attention_factor = 0;
    for (const std::uint64_t seq_len : {0, 1, 4096}) {
        CHECK(scaled(seq_len, attention_factor) == std::vector<double>{1, 0.1 / 2});
        CHECK(close(attention_factor, std::sqrt(1 + 5 / 12.0L)));  // ln 32 / ln 4096
    }
    CHECK(scaled(4097, attention_factor) == std::vector<double>{1 / 1.5, 0.1 / 8});
    CHECK(close(attention_factor, std::sqrt(1 + 5 / 12.0L)));
    scaling.attention_factor = 1.25;
    scaled(4097, attention_factor);
    CHECK(attention_factor == 1.25);
    scaling.short_mscale = 1.5, scaling.long_mscale = 1.75;
    scaled(4096, attention_factor);
    CHECK(attention_factor == 1.5);
    scaled(4097, attention_factor);
    CHECK(attention_factor == 1.75);
    for (const double factor : {1.0, 0.5}) {
        scaling = {near, far, 2, 4096, factor};
        scaled(4097, attention_factor);
        CHECK(attention_factor == 1);
    }
}

TEST_CASE("LongRoPE names the number that breaks its rule") {
    const double good[] = {1, 2, 3}, bad_list[] = {1, -2};
    double attention_factor = -3;
    const auto bad = [&](const LongRopeScaling& scaling, const std::string& text) {
        refused(
            [&](std::vector<double>& f) {
                return scale_longrope(f, scaling, 8192, attention_factor);
            },
            text);
    };
    bad({good, good, 3, 4096, 32}, "short_factor has 3 elements: it must have rotary_dim / 2 = 2");
    bad({nullptr, good, 2, 4096, 32}, "short_factor is null");
    bad({good, nullptr, 2, 4096, 32}, "long_factor is null");
    bad({bad_list, good, 2, 4096, 32}, "short_factor[1] is -2");
    bad({good, bad_list, 2, 4096, 32}, "long_factor[1] is -2");
    bad({good, good, 2, 1, 32},
        "original_max_position_embeddings is 1: it must be finite and above 1");
    bad({good, good, 2, 4096, 0}, "factor is 0");
    bad({good, good, 2, 4096, 32, -1}, "attention_factor is -1");
    bad({good, good, 2, 4096, 32, 0, infinity}, "short_mscale is inf");
    bad({good, good, 2, 4096, 32, 0, 1, -1}, "long_mscale is -1");
    CHECK(attention_factor == -3);
}

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

    // With the full blend it is YaRN with truncation, and both magnitudes multiply.
    std::vector<double> yarn = plain(10000, 64), ggml = yarn, half = yarn;
    REQUIRE(scale_yarn(yarn, 10000, {.factor = 4, .original_max_position_embeddings = 4096},
                       attention_factor));
    GgmlScaling scaling = {
        .freq_scale = 0.25, .ext_factor = 1, .attn_factor = 0.5, .n_ctx_orig = 4096};
    REQUIRE(scale_ggml(ggml, 10000, scaling, attention_factor));
    CHECK(close(attention_factor, 0.5L * (1 + 0.1L * std::log(4.0L))));
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(ggml[j], yarn[j]));
    }
    // Half of the blend is halfway to plain interpolation.
    const std::vector<double> before = half;
    scaling.ext_factor = 0.5;
    REQUIRE(scale_ggml(half, 10000, scaling, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(half[j], (ggml[j] + before[j] / 4.0L) / 2));
    }
    // Factors divide before the blend, whose range does not change.
    std::vector<double> divided = before;
    const std::vector<double> eights(32, 8.0);
    scaling.ext_factor = 1, scaling.freq_factors = eights.data(), scaling.freq_factor_count = 32;
    REQUIRE(scale_ggml(divided, 10000, scaling, attention_factor));
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(divided[j], ggml[j] / 8.0L));
    }
    // Equal betas, and a range so narrow that it is a step.
    std::vector<double> step = before;
    REQUIRE(scale_ggml(
        step, 10000,
        {.freq_scale = 0.25, .ext_factor = 1, .beta_fast = 8, .beta_slow = 8, .n_ctx_orig = 4096},
        attention_factor));
    CHECK(close(step[15], before[15]));
    CHECK(close(step[16], before[16] / 4.0L));
}

TEST_CASE(
    "ggml without an original length: the blend is one of pair 0 alone; its range is made of "
    "n_dims where that is given") {
    std::vector<double> before(32);
    REQUIRE(default_inv_freq(10000, 64, before.data()));
    double attention_factor = 0;
    std::vector<double> none = before;
    REQUIRE(scale_ggml(none, 10000, {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 0},
                       attention_factor));
    CHECK(close(none[0], before[0]));
    for (std::size_t j = 1; j < 32; ++j) CHECK(close(none[j], before[j] / 4.0L));
    // The first half of a list, blended as if it were alone, equals the list of half the length.
    std::vector<double> half(16), twice(32);
    REQUIRE(default_inv_freq(10000, 32, half.data()));
    for (std::size_t j = 0; j < 32; ++j) twice[j] = half[j % 16];
    GgmlScaling scaling = {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 4096};
    REQUIRE(scale_ggml(half, 10000, scaling, attention_factor));
    scaling.n_dims = 32;
    REQUIRE(scale_ggml(twice, 10000, scaling, attention_factor));
    for (std::size_t j = 0; j < 16; ++j) CHECK(twice[j] == half[j]);
}

TEST_CASE("ggml's form ignores freq_factors beyond the frequencies, whatever they are") {
    double attention_factor = 0;
    std::vector<double> inv_freq = {1, 0.5};
    const double factors[] = {2, 4, 0, not_a_number};
    REQUIRE(scale_ggml(inv_freq, 10000, {.freq_factors = factors, .freq_factor_count = 4},
                       attention_factor));
    CHECK(inv_freq == std::vector<double>{0.5, 0.125});
}

TEST_CASE(
    "ggml's form: a number that is not set is what llama.cpp takes for a model that does not say") {
    double attention_factor = 0;
    // Nothing is set: no scaling.
    std::vector<double> plain_too = plain(10000, 64);
    const std::vector<double> before = plain_too;
    const GgmlScaling nothing = {
        .freq_scale = 0, .ext_factor = -1, .attn_factor = -1, .beta_fast = -1, .beta_slow = -1};
    REQUIRE(scale_ggml(plain_too, 10000, nothing, attention_factor));
    CHECK(plain_too == before);
    CHECK(attention_factor == 1);
    // Without a share of YaRN a factor means linear scaling, whatever the original length.
    std::vector<double> linear = {1, 0.5};
    REQUIRE(scale_ggml(linear, 10000, {.freq_scale = 0.25, .ext_factor = -1, .n_ctx_orig = 4096},
                       attention_factor));
    CHECK(linear == std::vector<double>{0.25, 0.125});
    CHECK(attention_factor == 1);
    // YaRN's betas are 32 and 1. With base 10000, 64 channels and 4096 positions the pair of 32
    // turns is 64 ln(4096 / (32 * 2 pi)) / (2 ln 10000) = 10.47, that of one turn 22.51: the blend
    // is from 10 to 23.
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
        refused(
            [&](std::vector<double>& f) { return scale_ggml(f, base, scaling, attention_factor); },
            text);
    };
    for (const double number : not_positive) {
        const bool not_set = std::isfinite(number) && number < 0;
        if (number != 0) bad(1e4, {.freq_scale = number}, "freq_scale is ");
        if (!not_set) bad(1e4, {.attn_factor = number}, "attn_factor is ");
        bad(number, {}, "base is ");
        if (number != 0) bad(1e4, {.ext_factor = 1, .n_ctx_orig = number}, "n_ctx_orig is ");
        if (!not_set)
            bad(1e4, {.ext_factor = 1, .beta_fast = number, .n_ctx_orig = 4096}, "beta_fast is ");
        if (!not_set)
            bad(1e4, {.ext_factor = 1, .beta_slow = number, .n_ctx_orig = 4096}, "beta_slow is ");
    }
    bad(1, {.ext_factor = 1, .n_ctx_orig = 4096}, "base is 1: it must be finite and above 1");
    bad(1e4, {.ext_factor = 1.5}, "ext_factor is 1.5: it must be 0 to 1");
    bad(1e4, {.ext_factor = -infinity}, "ext_factor is ");
    bad(1e4, {.ext_factor = 1, .beta_fast = -1, .beta_slow = 64, .n_ctx_orig = 4096},
        "beta_fast is 32: it must be at least beta_slow");
    bad(1e4, {.ext_factor = not_a_number}, "ext_factor is ");
    bad(1e4, {.freq_factors = factors, .freq_factor_count = 1},
        "freq_factors has 1 elements: it must have at least rotary_dim / 2 = 2");
    bad(1e4, {.freq_factors = factors, .freq_factor_count = 2}, "freq_factors[1] is 0");
    CHECK(attention_factor == -3);
}

TEST_CASE("llama3 scaling leaves pairs that stand still") {
    std::vector<double> still = {1.0, 0};
    REQUIRE(scale_llama3(still, {8, 1, 4, 8192}));
    CHECK(still == std::vector<double>{1, 0});
}

TEST_CASE("llama3 scaling with equal factors is a step at the original length") {
    const double pi2 = 6.283185307179586;
    std::vector<double> inv_freq = {pi2 / 8191, pi2 / 8193, 0.5};
    REQUIRE(scale_llama3(inv_freq, {16, 1, 1, 8192}));
    CHECK(inv_freq == std::vector<double>{pi2 / 8191, pi2 / 8193 / 16, 0.5});
    // A wavelength equal to the original length: 2 pi over it is not exact, so the length is
    // computed from the wavelength.
    std::vector<double> edge = {0.25};
    REQUIRE(scale_llama3(edge, {16, 1, 1, pi2 / 0.25}));
    CHECK(edge[0] == 0.25 / 16);
}
