// SPDX-License-Identifier: MIT
// GGUF files that must not become a RopeParams: unsupported ones by name, broken ones with key,
// value, type and rule. No bytes make it crash, and it trusts no size in them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "gguf_refusals.hpp"
#include "model/gguf/model.hpp"
#include "support/gguf_builder.hpp"

using namespace vkrope::test::gguf_refusals;
using namespace vkrope;

TEST_CASE("GGUF: files of another kind are named") {
    check_refused(std::string(), VKROPE_ERROR_INVALID_DATA, "47 47 55 46");
    check_refused(std::string("PK\3\4zip"), VKROPE_ERROR_INVALID_DATA, "PK?? 50 4b 03 04");
    check_refused(std::string("ve"), VKROPE_ERROR_INVALID_DATA, "ve 76 65");
    check_refused(std::string("{\"model_type\": \"llama\"}"), VKROPE_ERROR_INVALID_DATA, "GGUF");
    GgufBuilder file = plain();
    file.version = 1;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 1");
    file.version = 4;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 4");
    file.version = 0;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 0");
    for (const std::uint32_t version : {2u, 3u}) {
        file.version = version << 24;
        check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "big-endian");
    }
    check_refused(plain().value_of("split.count", 2, GgufBuilder::little(3, 2)),
                  VKROPE_ERROR_NOT_SUPPORTED, "split.count 3");
    check_refused(plain().text_of("split.count", "3"), VKROPE_ERROR_INVALID_DATA, "split.count 3");
    const auto part = [](int bytes) {
        return plain().value_of("split.no", 2, GgufBuilder::little(std::uint64_t(bytes), 2));
    };
    check_refused(part(2), VKROPE_ERROR_NOT_SUPPORTED, "split.no 2 split.count");
    check_refused(part(2).value_of("split.count", 2, GgufBuilder::little(0, 2)),
                  VKROPE_ERROR_NOT_SUPPORTED, "split.count 0");
    const GgufBuilder whole = plain().value_of("split.count", 2, GgufBuilder::little(1, 2));
    CHECK(from_gguf(whole.file().data(), whole.file().size()));
}

TEST_CASE("GGUF: architectures without RoPE, and unknown ones") {
    for (const char* name : {"gpt2", "mpt", "bloom", "mamba", "rwkv7", "t5", "bert", "starcoder"}) {
        const std::string words = "general.architecture " + std::string(name);
        check_refused(plain(name), VKROPE_ERROR_NOT_SUPPORTED, words);
        check_refused(plain(name), VKROPE_ERROR_NOT_SUPPORTED, words,
                      {.pairing = VKROPE_HALF_SPLIT});
    }
    check_refused(plain("clip"), VKROPE_ERROR_NOT_SUPPORTED, "general.architecture clip");
    check_refused(plain("eagle3"), VKROPE_ERROR_NOT_SUPPORTED, "general.architecture eagle3");
    check_refused(plain("cohere2moe"), VKROPE_ERROR_NOT_SUPPORTED,
                  "general.architecture cohere2moe");
    check_refused(plain("nautilus"), VKROPE_ERROR_NOT_SUPPORTED, "general.architecture nautilus");
    check_refused(plain("\x1b[31m"), VKROPE_ERROR_NOT_SUPPORTED, "?[31m");
    check_refused(plain("granite").boolean("rope.scaling.finetuned", 0), VKROPE_ERROR_NOT_SUPPORTED,
                  "granite.rope.scaling.finetuned false");
    CHECK(from_gguf(plain().boolean("rope.scaling.finetuned", 0).file().data(),
                    plain().boolean("rope.scaling.finetuned", 0).file().size()));
    GgufBuilder large("baichuan");
    check_refused(large.u32("block_count", 40).u32("attention.key_length", 128),
                  VKROPE_ERROR_NOT_SUPPORTED, "baichuan.block_count 40");
    GgufBuilder none;
    check_refused(none.value_of("llama.attention.key_length", 4, GgufBuilder::little(64, 4)),
                  VKROPE_ERROR_INVALID_DATA, "general.architecture");
}

TEST_CASE("GGUF: queries that a file cannot answer") {
    check_refused(plain(), VKROPE_ERROR_INVALID_ARGUMENT, "query.tower vision",
                  {.tower = "vision"});
    check_refused(plain(), VKROPE_ERROR_INVALID_ARGUMENT, "query.seq_len",
                  {.seq_len = (std::uint64_t{1} << 31) + 1});
    check_refused(plain("gemma2"), VKROPE_ERROR_INVALID_ARGUMENT, "query.layer 1 query.layer_type",
                  {.layer_type = "full_attention", .by_layer = true, .layer = 1});
    check_refused(plain(), VKROPE_ERROR_INVALID_ARGUMENT, "query.layer 12 12",
                  {.by_layer = true, .layer = 12});
}

TEST_CASE("GGUF: keys of the wrong type, or out of range, with their rule") {
    const float infinite = std::numeric_limits<float>::infinity();
    const auto bad = [](const GgufBuilder& file, const std::string& words) {
        check_refused(file, VKROPE_ERROR_INVALID_DATA, words);
    };
    GgufBuilder base("llama");
    base.u32("attention.key_length", 128);
    bad(GgufBuilder(base).text("rope.freq_base", "big"), "llama.rope.freq_base big");
    bad(GgufBuilder(base).f32("rope.freq_base", 0), "llama.rope.freq_base 0");
    bad(GgufBuilder(base).f32("rope.freq_base", infinite), "llama.rope.freq_base inf");
    bad(GgufBuilder(base).f32("rope.freq_base", 1e-20f), "rope.freq_base");
    bad(GgufBuilder(base).boolean("rope.freq_base", 1), "llama.rope.freq_base true");
    bad(GgufBuilder(base).i32_list("rope.freq_base", {1, 2}), "llama.rope.freq_base 2");
    bad(plain().u32("rope.dimension_count", 127), "llama.rope.dimension_count 127");
    bad(plain().u32("rope.dimension_count", 130), "2 head_dim 128");
    bad(plain().u32("rope.dimension_count", 0), "llama.rope.dimension_count 0 2");
    bad(plain().f32("rope.dimension_count", 2.5f), "llama.rope.dimension_count 2.5");
    bad(plain().text("rope.scaling.factor", "4"), "llama.rope.scaling.factor 4");
    bad(plain().f32("rope.scaling.factor", -4), "llama.rope.scaling.factor -4");
    bad(plain().f32("rope.scaling.factor", 4).f32("rope.scale_linear", 2),
        "llama.rope.scale_linear 2");
    bad(plain().u32("rope.scaling.type", 2), "llama.rope.scaling.type 2");
    bad(plain().text("rope.scaling.type", std::string(300, 'x')), "llama.rope.scaling.type");
    check_refused(plain().text("rope.scaling.type", "spiral"), VKROPE_ERROR_NOT_SUPPORTED,
                  "llama.rope.scaling.type spiral");
    bad(plain().u32("rope.scaling.finetuned", 1), "llama.rope.scaling.finetuned 1");
    bad(plain().f32("rope.scaling.attn_factor", 0), "llama.rope.scaling.attn_factor 0");
    bad(plain().boolean("context_length2", 2), "llama.context_length2 2");

    const auto yarn = [] {
        return plain().text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4);
    };
    bad(yarn().f32("rope.scaling.yarn_ext_factor", 2), "ext_factor 2");
    bad(plain().text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 1e-6f),
        "attn_factor -2.62088");
    bad(yarn().f32("rope.scaling.yarn_beta_fast", -1), "llama.rope.scaling.yarn_beta_fast -1");
    bad(yarn().f32("rope.scaling.yarn_beta_slow", 64), "beta_fast 32 beta_slow");
    bad(yarn().f32("rope.scaling.yarn_log_multiplier", -1),
        "llama.rope.scaling.yarn_log_multiplier -1");
    bad(yarn().u32("rope.scaling.original_context_length", 0),
        "llama.rope.scaling.original_context_length 0");
    bad(GgufBuilder(base).text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4),
        "llama.context_length");

    GgufBuilder divided("llama");
    bad(divided, "llama.embedding_length");
    bad(divided.u32("embedding_length", 4096), "llama.attention.head_count");
    bad(divided.u32("attention.head_count", 0), "head_dim");

    GgufBuilder latent("deepseek2");
    bad(latent, "deepseek2.rope.dimension_count");
    bad(latent.u32("rope.dimension_count", 64), "deepseek2.attention.key_length");
    bad(latent.u32("attention.key_length", 32), "deepseek2.attention.kv_lora_rank");
    bad(latent.u32("attention.kv_lora_rank", 512), "2 deepseek2.attention.key_length 32");

    bad(plain("qwen2vl"), "qwen2vl.rope.dimension_sections");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {16, 24}),
        "qwen2vl.rope.dimension_sections 2 3 4");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {16, -1, 24, 0}),
        "qwen2vl.rope.dimension_sections[1] -1");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {0, 0, 0, 0}),
        "qwen2vl.rope.dimension_sections 0");
    // Channels instead of pairs; one too many; and the sections of GLM-4V in a head whose channels
    // are all rotated.
    for (const std::vector<std::int32_t>& widths :
         {std::vector<std::int32_t>{32, 48, 48, 0}, {16, 24, 25, 0}, {8, 12, 12}}) {
        bad(plain("qwen2vl").i32_list("rope.dimension_sections", widths),
            "qwen2vl.rope.dimension_sections 64");
    }
    bad(plain("glm4").i32_list("rope.dimension_sections", {8, 12, 12, 0}),
        "glm4.rope.dimension_sections 32 64");
    bad(plain("qwen3vl").i32_list("rope.dimension_sections", {24, 20, 16, 0}),
        "qwen3vl.rope.dimension_sections 60");
    bad(plain("qwen2vl").text("rope.dimension_sections", "16"),
        "qwen2vl.rope.dimension_sections 16");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {}),
        "qwen2vl.rope.dimension_sections 0");

    const auto gemma = [] { return plain("gemma4").u32("attention.sliding_window", 512); };
    bad(gemma(), "gemma4.attention.sliding_window_pattern");
    bad(gemma().boolean_list("attention.sliding_window_pattern", {true}),
        "gemma4.attention.sliding_window_pattern 1 12");
    GgufBuilder uncounted("gemma2");
    bad(uncounted.u32("attention.key_length", 128), "gemma2.block_count");
}

TEST_CASE("GGUF: tensors of divisors that are not what they should be") {
    const auto bad = [](const GgufBuilder& file, const std::string& words) {
        check_refused(file, VKROPE_ERROR_INVALID_DATA, words);
    };
    for (const std::size_t count : {63, 65})
        bad(plain().tensor("rope_freqs.weight", std::vector<float>(count, 1)),
            "freq_factors " + std::to_string(count));
    bad(plain().tensor("rope_freqs.weight", std::vector<float>(64, 0)), "freq_factors[0] 0");
    bad(plain().tensor("rope_freqs.weight", std::vector<float>(64, 1), 1), "rope_freqs.weight 1");
    bad(plain().tensor_of("rope_freqs.weight", {8, 8}, 0, 0), "rope_freqs.weight 2");
    bad(plain().tensor_of("rope_freqs.weight", {}, 0, 0), "rope_freqs.weight 0");
    bad(plain().tensor_of("rope_freqs.weight", {0}, 0, 0), "rope_freqs.weight 0");
    bad(plain().tensor_of("rope_freqs.weight", {std::uint64_t{1} << 62}, 0, 0),
        "rope_freqs.weight 4611686018427387904");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 4), "general.alignment");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 32), "rope_freqs.weight");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, ~std::uint64_t{31}), "rope_freqs.weight");
    bad(plain().tensor_of("any", {1, 1, 1, 1, 1}, 0, 0), "any 5");
    bad(plain()
            .tensor("rope_freqs.weight", std::vector<float>(64, 1))
            .tensor("rope_freqs.weight", std::vector<float>(64, 1)),
        "rope_freqs.weight");
    bad(plain().tensor("rope_factors_long.weight", std::vector<float>(64, 1)),
        "rope_factors_short.weight");
    bad(plain().tensor("rope_factors_short.weight", std::vector<float>(64, 1)),
        "rope_factors_long.weight");
    bad(plain().text("rope.scaling.type", "longrope"), "rope_factors_long.weight");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(0, 4)),
        "general.alignment 0 uint32");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(48, 4)),
        "general.alignment 48 uint32");
    bad(plain().text_of("general.alignment", "32"), "general.alignment");
}

TEST_CASE("GGUF: a key that is given twice") {
    check_refused(plain().u32("block_count", 12), VKROPE_ERROR_INVALID_DATA, "llama.block_count");
    check_refused(plain().text_of("general.architecture", "llama"), VKROPE_ERROR_INVALID_DATA,
                  "general.architecture");
}
