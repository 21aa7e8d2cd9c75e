// SPDX-License-Identifier: MIT
// Checks that scalings of GGUF files equal functions of vkrope.h with the same numbers.
#include <doctest/doctest.h>

#include <cmath>

#include "gguf_reading.hpp"

using namespace vkrope;
using namespace vkrope::test;

TEST_CASE("GGUF: YaRN is that of transformers if it widens the range to whole pairs") {
    const RopeParams rotation = rotation_of(plain("qwen2")
                                                .text("rope.scaling.type", "yarn")
                                                .f32("rope.scaling.factor", 4)
                                                .u32("rope.scaling.original_context_length", 2048));
    std::vector<double> expected = frequencies(500000, 128);
    double of_paper = 0;
    REQUIRE(scale_yarn(expected, 500000, {.factor = 4, .original_max_position_embeddings = 2048},
                       of_paper));
    check_close(rotation.inv_freq, expected);
    CHECK(rotation.attention_factor == doctest::Approx(of_paper).epsilon(1e-14));
}

TEST_CASE("GGUF: YaRN of DeepSeek-V2-Lite, whose file has a tenth of mscale_all_dim") {
    GgufBuilder file("deepseek2");
    file.u32("block_count", 27)
        .u32("context_length", 163840)
        .u32("attention.key_length", 576)
        .u32("attention.key_length_mla", 192)
        .u32("attention.kv_lora_rank", 512)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 10000)
        .text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", 40)
        .u32("rope.scaling.original_context_length", 4096)
        .f32("rope.scaling.yarn_log_multiplier", 0.0707f);
    const RopeParams rotation = rotation_of(file);
    std::vector<double> expected = frequencies(10000, 64);
    double attention_factor = 0, softmax_scale = 0;
    REQUIRE(scale_deepseek_yarn(expected, 10000,
                                {.factor = 40,
                                 .original_max_position_embeddings = 4096,
                                 .mscale = 0.707,
                                 .mscale_all_dim = 0.707},
                                attention_factor, softmax_scale));
    check_close(rotation.inv_freq, expected);
    CHECK(rotation.attention_factor == doctest::Approx(attention_factor).epsilon(1e-14));
    CHECK(rotation.softmax_scale ==
          doctest::Approx(softmax_scale).epsilon(1e-7));  // the file has a float
    CHECK(rotation.warnings.empty());
}

TEST_CASE("GGUF: divisors of each pair (Llama 3), wherever the alignment puts them") {
    std::vector<double> expected = frequencies(500000, 128), llama3 = expected;
    REQUIRE(scale_llama3(llama3, {.factor = 8,
                                  .low_freq_factor = 1,
                                  .high_freq_factor = 4,
                                  .original_max_position_embeddings = 8192}));
    std::vector<float> factors;
    std::vector<double> divisors;
    for (std::size_t j = 0; j < 64; ++j) {
        factors.push_back(float(expected[j] / llama3[j]));
        divisors.push_back(factors.back());
    }
    REQUIRE(scale_divisors(expected, divisors.data(), divisors.size()));
    for (const std::uint32_t alignment : {0u, 1u, 8u, 32u, 4096u}) {
        CAPTURE(alignment);
        GgufBuilder file = plain();
        if (alignment != 0) file.alignment(alignment);
        file.tensor("token_embd.weight", {1, 2, 3})
            .tensor("rope_freqs.weight", factors)
            .tensor("output.weight", {4});
        const RopeParams rotation = rotation_of(file);
        CHECK(rotation.inv_freq == expected);
        CHECK(rotation.rope_type == "rope_freqs");
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("GGUF: LongRoPE's lists by length, in a part of the head") {
    GgufBuilder file("phi3");
    std::vector<float> near(48), far(48);
    std::vector<double> near_divisors, far_divisors;
    for (std::size_t j = 0; j < 48; ++j) {
        near[j] = 1 + float(j) / 64, far[j] = 1 + float(j);
        near_divisors.push_back(near[j]), far_divisors.push_back(far[j]);
    }
    file.u32("context_length", 131072)
        .u32("embedding_length", 4096)
        .u32("attention.head_count", 32)
        .u32("rope.dimension_count", 96);
    file.f32("rope.freq_base", 10000)
        .u32("rope.scaling.original_context_length", 4096)
        .f32("rope.scaling.attn_factor", 1.25f);
    file.tensor("rope_factors_long.weight", far).tensor("rope_factors_short.weight", near);
    const auto expected = [](const std::vector<double>& divisors) {
        std::vector<double> inv_freq = frequencies(10000, 96);
        REQUIRE(scale_divisors(inv_freq, divisors.data(), divisors.size()));
        return inv_freq;
    };
    for (const std::uint64_t seq_len : {0u, 1u, 4096u}) {
        const RopeParams rotation = rotation_of(file, {.seq_len = seq_len});
        CHECK(rotation.inv_freq == expected(near_divisors));
        CHECK(rotation.rope_type == "longrope");
        CHECK(rotation.attention_factor == 1.25);
        CHECK(warns(rotation, "longrope") == (seq_len == 0));
    }
    CHECK(rotation_of(file, {.seq_len = 4097}).inv_freq == expected(far_divisors));
    CHECK(warns(rotation_of(file, {.seq_len = 131073}), "seq_len 131073 131072"));
}

TEST_CASE("GGUF: numbers whose frequencies no double represents well") {
    // float32 reaches at most about 1e38; the key may also be a float64.
    const auto factor = [](double value) {
        GgufBuilder file = plain();
        return file.value_of("llama.rope.scaling.factor", 12,
                             GgufBuilder::little(std::bit_cast<std::uint64_t>(value), 8));
    };
    CHECK(rotation_of(factor(1e300)).inv_freq[0] == 1e-300);
    for (const double value : {1e304, 1e308}) {
        check_error(read(factor(value)).status, VKROPE_ERROR_INVALID_DATA,
                    "rope.freq_base 500000 linear");
    }
}
