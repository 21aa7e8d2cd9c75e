// SPDX-License-Identifier: MIT
// Reads configurations of published models. tests/data/models/expected holds the numbers of Hugging
// Face transformers' formulas, evaluated in float64.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

/// The text of one of the files in tests/data/models.
std::string model_file(const std::string& name) {
    std::ifstream stream(VKROPE_TEST_MODELS "/" + name + ".json");
    REQUIRE_MESSAGE(stream.good(), name);
    return {std::istreambuf_iterator<char>(stream), {}};
}

bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

}  // namespace

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
            const Result<RopeParams> read = from_hf_config(
                text, {.seq_len = known ? variant["seq_len"].get<std::uint64_t>() : 0});
            REQUIRE_MESSAGE(read, read.status.what);
            const RopeParams& rotation = read.value;
            CHECK(rotation.head_dim == expected["head_dim"]);
            CHECK(rotation.rotary_dim == expected["rotary_dim"]);
            CHECK((rotation.pairing == VKROPE_HALF_SPLIT ? "half_split" : "interleaved") ==
                  expected["pairing"]);
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
            CHECK(std::vector<std::uint32_t>(rotation.sections.pairs,
                                             rotation.sections.pairs + rotation.sections.axes) ==
                  model.sections);
            CHECK(rotation.sections.order == model.order);
            if (!known) {
                CHECK(rotation.warnings.size() == model.warnings.size());
                for (const std::string& words : model.warnings) CHECK(warns(rotation, words));
            }
        }
    }
}
