// SPDX-License-Identifier: MIT
// Checks scalings against their papers: closed forms, fixed points and limits, without the
// library's own arithmetic.
#include <doctest/doctest.h>

#include "scaling_checks.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("inclusive spacing reaches 1 / base") {
    for (const std::uint32_t rotary_dim : {4u, 6u, 64u, 128u}) {
        std::vector<double> inv_freq(rotary_dim / 2);
        REQUIRE(status_of(vkrope_inclusive_inv_freq, 10000, rotary_dim, inv_freq.data()));
        CHECK(inv_freq.front() == 1.0);
        CHECK(close(inv_freq.back(), 1e-4L));
        for (std::size_t j = 1; j < inv_freq.size(); ++j) {
            CHECK(close(inv_freq[j] / inv_freq[j - 1],
                        std::exp(-std::log(10000.0L) / (rotary_dim / 2 - 1))));
        }
    }
    double one = 0;
    REQUIRE(status_of(vkrope_inclusive_inv_freq, 10000, 2, &one));
    CHECK(one == 1.0);
    check_invalid(status_of(vkrope_inclusive_inv_freq, 0, 8, &one), "base 0");
    check_invalid(status_of(vkrope_inclusive_inv_freq, 10000, 3, &one), "rotary_dim 3");
    check_invalid(status_of(vkrope_inclusive_inv_freq, 10000, 4, nullptr), "inv_freq null");
    CHECK(one == 1.0);
}

TEST_CASE("proportional: the whole head's spacing, with a tail that does not turn") {
    std::vector<double> inv_freq(256, -1);
    REQUIRE(proportional_inv_freq(1e6, 512, {.factor = 1, .partial_rotary_factor = 0.25},
                                  inv_freq.data()));
    const std::vector<double> whole = plain(1e6, 512);
    for (std::size_t j = 0; j < 256; ++j) CHECK(inv_freq[j] == (j < 64 ? whole[j] : 0));
    REQUIRE(proportional_inv_freq(1e6, 512, {.factor = 8}, inv_freq.data()));
    for (std::size_t j = 0; j < 256; ++j) CHECK(close(inv_freq[j], whole[j] / 8.0L));
    // floor(0.3 * 10 / 2) = 1 pair turns. 0.1 of 10 channels is half a pair, so none turns.
    REQUIRE(proportional_inv_freq(100, 10, {.partial_rotary_factor = 0.3}, inv_freq.data()));
    CHECK((inv_freq[0] == 1 && inv_freq[1] == 0 && inv_freq[4] == 0));
    REQUIRE(proportional_inv_freq(100, 10, {.partial_rotary_factor = 0.1}, inv_freq.data()));
    CHECK(inv_freq[0] == 0);

    std::vector<double> untouched(4, -7.0);
    for (const double factor : not_positive) {
        if (factor == 0) continue;  // 1
        check_invalid(proportional_inv_freq(1e4, 8, {.factor = factor}, untouched.data()),
                      "factor");
    }
    for (const double part : {-0.5, 1.5, infinity, not_a_number}) {
        check_invalid(
            proportional_inv_freq(1e4, 8, {.partial_rotary_factor = part}, untouched.data()),
            "partial_rotary_factor");
    }
    check_invalid(proportional_inv_freq(1e4, 7, {}, untouched.data()), "head_dim 7");
    CHECK(untouched == std::vector<double>(4, -7.0));
}

TEST_CASE("linear scaling divides frequencies, and a scale of positions multiplies them") {
    std::vector<double> inv_freq = {1.0, 0.3, 0x1p-20, 0};
    REQUIRE(scale_linear(inv_freq, 2));
    CHECK(inv_freq == std::vector<double>{0.5, 0.15, 0x1p-21, 0});
    REQUIRE(scale_positions(inv_freq, 0.25));
    CHECK(inv_freq == std::vector<double>{0.125, 0.0375, 0x1p-23, 0});
    for (const double number : not_positive) {
        refused(scale_linear(unscaled, number), "factor");
        refused(scale_positions(unscaled, number), "seq_scale");
    }
}

TEST_CASE("divisors divide, pair by pair") {
    std::vector<double> inv_freq = {1.0, 0.5, 0};
    const double divisors[] = {1, 4, 8};
    REQUIRE(scale_divisors(inv_freq, divisors, 3));
    CHECK(inv_freq == std::vector<double>{1, 0.125, 0});

    const double bad[] = {1, 0};
    const double worse[] = {1, not_a_number};
    refused(scale_divisors(unscaled, divisors, 3), "divisors 3 2");
    refused(scale_divisors(unscaled, divisors, 0), "divisors 0");
    refused(scale_divisors(unscaled, nullptr, 2), "divisors null");
    refused(scale_divisors(unscaled, bad, 2), "divisors[1] 0");
    refused(scale_divisors(unscaled, worse, 2), "divisors[1]");
}

TEST_CASE("NTK-aware scaling is another base") {
    for (const std::uint32_t d : {4u, 64u, 128u}) {
        std::vector<double> inv_freq = plain(10000, d);
        REQUIRE(scale_ntk(inv_freq, 8));
        const long double base = 10000 * std::pow(8.0L, (long double)d / (d - 2));
        for (std::uint32_t j = 0; j < d / 2; ++j)
            CHECK(close(inv_freq[j], std::pow(base, -2.0L * j / d)));
        CHECK(close(inv_freq.back(), plain(10000, d).back() / 8.0L));
    }
    // A single pair is the fastest pair, which does not change.
    std::vector<double> one = {1.0};
    REQUIRE(scale_ntk(one, 8));
    CHECK(one[0] == 1.0);
    std::vector<double> none;
    CHECK(scale_ntk(none, 8));
    for (const double alpha : not_positive) refused(scale_ntk(unscaled, alpha), "alpha");
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
        for (std::size_t j = 0; j < 32; ++j)
            CHECK(close(inv_freq[j], std::pow(base, -2.0L * j / 64)));
    }
    for (const double number : not_positive) {
        refused(scale_dynamic_ntk(unscaled, {number, 2048}, 4096), "factor");
        refused(scale_dynamic_ntk(unscaled, {2, number}, 4096), "max_position_embeddings");
    }
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
        refused(scale_longrope(unscaled, scaling, 8192, attention_factor), text);
    };
    bad({good, good, 3, 4096, 32}, "short_factor 3 2");
    bad({nullptr, good, 2, 4096, 32}, "short_factor null");
    bad({good, nullptr, 2, 4096, 32}, "long_factor null");
    bad({bad_list, good, 2, 4096, 32}, "short_factor[1] -2");
    bad({good, bad_list, 2, 4096, 32}, "long_factor[1] -2");
    bad({good, good, 2, 1, 32}, "original_max_position_embeddings 1");
    bad({good, good, 2, 4096, 0}, "factor 0");
    bad({good, good, 2, 4096, 32, -1}, "attention_factor -1");
    bad({good, good, 2, 4096, 32, 0, infinity}, "short_mscale inf");
    bad({good, good, 2, 4096, 32, 0, 1, -1}, "long_mscale -1");
    CHECK(attention_factor == -3);
}

TEST_CASE("llama3 scaling keeps high frequencies, divides low ones and blends between") {
    constexpr double turn = 6.283185307179586;
    const Llama3Scaling scaling = {8, 1, 4, 8192};
    const auto scaled = [&](double wavelength) {
        std::vector<double> inv_freq = {turn / wavelength};
        REQUIRE(scale_llama3(inv_freq, scaling));
        return inv_freq[0];
    };
    CHECK(scaled(2047.99) == turn / 2047.99);
    CHECK(scaled(8192.01) == turn / 8192.01 / 8);
    CHECK(scaled(1e9) == turn / 1e9 / 8);
    CHECK(scaled(0.5) == turn / 0.5);
    // The scaling is continuous at both ends of the blend.
    CHECK(scaled(2048.01) == doctest::Approx(turn / 2048.01).epsilon(1e-4));
    CHECK(scaled(8191.99) == doctest::Approx(turn / 8191.99 / 8).epsilon(1e-4));
    // 8192 / 3276.8 = 2.5 is halfway between the factors 1 and 4.
    CHECK(scaled(3276.8) == doctest::Approx(turn / 3276.8 * (0.5 + 0.5 / 8)).epsilon(1e-14));
    // 8192 / 4681.142857 = 1.75 is a quarter of the way.
    CHECK(scaled(8192 / 1.75) ==
          doctest::Approx(turn / (8192 / 1.75) * (0.25 + 0.75 / 8)).epsilon(1e-14));
}

TEST_CASE("llama3 scaling with equal factors is a step at the original length") {
    const double turn = 6.283185307179586;
    std::vector<double> inv_freq = {turn / 8191, turn / 8193, 0.5};
    REQUIRE(scale_llama3(inv_freq, {16, 1, 1, 8192}));
    CHECK(inv_freq == std::vector<double>{turn / 8191, turn / 8193 / 16, 0.5});
    // A pair that does not turn stays that way.
    std::vector<double> still = {1.0, 0};
    REQUIRE(scale_llama3(still, {8, 1, 4, 8192}));
    CHECK(still == std::vector<double>{1, 0});
    // The wavelength equals the original length. 2 pi over the length is not exact, so the length
    // is computed from the wavelength.
    std::vector<double> edge = {0.25};
    REQUIRE(scale_llama3(edge, {16, 1, 1, turn / 0.25}));
    CHECK(edge[0] == 0.25 / 16);
}

TEST_CASE("llama3 scaling names the number that breaks its rule") {
    refused(scale_llama3(unscaled, {0, 1, 4, 8192}), "factor 0");
    refused(scale_llama3(unscaled, {not_a_number, 1, 4, 8192}), "factor");
    refused(scale_llama3(unscaled, {8, 0, 4, 8192}), "low_freq_factor 0");
    refused(scale_llama3(unscaled, {8, 1, infinity, 8192}), "high_freq_factor inf");
    refused(scale_llama3(unscaled, {8, 4, 1, 8192}), "low_freq_factor 4 high_freq_factor 1");
    refused(scale_llama3(unscaled, {8, 1, 4, 0}), "original_max_position_embeddings 0");
    refused(scale_llama3(unscaled, {8, 1, 4, infinity}), "original_max_position_embeddings inf");
}
