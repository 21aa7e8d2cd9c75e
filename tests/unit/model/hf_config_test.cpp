// SPDX-License-Identifier: MIT
// Configurations of real models, and different spellings of the same RoPE.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "hf_config_reading.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

/// A plain Llama with `fields` added: `"rope_theta": 10000`, say.
std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "max_position_embeddings": 8192, )" +
           fields + "}";
}

}  // namespace

// models/expected: Hugging Face transformers' formulas, evaluated in float64.
TEST_CASE("real models") {
    const std::vector<std::string> longest_warning = {"longrope"};
    struct Model {
        const char* name;
        std::vector<std::uint32_t> sections = {};
        SectionOrder order = VKROPE_SECTIONS_SEQUENTIAL;
        double softmax_scale = 1;
        std::uint32_t q_rotary_offset = 0, k_rotary_offset = 0;
        std::vector<std::string> warnings = {};
    };
    const double deepseek = 0.1 * 0.707 * std::log(40.0) + 1;
    const Model models[] = {
        {.name = "deepseek-v2-lite",
         .softmax_scale = deepseek * deepseek,
         .q_rotary_offset = 128,
         .k_rotary_offset = 512,
         .warnings = {"kv_lora_rank 512"}},
        {.name = "falcon-7b"},
        {.name = "gemma-3-4b.full", .warnings = {"full_attention sliding_attention"}},
        {.name = "glm-4-9b"},
        {.name = "gpt-j-6b", .warnings = {"rope_theta 10000"}},
        {.name = "gpt-neox-20b"},
        {.name = "gpt-oss-20b"},
        {.name = "llama-3.1-8b"},
        {.name = "llama-3.2-1b"},
        {.name = "mistral-7b-v0.3"},
        {.name = "phi-3.5-mini", .warnings = longest_warning},
        {.name = "phi-4-mini", .warnings = longest_warning},
        {.name = "qwen2-vl-2b", .sections = {16, 24, 24}},
        {.name = "qwen2.5-7b"},
        {.name = "qwen2.5-7b.yarn",
         .warnings = {"rope_scaling.factor 4.0 max_position_embeddings 32768 1"}},
        {.name = "qwen3-vl-4b", .sections = {24, 20, 20}, .order = VKROPE_SECTIONS_INTERLEAVED},
        {.name = "stablelm-3b"},
    };
    for (const Model& model : models) {
        CAPTURE(std::string(model.name));
        const std::string text = model_file(model.name);
        const auto expected = nlohmann::json::parse(
            model_file(std::string("expected/") + model.name));
        for (const auto& variant : expected["variants"]) {
            const bool known = !variant["seq_len"].is_null();
            const RopeParams rotation = imported(
                text, {.seq_len = known ? variant["seq_len"].get<std::uint64_t>() : 0});
            CHECK(rotation.head_dim == expected["head_dim"]);
            CHECK(rotation.rotary_dim == expected["rotary_dim"]);
            CHECK((rotation.pairing == half ? "half_split" : "interleaved") == expected["pairing"]);
            CHECK(rotation.rope_type == expected["rope_type"].get<std::string>());
            CHECK(!rotation.no_rope);
            CHECK(close(rotation.attention_factor, variant["attention_factor"]));
            CHECK(close(rotation.softmax_scale, model.softmax_scale));
            CHECK(rotation.q_rotary_offset == model.q_rotary_offset);
            CHECK(rotation.k_rotary_offset == model.k_rotary_offset);
            REQUIRE(rotation.inv_freq.size() == variant["inv_freq"].size());
            for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
                CAPTURE(j);
                CHECK(close(rotation.inv_freq[j], variant["inv_freq"][j]));
            }
            CHECK(sections_of(rotation) == model.sections);
            CHECK(rotation.sections.order == model.order);
            if (!known) {
                CHECK(rotation.warnings.size() == model.warnings.size());
                for (const std::string& words : model.warnings) CHECK(warns(rotation, words));
            }
        }
    }
}

TEST_CASE("every spelling of a RoPE gives the same numbers") {
    const std::vector<double> expected = imported(model_file("llama-3.1-8b")).inv_freq;
    const std::string numbers = R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4)";
    const std::string original = R"("original_max_position_embeddings": 8192)";
    const std::string v4 = R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", )" +
                           numbers + ", " + original + "}";
    const std::string v5 = R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", )" +
                           numbers + ", " + original + "}";
    const std::string spellings[] = {
        v4,
        v5,
        v4 + ", " + v5,
        v4 + R"(, "rope_parameters": null)",
        v5 + R"(, "rope_scaling": {})",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", )" + numbers + ", " +
            original + "}",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", "rope_type": "llama3", )" +
            numbers + ", " + original + "}",
        R"("rope_theta": 500000, "rope_scaling": {"type": "llama3", )" + numbers + "}, " + original,
        R"("rope_theta": 500000, )" + original + R"(, "rope_scaling": {"type": "llama3", )" +
            numbers + ", " + original + "}",
        R"("rotary_emb_base": 500000, "rope_scaling": {"type": "llama3", )" + numbers + ", " +
            original + "}",
        R"("head_dim": 128.0, )" + v4,
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const RopeParams rotation = imported(llama_with(spelling));
        CHECK(rotation.inv_freq == expected);
        CHECK(rotation.rope_type == "llama3");
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("linear scaling") {
    const std::vector<double> plain = imported(llama_with(R"("rope_theta": 10000)")).inv_freq;
    const RopeParams halved = imported(
        llama_with(R"("rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 2.0})"));
    CHECK(halved.rope_type == "linear");
    REQUIRE(halved.inv_freq.size() == plain.size());
    for (std::size_t j = 0; j < plain.size(); ++j) {
        CHECK(halved.inv_freq[j] == plain[j] / 2);
    }
    CHECK(halved.max_position == 8192);
}

TEST_CASE("no scaling, in all its spellings, is default") {
    const std::string spellings[] = {
        R"("rope_theta": 10000)",
        R"("rope_theta": 10000, "rope_scaling": null)",
        R"("rope_theta": 10000, "rope_scaling": {})",
        R"("rope_theta": 10000, "rope_scaling": {"type": "default"})",
        R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000.0})",
        R"("rope_parameters": {"rope_theta": 10000.0, "rope_type": null, "factor": null})",
        R"("rope_theta": 10000, "mrope_section": null, "no_rope_layers": [], "qk_rope_head_dim": 0,
           "alibi": false)",
        R"("rope_theta": 10000, "mrope_interleaved": false, "mrope_section": [], "rope": true,
           "use_dynamic_ntk": false)",
        R"("rope_theta": 10000, "rotary": true, "position_embedding_type": "rope", "rope_ratio": 1,
           "sliding_window": 4096)",
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const RopeParams rotation = imported(llama_with(spelling));
        CHECK(rotation.rope_type == "default");
        CHECK(close(rotation.inv_freq[32], 0.01));
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("partial rotation, in all its spellings") {
    const std::string spellings[] = {
        R"("rope_theta": 10000, "partial_rotary_factor": 0.4)",
        R"("rope_theta": 10000, "rotary_pct": 0.4)",
        R"("rope_theta": 10000, "rotary_emb_fraction": 0.4)",
        R"("rope_theta": 10000, "attn_rotary_emb": 50)",
        R"("rope_theta": 10000, "rope_pct": 0.4)",
        R"("rope_theta": 10000, "rotary_dim": 50)",
        R"("rope_theta": 10000, "rotary_dim": 50, "partial_rotary_factor": 0.4)",
        R"("rope_parameters": {"rope_theta": 10000, "partial_rotary_factor": 0.4})",
        R"("partial_rotary_factor": 0.4, "rope_parameters": {"rope_theta": 10000,
           "partial_rotary_factor": 0.4})",
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const RopeParams rotation = imported(
            llama_with(R"("head_dim": 126, )" + spelling));  // 126 * 0.4 = 50.4
        CHECK(rotation.head_dim == 126);
        CHECK(rotation.rotary_dim == 50);
        CHECK(rotation.inv_freq.size() == 25);
        CHECK(close(rotation.inv_freq[1], std::pow(10000.0, -2.0 / 50)));
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("what a file leaves out is assumed aloud") {
    const std::string heads = R"("hidden_size": 4096, "num_attention_heads": 32)";
    const RopeParams bare = imported("{" + heads + "}");
    CHECK(bare.pairing == half);
    CHECK(close(bare.inv_freq[32], 0.01));
    CHECK(bare.max_position == 0);
    CHECK(warns(bare, "model_type"));
    CHECK(warns(bare, "rope_theta 10000"));
    CHECK(bare.warnings.size() == 2);

    const RopeParams unknown = imported(R"({"model_type": "brand\nnew", "rope_theta": 5000, )" +
                                        heads + "}");
    CHECK(unknown.pairing == half);
    CHECK(warns(unknown, R"(model_type "brand\nnew" is unknown)"));
    CHECK(unknown.warnings.size() == 1);

    const RopeParams mixtral = imported(R"({"model_type": "mixtral", )" + heads + "}");
    CHECK(close(mixtral.inv_freq[32], 1e-3));
    CHECK(warns(mixtral, "rope_theta 1000000"));

    const RopeParams glm = imported(R"({"model_type": "glm", "rope_theta": 10000})");
    CHECK(glm.head_dim == 128);
    CHECK(glm.rotary_dim == 64);
    CHECK(glm.pairing == interleaved);
    CHECK(warns(glm, "head_dim 128"));
    CHECK(warns(glm, "partial_rotary_factor 0.5"));

    const RopeParams gptj = imported(
        R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "rope_theta": 10000})");
    CHECK(gptj.rotary_dim == 64);
    CHECK(warns(gptj, "rotary_dim 64"));
}

TEST_CASE("keys that are not read are named") {
    const RopeParams rotation = imported(llama_with(
        R"("rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 32},
           "rope_something": 7,
           "text_config": {"vocab_size": 1}, "vocab_size": 3)"));
    CHECK(warns(rotation, "rope_scaling.beta_fast"));
    CHECK(warns(rotation, "rope_something"));
    CHECK(warns(rotation, "text_config"));
    CHECK(rotation.warnings.size() == 3);
}

TEST_CASE("pairing follows the model, and an explicit key where there is no model") {
    const auto pairing_of = [](const std::string& type) {
        const std::string numbers =
            R"(", "hidden_size": 512, "num_attention_heads": 8, "rope_theta": 1e4})";
        return imported(R"({"model_type": ")" + type + numbers).pairing;
    };
    for (const char* type :
         {"llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "phi", "phi3",
          "gpt_neox", "stablelm", "falcon", "glm4_moe", "starcoder2", "arcee"}) {
        CHECK_MESSAGE(pairing_of(type) == half, type);
    }
    for (const char* type :
         {"gptj", "codegen", "chatglm", "glm", "glm4", "cohere", "ernie4_5", "helium"}) {
        CHECK_MESSAGE(pairing_of(type) == interleaved, type);
    }
    const std::string numbers =
        R"("hidden_size": 512, "num_attention_heads": 8, "rope_theta": 1e4})";
    CHECK(imported(R"({"rope_interleaved": true, )" + numbers).pairing == interleaved);
    CHECK(imported(R"({"rope_interleaved": false, )" + numbers).pairing == half);
    CHECK(imported(R"({"model_type": "glm", "rope_interleave": true, )" + numbers).pairing ==
          interleaved);
}
