// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "model/hf/readers.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

class OpsImport {
   public:
    OpsImport(const ModelType* model, const Scopes& config, const Scopes& scaling,
              const LayerKind& layer, const Head& head)
        : model_(model), config_(config), scaling_(scaling), head_(head), rotates_(layer.rotates),
          crosses_(layer.crosses) {}

    ModelOps run() {
        heads();
        if (model_ != nullptr) {
            know_keys();
            head_.latent ? latent_norm() : norms();
            clip();
            query_scale();
        }
        ops_.tensor[Q].scale_tokens = ops_.query_scale.kind != VKROPE_QUERY_SCALING_NONE;
        return ops_;
    }

   private:
    bool is_true(const char* key, bool otherwise) const {
        const Field field = find_first(config_, {key});
        return field ? truth(field) : otherwise;
    }

    // Notes the keys that the class reads in some layers, or in some files.
    void know_keys() const {
        for (const char* key : {model_->norms.asked_by, model_->norms.or_by})
            if (key != nullptr) know(config_, {key});
        switch (model_->query_scale) {
            case VKROPE_QUERY_SCALING_LOGN: return know(config_, {"use_logn_attn"});
            case VKROPE_QUERY_SCALING_LLAMA4:
                return know(config_, {"attn_temperature_tuning", "floor_scale", "attn_scale"});
            case VKROPE_QUERY_SCALING_MINISTRAL3: return know(scaling_, {"llama_4_scaling_beta"});
            default: return;
        }
    }

    // Reads the head counts. They stay unknown if they may differ between layers of the class.
    void heads() {
        if (find_first(config_, {"num_global_key_value_heads"})) return;
        ops_.q_heads = count({"num_attention_heads", "n_head", "n_heads"});
        ops_.k_heads = head_.latent ? 1
                                    : count({"num_key_value_heads", "num_kv_heads", "kv_n_heads"});
        if (ops_.k_heads == 0) ops_.k_heads = ops_.q_heads;  // every query head has one key head
    }

    // Returns 0 if the file has no such number.
    std::uint32_t count(std::initializer_list<const char*> keys) const {
        const Field field = find(config_, keys);
        const bool usable = field && field.value->is_number_unsigned() &&
                            field.value->get<std::uint64_t>() <= max_heads;
        return usable ? field.value->get<std::uint32_t>() : 0;
    }

    void norms() {
        const NormRule* rule = &model_->norms;
        if (rule->kind == VKROPE_NORM_NONE && !rule->not_known) {
            ops_.norms_known = !asked_for();
            return;
        }
        if (rule->with_rope_only && !rotates_) {
            ops_.norms_known = true;
            return;
        }
        if (rule->crossing_only && !crosses_) {
            ops_.norms_known = !asked_for();
            return;
        }
        if (rule->asked_by != nullptr && !(rule->or_by && is_true(rule->or_by, false))) {
            const Field asked = find_first(config_, {rule->asked_by});
            if (asked ? !truth(asked) : rule->unsaid != Unsaid::norms) {
                ops_.norms_known = (asked || rule->unsaid == Unsaid::none) && !asked_for();
                return;
            }
        }
        if (rule->not_known) return;
        ops_.norms_known = true;
        Norm norm;
        norm.kind = rule->kind;
        norm.span = rule->span;
        norm.place = rule->place;
        norm.eps = norm_eps(rule->eps_key ? find_first(config_, {rule->eps_key}) : Field(),
                            rule->eps);
        norm.weight = rule->weight;
        norm.weight_offset = rule->weight_offset;
        norm.bias = rule->bias;
        ops_.tensor[Q].norm = ops_.tensor[K].norm = norm;
        if (rule->of_v_too) ops_.tensor[V].norm = without_weight(norm);
        if (rule->q_without_weight) ops_.tensor[Q].norm = without_weight(norm);
    }

    // Sets kv_a_layernorm, the norm of the latent channels. Its eps is not that of the file: all
    // these classes make it with the default of their class of norms.
    void latent_norm() {
        const bool known = model_->latent.qk_rope_head_dim != 0;
        ops_.norms_known = known && !asked_for();
        if (!known || head_.k_rotary_offset == 0) return;
        ops_.tensor[K].norm = {.kind = VKROPE_NORM_RMS,
                               .eps = 1e-6f,
                               .weight = VKROPE_PARAMETER_CHANNEL,
                               .channels = head_.k_rotary_offset};
    }

    static Norm without_weight(Norm norm) {
        norm.weight = VKROPE_PARAMETER_NONE;
        norm.weight_offset = 0;
        return norm;
    }

    // Returns whether the file enables norms with a key that enables them in some class.
    bool asked_for() const {
        const auto asks = [&](const char* key) {
            return key != nullptr &&
                   std::any_of(config_.begin(), config_.end(), [&](const Scope& scope) {
                       return scope.object->value(key, json()) == true;
                   });
        };
        const std::span<const ModelType> all = all_model_types();
        return std::any_of(all.begin(), all.end(), [&](const ModelType& type) {
            return asks(type.norms.asked_by) || asks(type.norms.or_by);
        });
    }

    // Reads the clip. OLMo, DBRX and MPT clamp the projections, OLMoE the outputs of its norms.
    void clip() {
        if (const Field field = model_->clips ? find_first(config_, {"clip_qkv"}) : Field()) {
            ops_.tensor[Q].clip = ops_.tensor[K].clip = ops_.tensor[V].clip = float(
                positive_number(field));
            if (!std::isfinite(ops_.tensor[Q].clip)) refuse(field, "a number that fits in a float");
        }
    }

    double number_or(const char* key, double otherwise) const {
        const Field field = find_first(config_, {key});
        return field ? positive_number(field) : otherwise;
    }

    void query_scale() {
        QueryScale& scale = ops_.query_scale;
        if (model_->query_scale == VKROPE_QUERY_SCALING_LOGN && is_true("use_logn_attn", false)) {
            const Field length = find_first(config_, {"seq_length"});
            if (length && positive_number(length) > 1)
                scale = {VKROPE_QUERY_SCALING_LOGN, positive_number(length), 0};
        } else if (model_->query_scale == VKROPE_QUERY_SCALING_LLAMA4 && !rotates_ &&
                   is_true("attn_temperature_tuning", true)) {
            scale = {VKROPE_QUERY_SCALING_LLAMA4, number_or("floor_scale", 8192),
                     number_or("attn_scale", 0.1)};
        } else if (model_->query_scale == VKROPE_QUERY_SCALING_MINISTRAL3) {
            const Field beta = find_first(scaling_, {"llama_4_scaling_beta"}),
                        length = find_first(scaling_, {"original_max_position_embeddings"});
            if (beta && length) {
                scale = {VKROPE_QUERY_SCALING_MINISTRAL3, positive_number(length),
                         positive_number(beta)};
            }
        }
    }

    const ModelType* model_;
    const Scopes& config_;
    const Scopes& scaling_;
    const Head& head_;
    const bool rotates_, crosses_;
    ModelOps ops_;
};

}  // namespace

ModelOps model_ops(const ModelType* model, const Scopes& config, const Scopes& scaling,
                   const LayerKind& layer, const Head& head) {
    return OpsImport(model, config, scaling, layer, head).run();
}

double scale_of_scores(const Source& source, std::uint32_t row, Warnings& warnings) {
    const double usual = 1 / std::sqrt(double(row));
    const ModelType& type = source.type;
    const bool known = type.name != nullptr;
    Keys keys = {"query_pre_attn_scalar", "attention_multiplier", "softmax_scale"};
    if (known) keys.names.clear();
    if (type.score_key != nullptr) keys.names.push_back(type.score_key);
    if (type.fixed_scale != 0) {
        if (const Field other = find(source.top, {"query_pre_attn_scalar"})) {
            warn(warnings, "{}the code of {} scales the scores by {}", ignored(other), source.name,
                 type.fixed_scale);
        }
        return type.fixed_scale / usual;
    }
    double scale = usual;
    Field said;
    for (const std::string& key : keys.names) {
        const Field field = find(source.top, Keys(std::vector<std::string>{key}));
        if (!field) continue;
        const double number = positive_number(field);
        const bool mup = key == "mup_attn_multiplier";
        const Field uses_mup = mup ? find(source.top, {"mup_use_scaling"}) : Field();
        const double stated_scale = key == "query_pre_attn_scalar"           ? 1 / std::sqrt(number)
                                    : mup && !(uses_mup && !truth(uses_mup)) ? number / row
                                    : mup                                    ? usual
                                                                             : number;
        if (said && scale != stated_scale) disagree(said, field);
        scale = stated_scale;
        said = field;
    }
    return scale / usual;
}

}  // namespace vkrope
