// SPDX-License-Identifier: MIT
// No key that says a scaling, a choice of layers or a norm is dropped in silence, whatever the
// class of the model: it is read, named in a warning, or an error.
#include <doctest/doctest.h>

#include <string>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "hf_config_warned.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/readers.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

/// A key, with a value that asks for something, and one that asks for something else.
struct Key {
    const char* name;
    const char* value;
    const char* other = "null";
};

constexpr const char* yarn_object =
    R"({"factor": 4, "original_max_position_embeddings": 2048, "beta": 32, "alpha": 1})";

constexpr Key keys[] = {
    {"yarn", yarn_object},
    {"ntk", R"({"alpha": 4})"},
    {"ntk_alpha", "4"},
    {"use_dynamic_ntk", "true"},
    {"llama_4_scaling", R"({"beta": 0.1, "original_max_position_embeddings": 2048})"},
    {"scaling", R"({"type": "linear", "factor": 4})"},
    {"rope_scaling_factor", "4"},
    {"yarn_only_types", R"(["full_attention"])"},
    {"ntk_only_types", R"(["full_attention"])"},
    {"qk_norm", "true", "false"},
    {"use_qk_norm", "true", "false"},
    {"qk_layernorm", "true", "false"},
    {"normalize_qk", "true", "false"},
    {"layer_group_size", "4"},
    {"nope_layer_interval", "4"},
    {"use_irope", "true"},
    {"attn_temperature_tuning", "true", "false"},
    {"use_logn_attn", "true", "false"},
};

/// A configuration that every class reads.
std::string config_of(const ModelType& type, const std::string& fields) {
    std::string json = R"({"model_type": ")" + std::string(type.name) +
                       R"(", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000,
                          "max_position_embeddings": 8192, "seq_length": 8192,
                          "num_hidden_layers": 4)";
    const std::string asked_by = type.rope_asked_by ? type.rope_asked_by : "";
    if (asked_by == "position_embedding_type") json += R"(, "position_embedding_type": "rope")";
    if (asked_by == "use_mem_rope") json += R"(, "use_mem_rope": true)";
    if (asked_by == "rope") json += R"(, "attn_config": {"rope": true})";
    if (type.partial_rotary_factor == 0.9) json += R"(, "head_dim": 40)";  // 36 channels
    if (type.layers.rule == LayerRule::compressed) {
        json += R"(, "compress_ratios": [0, 4, 128, 4], "rope_parameters": {
                    "main": {"rope_type": "default", "rope_theta": 10000},
                    "compress": {"rope_type": "default", "rope_theta": 160000}})";
    }
    return json + fields + "}";
}

bool same(const RopeParams& a, const RopeParams& b) {
    const auto ops = [](const RopeParams& rotation) {
        const ModelOps& f = rotation.ops;
        return std::tuple(f.tensor[Q].norm.kind, f.tensor[Q].norm.place, f.tensor[Q].clip,
                          f.query_scale.kind, f.query_scale.beta, f.query_scale.length);
    };
    return a.inv_freq == b.inv_freq && a.attention_factor == b.attention_factor &&
           a.softmax_scale == b.softmax_scale && a.pairing == b.pairing &&
           !a.no_rope == !b.no_rope && ops(a) == ops(b);
}

std::size_t named(const Result<RopeParams>& result, const std::string& key) {
    return std::size_t(std::count_if(
        result.value.warnings.begin(), result.value.warnings.end(),
        [&](const std::string& warning) { return warning.find(key) != warning.npos; }));
}

/// Whether `fields` with the key give an error or a warning that names it, or other numbers.
bool noticed(const ModelType& type, const Key& key, const char* value, const ModelQuery& query) {
    std::string others = std::string(key.name).ends_with("_only_types")
                             ? R"(, "rope_scaling": {"type": "yarn", "factor": 4,
                                         "original_max_position_embeddings": 2048})"
                             : "";
    const bool lists = type.layers.rule == LayerRule::scaled_on_listed;
    if (!others.empty() && lists && key.name != std::string("yarn_only_types")) {
        others += R"(, "yarn_only_types": ["full_attention"])";
    }
    const auto with = [&](const std::string& json) {
        return from_hf_config(config_of(type, others + ", \"" + key.name + "\": " + json), query);
    };
    const Result<RopeParams> without = with("null"), result = with(value);
    if (!result) return names(result.status.what, key.name);
    return !without || !same(without.value, result.value) ||
           named(result, key.name) > named(without, key.name);
}

}  // namespace

TEST_CASE("every class is read by the configuration of the tests below") {
    for (const ModelType& type : all_model_types()) {
        const Result<RopeParams> result = from_hf_config(config_of(type, ""));
        CHECK_MESSAGE(result, type.name, ": ", result.status.what);
    }
}

TEST_CASE("a key that says scaling, layers or a norm is noticed in every class") {
    const ModelQuery full = {.seq_len = 65536};
    for (const ModelType& type : all_model_types()) {
        for (const Key& key : keys) {
            CAPTURE(std::string(type.name));
            CAPTURE(std::string(key.name));
            if (ops_reads(type.name, key.name)) {  // then one of the two is what a class assumes
                const bool still = type.full_without_rope &&
                                   std::string(key.name) == "attn_temperature_tuning";
                const ModelQuery query = {
                    .seq_len = 65536, .by_layer = still, .layer = still ? 3u : 0u};
                CHECK(
                    (noticed(type, key, key.value, query) || noticed(type, key, key.other, query)));
            } else if (!(std::string(key.name).ends_with(
                             "_only_types") &&  // no scaling goes with it
                         (type.layers.rule == LayerRule::compressed ||
                          type.alternating == Alternating::then_time))) {
                CHECK(noticed(type, key, key.value, full));
            }
        }
    }
}

TEST_CASE("a key that turns something off, or that scales something else, is not named") {
    for (const char* key : {"qk_norm", "use_qk_norm", "normalize_qk", "yarn", "ntk_alpha"}) {
        for (const char* off : {"false", "null", "0", "[]", "{}"}) {
            warned(small_llama_with('"' + std::string(key) + "\": " + off), {});
        }
    }
    for (const char* key :
         {"logits_scaling", "routed_scaling_factor", "embedding_scaling", "max_window_layers",
          "post_attention_layernorm", "qk_nope_head_dim", "rank_norm", "norm_topk_prob"}) {
        warned(small_llama_with('"' + std::string(key) + "\": 2"), {});
    }
}

TEST_CASE("a key of norms is one warning, which says what is read") {
    // A class whose norms nothing turns off.
    for (const char* value : {"false", "true", "0.5"}) {
        const RopeParams qwen = imported(
            R"({"model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6, "use_qk_norm": )" +
            std::string(value) + "}");
        CHECK(warns(qwen, "use_qk_norm " + std::string(value) + " norms Q K qwen3"));
        CHECK(!warns(qwen, "not known"));
        CHECK(qwen.ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    }
    for (const char* key : {"use_qk_norm", "qk_norm", "qk_layer_norm", "query_layernorm"}) {
        const RopeParams llama = warned(small_llama_with('"' + std::string(key) + "\": true"),
                                        {std::string(key) + " true llama Q K norms not known"});
        CHECK_FALSE(llama.ops.norms_known);
    }
}

TEST_CASE("a key that says something is noticed in objects that nobody reads") {
    const auto inside = [](const std::string& object, const std::string& fields) {
        return '"' + object + "\": " + fields;
    };
    for (const char* object : {"attention", "attn_cfg", "position", "block", "head_config"}) {
        const std::string name = object;
        warned(small_llama_with(inside(name, R"({"bias": true, "n": 4})")), {});
        warned(small_llama_with(inside(name, R"({"qk_norm": false, "use_rope": true})")),
               {name + ".use_rope"});
        warned(small_llama_with(inside(name, R"({"qk_norm": true})")),
               {name + ".qk_norm true Q K norms not known"});
        warned(small_llama_with(inside(name, R"([{"qk_norm": true}, {"qk_norm": true}])")),
               {name + "[].qk_norm true norms not known"});
        warned(small_llama_with(inside(name, R"({"rope_theta": 1e6})")), {name + ".rope_theta"});
        warned(small_llama_with(inside(name, R"({"use_rope": false})")),
               {name + ".use_rope false"});
        warned(small_llama_with(inside(name, R"({"more": {"nope_layers": [3]}})")),
               {name + ".more.nope_layers"});
        const char* scaled[][2] = {
            {R"({"rope_scaling": {"type": "linear", "factor": 2}})", ".rope_scaling"},
            {R"({"yarn": {"factor": 4}})", ".yarn"},
            {R"({"more": {"rope_parameters": {"rope_type": "yarn"}}})", ".more.rope_parameters"},
            {R"([{"scaling": {"factor": 4}}])", "[].scaling"},
            {R"({"type": "yarn", "factor": 4})", ".type yarn"},
            {R"({"rope_type": "longrope"})", ".rope_type longrope"},
        };
        for (const auto& [fields, key] : scaled) {
            check_refused({small_llama_with(inside(name, fields)), name + key},
                          VKROPE_ERROR_NOT_SUPPORTED);
            check_refused({R"({"model_type": "llava", )" + inside(name, fields) +
                               R"(, "text_config": {"model_type": "llama", "head_dim": 64}})",
                           name + key},
                          VKROPE_ERROR_NOT_SUPPORTED);
        }
    }
    // Other models, and what is no attention.
    for (const char* other :
         {R"("vision_config": {"qk_norm": true, "yarn": {"factor": 4}})",
          R"("draft": {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2}})",
          R"("tower": {"hidden_size": 64, "num_hidden_layers": 2, "qk_norm": true})",
          R"("quantization_config": {"scaling": {"factor": 2}, "k_norm": 1})",
          R"("label2id": {"rope": 1})", R"("vae": {"scaling_factor": 0.5})"}) {
        warned(small_llama_with(other), {});
    }
    CHECK(warns(imported(R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280,
                             "num_heads": 16, "attention": {"qk_norm": true}}})",
                         {.tower = "vision"}),
                "vision_config.attention.qk_norm"));
    check_refused({R"({"_class_name": "FluxTransformer2DModel",
                       "attention": {"rope_scaling": {"factor": 2}}})",
                   "attention.rope_scaling"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an object that says a scaling beside rope_parameters is an error in any class") {
    for (const char* key : {"yarn", "llama_4_scaling", "ntk_config"}) {
        const std::string field = '"' + std::string(key) + R"(": {"factor": 4})";
        check_refused({llama_with(field), std::string(key) + " rope_parameters"},
                      VKROPE_ERROR_NOT_SUPPORTED);
        check_refused({R"({"model_type": "llava", )" + field +
                           R"(, "text_config": {"model_type": "llama", "head_dim": 64}})",
                       key},
                      VKROPE_ERROR_NOT_SUPPORTED);
    }
    for (const char* section :
         {R"("scaling": {"type": "linear", "factor": 2})", R"("scaling": {"factor": 2})",
          R"("rotary": {"type": "dynamic"})", R"("rope_config": {"rope_type": "longrope"})",
          R"("rope_type": "yarn")"}) {
        check_refused({llama_with(section), "rope_parameters"}, VKROPE_ERROR_NOT_SUPPORTED);
    }
    for (const char* plain : {R"("scaling": {"type": "default"})",
                              R"("rope_config": {"factor": 1})", R"("rope_type": "default")"}) {
        CHECK(imported(llama_with(std::string(R"("rope_theta": 1e4, )") + plain)).warnings.size() ==
              1);
    }
    // The original checkpoint of gpt-oss.
    check_refused({R"({"num_hidden_layers": 36, "head_dim": 64, "num_attention_heads": 64,
                       "sliding_window": 128, "initial_context_length": 4096, "rope_theta": 150000,
                       "rope_scaling_factor": 32.0, "rope_ntk_alpha": 1, "rope_ntk_beta": 32})",
                   "rope_ntk_beta 32"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("keys of vision towers and of diffusion transformers") {
    const auto tower = [](const std::string& fields) {
        return R"({"model_type": "qwen2_vl",
                   "vision_config": {"embed_dim": 1280, "num_heads": 16)" +
               fields + "}}";
    };
    const ModelQuery vision = {.tower = "vision"};
    const auto count = [&](const std::string& fields) {
        return imported(tower(fields), vision).warnings.size();
    };
    const std::size_t plain = count("");
    CHECK(count(R"(, "rope_scaling": null, "qk_norm": false)") == plain);
    for (const char* key : {"partial_rotary_factor", "use_2d_rope", "qk_norm", "yarn_only_types"}) {
        const std::string name = key;
        CHECK(warns(imported(tower(", \"" + name + "\": [1]"), vision), "vision_config." + name));
    }
    check_refused({tower(R"(, "rope_scaling": {"type": "linear", "factor": 2})"),
                   "vision_config.rope_scaling"},
                  VKROPE_ERROR_NOT_SUPPORTED, vision);
    check_refused({tower(R"(, "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4})"),
                   "vision_config.rope_parameters.rope_type yarn"},
                  VKROPE_ERROR_NOT_SUPPORTED, vision);
    CHECK(warns(imported(R"({"_class_name": "FluxTransformer2DModel", "qk_norm": "rms_norm"})"),
                "qk_norm"));
    check_refused({R"({"_class_name": "FluxTransformer2DModel", "yarn": {"factor": 2}})", "yarn"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    CHECK(warns(imported(R"({"_class_name": "LTXVideoTransformer3DModel", "use_2d_rope": true})"),
                "use_2d_rope"));
}

TEST_CASE("Wan's own files: a model_type beside the class") {
    const std::string wan =
        R"({"_class_name": "WanModel", "dim": 1536, "num_heads": 12, "num_layers": 30,
            "freq_dim": 256, "text_len": 512, "model_type": ")";
    for (const char* type : {"t2v", "i2v", "flf2v"}) {
        const RopeParams rotation = imported(wan + type + "\"}");
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.pairing == interleaved);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{22, 21, 21});
        CHECK(rotation.inv_freq == imported(R"({"_class_name": "WanTransformer3DModel",
                                               "attention_head_dim": 128})")
                                       .inv_freq);
    }
    check_refused({R"({"_class_name": "WanModel_S2V", "model_type": "s2v", "dim": 5120})",
                   "_class_name WanModel_S2V"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a key that the class reads for its queries is not called ignored") {
    const auto scaled = [](const std::string& type) {
        return R"({"model_type": ")" + type + R"(", "head_dim": 128, "qk_nope_head_dim": 64,
                  "qk_rope_head_dim": 64, "kv_lora_rank": 256, "max_position_embeddings": 262144,
                  "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16,
                  "original_max_position_embeddings": 16384, "llama_4_scaling_beta": 0.1}})";
    };
    const ModelQuery pairing = {.pairing = half};
    for (const char* type : {"ministral3", "mistral4"}) {
        const RopeParams rotation = imported(scaled(type), pairing);
        CHECK(rotation.ops.query_scale.beta == 0.1);
        CHECK(!warns(rotation, "llama_4_scaling_beta"));
    }
    const RopeParams other = imported(scaled("llama"), pairing);
    CHECK(other.ops.query_scale.kind == VKROPE_QUERY_SCALING_NONE);
    CHECK(warns(other, "rope_parameters.llama_4_scaling_beta"));
}
