// SPDX-License-Identifier: MIT
// Imports the params.json of an original checkpoint. Source: mistral-inference's args.py, rope.py
// and transformer_layers.py and Meta's llama model.py, whose channels 2j and 2j + 1 form a pair.
// The base of a file without rope_theta is 10000 in the first mistral-inference (one_file_ref.py),
// 1000000 in the last (transformer.py). `yarn` and `llama_4_scaling`, which it lacks, are from
// vLLM's transformers_utils/configs/mistral.py and mistral_large_3.py.
#include <string>
#include <utility>
#include <vector>

#include "defaults.hpp"
#include "model/field.hpp"
#include "model/hf/importers.hpp"
#include "model/layers.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

/// Keys that are read, and keys that do not concern the rotation of the language model.
constexpr auto known_keys = names(
    "dim", "head_dim", "kv_lora_rank", "llama_4_scaling", "max_position_embeddings", "max_seq_len",
    "model_type", "n_heads", "n_kv_heads", "n_layers", "qk_nope_head_dim", "qk_rope_head_dim",
    "rope_theta", "use_scaled_rope", "yarn",
    // keys that do not concern the rotation
    "_sliding_window", "causal", "dtype", "ffn_dim_multiplier", "hidden_dim", "max_batch_size",
    "moe", "multimodal", "multiple_of", "norm_eps", "q_lora_rank", "quantization",
    "ragged_attention", "sliding_window", "tied_embeddings", "v_head_dim", "vision_encoder",
    "vocab_size");

constexpr auto yarn_keys = names("alpha", "apply_scale", "beta", "factor",
                                 "original_max_position_embeddings");
constexpr auto query_keys = names("beta", "original_max_position_embeddings");

template <class Names>
void require_known(const Scope& scope, const Names& known) {
    for (const auto& [key, value] : scope.object->items()) {
        if (!value.is_null() && !contains(known, key)) {
            not_supported(
                "{}{} is {}: it is not known in the params.json of an original checkpoint (a file "
                "with dim and without model_type), whose other rules are in code; use the "
                "config.json of the converted model",
                scope.prefix, shown_key(key), shown(value));
        }
    }
}

class CheckpointImport {
   public:
    CheckpointImport(const json& document, const Query& query)
        : scope_{&document, ""}, query_(query) {}

    RopeParams run() {
        check_keys();
        check_query();
        rotation_.pairing = value_or(query_.pairing, VKROPE_INTERLEAVED);
        heads();
        max_position();
        const Field theta = find_required(
            {scope_}, "rope_theta",
            ": in the params.json of an original checkpoint it is 10000 "
            "for Meta's code, and 10000 or "
            "1000000 for Mistral's");
        set_base(rotation_, positive_number(theta), "rope_theta");
        yarn();
        query_scale();
        require_usable(rotation_, rotation_.inv_freq.size(), rotation_.base, "rope_theta");
        warn(rotation_,
             "the file has dim and no model_type of a class: assuming the params.json of an "
             "original checkpoint, with the pairing of its own weights; whether it has norms of Q "
             "and K is not known");
        return std::move(rotation_);
    }

   private:
    void check_keys() const {
        require_known(scope_, known_keys);
        const Field scaled = find({scope_}, {"use_scaled_rope"});
        if (scaled && truth(scaled)) {
            not_supported(
                "{}: the factor is in Meta's code, 8 or 32, and not in the file; use the "
                "config.json of the converted model",
                stated(scaled));
        }
    }

    void check_query() {
        const Field count = find({scope_}, {"n_layers"});
        Layers layers;
        layers.count = count ? whole_number(count, 1, max_whole) : 0;
        layers.choose(query_, rotation_.warnings);
        if (query_.tower != "text") {
            invalid_argument(
                "query.tower is '{}': of the params.json of an original checkpoint only text is "
                "read",
                shown_key(std::string(query_.tower)));
        }
    }

    std::uint32_t width(const char* name, std::uint64_t low) const {
        const Field field = find_required({scope_}, name, ": latent attention needs it");
        return std::uint32_t(whole_number(field, low, max_head_dim));
    }

    void heads() {
        const Field count = find({scope_}, {"n_heads"}), of_k = find({scope_}, {"n_kv_heads"});
        rotation_.ops.q_heads = count ? std::uint32_t(whole_number(count, 1, max_heads)) : 0;
        rotation_.ops.k_heads = of_k ? std::uint32_t(whole_number(of_k, 1, max_heads))
                                     : rotation_.ops.q_heads;
        if (find({scope_}, {"qk_rope_head_dim"})) {
            latent_ = true;
            rotation_.head_dim = width("qk_rope_head_dim", 2);
            rotation_.q_rotary_offset = width("qk_nope_head_dim", 0);
            rotation_.k_rotary_offset = width("kv_lora_rank", 0);
        } else if (const Field head = find({scope_}, {"head_dim"})) {
            rotation_.head_dim = std::uint32_t(whole_number(head, 2, max_head_dim));
        } else {
            const Field dim = find({scope_}, {"dim"});
            const std::uint64_t channels = whole_number(dim, 1, max_hidden_size);
            const std::uint64_t number = rotation_.ops.q_heads;
            if (number == 0 || channels % number != 0 || channels / number > max_head_dim) {
                invalid_data(
                    "dim is {} and n_heads is {}: their quotient, head_dim, must be whole, 2 to "
                    "65534",
                    channels, number);
            }
            rotation_.head_dim = std::uint32_t(channels / number);
        }
        rotation_.rotary_dim = rotation_.head_dim;
        if (rotation_.head_dim < 2 || rotation_.head_dim % 2 != 0) {
            invalid_data("head_dim is {}: it must be even, at least 2", rotation_.head_dim);
        }
    }

    void max_position() {
        const Field field = find_first({scope_}, {"max_position_embeddings", "max_seq_len"});
        rotation_.max_position = field ? whole_number(field, 1, max_whole) : 0;
        warn_of_length(rotation_, query_.seq_len);
    }

    Scope object(const Field& field) const {
        if (!field.value->is_object()) {
            refuse(field, "an object");
        }
        return {field.value, field.name + "."};
    }

    static double number(const Scope& scope, const char* name) {
        return positive_number(find_required({scope}, name, ""));
    }

    /// Applies YaRN. beta and alpha are the fast and slow ends of its range. Without apply_scale
    /// neither cos and sin nor the softmax are scaled; with apply_scale they are scaled as in
    /// DeepSeek's latent attention.
    void yarn() {
        const Field field = find({scope_}, {"yarn"});
        if (!field) return;
        const Scope scope = object(field);
        require_known(scope, yarn_keys);
        const auto read = [&](auto scaling) {
            scaling.factor = number(scope, "factor");
            scaling.original_max_position_embeddings = number(scope,
                                                              "original_max_position_embeddings");
            scaling.beta_fast = number(scope, "beta");
            scaling.beta_slow = number(scope, "alpha");
            return scaling;
        };
        auto plain = read(YarnScaling());
        const Field apply = find({scope}, {"apply_scale"});
        const bool scales = !apply || truth(apply);
        if (!apply)
            warn(rotation_, "yarn.apply_scale is missing: assuming true, the default of vLLM");
        rotation_.rope_type = "yarn";
        if (latent_ && scales) {
            auto scaling = read(DeepseekYarnScaling());
            scaling.mscale = scaling.mscale_all_dim = 1;
            require(scale_deepseek_yarn(rotation_.inv_freq, rotation_.base, scaling,
                                        rotation_.attention_factor, rotation_.softmax_scale),
                    "yarn");
            return;
        }
        plain.attention_factor = scales ? 0 : 1;
        require(scale_yarn(rotation_.inv_freq, rotation_.base, plain, rotation_.attention_factor),
                "yarn");
    }

    void query_scale() {
        const Field field = find({scope_}, {"llama_4_scaling"});
        if (!field) return;
        const Scope scope = object(field);
        require_known(scope, query_keys);
        rotation_.ops.query_scale = {VKROPE_QUERY_SCALING_MINISTRAL3,
                                     number(scope, "original_max_position_embeddings"),
                                     number(scope, "beta")};
        rotation_.ops.tensor[Q].scale_tokens = true;
    }

    const Scope scope_;
    const Query& query_;
    RopeParams rotation_;
    bool latent_ = false;
};

}  // namespace

bool is_checkpoint_params(const json& document) {
    const auto type = document.find("model_type");  // "transformer", if mistral-inference wrote it
    return find({{&document, ""}}, {"dim"}) &&
           (document.contains("n_layers") || document.contains("n_heads")) &&
           (type == document.end() || *type == "transformer") && !document.contains("_class_name");
}

RopeParams checkpoint_rotation(const json& document, const Query& query) {
    return CheckpointImport(document, query).run();
}

}  // namespace vkrope
