// SPDX-License-Identifier: MIT
// Vision towers with rules of their own, DINOv3, MoonViT, SAM 2 and SAM 3, against the formulas of
// their classes in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "meaning.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("DINOv3: the centre of a patch is an odd or even whole position") {
    // ViT-L/16 of 224 x 224: 14 patches, head_dim 64, base 100.
    const std::string json = model_file("dinov3-vitl16");
    for (const char* tower : {"text", "vision"}) {
        const RopeParams rotation = imported(json, {.tower = tower});
        CHECK(rotation.pairing == half);
        CHECK(rotation.head_dim == 64);
        CHECK(rotation.rotary_dim == 64);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{16, 16});
        CHECK(warns(rotation, "2 row + 1 - 14 2 column + 1 - 14"));
        CHECK(warns(rotation, "14 / N"));
        REQUIRE(rotation.inv_freq.size() == 32);
        for (int patch = 0; patch < 14; ++patch) {
            const long double coordinate = 2 * ((patch + 0.5L) / 14) - 1;
            for (std::size_t pair = 0; pair < 32; ++pair) {
                const long double periods = std::pow(100.0L, 4.0L * (pair % 16) / 64);
                const long double angle = 6.283185307179586476925286766559005768L * coordinate /
                                          periods;
                CHECK(std::fabs((2 * patch + 1 - 14) * (long double)rotation.inv_freq[pair] -
                                angle) < 1e-14L);
            }
        }
    }
    const RopeParams assumed = imported(R"({"model_type": "dinov3_vit", "rope_theta": 100})");
    CHECK(assumed.head_dim == 64);
    CHECK(warns(assumed, "image_size 224"));
    const auto with = [](const std::string& fields) {
        return R"({"model_type": "dinov3_vit", "hidden_size": 1024, "num_attention_heads": 16, )" +
               fields + "}";
    };
    check_refused({with(R"("image_size": 8, "patch_size": 16)"), "image_size 8 patch_size 16"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused({with(R"("rope_theta": 0)"), "rope_theta 0"}, VKROPE_ERROR_INVALID_DATA);
    CHECK(from_hf_config(json, {.by_layer = true, .layer = 2}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("MoonViT and Kimi K2.5: column and row take turns, with the same frequencies") {
    for (const char* json :
         {R"({"model_type": "kimi_vl", "vision_config": {"model_type": "moonvit",
              "hidden_size": 1152, "num_attention_heads": 16}})",
          R"({"model_type": "kimi_k25", "vision_config": {"vt_hidden_size": 1152,
              "vt_num_attention_heads": 16, "mm_hidden_size": 1152, "text_hidden_size": 7168}})",
          R"({"model_type": "kimi_k25", "vision_config": {"model_type": "kimi_k25_vision",
              "hidden_size": 1152, "num_attention_heads": 16}})"}) {
        CAPTURE(json);
        const RopeParams rotation = imported(json, {.tower = "vision"});
        CHECK(rotation.warnings.size() == 1);
        CHECK(rotation.head_dim == 72);
        CHECK(rotation.pairing == interleaved);
        CHECK(warns(rotation, "column row"));
        REQUIRE(rotation.inv_freq.size() == 36);
        for (std::uint32_t pair = 0; pair < 36; ++pair) {
            const std::uint32_t j = pair / 2;
            CHECK(axis_of(rotation.sections, pair) == pair % 2);
            CHECK(close(rotation.inv_freq[pair], double(std::pow(1e4L, -4.0L * j / 72))));
        }
    }
}

TEST_CASE("SAM 2: the memory attention turns columns and rows") {
    const std::string json = model_file("sam2-video");
    for (const char* tower : {"text", "vision"}) {
        const RopeParams rotation = imported(json, {.tower = tower});
        CHECK(rotation.pairing == interleaved);
        CHECK(rotation.head_dim == 256);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{64, 64});
        for (std::size_t pair = 0; pair < 128; ++pair) {
            CHECK(
                close(rotation.inv_freq[pair], double(std::pow(1e4L, -4.0L * (pair % 64) / 256))));
        }
        CHECK(warns(rotation, "column row"));
        CHECK(warns(rotation, "pointers"));
    }
    const auto with = [](const std::string& fields) {
        return R"({"model_type": "sam3_tracker_video", )" + fields + "}";
    };
    const RopeParams halved = imported(with(R"("memory_attention_downsample_rate": 2)"));
    CHECK(halved.head_dim == 128);
    CHECK(warns(halved, "memory_attention_embed_dim 256"));
    check_refused({with(R"("memory_attention_num_attention_heads": 3)"),
                   "memory_attention_hidden_size 256 num_heads 3"},
                  VKROPE_ERROR_INVALID_DATA);
    CHECK(from_hf_config(json, {.by_layer = true, .layer = 1}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("SAM 3: layers without a window divide the positions of the whole image") {
    const std::string json = model_file("sam3");
    for (int layer = 0; layer < 32; ++layer) {
        CAPTURE(layer);
        const RopeParams rotation = imported(json,
                                             {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(rotation.pairing == interleaved);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{16, 16});
        // 72 patches on a side, windows of 24.
        const long double scale = layer % 8 == 7 ? 24 / 72.0L : 1;
        for (std::size_t pair = 0; pair < 32; ++pair) {
            CHECK(close(rotation.inv_freq[pair],
                        double(scale * std::pow(1e4L, -4.0L * (pair % 16) / 64))));
        }
        CHECK(warns(rotation, "72 / N") == (layer % 8 == 7));
    }
    const RopeParams chosen = imported(json);
    CHECK(chosen.inv_freq == imported(json, {.by_layer = true, .layer = 7}).inv_freq);
    CHECK(warns(chosen, "full_attention"));
    CHECK(imported(json, {.layer_type = "windowed_attention"}).inv_freq[0] == 1);
    CHECK(from_hf_config(json, {.by_layer = true, .layer = 32}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    const std::string alone = R"({"model_type": "sam3_vit_model")";
    CHECK(imported(alone + "}").inv_freq == chosen.inv_freq);
    CHECK(warns(imported(alone + "}"), "global_attn_indexes 7 15 23 31"));
    check_refused({alone + R"(, "global_attn_indexes": [32]})", "global_attn_indexes[] 32"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused({alone + R"(, "global_attn_indexes": 7})", "global_attn_indexes 7"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused({alone + R"(, "num_hidden_layers": 5000})", "num_hidden_layers 5000"},
                  VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("Gemma 4: columns turn the first half of a head, rows the second") {
    // apply_multidimensional_rope of transformers' modeling_gemma4.py.
    const auto read = [](const std::string& fields) {
        return imported(R"({"model_type": "gemma4", "vision_config": {)" + fields + "}}",
                        {.tower = "vision"});
    };
    const RopeParams rotation = read(R"("model_type": "gemma4_vision", "hidden_size": 1152,
        "num_attention_heads": 16, "head_dim": 72,
        "rope_parameters": {"rope_type": "default", "rope_theta": 50.0})");
    CHECK(rotation.pairing == half);
    CHECK(rotation.head_dim == 72);
    CHECK(rotation.rotary_dim == 72);
    CHECK(sections_of(rotation) == std::vector<std::uint32_t>{18, 18});
    for (std::uint32_t i = 0; i < max_windows; ++i) {
        CHECK(rotation.windows[i].offset == (i == 1 ? 36 : 0));
        CHECK(rotation.windows[i].rotary_dim == (i < 2 ? 36 : 0));
    }
    CHECK(warns(rotation, "column row of padding 0 0"));
    REQUIRE(rotation.inv_freq.size() == 36);
    for (std::size_t pair = 0; pair < 36; ++pair)
        CHECK(close(rotation.inv_freq[pair], double(std::pow(50.0L, -2.0L * (pair % 18) / 36))));
    const RopeParams assumed = read("");
    CHECK(assumed.head_dim == 64);
    CHECK(close(assumed.inv_freq[1], double(std::pow(100.0L, -2.0L / 32))));
    CHECK(warns(assumed, "vision_config.embed_dim 768"));
}

TEST_CASE("MiniMax M3: frames, rows and columns each turn a third of the head") {
    const auto read = [](const std::string& fields) {
        return imported(R"({"model_type": "minimax_m3_vl", "vision_config": {)" + fields + "}}",
                        {.tower = "vision"});
    };
    for (const char* type : {R"("model_type": "clip_vision_model", "rope_mode": "3d",)", ""}) {
        const RopeParams rotation = read(
            type + std::string(R"("hidden_size": 1280, "num_attention_heads": 16)"));
        CHECK(rotation.pairing == half);
        CHECK(rotation.head_dim == 80);
        CHECK(rotation.rotary_dim == 78);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{13, 13, 13});
        CHECK(rotation.windows[0].rotary_dim == 0);
        CHECK(warns(rotation, "frame row column"));
        REQUIRE(rotation.inv_freq.size() == 39);
        for (std::size_t pair = 0; pair < 39; ++pair)
            CHECK(close(rotation.inv_freq[pair], double(std::pow(1e4L, -2.0L * (pair % 13) / 26))));
    }
    const auto refused = [](const char* field) {
        return from_hf_config(std::string(R"({"model_type": "minimax_m3_vl", "vision_config": {)") +
                                  field + "}}",
                              {.tower = "vision"})
            .status;
    };
    check_error(refused(R"("head_dim": 5)"), VKROPE_ERROR_INVALID_DATA,
                "vision_config.head_dim 5 6");
    CHECK(refused(R"("model_type": "clip_vision_model")").code == VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("vision towers that no rotation can say are named") {
    const auto refused = [](const std::string& json, const std::string& words) {
        check_refused({json, words}, VKROPE_ERROR_NOT_SUPPORTED, {.tower = "vision"});
    };
    refused(R"({"model_type": "vjepa2", "hidden_size": 1024})",
            "plan_cos_sin_cache channel_angles");
    refused(R"({"model_type": "lfm2_vl", "vision_config": {"model_type": "siglip2_vision_model",
            "hidden_size": 1152, "num_attention_heads": 16}})",
            "siglip2_vision_model");
}
