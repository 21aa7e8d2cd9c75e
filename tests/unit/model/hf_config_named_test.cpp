// SPDX-License-Identifier: MIT
// Keys under other names than those that are read, and keys of one class in files of another: each
// is read, an error that names it, or a warning.
#include <doctest/doctest.h>

#include <string>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "hf_config_warned.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

constexpr ModelQuery by_caller = {.pairing = VKROPE_INTERLEAVED};

/// A class that no table has.
std::string nautilus_with(const std::string& fields) {
    return R"({"model_type": "nautilus", "head_dim": 128, "rope_theta": 1e4,
              "num_hidden_layers": 8, "max_position_embeddings": 8192)" +
           (fields.empty() ? "" : ", " + fields) + "}";
}

void refused_without_pairing(const std::string& fields, const std::string& words) {
    check_refused({nautilus_with(fields), words}, VKROPE_ERROR_NOT_SUPPORTED);
}

void refused_for_all(const std::string& fields, const std::string& words) {
    check_refused({nautilus_with(fields), words}, VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({nautilus_with(fields), words}, VKROPE_ERROR_NOT_SUPPORTED, by_caller);
}

}  // namespace

TEST_CASE("an unknown class with latent attention under other names is refused by name") {
    refused_for_all(R"("kv_lora_rank": 512, "q_lora_rank": 1536)", "kv_lora_rank 512");
    refused_for_all(R"("qk_pos_emb_head_dim": 64, "qk_head_dim": 128)", "qk_pos_emb_head_dim 64");
    refused_for_all(R"("rope_head_dim": 64, "nope_head_dim": 128)", "nope_head_dim 128");
    refused_for_all(R"("mla_config": {"qk_rope_head_dim": 64})", "mla_config.qk_rope_head_dim 64");
    refused_for_all(R"("attention": [{"mla": {"kv_lora_rank": 512}}])",
                    "attention[].mla.kv_lora_rank 512");
    // The widths under the names that are read: the pairing alone is unknown.
    const std::string widths =
        R"("qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512)";
    refused_without_pairing(widths, "nautilus qk_rope_head_dim pairing");
    const RopeParams read = imported(nautilus_with(widths), by_caller);
    CHECK(read.rotary_dim == 64);
    CHECK(read.q_rotary_offset == 128);
    CHECK(read.k_rotary_offset == 512);
    // No latent attention, and that of a tower.
    for (const char* other : {R"("kv_lora_rank": null)", R"("kv_lora_rank": 0)",
                              R"("vision_config": {"kv_lora_rank": 512})",
                              R"("kv_lora_rank": 512, "use_mla": false)"}) {
        CHECK(imported(nautilus_with(other)).rotary_dim == 128);
    }
}

TEST_CASE("norms that a key of MPT asks for are not known, in any class") {
    const auto mpt = [](const std::string& fields) {
        return R"({"model_type": "mpt", "d_model": 2048, "n_heads": 16, "n_layers": 4,
                  "attn_config": {"rope": true, "rope_theta": 10000, )" +
               fields + "}}";
    };
    for (const char* key : {"qk_ln", "qk_gn"}) {
        const std::string asks = '"' + std::string(key) + "\": true";
        const RopeParams rotation = imported(mpt(asks));
        CHECK_FALSE(rotation.ops.norms_known);
        CHECK(warns(rotation, "Q K norms not known mpt"));
        CHECK(imported(mpt('"' + std::string(key) + "\": false")).ops.norms_known);
        CHECK_FALSE(imported(small_llama_with(asks)).ops.norms_known);
    }
    CHECK(imported(mpt(R"("qk_ln": false, "qk_gn": false)")).ops.norms_known);
    for (const char* key : {"q_ln", "k_ln", "ln_qk", "QKNorm", "use_QK_norm", "qkNorm"}) {
        warned(small_llama_with('"' + std::string(key) + "\": true"),
               {std::string(key) + " true llama Q K norms not known"});
    }
}

TEST_CASE("Llama 3.2's cross-attention layers have norms of Q and K, and no RoPE") {
    const auto mllama = [](const std::string& fields) {
        return R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
                   "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 5e5, )" +
               fields + R"("cross_attention_layers": [3, 5]}})";
    };
    for (const char* fields : {R"("num_hidden_layers": 8, )", R"("rms_norm_eps": 1e-5, )"}) {
        const std::string json = mllama(fields);
        for (int layer = 0; layer < 8; ++layer) {
            CAPTURE(layer);
            const bool crosses = layer == 3 || layer == 5;
            const RopeParams rotation = warned(json, {},
                                               {.by_layer = true, .layer = std::uint32_t(layer)});
            const Norm& norm = rotation.ops.tensor[K].norm;
            CHECK(!rotation.no_rope == !crosses);
            CHECK(rotation.ops.norms_known);
            CHECK(norm.kind == (crosses ? VKROPE_NORM_RMS : VKROPE_NORM_NONE));
            CHECK(rotation.ops.tensor[Q].norm.kind == norm.kind);
            if (!crosses) continue;
            CHECK(norm.span == VKROPE_NORM_SPAN_HEAD);
            CHECK(norm.weight == VKROPE_PARAMETER_CHANNEL);
            CHECK(norm.eps == 1e-5f);
        }
        warned(json, {"layers RoPE"});
    }
    CHECK(imported(mllama(R"("rms_norm_eps": 1e-3, )"), {.by_layer = true, .layer = 3})
              .ops.tensor[Q]
              .norm.eps == 1e-3f);
    check_refused(
        {mllama(R"("num_hidden_layers": 5, )"), "text_config.cross_attention_layers[1] 5"},
        VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("scalings and bases of one class are not dropped in another") {
    const std::string linear = R"({"type": "linear", "factor": 4})";
    for (const char* impl : {"", R"("rope_impl": "hf", )", R"("rope_impl": "dail", )"}) {
        for (const char* key : {"rope_hf_config", "rope_dail_config"}) {
            const std::string fields = impl + ('"' + std::string(key) + "\": ");
            check_refused({small_llama_with(fields + linear), std::string(key) + ".type linear"},
                          VKROPE_ERROR_NOT_SUPPORTED);
            check_refused({small_llama_with(fields + R"({"factor": 4})"), key},
                          VKROPE_ERROR_NOT_SUPPORTED);
            refused_for_all(fields + linear, std::string(key) + ".type linear");
        }
        warned(small_llama_with(impl + std::string(R"("rope_hf_config": {"type": "no_scaling",
                   "factor": 1.0}, "rope_dail_config": {"type": "original"})")),
               {});
    }
    CHECK(warns(imported(small_llama_with(R"("compress_rope_theta": 160000)")),
                "compress_rope_theta"));
    CHECK(warns(imported(nautilus_with(R"("original_rope": false)")), "original_rope false"));
}

TEST_CASE("a key that turns RoPE off, in the model or in some layers, is an error in any class") {
    for (const char* key : {"use_rope", "use_rotary", "use_rotary_embeddings",
                            "use_rotary_position_embeddings", "use_rotary_pos_emb"}) {
        const std::string name = '"' + std::string(key) + "\": ";
        for (const char* off : {"false", "0", "[true, false]", "[1, 1, 1, 0]"}) {
            refused_for_all(name + off, key);
            check_refused({small_llama_with(name + off), key}, VKROPE_ERROR_NOT_SUPPORTED);
        }
        for (const char* on : {"true", "null"}) {
            warned(small_llama_with(name + on), {});
        }
    }
    // One that nobody knows is named.
    warned(small_llama_with(R"("use_spiral_rope": false)"), {"use_spiral_rope false llama"});
    warned(small_llama_with(R"("enable_rotary_cache": false)"), {"enable_rotary_cache false"});
}

TEST_CASE("keys of other frameworks that change what an unknown class turns") {
    // Which layers turn: only a question about all of them is answered.
    for (const char* fields : {R"("rope_layout": [0, 1, 1, 1])", R"("nope_interval": 4)",
                               R"("is_nope": [0, 1])", R"("interleaved_nope": true)",
                               R"("global_layers": [3, 7])", R"("no_pos_emb_layers": [3])",
                               R"("sliding_window_layout": [0, 1])", R"("local_layers": [0])"}) {
        const std::string name = std::string(fields).substr(1, std::string(fields).find(':') - 2);
        check_refused({nautilus_with(fields), name}, VKROPE_ERROR_NOT_SUPPORTED,
                      {.by_layer = true, .layer = 3});
        CHECK(warns(imported(nautilus_with(fields)), name));
        CHECK(warns(imported(small_llama_with(fields)), name));
    }
    // Which channels form a pair.
    for (const char* fields :
         {R"("rope_style": "gptj")", R"("rotary_interleaved": true)", R"("rope_traditional": true)",
          R"("is_neox_style": false)", R"("rotary_style": "interleaved")"}) {
        const std::string name = std::string(fields).substr(1, std::string(fields).find(':') - 2);
        refused_without_pairing(fields, name + " pairing");
        CHECK(imported(nautilus_with(fields), by_caller).pairing == interleaved);
    }
    // LitGPT's names.
    const std::string litgpt = R"({"name": "pythia", "n_layer": 6, "n_head": 8, "n_embd": 512,
                                   "rotary_percentage": 0.25, "rope_base": 20000)";
    const RopeParams quarter = imported(litgpt + "}");
    CHECK(quarter.rotary_dim == 16);
    CHECK(quarter.base == 20000);
    warned(litgpt + R"(, "rope_condense_ratio": 1})", {"model_type", "rope_condense_ratio"});
    check_refused({litgpt + R"(, "rope_condense_ratio": 4})", "rope_condense_ratio 4"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("Cohere 2's layer_switch is the period of its full attention") {
    const auto cohere = [](const char* key) {
        return R"({"model_type": "cohere2", "head_dim": 128, "rope_theta": 5e4, ")" +
               std::string(key) + R"(": 8})";
    };
    for (const char* key : {"layer_switch", "sliding_window_pattern"}) {
        CHECK_FALSE(imported(cohere(key), {.by_layer = true, .layer = 3}).no_rope);
        CHECK(warned(cohere(key), {}, {.by_layer = true, .layer = 7}).no_rope);
    }
}

TEST_CASE("a value that another kind of layer has contradicts nothing") {
    const auto base = [](const std::string& json, int layer) {
        return imported(json, {.by_layer = true, .layer = std::uint32_t(layer)}).base;
    };
    const auto modern = [](const char* theta) {
        return R"({"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12,
                   "num_hidden_layers": 22, "global_rope_theta": 160000.0,
                   "local_rope_theta": 10000.0, "rope_theta": )" +
               std::string(theta) + "}";
    };
    CHECK(base(modern("10000.0"), 0) == 160000);
    CHECK(base(modern("10000.0"), 1) == 10000);
    check_refused({modern("20000"), "rope_theta 20000 global_rope_theta 160000.0"},
                  VKROPE_ERROR_INVALID_DATA, {.by_layer = true, .layer = 0});
    const std::string gemma =
        R"({"model_type": "gemma3_text", "head_dim": 256, "num_hidden_layers": 12,
            "rope_theta": 10000.0, "rope_local_base_freq": 10000.0,
            "rope_parameters": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}})";
    CHECK(base(gemma, 5) == 1000000);
    CHECK(base(gemma, 0) == 10000);
    const auto mimo = [](const char* width) {
        return R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 4, "head_dim": 192,
                   "swa_head_dim": 128, "rope_theta": 5e6, "swa_rope_theta": 1e4,
                   "hybrid_layer_pattern": [0, 1, 0, 1], "attention_head_dim": )" +
               std::string(width) + "}";
    };
    CHECK(imported(mimo("128"), {.by_layer = true, .layer = 0}).head_dim == 192);
    CHECK(imported(mimo("128"), {.by_layer = true, .layer = 1}).head_dim == 128);
    check_refused({mimo("64"), "head_dim 192 attention_head_dim 64"}, VKROPE_ERROR_INVALID_DATA,
                  {.by_layer = true, .layer = 0});
}
