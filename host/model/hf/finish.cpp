// SPDX-License-Identifier: MIT
#include "model/hf/finish.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "model/hf/norm_rules.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

static_assert(sorted(norm_rules), "find_row() needs the order of the names");

/// Mistral's later classes, which scale queries by a key of their scaling.
bool scales_by_beta(const std::string& type) {
    return type == "ministral3" || type == "mistral4";
}

/// Classes that clamp Q, K and V.
bool clips(const std::string& type) {
    return type == "olmo" || type == "hf_olmo" || type == "olmoe" || type == "dbrx" ||
           type == "mpt";
}

class FinishImport {
   public:
    FinishImport(const std::string& model_type, const Scopes& config, const Scopes& scaling,
                 const LayerKind& layer)
        : type_(model_type), config_(config), scaling_(scaling), rotates_(layer.rotates),
          crosses_(layer.crosses) {}

    ModelFinish run() {
        heads();
        norms();
        clip();
        query_scale();
        finish_.tensor[Q].scale_tokens = finish_.query_scale.kind != VKROPE_QUERY_SCALING_NONE;
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
        if (rule == nullptr) {
            finish_.norms_known = has_no_norms(type_) && !asked_for();
            return;
        }
        if (rule->with_rope_only && !rotates_) {
            finish_.norms_known = true;
            return;
        }
        if (rule->crossing_only && !crosses_) {
            finish_.norms_known = !asked_for();
            return;
        }
        if (rule->asked_by != nullptr && !(rule->or_by && is_true(rule->or_by, false))) {
            const Field asked = find_first(config_, {rule->asked_by});
            if (asked ? !truth(asked) : rule->unsaid != Unsaid::norms) {
                finish_.norms_known = (asked || rule->unsaid == Unsaid::none) && !asked_for();
                return;
            }
        }
        if (rule->not_known) {
            return;
        }
        finish_.norms_known = true;
        Norm norm;
        norm.kind = rule->kind;
        norm.span = rule->span;
        norm.place = rule->place;
        norm.eps = norm_eps(rule->eps_key ? find_first(config_, {rule->eps_key}) : Field(),
                            rule->eps);
        norm.weight = rule->weight;
        norm.weight_offset = rule->weight_offset;
        norm.bias = rule->bias;
        finish_.tensor[Q].norm = finish_.tensor[K].norm = norm;
        if (rule->of_v_too) {
            finish_.tensor[V].norm = without_weight(norm);
        }
        if (rule->q_without_weight) {
            finish_.tensor[Q].norm = without_weight(norm);
        }
    }

    static Norm without_weight(Norm norm) {
        norm.weight = VKROPE_PARAMETER_NONE;
        norm.weight_offset = 0;
        return norm;
    }

    /// Whether a key asks for norms that asks for them in some class.
    bool asked_for() const {
        return std::any_of(std::begin(norm_rules), std::end(norm_rules), [&](const NormRule& rule) {
            const auto asks = [&](const char* key) {
                const Field field = key ? find_first(config_, {key}) : Field();
                return field && *field.value == true;
            };
            return asks(rule.asked_by) || asks(rule.or_by);
        });
    }

    /// OLMo, DBRX and MPT clamp the projections, OLMoE what its norms leave.
    void clip() {
        if (!clips(type_)) {
            return;
        }
        if (const Field field = find_first(config_, {"clip_qkv"})) {
            finish_.tensor[Q].clip = finish_.tensor[K].clip = finish_.tensor[V].clip = float(positive_number(field));
            if (!std::isfinite(finish_.tensor[Q].clip)) {
                fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be a number that a float holds",
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
                scale = {VKROPE_QUERY_SCALING_LOGN, positive_number(length), 0};
            }
        } else if (type_ == "llama4_text" && !rotates_ &&
                   is_true("attn_temperature_tuning", true)) {
            scale = {VKROPE_QUERY_SCALING_LLAMA4, number_or("floor_scale", 8192),
                     number_or("attn_scale", 0.1)};
        } else if (scales_by_beta(type_)) {
            const Field beta = find_first(scaling_, {"llama_4_scaling_beta"}),
                        length = find_first(scaling_, {"original_max_position_embeddings"});
            if (beta && length) {
                scale = {VKROPE_QUERY_SCALING_MINISTRAL3, positive_number(length), positive_number(beta)};
            }
        }
    }

    const std::string& type_;
    const Scopes& config_;
    const Scopes& scaling_;
    const bool rotates_, crosses_;
    ModelFinish finish_;
};

}  // namespace

float norm_eps(const Field& field, double otherwise) {
    const double value = field ? positive_number(field) : otherwise;
    if (!(value >= 1e-20 && value <= 1)) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be 1e-20 to 1", field.name.c_str(),
             shown(*field.value).c_str());
    }
    return float(value);
}

ModelFinish model_finish(const std::string& model_type, const Scopes& config, const Scopes& scaling,
                         const LayerKind& layer) {
    return FinishImport(model_type, config, scaling, layer).run();
}

bool finish_reads(const std::string& model_type, const std::string& key) {
    const NormRule* rule = find_row(norm_rules, model_type);
    const auto is_one_of = [&](std::initializer_list<const char*> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    return (rule != nullptr && rule->asked_by != nullptr && key == rule->asked_by) ||
           (rule != nullptr && rule->or_by != nullptr && key == rule->or_by) ||
           (scales_by_beta(model_type) &&
            is_one_of({"llama_4_scaling_beta", "original_max_position_embeddings"})) ||
           (model_type == "llama4_text" &&
            is_one_of({"attn_temperature_tuning", "floor_scale", "attn_scale"})) ||
           (model_type == "qwen" && key == "use_logn_attn");
}

}  // namespace vkrope
