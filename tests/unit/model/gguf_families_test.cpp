// SPDX-License-Identifier: MIT
// GGUF architectures with rules of their own: what their builders in llama.cpp's src/models compute
// for each layer.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gguf_reading.hpp"
#include "meaning.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

void check_refused(const GgufBuilder& file, const std::string& words) {
    check_error(read(file).status, VKROPE_ERROR_INVALID_DATA, words);
}

GgufBuilder deepseek4(const std::vector<std::int32_t>& ratios) {
    GgufBuilder file("deepseek4");
    file.u32("block_count", 4).u32("context_length", 1048576).u32("attention.key_length", 512);
    file.u32("rope.dimension_count", 64).f32("rope.freq_base", 10000);
    file.f32("attention.compress_rope_freq_base", 160000);
    file.i32_list("attention.compress_ratios", ratios);
    file.text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 16);
    file.u32("rope.scaling.original_context_length", 65536);
    return file;
}

}  // namespace

TEST_CASE("GGUF: DeepSeek V4's two bases, and YaRN without a magnitude") {
    const GgufBuilder file = deepseek4({0, 4, 128, 0, 0});  // one more, for a further token
    double magnitude = 0;
    const std::vector<double> compressed = scaled(160000, 64,
                                                  {.freq_scale = 1 / 16.0,
                                                   .ext_factor = 1,
                                                   .beta_fast = 32,
                                                   .beta_slow = 1,
                                                   .n_ctx_orig = 65536},
                                                  magnitude);
    CHECK(magnitude > 1.2);
    for (int layer = 0; layer < 4; ++layer) {
        CAPTURE(layer);
        const bool plain_layer = layer % 3 == 0;
        const RopeParams rotation = rotation_of(file,
                                                {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(rotation.pairing == VKROPE_INTERLEAVED);
        CHECK(rotation.head_dim == 512);
        CHECK(rotation.rotary_dim == 64);
        CHECK(rotation.q_rotary_offset == 448);
        CHECK(rotation.k_rotary_offset == 448);
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.softmax_scale == 1);
        CHECK(rotation.inv_freq == (plain_layer ? frequencies(10000, 64) : compressed));
    }
    CHECK(rotation_of(file, {.layer_type = "heavily_compressed_attention"}).base == 160000);
    CHECK(warns(rotation_of(file), "sliding_attention"));
    check_refused(deepseek4({0, 4, 64, 0}), "deepseek4.attention.compress_ratios[2] 64 0 4 128");
    check_refused(deepseek4({0, 4}), "deepseek4.attention.compress_ratios 2");
    GgufBuilder without("deepseek4");
    check_refused(without.u32("block_count", 4), "deepseek4.attention.compress_ratios");
}

TEST_CASE("GGUF: Step 3.5 turns half of the channels, with divisors, where attention is full") {
    GgufBuilder file("step35");
    file.u32("block_count", 4).u32("attention.key_length", 128).u32("rope.dimension_count", 128);
    file.f32("rope.freq_base", 5e6f).f32("rope.freq_base_swa", 10000);
    file.u32("attention.sliding_window", 512);
    file.boolean_list("attention.sliding_window_pattern", {false, true, true, true});
    GgufBuilder scaled_file = file;
    scaled_file.tensor("rope_freqs.weight", std::vector<float>(64, 2.0f));
    for (int layer = 0; layer < 4; ++layer) {
        CAPTURE(layer);
        const RopeParams rotation = rotation_of(file,
                                                {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.warnings.empty());
        CHECK(rotation.inv_freq == (layer == 0 ? frequencies(5e6, 64) : frequencies(10000, 128)));
        std::vector<double> divided = rotation.inv_freq;
        for (double& each : divided) each /= layer == 0 ? 2 : 1;
        CHECK(
            rotation_of(scaled_file, {.by_layer = true, .layer = std::uint32_t(layer)}).inv_freq ==
            divided);
    }
    GgufBuilder odd("step35");
    odd.u32("block_count", 1).u32("attention.key_length", 128).u32("rope.dimension_count", 6);
    check_refused(odd.boolean_list("attention.sliding_window_pattern", {false}),
                  "step35.rope.dimension_count 6");
    GgufBuilder without("step35");
    check_refused(without.u32("block_count", 4), "step35.attention.sliding_window_pattern");
}

TEST_CASE("GGUF: lists of layers with RoPE and of recurrent layers") {
    GgufBuilder granite = plain("granite_swa").u32("attention.sliding_window", 128);
    std::vector<bool> slide(12, true), rotate(12, true);
    slide[0] = slide[4] = rotate[4] = rotate[11] = false;
    granite.boolean_list("attention.sliding_window_pattern", slide);
    for (int layer = 0; layer < 12; ++layer) {
        CHECK_FALSE(
            rotation_of(granite, {.by_layer = true, .layer = std::uint32_t(layer)}).no_rope);
    }
    GgufBuilder some = granite;
    some.boolean_list("attention.rope_pattern", rotate);
    for (int layer = 0; layer < 12; ++layer) {
        CAPTURE(layer);
        CHECK(rotation_of(some, {.by_layer = true, .layer = std::uint32_t(layer)}).no_rope !=
              rotate[std::size_t(layer)]);
    }
    CHECK_FALSE(rotation_of(some).no_rope);
    CHECK(warns(rotation_of(some), "full_attention"));
    rotate[0] = false;
    GgufBuilder sliding = granite;
    sliding.boolean_list("attention.rope_pattern", rotate);
    CHECK(rotation_of(sliding, {.layer_type = "full_attention"}).no_rope);
    CHECK(warns(rotation_of(sliding), "sliding_attention"));
    GgufBuilder few = granite;
    check_refused(few.boolean_list("attention.rope_pattern", {true}),
                  "granite_swa.attention.rope_pattern 1 12");

    GgufBuilder qwen = plain("qwen4exp").i32_list("rope.dimension_sections", {24, 20, 20, 0});
    CHECK(rotation_of(qwen, {.by_layer = true, .layer = 3}).sections.order ==
          VKROPE_SECTIONS_INTERLEAVED);
    CHECK(rotation_of(qwen, {.by_layer = true, .layer = 4}).no_rope);
    std::vector<bool> recurrent(12, false);
    recurrent[3] = true;
    qwen.boolean_list("attention.recurrent_layers", recurrent);
    CHECK(rotation_of(qwen, {.by_layer = true, .layer = 3}).no_rope);
    CHECK_FALSE(rotation_of(qwen, {.by_layer = true, .layer = 4}).no_rope);
}

TEST_CASE("GGUF: architectures that differ from Llama by their pairs alone") {
    for (const char* name : {"deepseek2-ocr", "hrm_text", "hy_v3", "minimax-m3"}) {
        const RopeParams rotation = rotation_of(plain(name));
        CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
        CHECK(rotation.inv_freq == frequencies(500000, 128));
        CHECK(rotation.warnings.empty());
    }
    for (const char* name : {"axk2", "bailingmoe3", "deepseek32", "hy_v4"}) {
        GgufBuilder file(name);
        file.u32("block_count", 2).u32("attention.key_length_mla", 192);
        file.u32("attention.kv_lora_rank", 512).u32("rope.dimension_count", 64);
        file.f32("rope.freq_base", 10000).i32_list("attention.head_count_kv", {0, 1});
        const RopeParams rotation = rotation_of(file, {.by_layer = true, .layer = 1});
        CHECK(rotation.pairing == VKROPE_INTERLEAVED);
        CHECK(rotation.q_rotary_offset == 128);
        CHECK(rotation.k_rotary_offset == 512);
        CHECK(rotation_of(file, {.by_layer = true, .layer = 0}).no_rope);
    }
}

TEST_CASE("GGUF: Clef turns as Qwen 3.5, whose layers it has") {
    const GgufBuilder clef = plain("clef").i32_list("rope.dimension_sections", {24, 20, 20, 0});
    const GgufBuilder qwen = plain("qwen35").i32_list("rope.dimension_sections", {24, 20, 20, 0});
    for (int layer = 0; layer < 12; ++layer) {
        CAPTURE(layer);
        const RopeParams ours = rotation_of(clef,
                                            {.by_layer = true, .layer = std::uint32_t(layer)});
        const RopeParams theirs = rotation_of(qwen,
                                              {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(!ours.no_rope == (layer % 4 == 3));
        CHECK(ours.pairing == theirs.pairing);
        CHECK(ours.sections == theirs.sections);
        CHECK(ours.inv_freq == theirs.inv_freq);
    }
}

TEST_CASE("GGUF: YaRN's magnitude goes into the softmax of A.X K2, not of Hunyuan V4") {
    const auto scaled_file = [](const char* name) {
        GgufBuilder file(name);
        file.u32("block_count", 2).u32("attention.key_length_mla", 192);
        file.u32("attention.kv_lora_rank", 512).u32("rope.dimension_count", 64);
        file.f32("rope.freq_base", 10000).text("rope.scaling.type", "yarn");
        file.f32("rope.scaling.factor", 40).u32("rope.scaling.original_context_length", 4096);
        return file.f32("rope.scaling.yarn_log_multiplier", 0.1f);
    };
    // axk2.cpp multiplies the scores by (1 + 0.1 ln 40)^2.
    const double magnitude = 1 + 0.1 * std::log(40.0);
    CHECK(rotation_of(scaled_file("axk2")).softmax_scale ==
          doctest::Approx(magnitude * magnitude).epsilon(1e-6));
    CHECK(rotation_of(scaled_file("hy_v4")).softmax_scale == 1);
}

TEST_CASE("GGUF: Granite Switch rotates unless rope.scaling.finetuned says no") {
    CHECK(rotation_of(plain("graniteswitch")).pairing == VKROPE_INTERLEAVED);
    CHECK_FALSE(
        rotation_of(plain("graniteswitch").boolean("rope.scaling.finetuned", true)).no_rope);
    const GgufBuilder without = plain("graniteswitch").boolean("rope.scaling.finetuned", false);
    CHECK(read(without).status.code == VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("GGUF: what is not known of an architecture is named") {
    for (const char* name : {"deepseek41", "falcon-ocr", "gigachat35", "glm5next"})
        check_error(read(plain(name)).status, VKROPE_ERROR_NOT_SUPPORTED,
                    "general.architecture " + std::string(name));
}
