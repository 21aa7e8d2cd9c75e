// SPDX-License-Identifier: MIT
// Source: mistral-inference's args.py, rope.py and transformer_layers.py and Meta's llama model.py,
// whose channels 2j and 2j + 1 form a pair. The base of a file without rope_theta is 10000 in the
// first mistral-inference (one_file_ref.py), 1000000 in the last (transformer.py). For `yarn` and
// `llama_4_scaling`, which it does not have, vLLM's transformers_utils/configs/mistral.py and
// mistral_large_3.py.
#include "defaults.hpp"
#include "model/hf/checkpoint_params.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "model/hf/field.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// Keys that are read, and those that say nothing of the rotation of the language model.
constexpr const char* known_keys[] = {
    "dim",
    "head_dim",
    "kv_lora_rank",
    "llama_4_scaling",
    "max_position_embeddings",
    "max_seq_len",
    "model_type",
    "n_heads",
    "n_kv_heads",
    "n_layers",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "rope_theta",
    "use_scaled_rope",
    "yarn",
    // not of the rotation
    "_sliding_window",
    "causal",
    "dtype",
    "ffn_dim_multiplier",
    "hidden_dim",
    "max_batch_size",
    "moe",
    "multimodal",
    "multiple_of",
    "norm_eps",
    "q_lora_rank",
    "quantization",
    "ragged_attention",
    "sliding_window",
    "tied_embeddings",
    "v_head_dim",
    "vision_encoder",
    "vocab_size",
};

constexpr const char* yarn_keys[] = {"alpha", "apply_scale", "beta", "factor",
                                     "original_max_position_embeddings"};
constexpr const char* query_keys[] = {"beta", "original_max_position_embeddings"};

template <class Names>
void require_known(const Scope& scope, const Names& known) {
    for (const auto& [key, value] : scope.object->items()) {
        const bool is_known = std::find(std::begin(known), std::end(known), key) != std::end(known);
        if (!value.is_null() && !is_known) {
            fail(VKROPE_ERROR_NOT_SUPPORTED,
                 "%s%s is %s: it is not known in the params.json of an original checkpoint, which "
                 "dim without model_type says this is, and whose other rules are in code; give the "
                 "config.json of the converted model",
                 scope.prefix.c_str(), shown_key(key).c_str(), shown(value).c_str());
        }
    }
}

class CheckpointImport {
   public:
    CheckpointImport(const json& document, const ModelQuery& query)
        : scope_{&document, ""}, query_(query) {}

    Rotation run() {
        check_keys();
        check_query();
        rotation_.pairing = value_or(query_.pairing, VKROPE_INTERLEAVED);
        heads();
        max_position();
        const Field theta = find({scope_}, {"rope_theta"});
        if (!theta) {
            fail(VKROPE_ERROR_INVALID_DATA,
                 "rope_theta is missing: in the params.json of an original checkpoint it is 10000 "
                 "for Meta's code, and 10000 or 1000000 for Mistral's");
        }
        rotation_.base = positive_number(theta);
        rotation_.inv_freq.resize(rotation_.rotary_dim / 2);
        check(default_inv_freq(rotation_.base, rotation_.rotary_dim, rotation_.inv_freq.data()),
              "rope_theta");
        yarn();
        query_scale();
        require_usable(rotation_, rotation_.inv_freq.size(), rotation_.base, "rope_theta");
        warn(
            "dim, and no model_type of a class, say that this is the params.json of an original "
            "checkpoint, whose pairing is that of its own weights; whether it has norms of Q and K "
            "is not known");
        return std::move(rotation_);
    }

   private:
    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    static void check(const Status& status, const char* name) {
        if (!status) fail(VKROPE_ERROR_INVALID_DATA, "%s: %s", name, status.what);
    }

    void check_keys() const {
        require_known(scope_, known_keys);
        const Field scaled = find({scope_}, {"use_scaled_rope"});
        if (scaled && truth(scaled)) {
            fail(VKROPE_ERROR_NOT_SUPPORTED,
                 "%s: the factor is in Meta's code, 8 or 32, and not in the file; give the "
                 "config.json of the converted model",
                 stated(scaled).c_str());
        }
    }

    void check_query() const {
        const Field layers = find({scope_}, {"n_layers"});
        const std::uint64_t count = layers ? whole_number(layers, 1, max_whole) : 0;
        if (!query_.layer_type.empty()) {
            fail(VKROPE_ERROR_INVALID_ARGUMENT, "layer_type is '%s': the model has no layer types",
                 shown_key(std::string(query_.layer_type)).c_str());
        }
        if (query_.layer >= 0 && count != 0 && std::uint64_t(query_.layer) >= count) {
            fail(VKROPE_ERROR_INVALID_ARGUMENT, "layer is %d: the model has only %llu layers",
                 query_.layer, static_cast<unsigned long long>(count));
        }
        if (query_.tower != "text") {
            fail(VKROPE_ERROR_INVALID_ARGUMENT,
                 "tower is '%s': of the params.json of an original checkpoint only text is read",
                 shown_key(std::string(query_.tower)).c_str());
        }
    }

    std::uint32_t width(const char* name, std::uint64_t low) const {
        const Field field = find({scope_}, {name});
        if (!field) fail(VKROPE_ERROR_INVALID_DATA, "%s is missing: latent attention needs it", name);
        return std::uint32_t(whole_number(field, low, max_head_dim));
    }

    void heads() {
        const Field count = find({scope_}, {"n_heads"}), of_k = find({scope_}, {"n_kv_heads"});
        rotation_.finish.q_heads = count ? std::uint32_t(whole_number(count, 1, max_heads)) : 0;
        rotation_.finish.k_heads = of_k ? std::uint32_t(whole_number(of_k, 1, max_heads))
                                        : rotation_.finish.q_heads;
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
            const std::uint64_t number = rotation_.finish.q_heads;
            if (number == 0 || channels % number != 0 || channels / number > max_head_dim) {
                fail(VKROPE_ERROR_INVALID_DATA,
                     "dim is %llu and n_heads is %llu: their quotient, head_dim, must be whole, 2 "
                     "to 65534",
                     static_cast<unsigned long long>(channels),
                     static_cast<unsigned long long>(number));
            }
            rotation_.head_dim = std::uint32_t(channels / number);
        }
        rotation_.rotary_dim = rotation_.head_dim;
        if (rotation_.head_dim < 2 || rotation_.head_dim % 2 != 0) {
            fail(VKROPE_ERROR_INVALID_DATA, "head_dim is %u: it must be even, at least 2",
                 rotation_.head_dim);
        }
    }

    void max_position() {
        const Field field = find_first({scope_}, {"max_position_embeddings", "max_seq_len"});
        rotation_.max_position = field ? whole_number(field, 1, max_whole) : 0;
        if (rotation_.max_position != 0 && query_.seq_len > rotation_.max_position) {
            warn("seq_len is " + std::to_string(query_.seq_len) + ": the model was made for " +
                 std::to_string(rotation_.max_position));
        }
    }

    Scope object(const Field& field) const {
        if (!field.value->is_object()) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s: it must be an object", stated(field).c_str());
        }
        return {field.value, field.name + "."};
    }

    static double number(const Scope& scope, const char* name) {
        const Field field = find({scope}, {name});
        if (!field) fail(VKROPE_ERROR_INVALID_DATA, "%s%s is missing", scope.prefix.c_str(), name);
        return positive_number(field);
    }

    /// beta and alpha are YaRN's fast and slow ends of its range. Without apply_scale neither cos
    /// and sin nor the softmax are scaled; with it, they are as DeepSeek's in latent attention.
    void yarn() {
        const Field field = find({scope_}, {"yarn"});
        if (!field) return;
        const Scope scope = object(field);
        require_known(scope, yarn_keys);
        const double factor = number(scope, "factor"),
                     original = number(scope, "original_max_position_embeddings"),
                     fast = number(scope, "beta"), slow = number(scope, "alpha");
        const Field apply = find({scope}, {"apply_scale"});
        const bool scales = !apply || truth(apply);
        if (!apply) warn("yarn.apply_scale is missing: assuming true, the default of vLLM");
        rotation_.rope_type = "yarn";
        if (latent_ && scales) {
            DeepseekYarnScaling scaling;
            scaling.factor = factor;
            scaling.original_max_position_embeddings = original;
            scaling.beta_fast = fast;
            scaling.beta_slow = slow;
            scaling.mscale = scaling.mscale_all_dim = 1;
            check(scale_deepseek_yarn(rotation_.inv_freq, rotation_.base, scaling,
                                      rotation_.attention_factor, rotation_.softmax_scale),
                  "yarn");
            return;
        }
        YarnScaling scaling;
        scaling.factor = factor;
        scaling.original_max_position_embeddings = original;
        scaling.beta_fast = fast;
        scaling.beta_slow = slow;
        scaling.attention_factor = scales ? 0 : 1;
        check(scale_yarn(rotation_.inv_freq, rotation_.base, scaling, rotation_.attention_factor),
              "yarn");
    }

    void query_scale() {
        const Field field = find({scope_}, {"llama_4_scaling"});
        if (!field) return;
        const Scope scope = object(field);
        require_known(scope, query_keys);
        rotation_.finish.query_scale = {VKROPE_QUERY_SCALING_MINISTRAL3,
                                        number(scope, "original_max_position_embeddings"),
                                        number(scope, "beta")};
        rotation_.finish.tensor[Q].scale_tokens = true;
    }

    const Scope scope_;
    const ModelQuery& query_;
    Rotation rotation_;
    bool latent_ = false;
};

}  // namespace

bool is_checkpoint_params(const json& document) {
    const auto type = document.find("model_type");  // "transformer", if mistral-inference wrote it
    return document.contains("dim") &&
           (document.contains("n_layers") || document.contains("n_heads")) &&
           (type == document.end() || *type == "transformer") && !document.contains("_class_name");
}

Rotation checkpoint_rotation(const json& document, const ModelQuery& query) {
    return CheckpointImport(document, query).run();
}

}  // namespace vkrope
