// SPDX-License-Identifier: MIT
// Configurations that must not become a Rotation: unsupported ones by name, broken ones with field, value and rule.
#include <doctest/doctest.h>

#include <string>

#include "vkrope/model.hpp"

using namespace vkrope;

namespace {

std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192, )" + fields +
           "}";
}

struct Bad {
    std::string json;
    const char* text;  // part of the message
};

void check_refused(const Bad& bad, Code code) {
    CAPTURE(bad.json.substr(0, 400));
    const Result<Rotation> result = from_hf_config(bad.json);
    CHECK(result.status.code == code);
    CHECK_MESSAGE(std::string(result.status.what).find(bad.text) != std::string::npos, result.status.what, " lacks ", bad.text);
    CHECK(result.value.inv_freq.empty());
    for (const char* c = result.status.what; *c != 0; ++c) {
        CHECK((*c >= ' ' && *c <= '~'));
    }
}

std::string nested(std::size_t depth) {
    return llama_with(R"("rope_theta": 10000, "x": )" + std::string(depth, '[') + std::string(depth, ']'));
}

/// A model of `type` that is plain in everything else.
std::string of_type(const std::string& type) {
    return R"({"model_type": ")" + type + R"(", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000})";
}

}  // namespace

TEST_CASE("scalings that are not supported are named, never read as default") {
    for (const char* type : {"yarn", "dynamic", "longrope", "su", "mrope", "proportional", "ntk", "Linear", ""}) {
        for (const char* key : {"type", "rope_type"}) {
            const std::string field = std::string("\"") + key + "\": \"" + type + "\"";
            const std::string text = std::string("rope_scaling.") + key + " is \"" + type + "\"";
            check_refused({llama_with(R"("rope_theta": 1e4, "rope_scaling": {)" + field + R"(, "factor": 2.0})"), text.c_str()},
                          Code::not_supported);
        }
    }
    check_refused({llama_with(R"("rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"})"), "rope_parameters.rope_type"},
                  Code::not_supported);
}

TEST_CASE("keys that change RoPE in ways not supported are named") {
    const Bad bad[] = {
        {llama_with(R"("rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]})"), "rope_scaling.mrope_section"},
        {llama_with(R"("rope_scaling": {"rope_type": "default", "mrope_interleaved": true})"), "rope_scaling.mrope_interleaved"},
        {llama_with(R"("qk_rope_head_dim": 64)"), "qk_rope_head_dim is 64"},
        {llama_with(R"("no_rope_layers": [1, 1, 0])"), "no_rope_layers is an array"},
        {llama_with(R"("no_rope_layer_interval": 4)"), "no_rope_layer_interval is 4"},
        {llama_with(R"("rope_local_base_freq": 10000.0)"), "rope_local_base_freq"},
        {llama_with(R"("global_rope_theta": 160000)"), "global_rope_theta"},
        {llama_with(R"("rope_ratio": 500)"), "rope_ratio is 500"},
        {llama_with(R"("alibi": true)"), "alibi is true"},
        {llama_with(R"("rotary": false)"), "rotary is false"},
        {llama_with(R"("use_dynamic_ntk": true)"), "use_dynamic_ntk"},
        {llama_with(R"("position_encoding_2d": true)"), "position_encoding_2d"},
        {llama_with(R"("position_embedding_type": "nope")"), "position_embedding_type is \"nope\""},
        {llama_with(R"("rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}})"),
         "rope_parameters.full_attention"},
        {R"({"model_type": "llava", "text_config": {"hidden_size": 4096, "num_attention_heads": 32}})", "text_config"},
        {R"({"model_type": "qwen2_5_omni_thinker", "thinker_config": {"text_config": {}}})", "thinker_config"},
    };
    for (const Bad& b : bad) {
        check_refused(b, Code::not_supported);
    }
}

TEST_CASE("model types whose RoPE is not plain are named") {
    for (const char* type : {"bert", "cohere2", "deepseek_v2", "deepseek_v3", "gemma3", "gemma3_text", "gpt2", "gpt_oss",
                             "llama4_text", "qwen2_vl", "qwen3_vl_text", "smollm3", "whisper"}) {
        const std::string text = std::string("model_type is \"") + type + "\"";
        check_refused({of_type(type), text.c_str()}, Code::not_supported);
    }
}

TEST_CASE("rope_theta") {
    for (const char* value : {"0", "-10000", "true", "false", "\"10000\"", "[]", "{}", "-0.0"}) {
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "rope_theta is "}, Code::invalid_data);
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "a finite number above 0"}, Code::invalid_data);
    }
    for (const char* value : {"NaN", "Infinity", "-Infinity"}) {
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "rope_theta is "}, Code::invalid_data);
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "must be a finite number"}, Code::invalid_data);
    }
    check_refused({llama_with("\"rope_theta\": NULL"), "not valid JSON"}, Code::invalid_data);
    check_refused({llama_with("\"rope_theta\": 1e999"), "number overflow"}, Code::invalid_data);
    check_refused({llama_with("\"rope_theta\": 1e-30"), "must be below 2048"}, Code::invalid_data);
    check_refused({R"({"model_type": "cohere", "hidden_size": 512, "num_attention_heads": 8})", "rope_theta is missing"},
                  Code::invalid_data);
}

TEST_CASE("a file that contradicts itself") {
    const Bad bad[] = {
        {llama_with(R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e6})"),
         "rope_theta is 10000.0 but rope_parameters.rope_theta is 1000000.0"},
        {llama_with(R"("rope_theta": 1e4, "rotary_emb_base": 1e6)"), "rotary_emb_base is 1000000.0"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "rope_type": "default", "factor": 2})"),
         R"(rope_scaling.rope_type is "default" but rope_scaling.type is "linear")"},
        {llama_with(R"("rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "default"})"),
         "rope_parameters and rope_scaling differ in "},
        {llama_with(R"("rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "linear", "factor": 4})"),
         "differ in factor"},
        {llama_with(R"("rope_scaling": {"type": "linear", "factor": 2, "x": 1},
                       "rope_parameters": {"rope_type": "linear", "factor": 2})"),
         "differ in x"},
        {llama_with(R"("partial_rotary_factor": 0.5, "rotary_pct": 0.25)"), "rotary_pct is 0.25"},
        {llama_with(R"("partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": 0.25})"),
         "rope_parameters.partial_rotary_factor is 0.25"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.5, "rotary_dim": 32)"), "asks for 64"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 128, "kv_channels": 64)"), "kv_channels is 64"},
        {llama_with(R"("rope_theta": 1e4, "rope_interleaved": true)"), "contradicts the pairing of model_type llama"},
        {llama_with(R"("rope_theta": 1e4, "original_max_position_embeddings": 4096, "rope_scaling": {"type": "llama3", "factor": 8,
                       "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192})"),
         "original_max_position_embeddings is 4096"},
    };
    for (const Bad& b : bad) {
        check_refused(b, Code::invalid_data);
    }
}

TEST_CASE("scaling parameters that are missing or out of range") {
    const auto llama3_without = [](const std::string& left_out) {
        std::string fields = R"("type": "llama3")";
        for (const char* field : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
            if (left_out != field) {
                fields += ", \"" + std::string(field) + "\": " + (field == std::string("low_freq_factor") ? "1" : "8");
            }
        }
        return llama_with(R"("rope_theta": 1e4, "rope_scaling": {)" + fields + "}");
    };
    for (const char* field : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
        const std::string text = std::string("rope_scaling.") + field + " is missing";
        check_refused({llama3_without(field), text.c_str()}, Code::invalid_data);
    }
    CHECK(from_hf_config(llama3_without("")));
    const Bad bad[] = {
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear"})"), "rope_scaling.factor is missing"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 0})"), "rope_scaling.factor is 0"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": "2"})"), "rope_scaling.factor is \"2\""},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": true})"), "rope_scaling.factor is true"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"factor": 2})"), "rope_scaling.rope_type is missing"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": 4})"), "rope_scaling.type is 4: must be a string"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": 4)"), "rope_scaling is 4: must be an object or null"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": [2])"), "rope_scaling is an array"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4,
                       "high_freq_factor": 4, "original_max_position_embeddings": 8192})"),
         "low_freq_factor is 4: must be below"},
    };
    for (const Bad& b : bad) {
        check_refused(b, Code::invalid_data);
    }
}

TEST_CASE("head counts and widths") {
    const auto heads = [](const std::string& hidden, const std::string& count) {
        return R"({"model_type": "llama", "rope_theta": 1e4, "hidden_size": )" + hidden + R"(, "num_attention_heads": )" + count +
               "}";
    };
    CHECK(from_hf_config(heads("4096.0", "32.0")).value.head_dim == 128);
    const Bad bad[] = {
        {heads("4096", "0"), "num_attention_heads is 0"},
        {heads("4096", "-32"), "num_attention_heads is -32"},
        {heads("4096", "1e300"), "num_attention_heads is "},
        {heads("4096", "99999999999999999999"), "num_attention_heads is "},
        {heads("4096", "32.5"), "num_attention_heads is 32.5: must be a whole number"},
        {heads("4096", "true"), "num_attention_heads is true"},
        {heads("\"4096\"", "32"), "hidden_size is \"4096\""},
        {heads("4096", "33"), "hidden_size is 4096 and num_attention_heads is 33"},
        {heads("32", "32"), "head_dim, must be whole, 2 to 65534"},
        {R"({"model_type": "llama", "rope_theta": 1e4, "hidden_size": 4096})", "num_attention_heads is missing"},
        {R"({"model_type": "llama", "rope_theta": 1e4})", "hidden_size is missing"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 1)"), "head_dim is 1"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 65536)"), "head_dim is 65536"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 127)"), "rotary_dim becomes 127: must be even, 2 to head_dim, which is 127"},
        {llama_with(R"("rope_theta": 1e4, "rotary_dim": 130)"), "rotary_dim is 130"},
        {llama_with(R"("rope_theta": 1e4, "rotary_dim": 63)"), "rotary_dim is 63"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.26)"), "partial_rotary_factor is 0.26: rotary_dim becomes 33"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.001)"), "rotary_dim becomes 0"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 1.5)"), "must be at most 1"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0)"), "partial_rotary_factor is 0"},
        {R"({"model_type": 3, "hidden_size": 4096, "num_attention_heads": 32})", "model_type is 3: must be a string"},
        {R"({"model_type": "x", "head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 0})", "max_position_embeddings is 0"},
        {R"({"model_type": "x", "head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 1e30})", "max_position_embeddings"},
    };
    for (const Bad& b : bad) {
        check_refused(b, Code::invalid_data);
    }
}

TEST_CASE("text that is not the JSON of a configuration") {
    const Bad bad[] = {
        {"", "not valid JSON"},
        {"{", "not valid JSON"},
        {llama_with("\"rope_theta\": 1e4") + "x", "not valid JSON"},
        {"[1]", "the document is an array: must be an object"},
        {"null", "the document is null"},
        {std::string("{\"a\": \"\xff\x1b[31m\"}"), "not valid JSON"},
        {llama_with(R"("rope_theta": 1e4, "rope_theta": 1e4)"), "the key \"rope_theta\" is given twice"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2, "factor": 4})"),
         "\"factor\" is given twice"},
        {llama_with(R"("rope_theta": 1e4, "a": [{"b": 1}, {"b\u001b": 1, "b\u001b": 2}])"), "is given twice"},
        {nested(64), "nested more than 64 deep"},
        {nested(1000000), "nested more than 64 deep"},
    };
    for (const Bad& b : bad) {
        check_refused(b, Code::invalid_data);
    }
    CHECK(from_hf_config(nested(63)));
    // The same key in two objects is no duplicate.
    CHECK(from_hf_config(llama_with(R"("rope_theta": 1e4, "a": [{"b": 1}, {"b": 1}], "b": {"b": 1})")));
}
