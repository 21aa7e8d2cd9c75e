// SPDX-License-Identifier: MIT
// GGUF files whose layers differ, and sections.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("GGUF: layers of several types") {
    GgufBuilder gemma = plain("gemma3");
    gemma.u32("attention.sliding_window", 1024).f32("rope.scaling.factor", 8);
    const std::vector<double> local = frequencies(10000, 128);
    double unused = 0;
    const std::vector<double> full = scaled(500000, 128, {.freq_scale = 0.125}, unused);
    CHECK(rotation_of(gemma).inv_freq == full);
    CHECK(warns(rotation_of(gemma), "full_attention"));
    CHECK(rotation_of(gemma, {.layer_type = "full_attention"}).inv_freq == full);
    const RopeParams sliding = rotation_of(gemma, {.layer_type = "sliding_attention"});
    CHECK(sliding.inv_freq == local);
    CHECK(warns(sliding, "gemma3.rope.freq_base_swa 10000"));
    for (int layer = 0; layer < 12; ++layer) {
        CAPTURE(layer);
        CHECK(rotation_of(gemma, {.by_layer = true, .layer = std::uint32_t(layer)}).inv_freq ==
              (layer % 6 == 5 ? full : local));
    }
    CHECK(rotation_of(gemma, {.by_layer = true, .layer = 5}).warnings.empty());
    CHECK(read(gemma, {.by_layer = true, .layer = 12}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(read(gemma, {.layer_type = "chunked_attention"}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(read(plain(), {.layer_type = "full_attention"}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(rotation_of(GgufBuilder(gemma).f32("rope.freq_base_swa", 20000),
                      {.by_layer = true, .layer = 0})
              .inv_freq == frequencies(20000, 128));
    CHECK(rotation_of(GgufBuilder(gemma).f32("rope.freq_base_swa", 20000),
                      {.by_layer = true, .layer = 5})
              .warnings.empty());
    CHECK(rotation_of(GgufBuilder(gemma).u32("attention.sliding_window_pattern", 2),
                      {.by_layer = true, .layer = 1})
              .inv_freq == full);
    CHECK(rotation_of(plain("gemma3"), {.by_layer = true, .layer = 0}).inv_freq ==
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
    const RopeParams first = rotation_of(four, {.by_layer = true, .layer = 0}),
                     last = rotation_of(four, {.by_layer = true, .layer = 2});
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
    const RopeParams window = rotation_of(olmo, {.by_layer = true, .layer = 0});
    CHECK(window.inv_freq == frequencies(500000, 128));
    CHECK(window.attention_factor == 1);
    CHECK(window.warnings.empty());
    CHECK(rotation_of(olmo, {.by_layer = true, .layer = 3}).rope_type == "yarn");
}

TEST_CASE("GGUF: layers that do not rotate") {
    const auto turns = [](const GgufBuilder& file, int layer) {
        const RopeParams rotation = rotation_of(file,
                                                {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(!rotation.no_rope == (rotation.rotary_dim != 0));
        CHECK(!rotation.no_rope != rotation.inv_freq.empty());
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.warnings.empty());
        return !rotation.no_rope;
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
    CHECK_FALSE(rotation_of(llama4, {.layer_type = "chunked_attention"}).no_rope);
    CHECK(rotation_of(llama4, {.layer_type = "full_attention"}).no_rope);
    CHECK_FALSE(rotation_of(llama4).no_rope);
}

TEST_CASE("GGUF: sections") {
    const GgufBuilder two = plain("qwen2vl").i32_list("rope.dimension_sections", {16, 24, 24, 0});
    RopeParams rotation = rotation_of(two);
    CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
    CHECK(rotation.sections.order == VKROPE_SECTIONS_SEQUENTIAL);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.sections.pairs[0] == 16);
    CHECK(rotation.sections.pairs[1] == 24);
    CHECK(rotation.sections.pairs[2] == 24);
    CHECK(rotation.warnings.empty());

    // Pairs 61 and 62 are beyond the 20 of height and of width: 61 = 3 * 20 + 1.
    rotation = rotation_of(plain("qwen3vl").i32_list("rope.dimension_sections", {24, 20, 20, 0}));
    CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
    CHECK(rotation.sections.order == VKROPE_SECTIONS_INTERLEAVED);
    CHECK(rotation.sections.axes == 4);
    CHECK(rotation.sections.leftover_axis == 3);
    CHECK(warns(rotation, "pairs 2"));

    // The first pair beyond the sections: pair 3 = 3 * 1.
    GgufBuilder narrow("qwen3vl");
    rotation = rotation_of(
        narrow.u32("attention.key_length", 8).i32_list("rope.dimension_sections", {1, 2, 1, 0}));
    CHECK(warns(rotation, "pairs 1"));

    GgufBuilder qwen("qwen35");
    qwen.u32("block_count", 4)
        .u32("attention.key_length", 256)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 1e7f);
    rotation = rotation_of(qwen.i32_list("rope.dimension_sections", {11, 11, 10, 0}),
                           {.by_layer = true, .layer = 3});
    CHECK(rotation.sections.order == VKROPE_SECTIONS_INTERLEAVED);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.warnings.empty());

    // GLM-4.1V: half of 128 channels are rotated, which are 32 pairs.
    GgufBuilder glm("glm4");
    glm.u32("block_count", 40)
        .u32("attention.key_length", 128)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", 10000);
    rotation = rotation_of(glm.i32_list("rope.dimension_sections", {8, 12, 12, 0}));
    CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.warnings.empty());
    CHECK(warns(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {64, 0, 0, 0})),
                "glm4.rope.dimension_sections 0"));
    CHECK(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {0, 0, 0, 0}))
              .warnings.empty());
    CHECK(rotation_of(plain("glm4").i32_list("rope.dimension_sections", {0, 0, 0, 0}))
              .sections.axes == 0);
    CHECK(rotation_of(plain("glm4")).sections.axes == 0);
    CHECK(warns(rotation_of(plain().i32_list("rope.dimension_sections", {8, 12, 12, 0})),
                "llama.rope.dimension_sections"));
}

TEST_CASE("GGUF: a key that names RoPE, YaRN or a scale of the queries and is not read is named") {
    for (const char* key :
         {"rope.new_key", "attention.rope_pattern", "yarn.factor", "attention.temperature_scale"}) {
        CHECK(warns(rotation_of(plain().u32(key, 4)), "llama." + std::string(key)));
    }
    CHECK(rotation_of(plain().u32("attention.scale", 4)).warnings.empty());
}
