// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>

#include "model/hf/nesting.hpp"
#include "model/hf/readers.hpp"
#include "model/key_words.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// A key that, if it is set, changes RoPE in a way that is not read.
struct UnsupportedKey {
    const char* name;
    const char* reason;
};

constexpr UnsupportedKey unsupported_keys[] = {
    {"mla_use_nope", "the model does not use RoPE, or not in every layer"},
    {"position_encoding_2d",
     "its two windows, each with its own positions, are not read from a file: "
     "fill RopeParams::windows and sections"},                                   // ChatGLM-6B
    {"use_long_context", "its base is multiplied, which is not supported yet"},  // Zamba 2
    {"use_rope_layers", "which of its layers rotate is not known"},              // Step 3.5
};

constexpr auto interleaved_words = names("gptj", "interleave", "interleaved", "llama4", "mistral");
constexpr auto half_split_words = names("half", "llama", "neox", "split");
constexpr auto scaling_words = names("dynamic", "linear", "llama3", "longrope", "ntk", "yarn");
constexpr auto rope_words = names("", "default", "emb", "embedding", "embeddings", "interleave",
                                  "mrope", "rope", "rotary", "standard", "style");
// Words of position embeddings other than RoPE.
constexpr auto other_words = names("absolute", "alibi", "bias", "key", "learned", "no", "none",
                                   "nope", "query", "relative", "sin", "sinusoidal", "t5");

// Returns whether some key names RoPE.
bool names_rope(const Scopes& scopes) {
    for (const Scope& scope : scopes) {
        for (const auto& [key, value] : scope.object->items())
            if (classify_key(key, false) == KeyClass::angles) return true;
    }
    const Field type = position_embedding(scopes);
    return read_position_embedding(type).says_rope;
}

}  // namespace

Field position_embedding(const Scopes& top) {
    Keys keys(std::vector<std::string>{});
    for (const Scope& scope : top) {
        for (const auto& [key, value] : scope.object->items())
            if (is_position_embedding(key) && value.is_string()) keys.names.push_back(key);
    }
    return find(top, keys);
}

PositionEmbedding read_position_embedding(const Field& type) {
    PositionEmbedding found;
    std::string unknown;
    bool others = false;
    if (!type) return found;
    for (const std::string& word : words_of(text(type))) {
        if (contains(interleaved_words, word))
            found.pairing = VKROPE_INTERLEAVED;
        else if (contains(half_split_words, word))
            found.pairing = VKROPE_HALF_SPLIT;
        else if (contains(scaling_words, word))
            found.scaling = word;
        else if (!contains(rope_words, word))
            unknown = word;
        others = others || contains(other_words, word);
        found.says_rope = found.says_rope || word == "rope" || word == "rotary";
    }
    found.rotates = !others;
    if (found.rotates && !unknown.empty())
        not_supported("{}: what \"{}\" means there is not known", stated(type), unknown);
    return found;
}

void refuse_unsupported_keys(const Scopes& top, const ModelType& model) {
    const std::string nope_key = model.nope_key != nullptr ? model.nope_key : "";
    for (const Scope& scope : top)
        for (const auto& [key, value] : scope.object->items())
            if (key != nope_key) refuse_switch({scope.prefix + shown_key(key), &value}, key);
    if (!nope_key.empty()) {
        const Field field = find_first(top, {model.nope_key});
        if (!field || !truth(field)) {
            not_supported("{}: model_type {} is read only where it is true, without RoPE",
                          field ? stated(field) : nope_key + " is missing", model.name);
        }
    }
    for (const UnsupportedKey& key : unsupported_keys) {
        const Field field = find_first(top, {key.name});
        if (field && is_set(*field.value) && key.name != nope_key)
            not_supported("{}: {}", stated(field), key.reason);
    }
    const bool rotates_by_class = model.name != nullptr && model.rope_asked_by == nullptr &&
                                  !model.absolute_is_meant;
    const Field type = position_embedding(top);
    // Classes derived from BERT's, such as ModernBERT, write this key even without embeddings.
    if (type && !(rotates_by_class && *type.value == "absolute") &&
        !read_position_embedding(type).rotates)
        not_supported("{}: the model does not use RoPE, or not in every layer", stated(type));
}

void refuse_without_rope(const ModelClass& model, const Scopes& top,
                         const ScalingSection& section) {
    const char* key = model.type.rope_asked_by;
    Scopes scopes = top;
    scopes.push_back(section.scope());
    if (const Field asked = key ? find_first(scopes, {key}) : Field();
        key != nullptr && (!asked || !is_set(*asked.value))) {
        not_supported("{}: without it model_type {} does not use RoPE",
                      asked ? stated(asked) : key + std::string(" is missing"), model.type.name);
    }
    // An unknown class may be without RoPE.
    if (model.type.name == nullptr && model.unknown && !names_rope(top))
        not_supported("{}: it is unknown, and no key names RoPE", stated(model.unknown));
}

void refuse_scaling_of_attention(const Scopes& top) {
    for (const char* name : {"rope_hf_config", "rope_dail_config"}) {
        const Field section = find_first(top, {name});
        if (!section || !section.value->is_object()) continue;
        const Scope in_section = inside(top[0], section);
        know({in_section}, {"factor", "pos_idx_in_fp32", "xpos_scale_base"});
        const Field type = find_first({in_section}, {"type"});
        if (type && !is_plain(*type.value))
            not_supported("{}: only no_scaling and original are supported there", stated(type));
        if (!type && says_a_scaling(*section.value))
            not_supported("{}: it names a scaling and is not read", stated(section));
    }
}

void require_known_scaling(const ModelType& model, const ScalingSection& section) {
    if (scaling_type(section) == "ntk" && !model.mixed_ntk) {
        const Field type = find_first({section.scope()}, {"rope_type", "type"});
        not_supported("{}: it is supported only for model_type new", stated(type));
    }
}

}  // namespace vkrope
