// SPDX-License-Identifier: MIT
// Positions on several axes, vision towers, scalings, and one model inside another.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("positions on several axes") {
    const auto text = [](const std::string& fields) { return imported("{" + fields + "}", {}); };
    const RopeParams qwen25 = text(
        R"("model_type": "qwen2_5_vl", "hidden_size": 3584, "num_attention_heads": 28,
           "rope_theta": 1e6,
        "rope_scaling": {"type": "default", "rope_type": "default", "mrope_section": [16, 24,
        24]})");
    CHECK(sections_of(qwen25) == std::vector<std::uint32_t>{16, 24, 24});
    CHECK(qwen25.sections.order == VKROPE_SECTIONS_SEQUENTIAL);
    CHECK(qwen25.rope_type == "default");
    CHECK(qwen25.warnings.empty());
    // Both spellings of no scaling, as in an upgraded file.
    CHECK(text(
              R"("model_type": "qwen2_vl", "head_dim": 128, "rope_theta": 1e6,
               "rope_scaling": {"type": "mrope",
        "rope_type": "default", "mrope_section": [16, 24, 24]})")
              .rope_type == "default");
    const RopeParams qwen3 = text(
        R"("model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "head_dim": 128,
        "rope_theta": 5000000, "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20,
        20], "rope_type": "default"}})");
    CHECK(sections_of(qwen3) == std::vector<std::uint32_t>{24, 20, 20});
    CHECK(qwen3.sections.order == VKROPE_SECTIONS_INTERLEAVED);
    CHECK(qwen3.sections.leftover_axis == 0);
    check_plain(qwen3, 5e6);
    const RopeParams omni = text(
        R"("model_type": "qwen2_5_omni", "thinker_config": {"model_type": "qwen2_5_omni_thinker",
           "text_config":
        {"model_type": "qwen2_5_omni_text", "hidden_size": 3584, "num_attention_heads": 28,
        "rope_theta": 1e6,
         "rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]}}})");
    CHECK(sections_of(omni) == std::vector<std::uint32_t>{16, 24, 24});
    const RopeParams glm = text(
        R"("model_type": "glm4v", "text_config": {"model_type": "glm4v_text", "hidden_size": 4096,
        "num_attention_heads": 32, "partial_rotary_factor": 0.5, "rope_theta": 1e4,
        "rope_scaling": {"rope_type": "default", "mrope_section": [8, 12, 12]}})");
    CHECK(glm.pairing == interleaved);
    CHECK(glm.rotary_dim == 64);
    CHECK(sections_of(glm) == std::vector<std::uint32_t>{8, 12, 12});
    const RopeParams assumed = text(
        R"("model_type": "qwen3_5_text", "head_dim": 256, "partial_rotary_factor": 0.25,
           "rope_theta": 1e7)");
    CHECK(sections_of(assumed) == std::vector<std::uint32_t>{11, 11, 10});
    CHECK(warns(assumed, "mrope_section 11 11 10"));
    const RopeParams yarn = text(
        R"("model_type": "qwen2_5_vl", "head_dim": 128, "rope_theta": 1e6,
           "max_position_embeddings": 32768,
        "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768,
        "mrope_section": [16, 24, 24]})");
    CHECK(yarn.rope_type == "yarn");
    CHECK(sections_of(yarn).size() == 3);
    const RopeParams hunyuan = text(
        R"("model_type": "hunyuan_vl", "head_dim": 128, "rope_theta": 1e4,
           "rope_scaling": {"type": "xdrope",
        "alpha": 1000.0, "xdrope_section": [16, 16, 16, 16]})");
    CHECK(sections_of(hunyuan).size() == 4);
    check_plain(hunyuan, 1e4 * std::pow(1000.0, 128.0 / 126));
}

TEST_CASE("vision towers: a row and a column, with frequencies each") {
    const auto tower = [](const std::string& fields) {
        return imported("{" + fields + "}", {.tower = "vision"});
    };
    for (const char* json :
         {R"("model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "hidden_size": 1536,
            "num_heads": 16})",
          R"("model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl",
            "hidden_size": 1280,
                                "num_heads": 16})",
          R"("model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl",
            "vision_config": {"model_type": "qwen2_vl",
                                "embed_dim": 1280, "num_heads": 16}})",
          R"("model_type": "qwen2_5_omni", "thinker_config": {"vision_config": {"hidden_size": 1280,
                                "num_heads": 16}})"}) {
        CAPTURE(std::string(json));
        const RopeParams rotation = tower(json);
        CHECK(rotation.head_dim == 80);
        CHECK(rotation.rotary_dim == 80);
        CHECK(rotation.pairing == half);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{20, 20});
        REQUIRE(rotation.inv_freq.size() == 40);
        for (std::size_t j = 0; j < 20; ++j) {
            CHECK(close(rotation.inv_freq[j], std::pow(1e4, -2.0 * double(j) / 40)));
            CHECK(rotation.inv_freq[j + 20] == rotation.inv_freq[j]);
        }
    }
    CHECK(tower(
              R"("model_type": "qwen3_vl", "vision_config": {"model_type": "qwen3_vl",
               "hidden_size": 1024, "num_heads": 16})")
              .head_dim == 64);
    const RopeParams pixtral = tower(
        R"("model_type": "mistral3", "vision_config": {"model_type": "pixtral", "hidden_size": 1024,
        "num_attention_heads": 16, "head_dim": 64, "rope_theta": 10000.0})");
    REQUIRE(pixtral.inv_freq.size() == 32);
    for (std::size_t j = 0; j < 16; ++j) {
        CHECK(close(pixtral.inv_freq[j], std::pow(1e4, -4.0 * double(j) / 64)));
        CHECK(close(pixtral.inv_freq[j + 16], std::pow(1e4, -(4.0 * double(j) + 2) / 64)));
    }
    const RopeParams llama4 = tower(
        R"("model_type": "llama4", "vision_config": {"model_type": "llama4_vision_model",
           "hidden_size": 1408,
        "num_attention_heads": 16, "rope_theta": 10000})");
    CHECK(llama4.head_dim == 88);
    CHECK(llama4.pairing == interleaved);
    CHECK(close(llama4.inv_freq[1], std::pow(1e4, -2.0 / 44)));
    CHECK(close(llama4.inv_freq[23], std::pow(1e4, -2.0 / 44)));
    CHECK(warns(llama4, "column + 1 row + 1"));
}

TEST_CASE("scalings as configurations spell them") {
    const auto llama = [](const std::string& fields, std::uint64_t seq_len = 0) {
        return imported(
            R"({"model_type": "llama", "head_dim": 64, "max_position_embeddings": 2048,
               "rope_theta": 1e4, )" +
                fields + "}",
            {.seq_len = seq_len});
    };
    const std::string dynamic = R"("rope_scaling": {"type": "dynamic", "factor": 2.0})";
    check_plain(llama(dynamic), 1e4);
    CHECK(warns(llama(dynamic), "dynamic"));
    check_plain(llama(dynamic, 2048), 1e4);
    check_plain(llama(dynamic, 8192), 1e4 * std::pow(7.0, 64.0 / 62));
    CHECK(llama(dynamic, 8192).warnings.empty());
    check_plain(llama(R"("rope_scaling": {"type": "dynamic", "alpha": 1000.0})"),
                1e4 * std::pow(1000.0, 64.0 / 62));

    const std::string qwen =
        R"({"model_type": "qwen", "kv_channels": 128, "rotary_emb_base": 10000, "seq_length": 2048,
        "max_position_embeddings": 8192, "use_dynamic_ntk": true})";
    check_plain(imported(qwen, {.seq_len = 2048}), 1e4);
    check_plain(imported(qwen, {.seq_len = 4096}), 1e4 * std::pow(3.0, 128.0 / 126));
    check_plain(imported(qwen, {.seq_len = 5000}), 1e4 * std::pow(7.0, 128.0 / 126));
    CHECK(warns(imported(qwen), "use_dynamic_ntk"));

    const RopeParams yarn = llama(R"("rope_scaling": {"type": "yarn", "factor": 4.0})");
    CHECK(warns(yarn, "original_max_position_embeddings 2048"));
    CHECK(close(yarn.attention_factor, 0.1 * std::log(4.0) + 1));
    CHECK(
        close(llama(R"("rope_scaling": {"type": "yarn", "original_max_position_embeddings": 512})")
                  .attention_factor,
              0.1 * std::log(4.0) + 1));
    CHECK(close(llama(
                    R"("rope_scaling": {"type": "yarn", "factor": 4.0,
               "original_max_position_embeddings": 512, "mscale": 0.5,
                       "mscale_all_dim": 2})")
                    .attention_factor,
                (0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1)));

    const RopeParams gpt_oss = imported(
        R"({"model_type": "gpt_oss", "head_dim": 64, "max_position_embeddings": 131072})");
    CHECK(gpt_oss.rope_type == "yarn");
    CHECK(warns(gpt_oss, "rope_scaling gpt_oss"));
    CHECK(
        imported(R"({"model_type": "gpt_oss", "head_dim": 64, "rope_scaling": null})").rope_type ==
        "default");

    const std::string phimoe =
        R"({"model_type": "phimoe", "head_dim": 4, "rope_theta": 1e4,
           "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope",
        "short_factor": [1, 2], "long_factor": [3, 4],
        "short_mscale": 1.25, "long_mscale": 1.5}})";
    CHECK(imported(phimoe, {.seq_len = 4096}).attention_factor == 1.25);
    CHECK(imported(phimoe, {.seq_len = 4097}).attention_factor == 1.5);
    CHECK(close(imported(phimoe, {.seq_len = 4097}).inv_freq[1], 0.01 / 4));

    CHECK(warns(llama(R"("rope_scaling": {"type": "linear", "factor": 2})", 4096),
                "seq_len 4096 2048"));
}

TEST_CASE("Llama 4 Scout: the factors of its llama3 scaling are equal") {
    const RopeParams scout = imported(
        R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "head_dim": 128,
        "rope_theta": 500000.0, "max_position_embeddings": 10485760, "num_hidden_layers": 48,
        "no_rope_layers": [], "rope_scaling":
        {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
         "rope_type": "llama3"}}})",
        {.by_layer = true, .layer = 0});
    CHECK(scout.pairing == interleaved);
    for (std::size_t j = 0; j < 64; ++j) {
        const double frequency = std::pow(5e5, -2.0 * double(j) / 128);
        CHECK(close(scout.inv_freq[j],
                    6.283185307179586 / frequency < 8192 ? frequency : frequency / 16));
    }
}

TEST_CASE("one model inside another: which of them is read is said") {
    const RopeParams rotation = imported(
        R"({"model_type": "llava", "rope_theta": 5000, "text_config": {"model_type": "llama",
        "head_dim": 64, "rope_theta": 1e4}})");
    check_plain(rotation, 1e4);
    CHECK(warns(rotation, "rope_theta"));
    check_error(from_hf_config(R"({"model_type": "llava", "text_config": {"model_type": "llama",
                    "head_dim": 64, "rope_theta": -1}})")
                    .status,
                VKROPE_ERROR_INVALID_DATA, "text_config.rope_theta -1");
}
