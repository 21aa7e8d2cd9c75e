// SPDX-License-Identifier: MIT
// GGUF files that must not become a Rotation: unsupported ones by name, broken ones with key,
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
    check_refused(std::string(), Code::invalid_data,
                  "does not begin with GGUF, the bytes 47 47 55 46: it begins with \"\", nothing");
    check_refused(std::string("PK\3\4zip"), Code::invalid_data,
                  "it begins with \"PK??\", 50 4b 03 04");
    check_refused(std::string("ve"), Code::invalid_data,
                  "it begins with \"ve\", 76 65, so it is not a GGUF file");
    check_refused(std::string("{\"model_type\": \"llama\"}"), Code::invalid_data,
                  "does not begin with GGUF");
    GgufBuilder file = plain();
    file.version = 1;
    check_refused(file, Code::not_supported, "version 1");
    file.version = 4;
    check_refused(file, Code::not_supported, "version 4");
    file.version = 0;
    check_refused(file, Code::not_supported, "version 0");
    for (const std::uint32_t version : {2u, 3u}) {
        file.version = version << 24;
        check_refused(file, Code::not_supported, "big-endian");
    }
    check_refused(plain().value_of("split.count", 2, GgufBuilder::little(3, 2)),
                  Code::not_supported, "split.count is 3");
    check_refused(plain().text_of("split.count", "3"), Code::invalid_data,
                  "split.count is \"3\" (string)");
    const auto part = [](int bytes) {
        return plain().value_of("split.no", 2, GgufBuilder::little(std::uint64_t(bytes), 2));
    };
    check_refused(part(2), Code::not_supported, "split.no is 2 and split.count is missing");
    check_refused(part(2).value_of("split.count", 2, GgufBuilder::little(0, 2)),
                  Code::not_supported, "and split.count is 0");
    const GgufBuilder whole = plain().value_of("split.count", 2, GgufBuilder::little(1, 2));
    CHECK(from_gguf(whole.file().data(), whole.file().size()));
}

TEST_CASE("GGUF: architectures without RoPE, and unknown ones") {
    for (const char* name : {"gpt2", "mpt", "bloom", "mamba", "rwkv7", "t5", "bert", "starcoder"}) {
        check_refused(
            plain(name), Code::not_supported,
            std::string("general.architecture is \"") + name + "\": the model has no rotary");
        check_refused(plain(name), Code::not_supported, name, {.pairing = Pairing::half_split});
    }
    check_refused(plain("clip"), Code::not_supported, "it is not a language model");
    check_refused(plain("eagle3"), Code::not_supported, "it is a draft of another model");
    check_refused(plain("cohere2moe"), Code::not_supported, "its first dense layers turn");
    check_refused(plain("nautilus"), Code::not_supported, "\"nautilus\", which is unknown");
    check_refused(plain("\x1b[31m"), Code::not_supported, "?[31m");
    check_refused(plain("granite").boolean("rope.scaling.finetuned", 0), Code::not_supported,
                  "granite.rope.scaling.finetuned is false");
    CHECK(from_gguf(plain().boolean("rope.scaling.finetuned", 0).file().data(),
                    plain().boolean("rope.scaling.finetuned", 0).file().size()));
    GgufBuilder large("baichuan");
    check_refused(large.u32("block_count", 40).u32("attention.key_length", 128),
                  Code::not_supported, "ALiBi");
    GgufBuilder none;
    check_refused(none.value_of("llama.attention.key_length", 4, GgufBuilder::little(64, 4)),
                  Code::invalid_data, "general.architecture is missing");
}

TEST_CASE("GGUF: queries that a file cannot answer") {
    check_refused(plain(), Code::invalid_argument, "tower is 'vision'", {.tower = "vision"});
    check_refused(plain(), Code::invalid_argument, "seq_len",
                  {.seq_len = (std::uint64_t{1} << 31) + 1});
    check_refused(plain("gemma2"), Code::invalid_argument, "only one of them",
                  {.layer_type = "full_attention", .layer = 1});
    check_refused(plain(), Code::invalid_argument, "the model has only 12 layers", {.layer = 12});
}

TEST_CASE("GGUF: keys of the wrong type, or out of range, with their rule") {
    const float infinite = std::numeric_limits<float>::infinity();
    const auto bad = [](const GgufBuilder& file, const char* text) {
        check_refused(file, Code::invalid_data, text);
    };
    GgufBuilder base("llama");
    base.u32("attention.key_length", 128);
    bad(GgufBuilder(base).text("rope.freq_base", "big"),
        "llama.rope.freq_base is \"big\" (string): it must be a finite number above 0");
    bad(GgufBuilder(base).f32("rope.freq_base", 0), "llama.rope.freq_base is 0 (float32)");
    bad(GgufBuilder(base).f32("rope.freq_base", infinite), "llama.rope.freq_base is inf (float32)");
    bad(GgufBuilder(base).f32("rope.freq_base", 1e-20f), "radians per position");
    bad(GgufBuilder(base).boolean("rope.freq_base", 1), "llama.rope.freq_base is 1 (boolean)");
    bad(GgufBuilder(base).i32_list("rope.freq_base", {1, 2}),
        "llama.rope.freq_base is of 2 elements (array)");
    bad(plain().u32("rope.dimension_count", 127),
        "llama.rope.dimension_count is 127: it must be even");
    bad(plain().u32("rope.dimension_count", 130), "2 to head_dim, which is 128");
    bad(plain().u32("rope.dimension_count", 0),
        "llama.rope.dimension_count is 0 (uint32): it must be a whole number from 2");
    bad(plain().f32("rope.dimension_count", 2.5f), "llama.rope.dimension_count is 2.5 (float32)");
    bad(plain().text("rope.scaling.factor", "4"), "llama.rope.scaling.factor is \"4\" (string)");
    bad(plain().f32("rope.scaling.factor", -4), "llama.rope.scaling.factor is -4");
    bad(plain().f32("rope.scaling.factor", 4).f32("rope.scale_linear", 2), "they must agree");
    bad(plain().u32("rope.scaling.type", 2),
        "llama.rope.scaling.type is 2 (uint32): it must be a short string");
    bad(plain().text("rope.scaling.type", std::string(300, 'x')),
        "llama.rope.scaling.type is too long");
    check_refused(plain().text("rope.scaling.type", "spiral"), Code::not_supported,
                  "llama.rope.scaling.type is \"spiral\"");
    bad(plain().u32("rope.scaling.finetuned", 1),
        "llama.rope.scaling.finetuned is 1 (uint32): it must be true or false");
    bad(plain().f32("rope.scaling.attn_factor", 0), "llama.rope.scaling.attn_factor is 0");
    bad(plain().boolean("context_length2", 2), "is a boolean of 2");

    const auto yarn = [] {
        return plain().text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4);
    };
    bad(yarn().f32("rope.scaling.yarn_ext_factor", 2), "ext_factor is 2");
    bad(plain().text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 1e-6f),
        "attn_factor is -2.62");
    bad(yarn().f32("rope.scaling.yarn_beta_fast", -1), "llama.rope.scaling.yarn_beta_fast is -1");
    bad(yarn().f32("rope.scaling.yarn_beta_slow", 64),
        "beta_fast is 32: it must be at least beta_slow");
    bad(yarn().f32("rope.scaling.yarn_log_multiplier", -1),
        "llama.rope.scaling.yarn_log_multiplier is -1");
    bad(yarn().u32("rope.scaling.original_context_length", 0),
        "llama.rope.scaling.original_context_length is 0");
    bad(GgufBuilder(base).text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4),
        "llama.context_length is missing");

    GgufBuilder divided("llama");
    bad(divided, "llama.embedding_length is missing");
    bad(divided.u32("embedding_length", 4096), "llama.attention.head_count is missing");
    bad(divided.u32("attention.head_count", 0), "their quotient, head_dim");

    GgufBuilder latent("deepseek2");
    bad(latent, "deepseek2.rope.dimension_count is missing");
    bad(latent.u32("rope.dimension_count", 64), "deepseek2.attention.key_length is missing");
    bad(latent.u32("attention.key_length", 32), "deepseek2.attention.kv_lora_rank is missing");
    bad(latent.u32("attention.kv_lora_rank", 512),
        "2 to deepseek2.attention.key_length, which is 32");

    bad(plain("qwen2vl"), "qwen2vl.rope.dimension_sections is missing");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {16, 24}),
        "has 2 elements: it must have 3 or 4");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {16, -1, 24, 0}),
        "qwen2vl.rope.dimension_sections[1] is -1");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {0, 0, 0, 0}), "adds up to 0");
    // Channels instead of pairs; one too many; and the sections of GLM-4V in a head whose channels
    // are all rotated.
    for (const std::vector<std::int32_t>& widths :
         {std::vector<std::int32_t>{32, 48, 48, 0}, {16, 24, 25, 0}, {8, 12, 12}}) {
        bad(plain("qwen2vl").i32_list("rope.dimension_sections", widths),
            "it must be half of the rotated channels, 64");
    }
    bad(plain("glm4").i32_list("rope.dimension_sections", {8, 12, 12, 0}),
        "adds up to 32: it must be half of the rotated channels, 64");
    bad(plain("qwen3vl").i32_list("rope.dimension_sections", {24, 20, 16, 0}), "adds up to 60");
    bad(plain("qwen2vl").text("rope.dimension_sections", "16"),
        "qwen2vl.rope.dimension_sections is \"16\" (string)");
    bad(plain("qwen2vl").i32_list("rope.dimension_sections", {}),
        "qwen2vl.rope.dimension_sections is of 0 elements (array)");

    const auto gemma = [] { return plain("gemma4").u32("attention.sliding_window", 512); };
    bad(gemma(), "gemma4.attention.sliding_window_pattern is missing");
    bad(gemma().boolean_list("attention.sliding_window_pattern", {true}),
        "has 1 elements: it must have one a layer, 12");
    GgufBuilder uncounted("gemma2");
    bad(uncounted.u32("attention.key_length", 128), "gemma2.block_count is missing");
}

TEST_CASE("GGUF: tensors of divisors that are not what they should be") {
    const auto bad = [](const GgufBuilder& file, const char* text) {
        check_refused(file, Code::invalid_data, text);
    };
    for (const std::size_t count : {63, 65}) {
        const std::string text = "freq_factors has " + std::to_string(count) + " elements";
        bad(plain().tensor("rope_freqs.weight", std::vector<float>(count, 1)), text.c_str());
    }
    bad(plain().tensor("rope_freqs.weight", std::vector<float>(64, 0)), "freq_factors[0] is 0");
    bad(plain().tensor("rope_freqs.weight", std::vector<float>(64, 1), 1), "the type 1");
    bad(plain().tensor_of("rope_freqs.weight", {8, 8}, 0, 0), "has 2 dimensions");
    bad(plain().tensor_of("rope_freqs.weight", {}, 0, 0), "has 0 dimensions");
    bad(plain().tensor_of("rope_freqs.weight", {0}, 0, 0), "0 elements");
    bad(plain().tensor_of("rope_freqs.weight", {std::uint64_t{1} << 62}, 0, 0), "elements");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 4), "multiple of general.alignment");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 32), "is cut off");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, ~std::uint64_t{31}), "is cut off");
    bad(plain().tensor_of("any", {1, 1, 1, 1, 1}, 0, 0), "has 5 dimensions");
    bad(plain()
            .tensor("rope_freqs.weight", std::vector<float>(64, 1))
            .tensor("rope_freqs.weight", std::vector<float>(64, 1)),
        "given twice");
    bad(plain().tensor("rope_factors_long.weight", std::vector<float>(64, 1)),
        "rope_factors_short.weight is missing");
    bad(plain().tensor("rope_factors_short.weight", std::vector<float>(64, 1)),
        "rope_factors_long.weight is missing");
    bad(plain().text("rope.scaling.type", "longrope"), "longrope needs them");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(0, 4)),
        "general.alignment is a uint32 of 0");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(48, 4)),
        "general.alignment is a uint32 of 48");
    bad(plain().text_of("general.alignment", "32"), "general.alignment is a string");
}

TEST_CASE("GGUF: a key that is given twice") {
    check_refused(plain().u32("block_count", 12), Code::invalid_data,
                  "llama.block_count is given twice");
    check_refused(plain().text_of("general.architecture", "llama"), Code::invalid_data,
                  "general.architecture is given twice");
}
