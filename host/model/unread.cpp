// SPDX-License-Identifier: MIT
#include "model/unread.hpp"

#include <algorithm>

#include "model/key_words.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// Values that name no scaling, in several file formats.
constexpr auto plain_names = names("", "default", "disabled", "mrope", "no_scaling", "none", "off",
                                   "origin", "original", "rope", "rotary", "standard");

// Names of scalings that classify_key() does not know by their words.
constexpr auto scaling_names = names("dynamic", "linear", "llama3", "longrope", "proportional",
                                     "su", "xdrope");

bool is_string_of(const json& value, const auto& names) {
    return value.is_string() && contains(names, value.get_ref<const std::string&>());
}

bool names_a_scaling(const json& value) {
    return is_string_of(value, scaling_names) ||
           (value.is_string() && !is_plain(value) &&
            classify_key(value.get_ref<const std::string&>(), false) == KeyClass::angles);
}

bool has_numbers(const json& value) {
    return value.is_number() ||
           (value.is_structured() && std::any_of(value.begin(), value.end(), has_numbers));
}

// Returns whether a key is a share of the channels, for which 0 is a statement.
bool is_share(const std::string& key) {
    const std::vector<std::string> words = words_of(key);
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return contains(names("frac", "fraction", "pct", "percent", "percentage", "share"), word);
    });
}

// Returns true for false, for 0, and for a list with one of these for some layer.
bool is_off(const json& value) {
    return value == false || value == 0 ||
           (value.is_array() && std::any_of(value.begin(), value.end(), is_off));
}

}  // namespace

bool is_plain(const json& value) {
    if (!is_set(value) || value == 1 || is_string_of(value, plain_names)) return true;
    if (value.is_object()) {
        const auto enabled = value.find("enabled");
        if (enabled != value.end() && *enabled == false) return true;
    }
    return value.is_structured() && std::all_of(value.begin(), value.end(), is_plain);
}

bool says_a_scaling(const json& value) {
    if (!value.is_object()) return names_a_scaling(value);
    const auto has = [&](const char* key, auto&& asks) {
        const auto entry = value.find(key);
        return entry != value.end() && asks(*entry);
    };
    return has("rope_type", names_a_scaling) || has("type", names_a_scaling) ||
           has("factor", [](const json& factor) { return factor.is_number() && factor != 1; });
}

void refuse_switch(const Field& field, const std::string& key) {
    const json& value = *field.value;
    if ((is_switch_of_rope(key) && is_off(value)) || (is_switch_of_no_rope(key) && value == true))
        not_supported("{}: the model does not use RoPE, or not in every layer", stated(field));
    // The number may parametrise a switch that is off, such as alibi_bias_max.
    if (is_switch_of_others(key) && is_set(value) && !is_string_of(value, plain_names) &&
        (value == 1 || !value.is_number()))
        not_supported("{}: the model's position embedding is not RoPE", stated(field));
}

bool UnreadKeys::judge(const Field& field, const std::string& key, bool in_rope) {
    const json& value = *field.value;
    refuse_switch(field, key);
    if (is_position_embedding(key) && value.is_string() && !is_plain(value)) {
        not_supported("{}: it names the position embedding, and nothing reads it there",
                      stated(field));
    }
    const bool by_value = value.is_string() && contains(names("type", "method", "strategy"), key);
    const bool states = has_numbers(value) || names_a_scaling(value) ||
                        (value == true && is_interpolation(key));
    KeyClass key_class = classify_key(by_value ? value.get<std::string>() : key, states);
    // The words of the object around a key count too: "position" of "position.scale".
    const std::size_t dot = field.name.rfind('.');
    if (key_class == KeyClass::nothing && states && !by_value && dot != field.name.npos) {
        const std::string outer = field.name.substr(field.name.rfind('.', dot - 1) + 1);
        const KeyClass both = classify_key(outer, value.is_number());
        if (both == KeyClass::scores || both == KeyClass::angles) key_class = both;
    }
    // In a section of RoPE any key may scale, unless it says when the model was fine-tuned.
    if (in_rope && key_class == KeyClass::nothing && !in_key(key, "finetun", false))
        key_class = KeyClass::angles;
    const bool may_turn = key_class == KeyClass::angles || key_class == KeyClass::scaling ||
                          key_class == KeyClass::scores;
    const bool denies = key_class == KeyClass::norm && model_.has_norms && value == false;
    if (may_turn ? is_plain(value) && !(value == 0 && is_share(key))
                 : (!is_set(value) || (key_class == KeyClass::layers && value == 1)) && !denies)
        return true;
    if (may_turn && key_class != KeyClass::scores && !model_.rotates) return true;
    const bool scales = (key_class == KeyClass::scaling || key_class == KeyClass::scores) &&
                        says_a_scaling(value);
    if (scales || (key_class == KeyClass::angles && !(value == true && is_switch_of_rope(key)))) {
        not_supported(
            "{}: its name concerns the angles, and nothing reads it for {}; {}give the name to "
            "query.ignore (--ignore)",
            stated(field), model_.name, model_.instead);
    }
    switch (key_class) {
        case KeyClass::scaling: warn(field, model_.name + " is not known to have it"); return false;
        case KeyClass::scores:
            warn(field, "it may change the scale of the scores, and is not in softmax_scale");
            return true;
        case KeyClass::layers: layers(field, false); return true;
        case KeyClass::scaled_layers: layers(field, true); return true;
        case KeyClass::norm: norms(field); return true;
        default: return false;
    }
}

void UnreadKeys::layers(const Field& field, bool scaled_ones) {
    if (!model_.known && (scaled_ones ? model_.scaled : model_.layer_asked)) {
        not_supported(
            "{}: it selects {}, but is not read for {}; {} and set this to null, or give the name "
            "to "
            "query.ignore (--ignore)",
            stated(field), scaled_ones ? "the scaled layers" : "the kind of a layer", model_.name,
            scaled_ones ? "give each layer type its own section in rope_parameters"
                        : "select no layer, or list the kinds in layer_types");
    }
    warn(field, model_.name + " is not known to have it");
}

void UnreadKeys::norms(const Field& field) {
    if (model_.has_norms) {
        warn(field, "the norms of Q and K are those of " + model_.name);
    } else {
        says_norms_ = true;
        warn(field,
             model_.name + " is not known to have it, so whether Q and K have norms is not known");
    }
}

void UnreadKeys::warn(const Field& field, const std::string& because) {
    if (named_.insert(field.name).second) warnings_.push_back(ignored(field) + because);
}

}  // namespace vkrope
