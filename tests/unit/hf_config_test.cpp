// SPDX-License-Identifier: MIT
// Configurations of real models, and the spellings of one and the same RoPE.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "vkrope/model.hpp"

using namespace vkrope;

namespace {

std::string model_file(const std::string& name) {
    std::ifstream file(std::string(VKROPE_TEST_MODELS "/") + name + ".json", std::ios::binary);
    REQUIRE_MESSAGE(file, name);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A plain Llama with `fields` added: `"rope_theta": 10000`, say.
std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192, )" + fields +
           "}";
}

Rotation imported(const std::string& json) {
    const Result<Rotation> result = from_hf_config(json);
    REQUIRE_MESSAGE(result, result.status.what);
    return result.value;
}

bool warns(const Rotation& rotation, const std::string& text) {
    for (const std::string& warning : rotation.warnings) {
        if (warning.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

struct Frequency {
    std::size_t index;
    double value;
};

struct Model {
    const char* name;
    std::uint32_t head_dim, rotary_dim;
    Pairing pairing;
    const char* rope_type;
    std::uint64_t max_position;
    double sum;  // of all frequencies
    std::vector<Frequency> some;
    std::vector<const char*> warnings;
};

constexpr Pairing half = Pairing::half_split;
constexpr Pairing interleaved = Pairing::interleaved;

// Expected frequencies: Hugging Face transformers' formulas, evaluated in float64.
// clang-format off
const Model models[] = {
    {"falcon-7b", 64, 64, half, "default", 2048, 3.9979082344763777,
     {{1, 0.7498942093324559}, {8, 0.1}, {16, 0.01}, {31, 0.0001333521432163324}}, {}},
    {"glm-4-9b", 128, 64, interleaved, "default", 131072, 3.9979082344763777,
     {{1, 0.7498942093324559}, {8, 0.1}, {16, 0.01}, {31, 0.0001333521432163324}}, {}},
    {"gpt-j-6b", 256, 64, interleaved, "default", 2048, 3.9979082344763777,
     {{1, 0.7498942093324559}, {8, 0.1}, {16, 0.01}, {31, 0.0001333521432163324}},
     {"rope_theta is missing: 10000 assumed, the default of gptj"}},
    {"gpt-neox-20b", 96, 24, half, "default", 2048, 1.8660382134769222,
     {{1, 0.464158883361278}, {3, 0.1}, {6, 0.01}, {11, 0.00021544346900318845}}, {}},
    {"llama-3.1-8b", 128, 128, half, "llama3", 131072, 5.386058200728572,
     {{1, 0.8146172338565447}, {27, 0.003942276030116656}, {29, 0.002166570763503359}, {30, 0.0013718935677611381},
      {34, 0.00017850781276799638}, {35, 9.556212353964683e-05}, {63, 3.068925988914511e-07}}, {}},
    {"llama-3.2-1b", 64, 64, half, "llama3", 131072, 2.9682022978421547,
     {{1, 0.6636012376960884}, {14, 0.0032114459947525913}, {15, 0.001290547928209264}, {16, 0.00042955679655936837},
      {17, 9.70828780262767e-05}, {18, 1.9461638184831128e-05}, {31, 9.418306725434911e-08}}, {}},
    {"mistral-7b-v0.3", 128, 128, half, "default", 32768, 5.150444313677811,
     {{1, 0.8058421877614819}, {16, 0.03162277660168379}, {32, 0.001}, {63, 1.2409377607517195e-06}}, {}},
    {"qwen2.5-7b", 128, 128, half, "default", 32768, 5.150444313677811,
     {{1, 0.8058421877614819}, {16, 0.03162277660168379}, {32, 0.001}, {63, 1.2409377607517195e-06}}, {}},
    {"stablelm-3b", 80, 20, half, "default", 4096, 1.661259199448351,
     {{1, 0.39810717055349726}, {2, 0.15848931924611134}, {5, 0.01}, {9, 0.00025118864315095795}}, {}},
};
// clang-format on

bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

}  // namespace

TEST_CASE("real models") {
    for (const Model& model : models) {
        CAPTURE(std::string(model.name));
        const Rotation rotation = imported(model_file(model.name));
        CHECK(rotation.head_dim == model.head_dim);
        CHECK(rotation.rotary_dim == model.rotary_dim);
        CHECK(rotation.pairing == model.pairing);
        CHECK(rotation.rope_type == model.rope_type);
        CHECK(rotation.max_position == model.max_position);
        CHECK(rotation.attention_factor == 1.0);
        CHECK(rotation.softmax_scale == 1.0);
        CHECK(rotation.q_rotary_offset == 0);
        CHECK(rotation.k_rotary_offset == 0);
        CHECK(rotation.rotates);
        REQUIRE(rotation.inv_freq.size() == model.rotary_dim / 2);
        CHECK(rotation.inv_freq[0] == 1.0);
        double sum = 0;
        for (const double frequency : rotation.inv_freq) {
            sum += frequency;
        }
        CHECK(close(sum, model.sum));
        for (const Frequency& frequency : model.some) {
            CAPTURE(frequency.index);
            CHECK(close(rotation.inv_freq[frequency.index], frequency.value));
        }
        CHECK(rotation.warnings.size() == model.warnings.size());
        for (const char* warning : model.warnings) {
            CHECK(warns(rotation, warning));
        }
    }
}

TEST_CASE("every spelling of a RoPE gives the same numbers") {
    const std::vector<double> expected = imported(model_file("llama-3.1-8b")).inv_freq;
    const std::string numbers = R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4)";
    const std::string original = R"("original_max_position_embeddings": 8192)";
    const std::string v4 = R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", )" + numbers + ", " + original + "}";
    const std::string v5 = R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", )" + numbers + ", " + original + "}";
    const std::string spellings[] = {
        v4,
        v5,
        v4 + ", " + v5,
        v4 + R"(, "rope_parameters": null)",
        v5 + R"(, "rope_scaling": {})",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", )" + numbers + ", " + original + "}",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", "rope_type": "llama3", )" + numbers + ", " + original + "}",
        R"("rope_theta": 500000, "rope_scaling": {"type": "llama3", )" + numbers + "}, " + original,
        R"("rope_theta": 500000, )" + original + R"(, "rope_scaling": {"type": "llama3", )" + numbers + ", " + original + "}",
        R"("rotary_emb_base": 500000, "rope_scaling": {"type": "llama3", )" + numbers + ", " + original + "}",
        R"("head_dim": 128.0, )" + v4,
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const Rotation rotation = imported(llama_with(spelling));
        CHECK(rotation.inv_freq == expected);
        CHECK(rotation.rope_type == "llama3");
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("linear scaling") {
    const std::vector<double> plain = imported(llama_with(R"("rope_theta": 10000)")).inv_freq;
    const Rotation halved = imported(llama_with(R"("rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 2.0})"));
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
        R"("rope_theta": 10000, "mrope_section": null, "no_rope_layers": [], "qk_rope_head_dim": 0, "alibi": false)",
        R"("rope_theta": 10000, "rotary": true, "position_embedding_type": "rope", "rope_ratio": 1, "sliding_window": 4096)",
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const Rotation rotation = imported(llama_with(spelling));
        CHECK(rotation.rope_type == "default");
        CHECK(close(rotation.inv_freq[32], 0.01));
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("partial rotation, in all its spellings") {
    const std::string spellings[] = {
        R"("rope_theta": 10000, "partial_rotary_factor": 0.4)",
        R"("rope_theta": 10000, "rotary_pct": 0.4)",
        R"("rope_theta": 10000, "rope_pct": 0.4)",
        R"("rope_theta": 10000, "rotary_dim": 50)",
        R"("rope_theta": 10000, "rotary_dim": 50, "partial_rotary_factor": 0.4)",
        R"("rope_parameters": {"rope_theta": 10000, "partial_rotary_factor": 0.4})",
        R"("partial_rotary_factor": 0.4, "rope_parameters": {"rope_theta": 10000, "partial_rotary_factor": 0.4})",
    };
    for (const std::string& spelling : spellings) {
        CAPTURE(spelling);
        const Rotation rotation = imported(llama_with(R"("head_dim": 126, )" + spelling));  // 126 * 0.4 = 50.4
        CHECK(rotation.head_dim == 126);
        CHECK(rotation.rotary_dim == 50);
        CHECK(rotation.inv_freq.size() == 25);
        CHECK(close(rotation.inv_freq[1], std::pow(10000.0, -2.0 / 50)));
        CHECK(rotation.warnings.empty());
    }
}

TEST_CASE("what a file leaves out is assumed aloud") {
    const std::string heads = R"("hidden_size": 4096, "num_attention_heads": 32)";
    const Rotation bare = imported("{" + heads + "}");
    CHECK(bare.pairing == half);
    CHECK(close(bare.inv_freq[32], 0.01));
    CHECK(bare.max_position == 0);
    CHECK(warns(bare, "model_type is missing"));
    CHECK(warns(bare, "rope_theta is missing: 10000 assumed"));
    CHECK(bare.warnings.size() == 2);

    const Rotation unknown = imported(R"({"model_type": "brand\nnew", "rope_theta": 5000, )" + heads + "}");
    CHECK(unknown.pairing == half);
    CHECK(warns(unknown, R"(model_type "brand\nnew" is unknown)"));
    CHECK(unknown.warnings.size() == 1);

    const Rotation mixtral = imported(R"({"model_type": "mixtral", )" + heads + "}");
    CHECK(close(mixtral.inv_freq[32], 1e-3));
    CHECK(warns(mixtral, "rope_theta is missing: 1000000 assumed, the default of mixtral"));

    const Rotation glm = imported(R"({"model_type": "glm", "rope_theta": 10000})");
    CHECK(glm.head_dim == 128);
    CHECK(glm.rotary_dim == 64);
    CHECK(glm.pairing == interleaved);
    CHECK(warns(glm, "head_dim is missing: 128 assumed, the default of glm"));
    CHECK(warns(glm, "partial_rotary_factor is missing: 0.5 assumed, the default of glm"));

    const Rotation gptj = imported(R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "rope_theta": 10000})");
    CHECK(gptj.rotary_dim == 64);
    CHECK(warns(gptj, "rotary_dim is missing: 64 assumed"));
}

TEST_CASE("keys that are not read are named") {
    const Rotation rotation = imported(llama_with(
        R"("rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 32}, "rope_freq_constant": 7,
           "text_config": {"hidden_size": 1}, "vocab_size": 3)"));
    CHECK(warns(rotation, "ignored key rope_scaling.beta_fast"));
    CHECK(warns(rotation, "ignored key rope_freq_constant"));
    CHECK(warns(rotation, "ignored key text_config"));
    CHECK(rotation.warnings.size() == 3);
}

TEST_CASE("pairing follows the model, and an explicit key where there is no model") {
    const auto pairing_of = [](const std::string& type) {
        const std::string numbers = R"(", "hidden_size": 512, "num_attention_heads": 8, "rope_theta": 1e4})";
        return imported(R"({"model_type": ")" + type + numbers).pairing;
    };
    for (const char* type : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "phi", "phi3", "gpt_neox",
                             "stablelm", "falcon", "glm4_moe", "starcoder2", "arcee"}) {
        CHECK_MESSAGE(pairing_of(type) == half, type);
    }
    for (const char* type : {"gptj", "codegen", "chatglm", "glm", "glm4", "cohere", "ernie4_5", "helium"}) {
        CHECK_MESSAGE(pairing_of(type) == interleaved, type);
    }
    const std::string numbers = R"("hidden_size": 512, "num_attention_heads": 8, "rope_theta": 1e4})";
    CHECK(imported(R"({"rope_interleaved": true, )" + numbers).pairing == interleaved);
    CHECK(imported(R"({"rope_interleaved": false, )" + numbers).pairing == half);
    CHECK(imported(R"({"model_type": "glm", "rope_interleave": true, )" + numbers).pairing == interleaved);
}
