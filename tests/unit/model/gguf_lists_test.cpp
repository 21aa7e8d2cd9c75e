// SPDX-License-Identifier: MIT
// GGUF files that list, for each layer, a number that others have once; and keys that nobody reads.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

/// A model with four layers, without a base and a rotary_dim.
GgufBuilder four_layers(const std::string& architecture) {
    GgufBuilder file(architecture);
    return file.u32("block_count", 4).u32("context_length", 8192);
}

/// Layers 0 to 2 slide.
GgufBuilder sliding(const std::string& architecture = "gemma3") {
    return four_layers(architecture)
        .u32("attention.sliding_window", 512)
        .u32("attention.sliding_window_pattern", 4);
}

void refused(const GgufBuilder& file, const std::string& words, const ModelQuery& query = {},
             ErrorCode code = VKROPE_ERROR_INVALID_DATA) {
    CAPTURE(words);
    check_error(read(file, query).status, code, words);
}

const ModelQuery full = {.layer_type = "full_attention"},
                 slides = {.layer_type = "sliding_attention"};

}  // namespace

TEST_CASE("GGUF: bases, widths of heads and of rotations may be listed by layer") {
    const GgufBuilder gemma = sliding()
                                  .f32_list("rope.freq_base", {1e4f, 1e4f, 1e4f, 1e6f})
                                  .i32_list("attention.key_length", {256, 256, 256, 512})
                                  .i32_list("rope.dimension_count", {256, 256, 256, 128});
    for (int layer = 0; layer < 4; ++layer) {
        CAPTURE(layer);
        const RopeParams rotation = rotation_of(gemma,
                                                {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(rotation.head_dim == (layer == 3 ? 512 : 256));
        CHECK(rotation.inv_freq == (layer == 3 ? frequencies(1e6, 128) : frequencies(1e4, 256)));
        CHECK(rotation.warnings.empty());
    }
    CHECK(rotation_of(gemma, full).inv_freq == frequencies(1e6, 128));
    CHECK(rotation_of(gemma, slides).inv_freq == frequencies(1e4, 256));
    // A list whose entries agree is the single number.
    const GgufBuilder llama = four_layers("llama").u32("attention.key_length", 128);
    CHECK(rotation_of(GgufBuilder(llama).f32_list("rope.freq_base", {5e5f, 5e5f, 5e5f, 5e5f}))
              .inv_freq == frequencies(5e5, 128));
    const GgufBuilder two = GgufBuilder(llama).f32_list("rope.freq_base", {1e4f, 1e4f, 5e5f, 1e4f});
    refused(two, "llama.rope.freq_base 10000 500000", {}, VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(rotation_of(two, {.by_layer = true, .layer = 2}).inv_freq == frequencies(5e5, 128));
    CHECK(rotation_of(two, {.by_layer = true, .layer = 3}).inv_freq == frequencies(1e4, 128));
}

TEST_CASE("GGUF: rows of latent attention may be listed by layer") {
    GgufBuilder latent = four_layers("deepseek2").f32("rope.freq_base", 1e4f);
    latent.i32_list("rope.dimension_count", {64, 64, 64, 64})
        .i32_list("attention.key_length_mla", {192, 192, 192, 256})
        .i32_list("attention.kv_lora_rank", {512, 512, 512, 512})
        .u32("attention.key_length", 576);
    CHECK(rotation_of(latent, {.by_layer = true, .layer = 0}).q_rotary_offset == 128);
    CHECK(rotation_of(latent, {.by_layer = true, .layer = 3}).q_rotary_offset == 192);
    CHECK(rotation_of(latent, {.by_layer = true, .layer = 3}).k_rotary_offset == 512);
    refused(latent, "deepseek2.attention.key_length_mla 192 256", {},
            VKROPE_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("GGUF: a single number beside a list is that of some layer, or an error with both") {
    const GgufBuilder gemma = sliding()
                                  .u32("attention.key_length", 128)
                                  .f32_list("rope.freq_base", {1e4f, 1e4f, 1e4f, 1e6f});
    const GgufBuilder agrees = GgufBuilder(gemma).f32("rope.freq_base_swa", 1e4f);
    CHECK(rotation_of(agrees, full).inv_freq == frequencies(1e6, 128));
    CHECK(rotation_of(agrees, slides).inv_freq == frequencies(1e4, 128));
    const GgufBuilder none = GgufBuilder(gemma).f32("rope.freq_base_swa", 2e4f);
    refused(none, "gemma3.rope.freq_base_swa 20000 gemma3.rope.freq_base 10000", slides);
    refused(none, "gemma3.rope.freq_base_swa 20000 gemma3.rope.freq_base 1000000", full);
    const GgufBuilder of_others = GgufBuilder(gemma).f32("rope.freq_base_swa", 1e6f);
    refused(of_others, "gemma3.rope.freq_base_swa 1000000 gemma3.rope.freq_base 10000", slides);
    const GgufBuilder rows = sliding()
                                 .f32("rope.freq_base", 1e6f)
                                 .f32("rope.freq_base_swa", 1e4f)
                                 .i32_list("attention.key_length", {256, 256, 256, 512});
    CHECK(rotation_of(GgufBuilder(rows).u32("attention.key_length_swa", 256), full).head_dim ==
          512);
    refused(GgufBuilder(rows).u32("attention.key_length_swa", 128),
            "gemma3.attention.key_length_swa 128 gemma3.attention.key_length 256", slides);
}

TEST_CASE("GGUF: lists whose names end in _per_layer, where a 0 is the other key's number") {
    const GgufBuilder step = sliding("step35")
                                 .u32("attention.key_length", 128)
                                 .u32("rope.dimension_count", 128)
                                 .f32("rope.freq_base", 5e6f)
                                 .f32("rope.freq_base_swa", 1e4f);
    CHECK(rotation_of(step, full).rotary_dim == 64);  // half, in this architecture
    GgufBuilder listed = step;
    listed.i32_list("rope.dimension_count_per_layer", {128, 128, 0, 32})
        .f32_list("rope.freq_base_per_layer", {1e4f, 1e4f, 0, 5e6f});
    CHECK(rotation_of(listed, full).inv_freq == frequencies(5e6, 32));
    CHECK(rotation_of(listed, slides).inv_freq == frequencies(1e4, 128));
    CHECK(rotation_of(listed, {.by_layer = true, .layer = 2}).inv_freq == frequencies(1e4, 128));
    GgufBuilder other = step;
    other.f32_list("rope.freq_base_per_layer", {1e4f, 1e4f, 1e4f, 1e6f});
    refused(other, "step35.rope.freq_base 5000000 step35.rope.freq_base_per_layer 1000000", full);
}

TEST_CASE("GGUF: a 0 in a list of bases or widths is a layer without RoPE") {
    const GgufBuilder llama = four_layers("llama").u32("attention.key_length", 128);
    for (const GgufBuilder& file :
         {GgufBuilder(llama).f32_list("rope.freq_base", {1e4f, 1e4f, 1e4f, 0}),
          GgufBuilder(llama)
              .f32("rope.freq_base", 1e4f)
              .i32_list("rope.dimension_count", {128, 128, 128, 0})}) {
        CHECK(rotation_of(file, {.by_layer = true, .layer = 2}).inv_freq == frequencies(1e4, 128));
        const RopeParams still = rotation_of(file, {.by_layer = true, .layer = 3});
        CHECK(still.no_rope);
        CHECK(still.head_dim == 128);
        CHECK(warns(rotation_of(file), "layers no RoPE"));
    }
}

TEST_CASE("GGUF: lists of a wrong length or of wrong numbers are refused by name") {
    const GgufBuilder llama = four_layers("llama").u32("attention.key_length", 128);
    refused(GgufBuilder(llama).f32_list("rope.freq_base", {1e4f, 1e4f}),
            "llama.rope.freq_base 2 4");
    refused(GgufBuilder(llama).f32_list("rope.freq_base", {1e4f, -1, 1e4f, 1e4f}),
            "llama.rope.freq_base[1] -1");
    refused(GgufBuilder(llama).i32_list("rope.dimension_count", {128, 128, 128, 63}),
            "llama.rope.dimension_count 63", {.by_layer = true, .layer = 3});
    refused(four_layers("llama").i32_list("attention.key_length", {128, 128, 128}),
            "llama.attention.key_length 3 4");
    GgufBuilder uncounted("llama");
    refused(uncounted.i32_list("attention.key_length", {128}), "llama.attention.key_length 1");
}

TEST_CASE("GGUF: a key of norms, scaling or layers that nobody reads is named in every layer") {
    for (const char* key :
         {"attention.qk_norm", "attention.use_qk_norm", "attention.q_norm", "qk_layernorm",
          "attention.normalize_qk", "attention.key_norm.epsilon", "attention.query_layernorm"}) {
        CAPTURE(std::string(key));
        const std::string name = "llama." + std::string(key);
        GgufBuilder layer = plain();
        layer.tensor_of("blk.0.attn_q.weight", {4096, 4096}, 0, 0);
        CHECK(rotation_of(layer).ops.norms_known);
        for (const GgufBuilder& file :
             {GgufBuilder(layer).boolean(key, 1), GgufBuilder(layer).f32(key, 1e-5f),
              GgufBuilder(layer).text(key, "rms")}) {
            const RopeParams rotation = rotation_of(file);
            CHECK(warns(rotation, name + " not known"));
            CHECK_FALSE(rotation.ops.norms_known);
        }
        const RopeParams off = rotation_of(GgufBuilder(layer).boolean(key, 0));
        CHECK(off.warnings.empty());
        CHECK(off.ops.norms_known);
        // Where the tensors say the norms, they count.
        GgufBuilder qwen = plain("qwen3").f32("attention.layer_norm_rms_epsilon", 1e-6f);
        qwen.u32("attention.head_count", 32)
            .tensor_of("blk.0.attn_q_norm.weight", {128}, 0, 0)
            .tensor_of("blk.0.attn_k_norm.weight", {128}, 0, 0);
        for (const bool value : {false, true}) {
            const RopeParams read = rotation_of(GgufBuilder(qwen).boolean(key, value));
            CHECK(warns(read, "qwen3." + std::string(key) + (value ? " true" : " false")));
            CHECK(read.ops.norms_known);
            CHECK(read.ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
        }
    }
    for (const char* key :
         {"attention.temperature_tuning", "attention.logn_scaling", "swa_layers",
          "attention.global_attn_every", "full_attention_interval", "attention.scaling"}) {
        CHECK(warns(rotation_of(plain().u32(key, 4)), "llama." + std::string(key)));
        CHECK(rotation_of(plain().u32(key, 0)).warnings.empty());
    }
    // A layer without RoPE has norms and scales, and nothing of the rotation.
    const GgufBuilder still = plain("smollm3").boolean("attention.qk_norm", 1).u32("rope.odd", 1);
    CHECK(warns(rotation_of(still, {.by_layer = true, .layer = 3}),
                "smollm3.attention.qk_norm true"));
    CHECK(!warns(rotation_of(still, {.by_layer = true, .layer = 3}), "smollm3.rope.odd"));
    CHECK(warns(rotation_of(still, {.by_layer = true, .layer = 2}), "smollm3.rope.odd"));
}

TEST_CASE("GGUF: norms that are not known are said to be") {
    GgufBuilder layer = plain();
    layer.tensor_of("blk.3.attn_q.weight", {4096, 4096}, 0, 0);
    CHECK(!warns(rotation_of(layer, {.by_layer = true, .layer = 3}), "norms not known"));
    CHECK(warns(rotation_of(layer, {.by_layer = true, .layer = 2}), "Q K norms not known 2"));
    CHECK(warns(rotation_of(plain("of_mine"), {.pairing = VKROPE_HALF_SPLIT}),
                "of_mine Q K norms not known"));
}
