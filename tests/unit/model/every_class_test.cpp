// SPDX-License-Identifier: MIT
// Checks that no key for a scaling, a choice of layers or a norm is ignored silently, in any class
// of models: it is read, named in a warning, or an error.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "model/hf/model_types.hpp"
#include "model/key_words.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

// A key, with a value that asks for something, and a value that asks for something else.
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

// Returns a configuration that every class reads.
std::string config_of(const ModelType& type, const std::string& fields) {
    std::string json = R"({"model_type": ")" + std::string(type.name) +
                       R"(", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000,
                          "max_position_embeddings": 8192, "seq_length": 8192,
                          "num_hidden_layers": 4)";
    const std::string asked_by = type.rope_asked_by ? type.rope_asked_by : "";
    if (asked_by == "position_embedding_type") json += R"(, "position_embedding_type": "rope")";
    if (asked_by == "use_mem_rope") json += R"(, "use_mem_rope": true)";
    if (asked_by == "rope") json += R"(, "attn_config": {"rope": true})";
    if (type.nope_key) json += ", \"" + std::string(type.nope_key) + "\": true";
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

// Returns whether `fields` with the key give an error or a warning that names it, or new numbers.
bool noticed(const ModelType& type, const Key& key, const char* value, const ModelQuery& query) {
    std::string others = std::string(key.name).ends_with("_only_types")
                             ? R"(, "rope_scaling": {"type": "yarn", "factor": 4,
                                         "original_max_position_embeddings": 2048})"
                             : "";
    const bool lists = type.layers.rule == LayerRule::scaled_on_listed;
    if (!others.empty() && lists && key.name != std::string("yarn_only_types"))
        others += R"(, "yarn_only_types": ["full_attention"])";
    const auto with = [&](const std::string& json) {
        return from_hf_config(config_of(type, others + ", \"" + key.name + "\": " + json), query);
    };
    const Result<RopeParams> without = with("null"), result = with(value);
    if (!result) return names(result.status.what, key.name);
    return !without || !same(without.value, result.value) ||
           named(result, key.name) > named(without, key.name);
}

}  // namespace

TEST_CASE("every class reads the configuration of the tests below") {
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
            const bool scales = type.layers.rule == LayerRule::compressed ||
                                type.alternating == Alternating::then_time;
            if (scales && std::string(key.name).ends_with("_only_types")) continue;
            const KeyClass meaning = classify_key(key.name, true);
            if (type.nope_key && (meaning == KeyClass::angles || meaning == KeyClass::scaling))
                continue;  // there are no angles that it could change
            // A class may assume one of the values, or read the key only in layers without RoPE.
            const ModelQuery still = {.seq_len = 65536, .by_layer = true, .layer = 3};
            CHECK((noticed(type, key, key.value, full) || noticed(type, key, key.other, full) ||
                   (type.full_without_rope && noticed(type, key, key.other, still))));
        }
    }
}
