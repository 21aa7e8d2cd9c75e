// SPDX-License-Identifier: MIT
#include "model/hf/unsupported.hpp"

#include <algorithm>
#include <iterator>

#include "model/hf/finish.hpp"
#include "model/hf/scaling_types.hpp"
#include "model/hf/telling_keys.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// Values of a key that are not supported.
enum class When { is_true, is_false, is_listed, not_rope };

struct UnsupportedKey {
    const char* name;
    When when;
    const char* reason;
};

constexpr const char* no_rope = "the model does not use RoPE";

constexpr UnsupportedKey unsupported_keys[] = {
    {"alibi", When::is_true, no_rope},
    {"mla_use_nope", When::is_true, no_rope},              // Kimi Linear
    {"position_embedding_type", When::not_rope, no_rope},  // Granite 4, BERT
    {"position_encoding_2d", When::is_true,
     "its two windows, each with positions of its own, are not read from a file: "
     "fill Rotation::windows and sections"},  // ChatGLM-6B
    {"rope", When::is_false, no_rope},        // OLMo before transformers
    {"rotary", When::is_false, no_rope},      // GPT-J
    {"use_long_context", When::is_true,
     "its base is multiplied, which is not supported yet"},  // Zamba 2
    {"use_mem_rope", When::is_false, no_rope},               // Zamba 2
    {"use_rope", When::is_false, no_rope},
    {"use_rope_layers", When::is_listed, "which layers turn is not known for it"},  // Step 3.5
};

/// Top-level keys that are read although their names say something of the rotation or the layers,
/// or that describe no rotation.
constexpr const char* known_keys[] = {"_sliding_window_pattern",
                                      "attn_layer_indices",
                                      "attn_rotary_emb",
                                      "compress_rope_theta",
                                      "layer_rope_theta",
                                      "partial_rotary_factors",
                                      "full_attention_interval",
                                      "full_attn_idxs",
                                      "global_attn_every_n_layers",
                                      "hybrid_layer_pattern",
                                      "original_rope",
                                      "partial_rotary_factor",
                                      "global_rope_theta",
                                      "local_rope_theta",
                                      "mrope_interleaved",
                                      "mrope_section",
                                      "no_rope_layer_interval",
                                      "no_rope_layers",
                                      "qk_rope_head_dim",
                                      "rope_embedding_base",
                                      "rope_freq_constant",
                                      "rope_dail_config",
                                      "rope_hf_config",
                                      "rope_impl",
                                      "rope_interleave",
                                      "rope_interleaved",
                                      "rope_local_base_freq",
                                      "rope_parameters",
                                      "rope_pct",
                                      "rope_percent",
                                      "rope_ratio",
                                      "rope_scaling",
                                      "rope_theta",
                                      "sliding_window_pattern",
                                      "rotary_base",
                                      "rotary_dim",
                                      "rotary_emb_base",
                                      "rotary_emb_fraction",
                                      "rotary_emb_interleaved",
                                      "rotary_pct",
                                      "rotary_percent",
                                      "swa_rope_theta",
                                      "xdrope_section"};

template <std::size_t count>
bool contains(const char* const (&names)[count], const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// A key with a rule for true or false is looked at only if its value is a boolean.
bool looked_at(const std::string& key, const json& value) {
    const auto asks = [&](const UnsupportedKey& row) {
        const bool yes_or_no = row.when == When::is_true || row.when == When::is_false;
        return key == row.name && (value.is_boolean() || !yes_or_no);
    };
    return contains(known_keys, key) ||
           std::any_of(std::begin(unsupported_keys), std::end(unsupported_keys), asks);
}

/// "rope", "rotary", Cohere's "rope_gptj".
bool is_rope(const std::string& type) {
    return type.rfind("rope", 0) == 0 || type.rfind("rotary", 0) == 0;
}

bool applies(When when, const json& value) {
    switch (when) {
        case When::is_true: return value == true;
        case When::is_false: return value == false;
        case When::is_listed: return is_set(value) && !(value.is_array() && value.empty());
        default: return is_set(value) && !(value.is_string() && is_rope(value.get<std::string>()));
    }
}

/// Whether some key says that the model has RoPE.
bool names_rope(const Scopes& scopes) {
    for (const Scope& scope : scopes) {
        for (const auto& [key, value] : scope.object->items()) {
            const bool type_of_rope = key == "position_embedding_type" && value.is_string() &&
                                      is_rope(value.get_ref<const std::string&>());
            const bool named = key.find("rope") != key.npos || key.find("rotary") != key.npos;
            if (named || type_of_rope) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace

void refuse_unsupported_keys(const Scopes& scopes, bool rotates_by_class) {
    for (const UnsupportedKey& key : unsupported_keys) {
        const Field field = find_first(scopes, {key.name});
        // Classes derived from BERT's write this whether they have such embeddings or not:
        // ModernBERT has none.
        const bool idle = rotates_by_class && key.when == When::not_rope && field &&
                          *field.value == "absolute";
        if (field && !idle && applies(key.when, *field.value)) {
            fail(Code::not_supported, "%s is %s: %s", field.name.c_str(),
                 shown(*field.value).c_str(), key.reason);
        }
    }
}

void refuse_without_rope(const ModelClass& model, const Scopes& top,
                         const ScalingSection& section) {
    const char* key = model.type.rope_asked_by;
    Scopes scopes = top;
    scopes.push_back(section.scope());
    if (key != nullptr && !find_first(scopes, {key})) {
        fail(Code::not_supported, "%s is missing: without it model_type %s does not use RoPE", key,
             model.type.name);
    }
    // An unknown class may have no RoPE at all.
    if (model.type.name == nullptr && model.unknown && !names_rope(top)) {
        fail(Code::not_supported, "%s: it is unknown, and no key names RoPE",
             stated(model.unknown).c_str());
    }
}

void refuse_scaling_of_attention(const Scopes& top) {
    const Field chosen = find_first(top, {"rope_impl"});
    const bool by_transformers = chosen && *chosen.value == "hf";
    const Field section = find_first(top,
                                     {by_transformers ? "rope_hf_config" : "rope_dail_config"});
    const Field type = section && section.value->is_object()
                           ? find_first({{section.value, section.name + "."}}, {"type"})
                           : Field();
    const char* plain = by_transformers ? "no_scaling" : "original";
    if (type && *type.value != plain) {
        fail(Code::not_supported, "%s: only %s is supported there", stated(type).c_str(), plain);
    }
}

void require_known_scaling(const ModelType& model, const ScalingSection& section) {
    if (scaling_type(section) == "ntk" && !model.mixed_ntk) {
        const Field type = find_first({section.scope()}, {"rope_type", "type"});
        fail(Code::not_supported, "%s: it is supported only for model_type new",
             stated(type).c_str());
    }
}

namespace {

/// Whether the class of the model reads a key that others do not.
bool read_by_class(const ModelClass& model, const std::string& key, const json& value) {
    const ModelType& type = model.type;
    return (type.rotary_object && key == "rotary" && value.is_object()) ||
           (type.layers == LayerRule::scaled_on_listed && key == "yarn_only_types") ||
           (type.name != nullptr && key == "use_dynamic_ntk") ||  // it has a warning of its own
           (type.name != nullptr && finish_reads(model.name, key));
}

/// Whether a value is a section like rope_scaling, or the name of a scaling.
bool says_a_scaling(const json& value) {
    const auto names_one = [](const json& type) {
        return type.is_string() && is_scaling_name(type.get<std::string>());
    };
    if (!value.is_object()) {
        return names_one(value);
    }
    const auto has = [&](const char* key, auto&& asks) {
        const auto entry = value.find(key);
        return entry != value.end() && asks(*entry);
    };
    return has("rope_type", names_one) || has("type", names_one) ||
           has("factor", [](const json& factor) { return factor.is_number() && factor != 1; });
}

/// Fails if leaving the key out would change the angles.
void refuse_unread(const Source& source, const ModelQuery& query, const Field& field, Says says,
                   bool scaled) {
    const bool known = source.model.type.name != nullptr;
    const bool section = (says == Says::scaling || says == Says::rotation) &&
                         says_a_scaling(*field.value);
    if (section || (says == Says::yarn && asks_for_scaling(*field.value) &&
                    (!known || field.value->is_object()))) {
        fail(Code::not_supported,
             "%s: it names a scaling and is not read; say it in rope_parameters, or set it to null",
             stated(field).c_str());
    }
    if (known) {
        return;
    }
    if (says == Says::scaled_layers && scaled) {
        fail(Code::not_supported,
             "%s: it says which layers are scaled, which is not read for a model_type that is not "
             "known; give each layer type its own section in rope_parameters, and set it to null",
             stated(field).c_str());
    }
    if (says == Says::layers && (query.layer >= 0 || !query.layer_type.empty())) {
        fail(Code::not_supported,
             "%s: it says of which kind a layer is, which is not read for a model_type that is not "
             "known; ask for no layer, or list the kinds in layer_types and set it to null",
             stated(field).c_str());
    }
}

}  // namespace

void name_unread_keys(const Source& source, const ModelQuery& query, const Scopes& around,
                      Rotation& rotation) {
    const bool scaled = rotation.rope_type != "default";
    const bool norms = rotation.finish.q.norm.kind != NormKind::none;
    for (const Scope& scope : source.top) {
        for (const auto& [key, value] : scope.object->items()) {
            const Says says = what_says(key);
            const bool asks = is_set(value) || (says == Says::norm && norms && value == false);
            if (says == Says::nothing || !asks || looked_at(key, value) ||
                read_by_class(source.model, key, value)) {
                continue;
            }
            const Field field = {scope.prefix + shown_key(key), &value};
            refuse_unread(source, query, field, says, scaled);
            rotation.warnings.push_back(
                "ignored key " + field.name +
                (says == Says::rotation ? "" : ", which is " + shown(value)) + ": model_type " +
                source.model.shown_type() + " is not known to have it");
        }
    }
    for (const Scope& scope : around) {
        for (const auto& [key, value] : scope.object->items()) {
            if (!looked_at(key, value) && value.is_object()) {
                refuse_unread(source, query, {scope.prefix + shown_key(key), &value},
                              what_says(key), scaled);
            }
        }
    }
}

}  // namespace vkrope
