// SPDX-License-Identifier: MIT
// The scalings of GGUF files equal the functions of vkrope.h with the same numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("GGUF: linear scaling, under either key") {
    double factor = 0;
    const std::vector<double> expected = scaled(500000, 128, {.freq_scale = 1.0 / 4}, factor);
    const GgufBuilder files[] = {
        plain().text("rope.scaling.type", "linear").f32("rope.scaling.factor", 4),
        plain().f32("rope.scale_linear", 4),
        plain().f32("rope.scaling.factor", 4).f32("rope.scale_linear", 4)};
    for (const GgufBuilder& file : files) {
        const RopeParams rotation = rotation_of(file);
        CHECK(rotation.inv_freq == expected);
        CHECK(rotation.rope_type == "linear");
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.warnings.empty());
    }
    // Without a factor, with a factor of 0, and with type "none".
    for (const char* type : {"linear", "yarn"}) {
        const RopeParams rotation = rotation_of(
            plain()
                .text("rope.scaling.type", type)
                .u32("rope.scaling.original_context_length", 8192));
        check_close(rotation.inv_freq, frequencies(500000, 128));
        CHECK(rotation.attention_factor == 1);
        CHECK(warns(rotation, "llama.rope.scaling.factor 1"));
    }
    CHECK(rotation_of(plain().f32("rope.scaling.factor", 0)).inv_freq == frequencies(500000, 128));
    CHECK(
        warns(rotation_of(plain().f32("rope.scaling.factor", 0)), "llama.rope.scaling.factor 0 1"));
    const RopeParams none = rotation_of(
        plain().text("rope.scaling.type", "none").f32("rope.scaling.factor", 4));
    CHECK(none.inv_freq == frequencies(500000, 128));
    CHECK(none.rope_type == "default");
    CHECK(warns(none, "llama.rope.scaling.factor"));
    CHECK(rotation_of(plain().f32("rope.scaling.attn_factor", 1.5f)).attention_factor == 1.5);
    CHECK(rotation_of(plain().f32("rope.scaling.yarn_attn_factor", 0.5f)).attention_factor == 0.5);
}

TEST_CASE("GGUF: YaRN is ggml's, with the attention factor of the paper") {
    const auto yarn = [] {
        GgufBuilder file = plain("qwen2");
        file.text("rope.scaling.type", "yarn")
            .f32("rope.scaling.factor", 4)
            .u32("rope.scaling.original_context_length", 2048);
        return file;
    };
    double unused = 0;
    RopeParams rotation = rotation_of(yarn());
    CHECK(rotation.inv_freq ==
          scaled(500000, 128, {.freq_scale = 0.25, .ext_factor = 1, .n_ctx_orig = 2048}, unused));
    CHECK(rotation.attention_factor == doctest::Approx(1 + 0.1 * std::log(4.0)).epsilon(1e-14));
    CHECK(rotation.rope_type == "yarn");
    CHECK(rotation.warnings.empty());

    // transformers' YaRN is the same if it widens the range to whole pairs.
    std::vector<double> of_transformers = frequencies(500000, 128);
    double of_paper = 0;
    REQUIRE(scale_yarn(of_transformers, 500000,
                       {.factor = 4, .original_max_position_embeddings = 2048}, of_paper));
    check_close(rotation.inv_freq, of_transformers);
    CHECK(rotation.attention_factor == doctest::Approx(of_paper).epsilon(1e-14));

    rotation = rotation_of(yarn()
                               .f32("rope.scaling.yarn_beta_fast", 16)
                               .f32("rope.scaling.yarn_beta_slow", 2)
                               .f32("rope.scaling.yarn_ext_factor", 0.5f)
                               .f32("rope.scaling.attn_factor", 2));
    CHECK(rotation.inv_freq == scaled(500000, 128,
                                      {.freq_scale = 0.25,
                                       .ext_factor = 0.5,
                                       .beta_fast = 16,
                                       .beta_slow = 2,
                                       .n_ctx_orig = 2048},
                                      unused));
    CHECK(rotation.attention_factor ==
          doctest::Approx(2 * (1 + 0.1 * std::log(4.0))).epsilon(1e-14));
    CHECK(rotation_of(yarn().f32("rope.scaling.yarn_ext_factor", -1)).rope_type ==
          "yarn");  // the same as a missing key
    CHECK(rotation_of(yarn().f32("rope.scaling.yarn_ext_factor", 0)).rope_type == "linear");

    // A multiplier: m(1) / m(multiplier).
    rotation = rotation_of(yarn().f32("rope.scaling.yarn_log_multiplier", 0.5f));
    CHECK(rotation.attention_factor ==
          doctest::Approx((1 + 0.1 * std::log(4.0)) / (1 + 0.05 * std::log(4.0))).epsilon(1e-14));
    CHECK(rotation.softmax_scale == 1);

    // No original length: the context length is used. Grok's fast end is 8 unless the file has
    // another one.
    GgufBuilder grok = plain("grok");
    rotation = rotation_of(grok.text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4));
    CHECK(rotation.inv_freq ==
          scaled(500000, 128,
                 {.freq_scale = 0.25, .ext_factor = 1, .beta_fast = 8, .n_ctx_orig = 8192},
                 unused));
    CHECK(warns(rotation, "grok.rope.scaling.original_context_length 8192"));

    // Below 1 the paper's magnitude is 1, and ggml's is divided out.
    GgufBuilder narrow = plain("qwen2");
    narrow.text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", 0.5f)
        .u32("rope.scaling.original_context_length", 2048);
    CHECK(rotation_of(narrow).attention_factor == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("GGUF: latent attention, and DeepSeek's YaRN in the softmax") {
    const auto deepseek = [](const char* architecture = "deepseek2") {
        GgufBuilder file(architecture);
        file.u32("block_count", 27)
            .u32("context_length", 163840)
            .u32("attention.key_length", 576)
            .u32("attention.key_length_mla", 192);
        file.u32("attention.kv_lora_rank", 512)
            .u32("rope.dimension_count", 64)
            .f32("rope.freq_base", 10000);
        return file;
    };
    RopeParams rotation = rotation_of(deepseek());
    CHECK(rotation.pairing == VKROPE_INTERLEAVED);
    CHECK(rotation.head_dim == 64);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.q_rotary_offset == 128);
    CHECK(rotation.k_rotary_offset == 512);
    CHECK(rotation.softmax_scale == 1);
    CHECK(rotation.warnings.empty());

    // DeepSeek-V2-Lite: mscale and mscale_all_dim are 0.707, and the file holds a tenth of them.
    GgufBuilder file = deepseek();
    file.text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", 40)
        .u32("rope.scaling.original_context_length", 4096);
    rotation = rotation_of(GgufBuilder(file).f32("rope.scaling.yarn_log_multiplier", 0.0707f));
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

    // An older file, whose key_length is the length of a query row; and a file without the
    // multiplier, for which llama.cpp scales both.
    GgufBuilder older("deepseek2");
    older.u32("attention.key_length", 192)
        .u32("attention.kv_lora_rank", 512)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 10000);
    CHECK(rotation_of(older).q_rotary_offset == 128);
    rotation = rotation_of(file);
    const double m = 1 + 0.1 * std::log(40.0);
    CHECK(rotation.attention_factor == doctest::Approx(m).epsilon(1e-14));
    CHECK(rotation.softmax_scale == doctest::Approx(m * m).epsilon(1e-14));

    // Architectures with DeepSeek 2's graph.
    for (const char* architecture : {"glm-dsa", "mistral4"}) {
        CAPTURE(std::string(architecture));
        GgufBuilder same = deepseek(architecture);
        same.text("rope.scaling.type", "yarn")
            .f32("rope.scaling.factor", 40)
            .u32("rope.scaling.original_context_length", 4096);
        const RopeParams other = rotation_of(same);
        CHECK(other.pairing == VKROPE_INTERLEAVED);
        CHECK(other.q_rotary_offset == 128);
        CHECK(other.k_rotary_offset == 512);
        CHECK(other.inv_freq == rotation.inv_freq);
        CHECK(other.softmax_scale == rotation.softmax_scale);
    }
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
        if (alignment != 0) {
            file.alignment(alignment);
        }
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

TEST_CASE("GGUF: Llama 3's divisors come before LongRoPE's") {
    GgufBuilder file = plain();
    file.tensor("rope_freqs.weight", std::vector<float>(64, 2))
        .tensor("rope_factors_long.weight", std::vector<float>(64, 8));
    file.tensor("rope_factors_short.weight", std::vector<float>(64, 4));
    const RopeParams rotation = rotation_of(file);
    CHECK(rotation.rope_type == "rope_freqs");
    CHECK(rotation.inv_freq[0] == 0.5);
    CHECK(warns(rotation, "rope_factors_short.weight rope_freqs.weight"));
    CHECK(warns(rotation, "rope_factors_long.weight"));
    CHECK(rotation.warnings.size() == 2);
}

TEST_CASE("GGUF: numbers whose frequencies no double holds well") {
    // float32 holds at most about 1e38; the key may also be a float64.
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
    check_error(read(plain().f32("rope.scaling.attn_factor", 1e30f)).status,
                VKROPE_ERROR_INVALID_DATA, "attention factor 1e+30 2^-64 2^64");
}

TEST_CASE("GGUF: HunYuan's alpha") {
    std::vector<double> expected = frequencies(500000, 128);
    REQUIRE(scale_ntk(expected, 1000));
    CHECK(rotation_of(plain("hunyuan-dense").f32("rope.scaling.alpha", 1000)).inv_freq == expected);
}
