// SPDX-License-Identifier: MIT
// Warnings of fields that stand around the language model's object, or that no layer takes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "hf_config_warned.hpp"

using namespace vkrope;
using namespace vkrope::test;

TEST_CASE("what stands around the language model's own object is named, with both values") {
    const std::string inner = R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4})";
    const auto around = [&](const std::string& fields) {
        return R"({"model_type": "llava", "text_config": )" + inner + ", " + fields + "}";
    };
    CHECK(warned(around(R"("head_dim": 128)"), {"head_dim 128 text_config.head_dim 64"}).head_dim ==
          64);
    warned(around(R"("rope_theta": 5e5)"), {"rope_theta 500000.0 text_config.rope_theta 10000.0"});
    warned(around(R"("rope_scaling": {"type": "linear", "factor": 2})"),
           {"rope_scaling text_config"});
    warned(around(R"("head_dim": 64, "rope_theta": 10000)"), {});
    warned(around(R"("llm_config": {"head_dim": 32})"), {"llm_config text_config"});
    warned(around(R"("llm_config": )" + inner), {});
    const std::string omni =
        R"({"model_type": "qwen2_5_omni", "rope_theta": 1, "thinker_config": {"head_dim": 32,
           "language_config": {"head_dim": 8},
        "text_config": {"model_type": "llama", "head_dim": 64, "rope_theta": 1e4}}})";
    warned(omni, {"rope_theta 1 thinker_config.text_config.rope_theta",
                  "thinker_config.head_dim 32", "thinker_config.language_config"});
}

TEST_CASE("bases at the top level that no layer type has") {
    const auto typed = [](const std::string& fields) {
        return R"({"model_type": "gemma3_text", "head_dim": 64,
                  "rope_parameters": {"full_attention": {"rope_theta": 1e6},
            "sliding_attention": {"rope_theta": 1e4}}, )" +
               fields + "}";
    };
    const ModelQuery full{.layer_type = "full_attention"};
    warned(typed(R"("rope_theta": 1e6, "rope_local_base_freq": 10000)"), {}, full);
    warned(typed(R"("rope_theta": 5e5)"),
           {"rope_theta 500000.0 rope_parameters.full_attention.rope_theta"}, full);
    warned(typed(R"("partial_rotary_factor": 0.5, "rope_theta": 1e4)"), {}, full);
    warned(typed(R"("rope_local_base_freq": 2e4)"), {"rope_local_base_freq 20000.0"}, full);
    // Next to the sections the key is named, too, if a section has it; if none has it, it is an
    // error.
    warned(
        R"({"model_type": "gemma3_text", "head_dim": 64,
           "rope_parameters": {"full_attention": {"rope_theta": 1e6},
        "sliding_attention": {"rope_theta": 1e4}, "rope_theta": 1e4}})",
        {"rope_parameters.rope_theta 10000.0 sliding_attention"}, full);
}

TEST_CASE("a base that only the older spelling has") {
    CHECK(warned(
              R"({"model_type": "llama", "head_dim": 64, "rope_scaling": {"type": "linear",
               "factor": 2, "rope_theta": 5e5},
        "rope_parameters": {"rope_type": "linear", "factor": 2}})",
              {})
              .base == 5e5);
}

TEST_CASE("layer types that nobody knows, and parameters that no layer has") {
    const std::string foo = small_llama_with(
        R"("layer_types": ["full_attention", "foo_attention"], "num_hidden_layers": 2)");
    CHECK_FALSE(
        warned(foo, {"layer foo_attention sliding_attention"}, {.by_layer = true, .layer = 1})
            .no_rope);
    warned(foo, {"layer foo_attention"});
    warned(foo, {}, {.by_layer = true, .layer = 0});
    const std::string unused =
        R"({"model_type": "llama", "head_dim": 64, "layer_types": ["full_attention",
           "full_attention"],
        "rope_parameters": {"full_attention": {"rope_theta": 1e4},
        "foo_attention": {"rope_theta": 1e6}}})";
    warned(unused, {"rope_parameters.foo_attention"});
    // Its own parameters define such a layer.
    const std::string own =
        R"({"model_type": "llama", "head_dim": 64, "layer_types": ["full_attention",
           "foo_attention"],
        "rope_parameters": {"full_attention": {"rope_theta": 1e4},
        "foo_attention": {"rope_theta": 1e6}}})";
    CHECK(warned(own, {}, {.by_layer = true, .layer = 1}).base == 1e6);
}

TEST_CASE("layers that are said twice, and differently") {
    const auto layers = [](const std::string& fields) {
        return small_llama_with(R"("num_hidden_layers": 4, )" + fields);
    };
    const std::string types =
        R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention",
           "full_attention"])";
    const ModelQuery first{.by_layer = true, .layer = 0};
    warned(layers(types + R"(, "sliding_window_pattern": 2)"), {}, first);
    warned(layers(types + R"(, "sliding_window_pattern": "LG")"), {}, first);
    warned(layers(types + R"(, "sliding_window_pattern": 4)"),
           {"sliding_window_pattern 4 layer_types 1"}, first);
    warned(layers(types + R"(, "sliding_window_pattern": "LLLG")"),
           {"sliding_window_pattern LLLG layer_types"}, first);
    warned(layers(R"("no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4)"), {}, first);
    warned(layers(R"("no_rope_layers": [1, 0, 1, 0], "no_rope_layer_interval": 4)"),
           {"no_rope_layer_interval 4 no_rope_layers 1"}, first);
}
