// SPDX-License-Identifier: MIT
// Configurations that must not become a RopeParams: unsupported ones by name, broken ones with
// field, value and rule.
#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "hf_config_refusals.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("models without RoPE are named") {
    const Bad bad[] = {
        {llama_with(R"("alibi": true)"), "alibi true"},
        {llama_with(R"("rotary": false)"), "rotary false"},
        {llama_with(R"("use_rope": false)"), "use_rope false"},
        {llama_with(R"("position_encoding_2d": true)"), "position_encoding_2d"},
        {llama_with(R"("position_embedding_type": "nope")"), "position_embedding_type nope"},
        {R"({"model_type": "falcon", "alibi": true})", "alibi true"},
        {R"({"model_type": "esm", "position_embedding_type": "absolute"})",
         "position_embedding_type absolute"},
        {R"({"model_type": "esm", "hidden_size": 320, "num_attention_heads": 20})",
         "position_embedding_type"},
        {R"({"model_type": "granitemoehybrid"})", "position_embedding_type"},
        {R"({"model_type": "brand_new", "position_embedding_type": "absolute"})",
         "position_embedding_type absolute"},
        {R"({"model_type": "baichuan", "hidden_size": 5120, "num_attention_heads": 40})",
         "hidden_size 5120"},
        {R"({"model_type": "llava", "text_config": {"model_type": "opt"}})",
         "text_config.model_type opt"},
        {R"({"model_type": "olmo_hybrid", "rope_parameters": null})",
         "rope_theta model_type olmo_hybrid"},
        {R"({"model_type": "xlm-roberta", "position_embedding_type": "absolute"})",
         "position_embedding_type absolute"},
        {R"({"model_type": "xlm-roberta", "hidden_size": 768})", "position_embedding_type"},
        {R"({"model_type": "new", "position_embedding_type": "absolute"})",
         "position_embedding_type absolute"},
        {R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32})", "rope model_type"},
        {R"({"model_type": "mpt", "attn_config": {"alibi": true}})", "attn_config.alibi true"},
        {R"({"model_type": "mpt", "attn_config": {"alibi": false, "rope": false}})",
         "attn_config.rope false"},
        {R"({"model_type": "mpt", "d_model": 64, "n_heads": 1, "attn_config": {"rope": true,
            "rope_impl": "hf", "rope_hf_config":
            {"type": "linear", "factor": 2}}})",
         "attn_config.rope_hf_config.type linear"},
        {R"({"model_type": "mpt", "d_model": 64, "n_heads": 1, "attn_config": {"rope": true,
            "rope_dail_config": {"type": "xpos"}}})",
         "attn_config.rope_dail_config.type xpos"},
        {R"({"model_type": "zamba2", "hidden_size": 2560, "num_attention_heads": 32})",
         "use_mem_rope"},
        {R"({"model_type": "zamba2", "use_mem_rope": false})", "use_mem_rope false"},
        {R"({"model_type": "zamba2", "use_mem_rope": true, "use_long_context": true})",
         "use_long_context true"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_NOT_SUPPORTED);
    }
    for (const char* type :
         {"bert", "bloom", "cohere2_moe", "gpt2", "jamba", "m2m_100", "mamba", "mt5", "nemotron_h",
          "openai-gpt", "opt", "siglip_vision_model", "umt5", "wav2vec2", "whisper", "xlnet"}) {
        check_refused({of_type(type), "model_type " + std::string(type)},
                      VKROPE_ERROR_NOT_SUPPORTED);
    }
}

TEST_CASE("a class that nobody knows has RoPE only where some key says so") {
    const auto unknown = [](const std::string& fields) {
        return R"({"model_type": "brand_new", "hidden_size": 4096, "num_attention_heads": 32)" +
               fields + "}";
    };
    check_refused({unknown(""), "model_type brand_new"}, VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({unknown(R"(, "max_position_embeddings": 512, "position_embedding_type": null)"),
                   "brand_new"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    for (const char* names_it :
         {R"("rope_theta": 1e4)", R"("rope_scaling": null)", R"("rope_parameters": {})",
          R"("rotary_dim": 64)", R"("partial_rotary_factor": 0.5)",
          R"("position_embedding_type": "rope")"}) {
        CAPTURE(std::string(names_it));
        CHECK(from_hf_config(unknown(", " + std::string(names_it))));
    }
}

TEST_CASE("what a query asks for and the model does not have") {
    const std::string llama = llama_with(R"("rope_theta": 1e4, "num_hidden_layers": 3)");
    const std::string gemma = R"({"model_type": "gemma3_text", "num_hidden_layers": 6})";
    const auto refused = [](const std::string& json, const ModelQuery& query, ErrorCode code,
                            const std::string& words) {
        check_refused({json, words}, code, query);
    };
    refused(llama, {.layer_type = "full_attention"}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.layer_type full_attention");
    refused(llama, {.by_layer = true, .layer = 3}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.layer 3 3");
    refused(llama, {.layer_type = "full_attention", .by_layer = true, .layer = 1},
            VKROPE_ERROR_INVALID_ARGUMENT, "query.layer 1 query.layer_type");
    refused(llama, {.seq_len = (std::uint64_t{1} << 31) + 1}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.seq_len 2147483649");
    refused(llama, {.tower = "vision"}, VKROPE_ERROR_INVALID_ARGUMENT, "vision_config");
    refused(llama, {.tower = "audio"}, VKROPE_ERROR_INVALID_ARGUMENT, "query.tower audio");
    refused(gemma, {.layer_type = "local"}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.layer_type local full_attention sliding_attention");
    refused(gemma, {.by_layer = true, .layer = 6}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.layer 6 6");
    refused(R"({"model_type": "gemma3", "vision_config": {"model_type": "siglip_vision_model"}})",
            {.tower = "vision"}, VKROPE_ERROR_NOT_SUPPORTED, "siglip_vision_model");
    refused(R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 24}})",
            {.tower = "vision"}, VKROPE_ERROR_INVALID_DATA,
            "vision_config.hidden_size 1280 num_heads 24");
    refused(R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 96, "num_heads": 16}})",
            {.tower = "vision"}, VKROPE_ERROR_INVALID_DATA, "vision_config.head_dim 6 4");
    refused(R"({"model_type": "qwen2_vl", "vision_config": {}})",
            {.by_layer = true, .layer = 1, .tower = "vision"}, VKROPE_ERROR_INVALID_ARGUMENT,
            "query.tower vision layers");
}

TEST_CASE("lists and sections of the wrong length") {
    const std::string vl =
        R"({"model_type": "qwen2_vl", "hidden_size": 1536, "num_attention_heads": 12,
           "rope_theta": 1e6, )";
    const Bad bad[] = {
        {vl + R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 25]}})",
         "rope_scaling.mrope_section 65 64"},
        {vl + R"("rope_scaling": {"type": "mrope", "mrope_section": [64]}})",
         "rope_scaling.mrope_section 1 2 8"},
        {vl + R"("rope_scaling": {"type": "mrope", "mrope_section": 64}})",
         "rope_scaling.mrope_section 64"},
        {vl + R"("rope_scaling": {"type": "mrope", "mrope_section": [16, -24, 72]}})",
         "rope_scaling.mrope_section[1] -24"},
        {vl +
             R"("rope_scaling": {"type": "mrope", "mrope_section": [32, 32],
                "mrope_interleaved": true}})",
         "rope_scaling.mrope_section 2 3"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "mrope"})"), "mrope_section"},
        {llama_with(R"("rope_theta": 1e4, "mrope_interleaved": true)"), "mrope_section"},
        {llama_with(
             R"("rope_theta": 1e4, "head_dim": 4, "rope_scaling": {"type": "longrope", "factor": 2,
                       "short_factor": [1, 1, 1], "long_factor": [1, 1]})"),
         "rope_scaling.short_factor 3 2"},
        {llama_with(
             R"("rope_theta": 1e4, "head_dim": 4, "rope_scaling": {"type": "longrope", "factor": 2,
                       "short_factor": [1, 1], "long_factor": [1, 0]})"),
         "rope_scaling.long_factor[1] 0"},
        {llama_with(
             R"("rope_theta": 1e4, "head_dim": 4, "rope_scaling": {"type": "su", "factor": 2,
                "short_factor": 3})"),
         "rope_scaling.short_factor 3"},
        {llama_with(
             R"("rope_theta": 1e4, "num_hidden_layers": 3, "layer_types": ["full_attention"])"),
         "layer_types 1 3"},
        {llama_with(R"("rope_theta": 1e4, "layer_types": [1])"), "layer_types[0] 1"},
        {llama_with(R"("rope_theta": 1e4, "layer_types": "full_attention")"),
         "layer_types full_attention"},
        {llama_with(R"("rope_theta": 1e4, "num_hidden_layers": 3, "no_rope_layers": [1, 0])"),
         "no_rope_layers 2"},
        {llama_with(R"("rope_theta": 1e4, "no_rope_layers": [1, 2])"), "no_rope_layers[1] 2"},
        {llama_with(R"("rope_theta": 1e4, "no_rope_layer_interval": 0)"),
         "no_rope_layer_interval 0"},
        {llama_with(R"("qk_rope_head_dim": 64)"), "qk_nope_head_dim"},
        {R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 63})", "rotary_dim 63"},
        {llama_with(R"("rope_theta": 1e4, "rope_ratio": 0)"), "rope_ratio 0"},
        {llama_with(R"("layer_types": ["full_attention", "sliding_attention"],
                       "rope_parameters": {"sliding_attention": {"rope_theta": 1e4}})"),
         "rope_parameters full_attention"},
        {llama_with(R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}, "factor": 2})"),
         "rope_parameters factor"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
    check_refused({llama_with(R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}})"),
                   "layer_types"},
                  VKROPE_ERROR_INVALID_DATA, {.by_layer = true, .layer = 1});
}

TEST_CASE("rope_theta") {
    for (const char* value : {"0", "-10000", "true", "false", "\"10000\"", "[]", "{}", "-0.0",
                              "NaN", "Infinity", "-Infinity"})
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "rope_theta"},
                      VKROPE_ERROR_INVALID_DATA);
    check_refused({llama_with("\"rope_theta\": NULL"), "JSON"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({llama_with("\"rope_theta\": 1e999"), "1e999"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({llama_with("\"rope_theta\": 1e-30"), "rope_theta 1e-30 2048"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused(
        {R"({"model_type": "youtu", "hidden_size": 512, "num_attention_heads": 8})", "rope_theta"},
        VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("floats that are not finite are passed over where nothing reads them, and nowhere else") {
    const std::string plain =
        R"({"model_type": "llama", "head_dim": 4, "rope_theta": 1e4,
           "max_position_embeddings": 64)";
    const std::string unread =
        R"(, "x": null, "time_step_limit": [0.0, Infinity, null, {"y": -Infinity}], "z": NaN,
        "text \" NaN": "a \\" , "NaN\\": null)";
    const Result<RopeParams> result = from_hf_config(plain + unread + "}");
    REQUIRE_MESSAGE(result, result.status.what);
    CHECK(result.value.inv_freq == from_hf_config(plain + "}").value.inv_freq);
    const Bad bad[] = {
        {plain + unread + R"(, "rope_scaling": {"type": "linear", "factor": NaN}})",
         "rope_scaling.factor NaN"},
        {plain + R"(, "rope_scaling": {"type": "linear", "factor": Infinity}})",
         "rope_scaling.factor Infinity"},
        {plain +
             R"(, "rope_scaling": {"type": "longrope", "factor": 2, "short_factor": [1, -Infinity],
                "long_factor": [1, 1]}})",
         "rope_scaling.short_factor[1] -Infinity"},
        {plain + R"(, "num_hidden_layers": NaN})", "num_hidden_layers NaN"},
        {R"({"model_type": NaN})", "model_type NaN"},
        {plain + R"(, "a": NaN, "b": 1, "b": 2})", "b"},
        {plain + R"(, "a": NaN, "b": 1e999})", "1e999"},
        {R"({"a": NaNs})", "JSON"},
        {R"({"a": +Infinity})", "JSON"},
        {R"({"a": 1Infinity})", "JSON"},
        {R"({NaN: 1})", "JSON"},
        {R"({"a": nullNaN})", "JSON"},
        {"NaN", "NaN"},
        {R"({"a": NaN, "b": "\)", "JSON"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
}

TEST_CASE("a file that contradicts itself") {
    const Bad bad[] = {
        {llama_with(R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e6})"),
         "rope_theta 10000.0 rope_parameters.rope_theta 1000000.0"},
        {llama_with(R"("rope_theta": 1e4, "rotary_emb_base": 1e6)"), "rotary_emb_base 1000000.0"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "rope_type": "default",
                "factor": 2})"),
         "rope_scaling.rope_type default rope_scaling.type linear"},
        {llama_with(
             R"("rope_scaling": {"type": "linear", "factor": 2},
                "rope_parameters": {"rope_type": "default"})"),
         "rope_parameters rope_scaling"},
        {llama_with(
             R"("rope_scaling": {"type": "linear", "factor": 2},
                "rope_parameters": {"rope_type": "linear", "factor": 4})"),
         "rope_parameters rope_scaling factor"},
        {llama_with(R"("rope_scaling": {"type": "linear", "factor": 2, "x": 1},
                       "rope_parameters": {"rope_type": "linear", "factor": 2})"),
         "rope_parameters rope_scaling x"},
        {llama_with(R"("rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 5e5},
                       "rope_parameters": {"rope_type": "linear", "factor": 2,
                       "rope_theta": 1e4})"),
         "rope_parameters rope_scaling rope_theta"},
        {llama_with(
             R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}, "rope_theta": 1e6})"),
         "rope_theta"},
        {llama_with(R"("partial_rotary_factor": 0.5, "rotary_pct": 0.25)"), "rotary_pct 0.25"},
        {llama_with(
             R"("partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": 0.25})"),
         "rope_parameters.partial_rotary_factor 0.25"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.5, "rotary_dim": 32)"),
         "rotary_dim 32 64"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 128, "kv_channels": 64)"), "kv_channels 64"},
        {llama_with(R"("rope_theta": 1e4, "rope_interleaved": true)"), "model_type"},
        {llama_with(
             R"("rope_theta": 1e4, "original_max_position_embeddings": 4096,
                "rope_scaling": {"type": "llama3", "factor": 8,
                       "low_freq_factor": 1, "high_freq_factor": 4,
                       "original_max_position_embeddings": 8192})"),
         "original_max_position_embeddings 4096"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
}

TEST_CASE("head counts and widths") {
    const auto heads = [](const std::string& hidden, const std::string& count) {
        return R"({"model_type": "llama", "rope_theta": 1e4, "hidden_size": )" + hidden +
               R"(, "num_attention_heads": )" + count + "}";
    };
    CHECK(from_hf_config(heads("4096.0", "32.0")).value.head_dim == 128);
    const Bad bad[] = {
        {heads("4096", "0"), "num_attention_heads 0"},
        {heads("4096", "-32"), "num_attention_heads -32"},
        {heads("4096", "1e300"), "num_attention_heads"},
        {heads("4096", "99999999999999999999"), "num_attention_heads"},
        {heads("4096", "32.5"), "num_attention_heads 32.5"},
        {heads("4096", "true"), "num_attention_heads true"},
        {heads("\"4096\"", "32"), "hidden_size 4096"},
        {heads("4096", "33"), "hidden_size 4096 num_attention_heads 33"},
        {heads("32", "32"), "head_dim 2 65534"},
        {R"({"model_type": "brand_new", "rope_theta": 1e4, "hidden_size": 4096})",
         "num_attention_heads"},
        {R"({"model_type": "brand_new", "rope_theta": 1e4})", "hidden_size"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 1)"), "head_dim 1"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 65536)"), "head_dim 65536"},
        {llama_with(R"("rope_theta": 1e4, "head_dim": 127)"), "rotary_dim 127 2 head_dim 127"},
        {llama_with(R"("rope_theta": 1e4, "rotary_dim": 130)"), "rotary_dim 130"},
        {llama_with(R"("rope_theta": 1e4, "rotary_dim": 63)"), "rotary_dim 63"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.26)"),
         "partial_rotary_factor 0.26 rotary_dim 33"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0.001)"), "rotary_dim 0"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 1.5)"),
         "partial_rotary_factor 1.5 1"},
        {llama_with(R"("rope_theta": 1e4, "partial_rotary_factor": 0)"), "partial_rotary_factor 0"},
        {R"({"model_type": 3, "hidden_size": 4096, "num_attention_heads": 32})", "model_type 3"},
        {R"({"model_type": "x", "head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 0})",
         "max_position_embeddings 0"},
        {R"({"model_type": "x", "head_dim": 64, "rope_theta": 1e4,
            "max_position_embeddings": 1e30})",
         "max_position_embeddings"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
}

TEST_CASE("a message names whole words, in their order") {
    const std::string message = "rope.factor[1] is -2.5: it must be 1 to 20";
    for (const char* words : {"", "rope.factor[1] -2.5", "rope.factor[1] 1 20", "-2.5 20"})
        CHECK(names(message, words));
    for (const char* words : {"factor[1]", "rope.factor", "rope", "2.5", "-2", "2", "20 1"})
        CHECK(!names(message, words));
}
