// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <set>

#include "model/hf/nesting.hpp"
#include "model/hf/readers.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

/// The values of a key that are not supported.
enum class When { is_true, is_false, is_listed, not_rope };

struct UnsupportedKey {
    const char* name;
    When when;
    const char* reason;
};

constexpr const char* no_rope = "the model does not use RoPE, or not in every layer";

constexpr UnsupportedKey unsupported_keys[] = {
    {"alibi", When::is_true, no_rope},
    {"mla_use_nope", When::is_true, no_rope},              // Kimi Linear
    {"position_embedding_type", When::not_rope, no_rope},  // Granite 4, BERT
    {"position_encoding_2d", When::is_true,
     "its two windows, each with its own positions, are not read from a file: "
     "fill RopeParams::windows and sections"},  // ChatGLM-6B
    {"rope", When::is_false, no_rope},          // OLMo before transformers
    {"rotary", When::is_false, no_rope},        // GPT-J
    {"use_long_context", When::is_true,
     "its base is multiplied, which is not supported yet"},  // Zamba 2
    {"use_mem_rope", When::is_false, no_rope},               // Zamba 2
    {"use_rope", When::is_false, no_rope},
    {"use_rope_embeddings", When::is_false, no_rope},
    {"use_rotary", When::is_false, no_rope},
    {"use_rotary_embedding", When::is_false, no_rope},
    {"use_rotary_embeddings", When::is_false, no_rope},
    {"use_rotary_position_embedding", When::is_false, no_rope},
    {"use_rotary_position_embeddings", When::is_false, no_rope},                      // Megatron
    {"use_rotary_pos_emb", When::is_false, no_rope},                                  // Hunyuan
    {"use_rope_layers", When::is_listed, "which of its layers rotate is not known"},  // Step 3.5
};

/// Other top-level keys that are read elsewhere, or that do not describe a rotation although their
/// names suggest one.
const std::initializer_list<const char*> other_known_keys = {"attn_layer_indices",
                                                             "attn_rotary_emb",
                                                             "cross_attention_layers",
                                                             "full_attn_idxs",
                                                             "hybrid_layer_pattern",
                                                             "layer_rope_theta",
                                                             "mrope_interleaved",
                                                             "mrope_section",
                                                             "no_rope_layer_interval",
                                                             "no_rope_layers",
                                                             "partial_rotary_factors",
                                                             "qk_rope_head_dim",
                                                             "rope_dail_config",
                                                             "rope_hf_config",
                                                             "rope_impl",
                                                             "rope_parameters",
                                                             "rope_ratio",
                                                             "rope_scaling",
                                                             "rotary_dim",
                                                             "xdrope_section"};

bool is_known(const std::string& key) {
    const auto lists = {base_names,    local_base_names, share_names,
                        pairing_names, pattern_names,    other_known_keys};
    return std::any_of(lists.begin(), lists.end(),
                       [&](const auto& list) { return contains(list, key); });
}

/// Returns whether a rule applies; rules for true or false apply only to booleans.
bool looked_at(const std::string& key, const json& value) {
    const auto asks = [&](const UnsupportedKey& row) {
        const bool yes_or_no = row.when == When::is_true || row.when == When::is_false;
        return key == row.name && (value.is_boolean() || !yes_or_no);
    };
    return is_known(key) ||
           std::any_of(std::begin(unsupported_keys), std::end(unsupported_keys), asks);
}

/// Returns true for "rope", "rotary" and Cohere's "rope_gptj".
bool is_rope(const std::string& type) {
    return type.rfind("rope", 0) == 0 || type.rfind("rotary", 0) == 0;
}

/// Returns true for false, for 0, and for a list with one of these for some layer.
bool is_off(const json& value) {
    return value == false || value == 0 ||
           (value.is_array() && std::any_of(value.begin(), value.end(), [](const json& of_layer) {
                return of_layer == false || of_layer == 0;
            }));
}

bool applies(When when, const json& value) {
    switch (when) {
        case When::is_true: return value == true;
        case When::is_false: return is_off(value);
        case When::is_listed: return is_set(value) && !(value.is_array() && value.empty());
        default: return is_set(value) && !(value.is_string() && is_rope(value.get<std::string>()));
    }
}

/// Returns whether some key names RoPE.
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
        // Classes derived from BERT's, such as ModernBERT, write this key even without embeddings.
        const bool idle = rotates_by_class && key.when == When::not_rope && field &&
                          *field.value == "absolute";
        if (field && !idle && applies(key.when, *field.value)) {
            not_supported("{}: {}", stated(field), key.reason);
        }
    }
}

void refuse_without_rope(const ModelClass& model, const Scopes& top,
                         const ScalingSection& section) {
    const char* key = model.type.rope_asked_by;
    Scopes scopes = top;
    scopes.push_back(section.scope());
    if (key != nullptr && !find_first(scopes, {key})) {
        not_supported("{} is missing: without it model_type {} does not use RoPE", key,
                      model.type.name);
    }
    // An unknown class may be without RoPE.
    if (model.type.name == nullptr && model.unknown && !names_rope(top)) {
        not_supported("{}: it is unknown, and no key names RoPE", stated(model.unknown));
    }
}

void refuse_scaling_of_attention(const Scopes& top) {
    const char* sections[][2] = {{"rope_hf_config", "no_scaling"},
                                 {"rope_dail_config", "original"}};
    for (const auto& [name, plain] : sections) {
        const Field section = find_first(top, {name});
        const Field type = section && section.value->is_object()
                               ? find_first({{section.value, section.name + "."}}, {"type"})
                               : Field();
        if (type && *type.value != plain) {
            not_supported("{}: only {} is supported there", stated(type), plain);
        }
        if (section && !type && says_a_scaling(*section.value)) {
            not_supported("{}: it names a scaling and is not read", stated(section));
        }
    }
}

void require_known_scaling(const ModelType& model, const ScalingSection& section) {
    if (scaling_type(section) == "ntk" && !model.mixed_ntk) {
        const Field type = find_first({section.scope()}, {"rope_type", "type"});
        not_supported("{}: it is supported only for model_type new", stated(type));
    }
}

namespace {

/// Returns whether an unread key turns RoPE off in classes that read the key.
bool denies_rope(const std::string& key, const json& value) {
    return std::any_of(
        std::begin(unsupported_keys), std::end(unsupported_keys),
        [&](const UnsupportedKey& row) { return key == row.name && applies(row.when, value); });
}

/// Returns whether the class of the model reads a key that other classes do not read.
bool read_by_class(const ModelClass& model, const std::string& key, const json& value) {
    const ModelType& type = model.type;
    return (type.layers.rule == LayerRule::compressed && key == "compress_rope_theta") ||
           (type.rotary_object && key == "rotary" && value.is_object()) ||
           (type.layers.rule == LayerRule::scaled_on_listed && key == "yarn_only_types") ||
           (type.alternating == Alternating::then_time && key == "rope_3d") ||
           (type.name != nullptr && key == "use_dynamic_ntk") ||  // it has its own warning
           (type.name != nullptr && ops_reads(model.name, key));
}

/// Warns of unread keys; `rotation` is the result without them.
class UnreadKeys {
   public:
    UnreadKeys(const Source& source, const Query& query, RopeParams& rotation)
        : source_(source), query_(query), rotation_(rotation), type_(source.shown_type()),
          known_(source.type.name != nullptr), scaled_(rotation.rope_type != "default"),
          norms_(rotation.ops.tensor[Q].norm.kind != VKROPE_NORM_NONE) {}

    /// Examines the language model's own objects and the objects inside them.
    void of_model() {
        for (const Scope& scope : source_.top) {
            for (const auto& [key, value] : scope.object->items()) {
                if (looked_at(key, value) || read_by_class(source_, key, value)) continue;
                look(scope, key, value);
                if (!is_nested_config(key) && !is_scope(value)) {
                    look_inside(scope, key, value);
                }
            }
        }
    }

    /// Examines the objects around the language model; ignored_around() reports their other keys.
    void around(const Scopes& scopes) {
        for (const Scope& scope : scopes) {
            for (const auto& [key, value] : scope.object->items()) {
                if (looked_at(key, value) || !value.is_structured() || is_nested_config(key)) {
                    continue;
                }
                refuse({scope.prefix + shown_key(key), &value}, what_says(key));
                look_inside(scope, key, value);
            }
        }
    }

    /// Returns whether some key indicates norms of Q and K that were not read.
    bool says_norms() const { return says_norms_; }

   private:
    bool is_scope(const json& value) const {
        return std::any_of(source_.top.begin(), source_.top.end(),
                           [&](const Scope& scope) { return scope.object == &value; });
    }

    void look_inside(const Scope& scope, const std::string& key, const json& value) {
        if (!value.is_structured()) return;
        visit_inside({scope.prefix + shown_key(key), &value},
                     [&](const Scope& inside, const std::string& name, const json& inner) {
                         look(inside, name, inner);
                         if (denies_rope(name, inner)) {
                             warn({inside.prefix + shown_key(name), &inner}, of_class(), true);
                         }
                     });
    }

    void look(const Scope& scope, const std::string& key, const json& value) {
        const bool by_value = key == "type" && value.is_string();  // of a section, by any name
        const Says says = what_says(by_value ? value.get_ref<const std::string&>() : key);
        const bool switched_off = says == Says::rotation && value == false &&
                                  (in_key(key, "use_", true) || in_key(key, "enable_", true) ||
                                   in_key(key, "original_rope", true));
        const bool asks = is_set(value) || switched_off ||
                          (says == Says::norm && norms_ && value == false);
        if (says == Says::nothing || !asks) {
            return;
        }
        const Field field = {scope.prefix + shown_key(key), &value};
        refuse(field, says);
        if (says != Says::norm) {
            warn(field, of_class(), says != Says::rotation || switched_off);
        } else if (norms_) {
            warn(field, "the norms of Q and K are those of model_type " + type_, true);
        } else {
            rotation_.ops.norms_known = false;
            says_norms_ = true;
            warn(field, of_class() + ", so whether Q and K have norms is not known", true);
        }
    }

    std::string of_class() const { return "model_type " + type_ + " is not known to have it"; }

    void warn(const Field& field, const std::string& because, bool with_value) {
        if (named_.insert(field.name).second) {
            rotation_.warnings.push_back(
                "ignored key " + field.name +
                (with_value ? ", which is " + shown(field) : std::string()) + ": " + because);
        }
    }

    /// Fails if ignoring the key would change the angles.
    void refuse(const Field& field, Says says) const {
        const bool may_scale = says == Says::scaling || says == Says::rotation ||
                               says == Says::yarn;
        if ((may_scale && says_a_scaling(*field.value)) ||
            (says == Says::yarn && asks_for_scaling(*field.value) &&
             (!known_ || field.value->is_object()))) {
            not_supported(
                "{}: it names a scaling and is not read; state it in rope_parameters, or set it to "
                "null",
                stated(field));
        }
        if (known_) {
            return;
        }
        if (says == Says::scaled_layers && scaled_) {
            not_supported(
                "{}: it selects the scaled layers, but is not read for an unknown model_type; give "
                "each layer type its own section in rope_parameters, and set the key to null",
                stated(field));
        }
        if (says == Says::layers && (query_.layer >= 0 || !query_.layer_type.empty())) {
            not_supported(
                "{}: it selects the kind of a layer, but is not read for an unknown model_type; "
                "select no layer, or list the kinds in layer_types and set the key to null",
                stated(field));
        }
    }

    const Source& source_;
    const Query& query_;
    RopeParams& rotation_;
    const std::string type_;  // name in messages
    const bool known_, scaled_, norms_;
    bool says_norms_ = false;
    std::set<std::string> named_;
};

}  // namespace

bool name_unread_keys(const Source& source, const Query& query, const Scopes& around,
                      RopeParams& rotation) {
    UnreadKeys unread(source, query, rotation);
    unread.of_model();
    unread.around(around);
    return unread.says_norms();
}

}  // namespace vkrope
