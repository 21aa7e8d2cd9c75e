// SPDX-License-Identifier: MIT
// Source of every row: the attention class of the model's modeling_*.py (kind, span, place, weight)
// and its configuration_*.py (defaults), in Hugging Face transformers or beside the weights.
#include "model/hf/finish.hpp"

#include <algorithm>
#include <cmath>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"
#include "model/sorted_table.hpp"

namespace vkrope {
namespace {

constexpr ParameterShape one_weight = ParameterShape::channel,
                         weight_of_each_head = ParameterShape::head_channel;

/// The norms of Q and K in a class of models. A row says what differs from Qwen 3.
struct NormRule {
    const char* name = nullptr;  ///< model_type
    NormKind kind = NormKind::rms;
    NormSpan span = NormSpan::head;
    NormPlace place = NormPlace::before;
    ParameterShape weight = one_weight;
    std::uint32_t weight_offset = 0;
    ParameterShape bias = ParameterShape::none;
    const char* eps_key = "rms_norm_eps";  ///< null: the class fixes it
    double eps = 1e-6;                     ///< of the class, if the key is missing
    const char* asked_by = nullptr;        ///< only if this key is true; null: always
    bool unless_denied = false;            ///< with asked_by: also if the key is missing
    bool of_v_too = false;                 ///< V has the norm too, without a weight
    bool with_rope_only = false;           ///< layers without RoPE have none
};

constexpr NormRule over_token(const char* name, double eps = 1e-5) {
    return {.name = name, .span = NormSpan::token, .weight = weight_of_each_head, .eps = eps};
}

constexpr NormRule after(const char* name) {
    return {.name = name, .place = NormPlace::after, .eps = 1e-5};
}

/// Layer norms that layer_norm_eps belongs to.
constexpr NormRule layer(const char* name, ParameterShape weight, ParameterShape bias,
                         const char* asked_by, bool unless_denied) {
    return {.name = name,
            .kind = NormKind::layer,
            .weight = weight,
            .bias = bias,
            .eps_key = "layer_norm_eps",
            .eps = 1e-5,
            .asked_by = asked_by,
            .unless_denied = unless_denied};
}

// Sorted by name.
constexpr NormRule norm_rules[] = {
    {.name = "apertus", .eps = 1e-5},
    {.name = "chameleon",
     .kind = NormKind::layer,
     .weight = weight_of_each_head,
     .bias = weight_of_each_head,
     .eps_key = nullptr,
     .eps = 1e-5},
    layer("cohere", weight_of_each_head, ParameterShape::none, "use_qk_norm", false),
    {.name = "dots1"},
    {.name = "exaone4", .eps = 1e-5},
    over_token("flex_olmo", 1e-6),
    {.name = "gemma3_text", .weight_offset = 1},
    {.name = "gemma3n_text", .of_v_too = true},
    {.name = "gemma4_text", .of_v_too = true},
    {.name = "glm4_moe", .eps = 1e-5, .asked_by = "use_qk_norm"},
    {.name = "hunyuan", .place = NormPlace::after, .eps = 1e-5, .asked_by = "use_qk_norm"},
    after("hunyuan_v1_dense"),
    after("hunyuan_v1_moe"),
    after("hunyuan_vl"),
    {.name = "lfm2", .eps_key = "norm_eps", .eps = 1e-5},
    {.name = "lfm2_moe", .eps_key = "norm_eps", .eps = 1e-5},
    {.name = "llama4_text",
     .place = NormPlace::after,
     .weight = ParameterShape::none,
     .eps = 1e-5,
     .asked_by = "use_qk_norm",
     .unless_denied = true,
     .with_rope_only = true},
    {.name = "minimax_m2",
     .span = NormSpan::token,
     .weight = weight_of_each_head,
     .asked_by = "use_qk_norm",
     .unless_denied = true},
    over_token("olmo2"),
    over_token("olmo3", 1e-5),
    over_token("olmoe"),
    layer("persimmon", one_weight, one_weight, "qk_layernorm", true),
    layer("phi", one_weight, one_weight, "qk_layernorm", false),
    {.name = "qwen3"},
    {.name = "qwen3_5", .weight_offset = 1},
    {.name = "qwen3_moe"},
    {.name = "qwen3_next", .weight_offset = 1},
    {.name = "qwen3_omni_moe_text"},
    {.name = "qwen3_vl"},
    {.name = "qwen3_vl_moe"},
    layer("stablelm", weight_of_each_head, ParameterShape::none, "qk_layernorm", false),
    {.name = "step3p5", .weight_offset = 1, .eps = 1e-5},
};
static_assert(sorted(norm_rules), "find_row() needs the order of the names");

/// Mistral's later classes, which scale queries by a key of their scaling.
bool scales_by_beta(const std::string& type) {
    return type == "ministral3" || type == "mistral4";
}

/// Classes that clamp Q, K and V.
bool clips(const std::string& type) {
    return type == "olmo" || type == "olmoe" || type == "dbrx";
}

class FinishImport {
   public:
    FinishImport(const std::string& model_type, const Scopes& config, const Scopes& scaling,
                 bool rotates)
        : type_(model_type), config_(config), scaling_(scaling), rotates_(rotates) {}

    ModelFinish run() {
        heads();
        norms();
        clip();
        query_scale();
        finish_.q.scale_tokens = finish_.query_scale.kind != QueryScaling::none;
        return finish_;
    }

   private:
    bool is_true(const char* key, bool otherwise) const {
        const Field field = find_first(config_, {key});
        return field ? truth(field) : otherwise;
    }

    /// Layers with heads of their own are left to whoever knows the layer.
    void heads() {
        if (find_first(config_, {"num_global_key_value_heads"})) {
            return;
        }
        finish_.q_heads = count({"num_attention_heads", "n_head", "n_heads"});
        finish_.k_heads = count({"num_key_value_heads", "num_kv_heads", "kv_n_heads"});
        if (finish_.k_heads == 0) {
            finish_.k_heads = finish_.q_heads;  // every query head has its own key head
        }
    }

    /// 0 if the file has no such number.
    std::uint32_t count(std::initializer_list<const char*> keys) const {
        const Field field = find_first(config_, keys);
        const bool usable = field && field.value->is_number_unsigned() &&
                            field.value->get<std::uint64_t>() <= max_heads;
        return usable ? field.value->get<std::uint32_t>() : 0;
    }

    void norms() {
        const NormRule* rule = find_row(norm_rules, type_);
        if (rule == nullptr || (rule->with_rope_only && !rotates_) ||
            (rule->asked_by != nullptr && !is_true(rule->asked_by, rule->unless_denied))) {
            return;
        }
        Norm norm;
        norm.kind = rule->kind;
        norm.span = rule->span;
        norm.place = rule->place;
        norm.eps = eps(*rule);
        norm.weight = rule->weight;
        norm.weight_offset = rule->weight_offset;
        norm.bias = rule->bias;
        finish_.q.norm = finish_.k.norm = norm;
        if (rule->of_v_too) {
            finish_.v.norm = norm;
            finish_.v.norm.weight = ParameterShape::none;
            finish_.v.norm.weight_offset = 0;
        }
    }

    float eps(const NormRule& rule) {
        const Field field = rule.eps_key == nullptr ? Field() : find_first(config_, {rule.eps_key});
        const double value = field ? positive_number(field) : rule.eps;
        if (!(value >= 1e-20 && value <= 1)) {
            fail(Code::invalid_data, "%s is %s: it must be 1e-20 to 1", field.name.c_str(),
                 shown(*field.value).c_str());
        }
        return float(value);
    }

    /// OLMo and DBRX clamp the projections, OLMoE what its norms leave.
    void clip() {
        if (!clips(type_)) {
            return;
        }
        if (const Field field = find_first(config_, {"clip_qkv"})) {
            finish_.q.clip = finish_.k.clip = finish_.v.clip = float(positive_number(field));
            if (!std::isfinite(finish_.q.clip)) {
                fail(Code::invalid_data, "%s is %s: it must be a number that a float holds",
                     field.name.c_str(), shown(*field.value).c_str());
            }
        }
    }

    double number_or(const char* key, double otherwise) const {
        const Field field = find_first(config_, {key});
        return field ? positive_number(field) : otherwise;
    }

    void query_scale() {
        QueryScale& scale = finish_.query_scale;
        if (type_ == "qwen" && is_true("use_logn_attn", false)) {
            const Field length = find_first(config_, {"seq_length"});
            if (length && positive_number(length) > 1) {
                scale = {QueryScaling::logn, positive_number(length), 0};
            }
        } else if (type_ == "llama4_text" && !rotates_ &&
                   is_true("attn_temperature_tuning", true)) {
            scale = {QueryScaling::llama4, number_or("floor_scale", 8192),
                     number_or("attn_scale", 0.1)};
        } else if (scales_by_beta(type_)) {
            const Field beta = find_first(scaling_, {"llama_4_scaling_beta"}),
                        length = find_first(scaling_, {"original_max_position_embeddings"});
            if (beta && length) {
                scale = {QueryScaling::ministral3, positive_number(length), positive_number(beta)};
            }
        }
    }

    const std::string& type_;
    const Scopes& config_;
    const Scopes& scaling_;
    const bool rotates_;
    ModelFinish finish_;
};

}  // namespace

ModelFinish model_finish(const std::string& model_type, const Scopes& config, const Scopes& scaling,
                         bool rotates) {
    return FinishImport(model_type, config, scaling, rotates).run();
}

bool finish_reads(const std::string& model_type, const std::string& key) {
    const NormRule* rule = find_row(norm_rules, model_type);
    const auto is_one_of = [&](std::initializer_list<const char*> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    return (rule != nullptr && rule->asked_by != nullptr && key == rule->asked_by) ||
           (scales_by_beta(model_type) &&
            is_one_of({"llama_4_scaling_beta", "original_max_position_embeddings"})) ||
           (model_type == "llama4_text" &&
            is_one_of({"attn_temperature_tuning", "floor_scale", "attn_scale"})) ||
           (model_type == "qwen" && key == "use_logn_attn");
}

}  // namespace vkrope
