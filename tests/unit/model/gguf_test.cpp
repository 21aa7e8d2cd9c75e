// SPDX-License-Identifier: MIT
// A valid GGUF file gives the Rotation that the functions of frequencies.hpp make of the same
// numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "support/gguf_builder.hpp"
#include "vkrope/model.hpp"

using namespace vkrope;

namespace {

Result<Rotation> read(const GgufBuilder& file, const ModelQuery& query = {}) {
    const std::string bytes = file.file();
    return from_gguf(bytes.data(), bytes.size(), query);
}

Rotation rotation_of(const GgufBuilder& file, const ModelQuery& query = {}) {
    Result<Rotation> result = read(file, query);
    REQUIRE_MESSAGE(result, result.status.what);
    return std::move(result.value);
}

bool warns(const Rotation& rotation, const std::string& text) {
    for (const std::string& warning : rotation.warnings) {
        if (warning.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

/// Only what a head of 128 channels needs.
GgufBuilder plain(const std::string& architecture = "llama") {
    GgufBuilder file(architecture);
    file.u32("block_count", 12).u32("context_length", 8192).u32("attention.key_length", 128);
    file.u32("rope.dimension_count", 128).f32("rope.freq_base", 500000);
    return file;
}

std::vector<double> frequencies(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    REQUIRE(default_inv_freq(base, rotary_dim, inv_freq.data()));
    return inv_freq;
}

std::vector<double> scaled(double base, std::uint32_t rotary_dim, const GgmlScaling& scaling,
                           double& attention_factor) {
    std::vector<double> inv_freq = frequencies(base, rotary_dim);
    REQUIRE(scale_ggml(inv_freq, base, scaling, attention_factor));
    return inv_freq;
}

/// For frequencies from two ways of the same arithmetic in double.
void check_close(const std::vector<double>& actual, const std::vector<double>& expected) {
    REQUIRE(actual.size() == expected.size());
    for (std::size_t j = 0; j < actual.size(); ++j) {
        CAPTURE(j);
        CHECK(std::abs(actual[j] - expected[j]) <= 1e-12 * expected[j]);
    }
}

}  // namespace

TEST_CASE("GGUF: a plain file") {
    for (const std::uint32_t version : {2u, 3u}) {
        GgufBuilder file = plain();
        file.version = version;
        const Rotation rotation = rotation_of(file);
        CHECK(rotation.pairing == Pairing::interleaved);
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.rotary_dim == 128);
        CHECK(rotation.q_rotary_offset == 0);
        CHECK(rotation.k_rotary_offset == 0);
        CHECK(rotation.max_position == 8192);
        CHECK(rotation.rope_type == "default");
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.softmax_scale == 1);
        CHECK(rotation.rotates);
        CHECK(rotation.sections.axes == 0);
        CHECK(rotation.warnings.empty());
        CHECK(rotation.inv_freq == frequencies(500000, 128));
    }
}

TEST_CASE("GGUF: what is missing is assumed, and said") {
    GgufBuilder file("phi2");
    file.u32("embedding_length", 2560).u32("attention.head_count", 32);
    Rotation rotation = rotation_of(file);
    CHECK(rotation.head_dim == 80);
    CHECK(rotation.rotary_dim == 80);
    CHECK(rotation.pairing == Pairing::half_split);
    CHECK(warns(rotation, "phi2.rope.freq_base is missing: assuming 10000"));
    CHECK(warns(rotation, "phi2.rope.dimension_count is missing: assuming 80"));
    CHECK(rotation.warnings.size() == 2);
    CHECK(rotation.inv_freq == frequencies(10000, 80));

    file.u32("rope.dimension_count", 32).f32("rope.freq_base", 10000).f32("rope.invented", 1);
    rotation = rotation_of(file);
    CHECK(rotation.rotary_dim == 32);
    CHECK(rotation.warnings == std::vector<std::string>{"ignored key phi2.rope.invented"});
}

TEST_CASE("GGUF: each architecture has its pairing, which a query may overrule") {
    struct Row {
        const char* name;
        Pairing pairing;
    };
    const Row rows[] = {
        {"llama", Pairing::interleaved},     {"deepseek", Pairing::interleaved},
        {"command-r", Pairing::interleaved}, {"chatglm", Pairing::interleaved},
        {"glm4", Pairing::interleaved},      {"granite", Pairing::interleaved},
        {"falcon", Pairing::half_split},     {"qwen2", Pairing::half_split},
        {"qwen3moe", Pairing::half_split},   {"phi3", Pairing::half_split},
        {"gemma", Pairing::half_split},      {"stablelm", Pairing::half_split},
        {"gptneox", Pairing::half_split},    {"nomic-bert", Pairing::half_split},
        {"gpt-oss", Pairing::half_split},    {"olmo", Pairing::interleaved},
        {"olmo2", Pairing::half_split},      {"lfm2", Pairing::half_split},
        {"orion", Pairing::half_split},      {"ernie4_5", Pairing::interleaved},
        {"minicpm", Pairing::interleaved},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(rotation_of(plain(row.name)).pairing == row.pairing);
    }
    CHECK(rotation_of(plain(), {.pairing = Pairing::half_split}).pairing == Pairing::half_split);
    CHECK(rotation_of(plain("qwen2"), {.pairing = Pairing::interleaved}).pairing ==
          Pairing::interleaved);

    const Rotation unknown = rotation_of(plain("nautilus"), {.pairing = Pairing::half_split});
    CHECK(unknown.pairing == Pairing::half_split);
    CHECK(warns(unknown, "general.architecture \"nautilus\" is unknown"));
}

TEST_CASE("GGUF: linear scaling, under either key") {
    double factor = 0;
    const std::vector<double> expected = scaled(500000, 128, {.freq_scale = 1.0 / 4}, factor);
    const GgufBuilder files[] = {
        plain().text("rope.scaling.type", "linear").f32("rope.scaling.factor", 4),
        plain().f32("rope.scale_linear", 4),
        plain().f32("rope.scaling.factor", 4).f32("rope.scale_linear", 4)};
    for (const GgufBuilder& file : files) {
        const Rotation rotation = rotation_of(file);
        CHECK(rotation.inv_freq == expected);
        CHECK(rotation.rope_type == "linear");
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.warnings.empty());
    }
    // Without a factor, with a factor of 0, and with type "none".
    for (const char* type : {"linear", "yarn"}) {
        const Rotation rotation = rotation_of(
            plain()
                .text("rope.scaling.type", type)
                .u32("rope.scaling.original_context_length", 8192));
        check_close(rotation.inv_freq, frequencies(500000, 128));
        CHECK(rotation.attention_factor == 1);
        CHECK(
            warns(rotation, "llama.rope.scaling.factor is missing: assuming 1, as llama.cpp does"));
    }
    CHECK(rotation_of(plain().f32("rope.scaling.factor", 0)).inv_freq == frequencies(500000, 128));
    CHECK(warns(rotation_of(plain().f32("rope.scaling.factor", 0)),
                "llama.rope.scaling.factor is 0: assuming 1"));
    const Rotation none = rotation_of(
        plain().text("rope.scaling.type", "none").f32("rope.scaling.factor", 4));
    CHECK(none.inv_freq == frequencies(500000, 128));
    CHECK(none.rope_type == "default");
    CHECK(warns(none, "ignored key llama.rope.scaling.factor"));
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
    Rotation rotation = rotation_of(yarn());
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
    CHECK(warns(rotation, "grok.rope.scaling.original_context_length is missing: assuming 8192"));

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
    Rotation rotation = rotation_of(deepseek());
    CHECK(rotation.pairing == Pairing::interleaved);
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
        const Rotation other = rotation_of(same);
        CHECK(other.pairing == Pairing::interleaved);
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
        const Rotation rotation = rotation_of(file);
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
        const Rotation rotation = rotation_of(file, {.seq_len = seq_len});
        CHECK(rotation.inv_freq == expected(near_divisors));
        CHECK(rotation.rope_type == "longrope");
        CHECK(rotation.attention_factor == 1.25);
        CHECK(warns(rotation, "longrope depends on the length") == (seq_len == 0));
    }
    CHECK(rotation_of(file, {.seq_len = 4097}).inv_freq == expected(far_divisors));
    CHECK(warns(rotation_of(file, {.seq_len = 131073}),
                "seq_len is 131073: the model was made for 131072"));
}

TEST_CASE("GGUF: Llama 3's divisors come before LongRoPE's") {
    GgufBuilder file = plain();
    file.tensor("rope_freqs.weight", std::vector<float>(64, 2))
        .tensor("rope_factors_long.weight", std::vector<float>(64, 8));
    file.tensor("rope_factors_short.weight", std::vector<float>(64, 4));
    const Rotation rotation = rotation_of(file);
    CHECK(rotation.rope_type == "rope_freqs");
    CHECK(rotation.inv_freq[0] == 0.5);
    CHECK(warns(rotation, "ignored tensor rope_factors_short.weight: there is rope_freqs.weight"));
    CHECK(warns(rotation, "ignored tensor rope_factors_long.weight"));
    CHECK(rotation.warnings.size() == 2);
}

TEST_CASE("GGUF: a whole file that was a part") {
    const auto split = [](GgufBuilder file, const char* key) {
        return file.value_of(key, 2, GgufBuilder::little(0, 2));
    };
    CHECK(warns(rotation_of(split(plain(), "split.no")),
                "split.count is missing although split.no is 0: assuming a whole file"));
    CHECK(
        rotation_of(split(split(plain(), "split.no"), "split.count")).warnings.empty());  // merged
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
        const Result<Rotation> result = read(factor(value));
        CHECK(result.status.code == Code::invalid_data);
        CHECK(std::string(result.status.what)
                  .find("rope.freq_base 500000 and the scaling linear make inv_freq[") == 0);
    }
    const Result<Rotation> result = read(plain().f32("rope.scaling.attn_factor", 1e30f));
    CHECK(std::string(result.status.what)
              .find("makes the attention factor 1e+30: it must be 2^-64 to 2^64") !=
          std::string::npos);
}

TEST_CASE("GGUF: HunYuan's alpha") {
    std::vector<double> expected = frequencies(500000, 128);
    REQUIRE(scale_ntk(expected, 1000));
    CHECK(rotation_of(plain("hunyuan-dense").f32("rope.scaling.alpha", 1000)).inv_freq == expected);
}

TEST_CASE("GGUF: layers of several types") {
    GgufBuilder gemma = plain("gemma3");
    gemma.u32("attention.sliding_window", 1024).f32("rope.scaling.factor", 8);
    const std::vector<double> local = frequencies(10000, 128);
    double unused = 0;
    const std::vector<double> full = scaled(500000, 128, {.freq_scale = 0.125}, unused);
    CHECK(rotation_of(gemma).inv_freq == full);
    CHECK(warns(rotation_of(gemma), "assuming full_attention"));
    CHECK(rotation_of(gemma, {.layer_type = "full_attention"}).inv_freq == full);
    const Rotation sliding = rotation_of(gemma, {.layer_type = "sliding_attention"});
    CHECK(sliding.inv_freq == local);
    CHECK(warns(sliding, "gemma3.rope.freq_base_swa is missing: assuming 10000"));
    for (int layer = 0; layer < 12; ++layer) {
        CAPTURE(layer);
        CHECK(rotation_of(gemma, {.layer = layer}).inv_freq == (layer % 6 == 5 ? full : local));
    }
    CHECK(rotation_of(gemma, {.layer = 5}).warnings.empty());
    CHECK(read(gemma, {.layer = 12}).status.code == Code::invalid_argument);
    CHECK(read(gemma, {.layer_type = "chunked_attention"}).status.code == Code::invalid_argument);
    CHECK(read(plain(), {.layer_type = "full_attention"}).status.code == Code::invalid_argument);
    CHECK(rotation_of(GgufBuilder(gemma).f32("rope.freq_base_swa", 20000), {.layer = 0}).inv_freq ==
          frequencies(20000, 128));
    CHECK(rotation_of(GgufBuilder(gemma).f32("rope.freq_base_swa", 20000), {.layer = 5})
              .warnings.empty());
    CHECK(rotation_of(GgufBuilder(gemma).u32("attention.sliding_window_pattern", 2), {.layer = 1})
              .inv_freq == full);
    CHECK(rotation_of(plain("gemma3"), {.layer = 0}).inv_freq ==
          frequencies(500000, 128));  // no window: no sliding layers

    // A list of layers with their own rows and windows, and divisors only for full attention: Gemma
    // 4.
    GgufBuilder four("gemma4");
    four.u32("block_count", 3)
        .u32("attention.sliding_window", 512)
        .boolean_list("attention.sliding_window_pattern", {true, true, false});
    four.u32("attention.key_length", 512)
        .u32("attention.key_length_swa", 256)
        .u32("rope.dimension_count", 512);
    four.u32("rope.dimension_count_swa", 256)
        .f32("rope.freq_base", 1e6f)
        .f32("rope.freq_base_swa", 10000);
    std::vector<float> divisors(256, 1e30f);
    std::fill_n(divisors.begin(), 64, 1.0f);
    four.tensor("rope_freqs.weight", divisors);
    const Rotation first = rotation_of(four, {.layer = 0}), last = rotation_of(four, {.layer = 2});
    CHECK(first.head_dim == 256);
    CHECK(first.inv_freq == frequencies(10000, 256));
    CHECK(last.head_dim == 512);
    CHECK(last.inv_freq[63] == frequencies(1e6, 512)[63]);
    CHECK(last.inv_freq[64] < 1e-29);

    // OLMo 3: YaRN only on full attention.
    GgufBuilder olmo = plain("olmo2");
    olmo.u32("attention.sliding_window", 4096)
        .text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", 8);
    olmo.u32("rope.scaling.original_context_length", 8192).f32("rope.scaling.attn_factor", 1.5f);
    const Rotation window = rotation_of(olmo, {.layer = 0});
    CHECK(window.inv_freq == frequencies(500000, 128));
    CHECK(window.attention_factor == 1);
    CHECK(window.warnings.empty());
    CHECK(rotation_of(olmo, {.layer = 3}).rope_type == "yarn");
}

TEST_CASE("GGUF: layers that do not rotate") {
    const auto turns = [](const GgufBuilder& file, int layer) {
        const Rotation rotation = rotation_of(file, {.layer = layer});
        CHECK(rotation.rotates == (rotation.rotary_dim != 0));
        CHECK(rotation.rotates != rotation.inv_freq.empty());
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.warnings.empty());
        return rotation.rotates;
    };
    const GgufBuilder cohere = plain("cohere2").u32("attention.sliding_window", 4096);
    const GgufBuilder llama4 = plain("llama4"),
                      always = plain("llama4").u32("attention.sliding_window", 0);
    const GgufBuilder thinker = plain("smallthinker").u32("attention.sliding_window", 4096);
    for (int layer = 0; layer < 12; ++layer) {
        CAPTURE(layer);
        CHECK(turns(cohere, layer) == (layer % 4 != 3));
        CHECK(turns(llama4, layer) == (layer % 4 != 3));
        CHECK(turns(always, layer));
        CHECK(turns(plain("smollm3"), layer) == (layer % 4 != 3));
        CHECK(turns(thinker, layer) == (layer % 4 != 0));
        CHECK(turns(plain("smallthinker"), layer));
        CHECK(turns(plain("qwen3next"), layer) == (layer % 4 == 3));
        CHECK(turns(plain("exaone4"), layer));
    }
    CHECK(turns(plain("qwen3next").u32("full_attention_interval", 2), 1));
    const GgufBuilder lfm = plain("lfm2").i32_list("attention.head_count_kv",
                                                   {0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0});
    CHECK(!turns(lfm, 0));
    CHECK(turns(lfm, 2));
    CHECK(rotation_of(llama4, {.layer_type = "chunked_attention"}).rotates);
    CHECK(!rotation_of(llama4, {.layer_type = "full_attention"}).rotates);
    CHECK(rotation_of(llama4).rotates);
}

TEST_CASE("GGUF: sections") {
    const GgufBuilder two = plain("qwen2vl").i32_list("rope.dimension_sections", {16, 24, 24, 0});
    Rotation rotation = rotation_of(two);
    CHECK(rotation.pairing == Pairing::half_split);
    CHECK(rotation.sections.order == SectionOrder::sequential);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.sections.pairs[0] == 16);
    CHECK(rotation.sections.pairs[1] == 24);
    CHECK(rotation.sections.pairs[2] == 24);
    CHECK(rotation.warnings.empty());

    // Pairs 61 and 62 are beyond the 20 of height and of width: 61 = 3 * 20 + 1.
    rotation = rotation_of(plain("qwen3vl").i32_list("rope.dimension_sections", {24, 20, 20, 0}));
    CHECK(rotation.pairing == Pairing::half_split);
    CHECK(rotation.sections.order == SectionOrder::interleaved);
    CHECK(rotation.sections.axes == 4);
    CHECK(rotation.sections.leftover_axis == 3);
    CHECK(warns(rotation, "pairs beyond the sections: 2"));

    // The first pair beyond the sections: pair 3 = 3 * 1.
    GgufBuilder narrow("qwen3vl");
    rotation = rotation_of(
        narrow.u32("attention.key_length", 8).i32_list("rope.dimension_sections", {1, 2, 1, 0}));
    CHECK(warns(rotation, "pairs beyond the sections: 1,"));

    GgufBuilder qwen("qwen35");
    qwen.u32("block_count", 4)
        .u32("attention.key_length", 256)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 1e7f);
    rotation = rotation_of(qwen.i32_list("rope.dimension_sections", {11, 11, 10, 0}), {.layer = 3});
    CHECK(rotation.sections.order == SectionOrder::interleaved);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.warnings.empty());

    // GLM-4.1V: half of 128 channels are rotated, which are 32 pairs.
    GgufBuilder glm("glm4");
    glm.u32("block_count", 40)
        .u32("attention.key_length", 128)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 10000);
    rotation = rotation_of(glm.i32_list("rope.dimension_sections", {8, 12, 12, 0}));
    CHECK(rotation.pairing == Pairing::half_split);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.warnings.empty());
    CHECK(warns(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {64, 0, 0, 0})),
                "ignored key glm4.rope.dimension_sections: one of the first two is 0"));
    CHECK(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {0, 0, 0, 0}))
              .warnings.empty());
    CHECK(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {0, 0, 0, 0}))
              .sections.axes == 0);
    CHECK(rotation_of(plain("glm4")).sections.axes == 0);
    CHECK(warns(rotation_of(plain().i32_list("rope.dimension_sections", {8, 12, 12, 0})),
                "ignored key llama.rope.dimension_sections"));
}

TEST_CASE("GGUF: what is large and does not matter is passed over") {
    GgufBuilder file;
    file.text_list_of("tokenizer.ggml.tokens", std::vector<std::string>(100000, "token"));
    file.text_of("tokenizer.chat_template", std::string(100000, 'x'));
    file.value_of(
        "tokenizer.ggml.scores", 9,
        GgufBuilder::little(6, 4) + GgufBuilder::little(100000, 8) + std::string(400000, '\1'));
    // A list of lists: of two numbers, and of no string.
    file.value_of("nested", 9,
                  GgufBuilder::little(9, 4) + GgufBuilder::little(2, 8) +
                      GgufBuilder::little(0, 4) + GgufBuilder::little(2, 8) + "ab" +
                      GgufBuilder::little(8, 4) + GgufBuilder::little(0, 8));
    // The architecture may come last.
    file.value_of("llama.attention.key_length", 4, GgufBuilder::little(64, 4));
    file.text_of("general.architecture", "llama");
    CHECK(rotation_of(file).head_dim == 64);
}

TEST_CASE("GGUF: numbers of every type") {
    struct Number {
        std::uint32_t type;
        std::string bytes;
    };
    const Number numbers[] = {{0, GgufBuilder::little(64, 1)},
                              {1, GgufBuilder::little(64, 1)},
                              {2, GgufBuilder::little(64, 2)},
                              {3, GgufBuilder::little(64, 2)},
                              {4, GgufBuilder::little(64, 4)},
                              {5, GgufBuilder::little(64, 4)},
                              {6, GgufBuilder::little(std::bit_cast<std::uint32_t>(64.0f), 4)},
                              {10, GgufBuilder::little(64, 8)},
                              {11, GgufBuilder::little(64, 8)},
                              {12, GgufBuilder::little(std::bit_cast<std::uint64_t>(64.0), 8)}};
    for (const Number& number : numbers) {
        CAPTURE(number.type);
        GgufBuilder file("llama");
        CHECK(rotation_of(file.value_of("llama.attention.key_length", number.type, number.bytes))
                  .head_dim == 64);
    }
}

TEST_CASE("GGUF: from a file, through a function, and no weights") {
    GgufBuilder file = plain();
    file.tensor("token_embd.weight", std::vector<float>(1 << 16))
        .tensor("rope_freqs.weight", std::vector<float>(64, 2.0f));
    const std::string bytes = file.file();
    const Rotation expected = rotation_of(file);

    const std::string path = std::string(VKROPE_TEST_SCRATCH) + "/plain.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    const Result<Rotation> from_file = from_gguf_file(path);
    REQUIRE_MESSAGE(from_file, from_file.status.what);
    CHECK(from_file.value.inv_freq == expected.inv_freq);
    CHECK(from_gguf_file(path + ".missing").status.code == Code::invalid_data);
    CHECK(from_gguf_file(VKROPE_TEST_SCRATCH).status.code == Code::invalid_data);

    std::size_t read_bytes = 0;
    const GgufRead read_at = [&](std::uint64_t offset, void* to, std::size_t count) {
        REQUIRE(offset + count <= bytes.size());
        std::memcpy(to, bytes.data() + offset, count);
        read_bytes += count;
        return count;
    };
    const Result<Rotation> through = from_gguf(bytes.size(), read_at);
    REQUIRE_MESSAGE(through, through.status.what);
    CHECK(through.value.inv_freq == expected.inv_freq);
    CHECK(read_bytes < 40000);  // of 262 144 bytes of weights

    CHECK(from_gguf(100, GgufRead()).status.code == Code::invalid_argument);
    CHECK(from_gguf(nullptr, 100).status.code == Code::invalid_argument);
    CHECK(from_gguf(std::uint64_t{1} << 63, read_at).status.code == Code::invalid_argument);
    const GgufRead fails = [](std::uint64_t, void*, std::size_t) { return std::size_t{0}; };
    CHECK(from_gguf(bytes.size(), fails).status.code == Code::invalid_data);
    const GgufRead throws = [](std::uint64_t, void*, std::size_t) -> std::size_t {
        throw std::runtime_error("torn tape");
    };
    CHECK(std::string(from_gguf(bytes.size(), throws).status.what).find("torn tape") !=
          std::string::npos);
}
