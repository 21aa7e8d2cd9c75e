// SPDX-License-Identifier: MIT
// Imports the params.json of an original checkpoint. Source: mistral-inference's args.py, rope.py
// and transformer_layers.py and Meta's llama model.py, whose channels 2j and 2j + 1 form a pair.
// The base of a file without rope_theta is 10000 in the first mistral-inference (one_file_ref.py),
// 1000000 in the last (transformer.py). `yarn` and `llama_4_scaling`, which it lacks, are from
// vLLM's transformers_utils/configs/mistral.py and mistral_large_3.py.
#include <string>

#include "base/defaults.hpp"
#include "model/hf/class_fields.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/layers.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

constexpr const char* use_config = "use the config.json of the converted model";

// Sets the width of a head and, with latent attention, the places of its rotated part. Returns
// whether the attention is latent.
bool read_head(const Scope& scope, RopeParams& rotation) {
    const Field heads = find({scope}, {"n_heads"}), of_k = find({scope}, {"n_kv_heads"}),
                latent = find({scope}, {"qk_rope_head_dim"}), own = find({scope}, {"head_dim"});
    rotation.ops.q_heads = heads ? std::uint32_t(whole_number(heads, 1, max_heads)) : 0;
    rotation.ops.k_heads = latent ? 1
                           : of_k ? std::uint32_t(whole_number(of_k, 1, max_heads))
                                  : rotation.ops.q_heads;
    Size head = latent ? size_of(latent) : own ? size_of(own) : Size();
    if (!latent && !own) {
        head = quotient(size_of(find({scope}, {"dim"})),
                        size_of(find_required({scope}, "n_heads", "")));
    }
    rotation.head_dim = rotation.rotary_dim = rotated(head, 2, 2);
    if (latent) {
        const auto offset = [&](const char* name) {
            const Field field = find_required({scope}, name, ": latent attention needs it");
            return std::uint32_t(whole_number(field, 0, max_head_dim));
        };
        rotation.q_rotary_offset = offset("qk_nope_head_dim");
        rotation.k_rotary_offset = offset("kv_lora_rank");
    }
    return bool(latent);
}

double number(const Scope& scope, const char* name) {
    return positive_number(find_required({scope}, name, ""));
}

// Applies YaRN. beta and alpha are the fast and slow ends of its range. Without apply_scale
// neither cos and sin nor the softmax are scaled; with apply_scale they are scaled as in
// DeepSeek's latent attention.
void apply_yarn(const Scope& scope, bool latent, RopeParams& rotation) {
    const auto read = [&](auto scaling) {
        scaling.factor = number(scope, "factor");
        scaling.original_max_position_embeddings = number(scope,
                                                          "original_max_position_embeddings");
        scaling.beta_fast = number(scope, "beta");
        scaling.beta_slow = number(scope, "alpha");
        return scaling;
    };
    const Field apply = find({scope}, {"apply_scale"});
    const bool scales = !apply || truth(apply);
    if (!apply) warn(rotation, "yarn.apply_scale is missing: assuming true, the default of vLLM");
    rotation.rope_type = "yarn";
    if (latent && scales) {
        auto scaling = read(DeepseekYarnScaling());
        scaling.mscale = scaling.mscale_all_dim = 1;
        require(scale_deepseek_yarn(rotation.inv_freq, rotation.base, scaling,
                                    rotation.attention_factor, rotation.softmax_scale),
                "yarn");
    } else {
        auto scaling = read(YarnScaling());
        scaling.attention_factor = scales ? 0 : 1;
        require(scale_yarn(rotation.inv_freq, rotation.base, scaling, rotation.attention_factor),
                "yarn");
    }
}

}  // namespace

bool is_checkpoint_params(const json& document) {
    const auto type = document.find("model_type");  // "transformer", if mistral-inference wrote it
    return find({{&document, ""}}, {"dim"}) &&
           (document.contains("n_layers") || document.contains("n_heads")) &&
           (type == document.end() || *type == "transformer") && !document.contains("_class_name");
}

RopeParams checkpoint_rotation(const Scope& scope, const Query& query) {
    // Files whose scaling is in code: Meta's, with a factor of 8 or 32, and DeepSeek's.
    const Field scaled = find({scope}, {"use_scaled_rope"}),
                deepseek = find({scope}, {"inter_dim"});
    if (deepseek || (scaled && truth(scaled))) {
        not_supported(
            "{}: the scaling of such a checkpoint is in its code, and not in the file; {}",
            stated(deepseek ? deepseek : scaled), use_config);
    }
    if (query.tower != "text") {
        invalid_argument(
            "query.tower is '{}': of the params.json of an original checkpoint only text is read",
            shown_key(std::string(query.tower)));
    }
    RopeParams rotation;
    Layers layers;
    if (const Field count = find({scope}, {"n_layers"}))
        layers.count = whole_number(count, 1, max_whole);
    layers.choose(query, rotation.warnings);
    rotation.pairing = VKROPE_INTERLEAVED;
    const bool latent = read_head(scope, rotation);
    const Field longest = find_first({scope}, {"max_position_embeddings", "max_seq_len"});
    rotation.max_position = longest ? whole_number(longest, 1, max_whole) : 0;
    warn_of_length(rotation, query.seq_len);
    const Field theta = find_required(
        {scope}, "rope_theta",
        ": in the params.json of an original checkpoint it is 10000 for Meta's code, and 10000 or "
        "1000000 for Mistral's");
    set_base(rotation, positive_number(theta), "rope_theta");
    if (const Field yarn = find({scope}, {"yarn"}))
        apply_yarn(object(scope, yarn), latent, rotation);
    if (const Field scaling = find({scope}, {"llama_4_scaling"})) {
        const Scope inside = object(scope, scaling);
        rotation.ops.query_scale = {VKROPE_QUERY_SCALING_MINISTRAL3,
                                    number(inside, "original_max_position_embeddings"),
                                    number(inside, "beta")};
        rotation.ops.tensor[Q].scale_tokens = true;
    }
    require_usable(rotation, rotation.inv_freq.size(), rotation.base, "rope_theta");
    Warnings unread;
    warn_of_unread(scope, "a params.json", unread);
    if (!unread.empty())  // what the key means is in code
        not_supported("{}; {}", unread[0], use_config);
    warn(rotation,
         "the file has dim and no model_type of a class: assuming the params.json of an original "
         "checkpoint, with the pairing of its own weights; whether it has norms of Q and K is not "
         "known");
    return rotation;
}

}  // namespace vkrope
