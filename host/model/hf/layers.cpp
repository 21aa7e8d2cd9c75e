// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "model/hf/source.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_layers = 65536;

// Keys of older files that list the kind of every layer, and the meaning of the values.
struct ListKey {
    const char* name;
    const char* of_zero;  // for numbers: meaning of 0 and 1
    const char* of_one;
};
constexpr ListKey list_keys[] = {
    {"layer_types", nullptr, nullptr},
    {"block_types", nullptr, nullptr},                            // RecurrentGemma
    {"layers_block_type", nullptr, nullptr},                      // Granite 4, Bamba
    {"attn_type_list", "linear_attention", full_attention},       // MiniMax
    {"hybrid_layer_pattern", full_attention, sliding_attention},  // MiMo
};

// Keys that list the attention layers of a mixed model.
constexpr const char* index_keys[] = {"attn_layer_indices", "full_attn_idxs"};  // Bamba, LFM2

std::vector<std::string> kinds_of(const Field& field, const ListKey& key) {
    std::vector<std::string> kinds;
    for (const json& entry : *field.value) {
        if (key.of_one == nullptr && entry.is_string()) {
            std::string kind = entry.get<std::string>();
            kinds.push_back(kind == "attention" ? full_attention : kind);
        } else if (key.of_one != nullptr && (entry == 0 || entry == 1)) {
            kinds.push_back(entry == 0 ? key.of_zero : key.of_one);
        } else {
            refuse(element(field, kinds.size()), key.of_one == nullptr ? "a string" : "0 or 1");
        }
    }
    return kinds;
}

// Limits the number of layer types, because each is compared with every other.
void require_few(const Field& field, const std::vector<std::string>& kinds) {
    const std::size_t count = std::set<std::string_view>(kinds.begin(), kinds.end()).size();
    if (count > max_layer_types) {
        invalid_data("{} has {} layer types: it must have at most {}", field.name, count,
                     max_layer_types);
    }
}

void require_array(const Field& field) {
    if (!field.value->is_array()) refuse(field, "a list");
}

// Reads a list of integers, which may be empty.
std::vector<std::uint64_t> listed(const Field& field, std::uint64_t low, std::uint64_t high) {
    require_array(field);
    return field.value->empty() ? std::vector<std::uint64_t>() : whole_numbers(field, low, high);
}

// Returns whether a list may be longer than the model, because some models also list, at the end,
// the layers that predict further tokens.
bool goes_on(LayerRule rule) {
    return rule == LayerRule::scaled_on_listed || rule == LayerRule::compressed;
}

void require_length(const Layers& layers, const Field& field, std::size_t length) {
    if (layers.count != 0 && !(goes_on(layers.rule) && length > layers.count))
        require_one_a_layer(field, length, layers.count);
}

// Reads DeepSeek V4's compress_ratios like configuration_deepseek_v4.py in transformers.
void read_ratios(const Scopes& scope, Layers& layers) {
    const Field field = find_required(
        scope, "compress_ratios", ", and layer_types too: which layers have which base is unknown");
    require_array(field);
    for (const json& entry : *field.value) {
        const bool whole = entry.is_number_unsigned();
        const std::string type = whole ? compressed_attention(entry.get<std::uint64_t>()) : "";
        if (type.empty()) refuse(element(field, layers.list.size()), "0, 4 or 128");
        layers.list.push_back(type);
    }
    require_length(layers, field, layers.list.size());
}

// Reads bases per layer: layer_rope_theta of Granite SWA, where 0 means a layer without RoPE, and
// Step 3.5's rope_theta.
void read_bases(const Scopes& scope, Layers& layers) {
    Field list = find_first(scope, {"layer_rope_theta"});
    if (const Field base = find_first(scope, {"rope_theta"}); base && base.value->is_array()) {
        if (list) {
            invalid_data("{} and {} are both lists: it is unknown which of them applies", list.name,
                         base.name);
        }
        list = base;
    }
    if (list) layers.bases = listed_numbers(list, layers);
    if (const Field shares = find_first(scope, {"partial_rotary_factors"}))
        layers.shares = listed_numbers(shares, layers);
}

// Returns the kinds of layers in a period with one layer of full attention.
std::vector<std::string> kinds_of_period(std::uint64_t period, bool full_first, const char* other) {
    std::vector<std::string> kinds(period, other);
    kinds[full_first ? 0 : period - 1] = full_attention;
    return kinds;
}

// Returns the kinds of layers in a period, from letters such as EXAONE 4's "LLLG" or from the
// number of layers in a period.
std::vector<std::string> kinds_of_pattern(const Field& pattern, bool full_first) {
    if (!pattern.value->is_string()) {
        const bool linear = pattern.name.ends_with("full_attention_interval");  // Qwen3-Next
        return kinds_of_period(whole_number(pattern, 1, max_layers), full_first,
                               linear ? "linear_attention" : sliding_attention);
    }
    const std::string letters = text(pattern);
    if (letters.size() > max_layers) {
        invalid_data("{} has {} letters: it must have at most {}", pattern.name, letters.size(),
                     max_layers);
    }
    std::vector<std::string> kinds;
    for (const char c : letters) kinds.push_back(c == 'L' ? sliding_attention : full_attention);
    return kinds;
}

// Warns of a list or a pattern of kinds that differs from what is read, `name`: the first place
// takes precedence, as in transformers.
void compare(const Field& other, const std::vector<std::string>& kinds, const std::string& name,
             Layers& layers) {
    for (std::uint64_t layer = 0; layer < layers.list.size() && !kinds.empty(); ++layer) {
        const bool is_full = kinds[layer % kinds.size()] == full_attention;
        if (is_full != (layers.list[layer] == full_attention)) {
            layers.ignored.push_back(ignored(other) + name + " is read, which differs at layer " +
                                     std::to_string(layer));
            return;
        }
    }
}

// Reads Kimi Linear's linear_attn_config, whose lists count the layers from 1. Returns false if the
// file has none.
bool read_linear_layers(const Scopes& scope, Layers& layers) {
    const Field config = find_first(scope, {"linear_attn_config"});
    if (!config || !config.value->is_object()) return false;
    const Scopes within = {inside(scope[0], config)};
    const Field full = find_required(within, "full_attn_layers", ": it lists the layers"),
                linear = find_required(within, "kda_layers", ": it lists the layers");
    if (layers.count == 0) invalid_data("num_hidden_layers is missing: {} needs it", config.name);
    layers.list.resize(layers.count);
    for (const Field& field : {full, linear}) {
        for (const std::uint64_t number : listed(field, 1, layers.count)) {
            std::string& kind = layers.list[number - 1];
            if (!kind.empty())
                invalid_data("{} and {} list layer {} twice", full.name, linear.name, number);
            kind = field.name == full.name ? full_attention : "linear_attention";
        }
    }
    const auto missing = std::find(layers.list.begin(), layers.list.end(), "");
    if (missing != layers.list.end())
        invalid_data("{} and {} do not list layer {}", full.name, linear.name,
                     missing - layers.list.begin() + 1);
    return true;
}

void read_types(const Scopes& scope, const ModelType& model, Layers& layers) {
    const Field pattern = find(scope, pattern_names);
    std::string name;
    for (const ListKey& key : list_keys) {
        const Field field = find_first(scope, {key.name});
        if (!field || (field.value->is_array() && field.value->empty())) continue;
        require_array(field);
        const std::vector<std::string> kinds = kinds_of(field, key);
        require_few(field, kinds);
        const bool repeated = key.name == std::string("block_types");
        if (!repeated) require_length(layers, field, kinds.size());
        if (!name.empty()) {
            compare(field, kinds, name, layers);
            continue;
        }
        layers.list = kinds;
        name = field.name;
        if (pattern && !repeated)
            compare(pattern, kinds_of_pattern(pattern, model.layers.full_first), name, layers);
    }
    if (!name.empty()) return;
    if (layers.rule == LayerRule::compressed) return read_ratios(scope, layers);
    if (read_linear_layers(scope, layers)) return;
    for (const char* key : index_keys) {
        const Field field = find_first(scope, {key});
        if (!field || layers.count == 0) continue;
        layers.list.assign(layers.count, "mamba");
        for (const std::uint64_t layer : listed(field, 0, layers.count - 1))
            layers.list[layer] = full_attention;
        return;
    }
    const Field step = find_first(
        scope, {"mamba_step"});  // PLaMo 2: the middle one of mamba_step layers is attention
    const Field enabled = find_first(scope, {"mamba_enabled"});
    if (step && !(enabled && !truth(enabled))) {
        layers.list.assign(whole_number(step, 1, max_layers), "mamba");
        const std::uint64_t middle = layers.list.size() / 2;
        layers.list[layers.count != 0 && layers.count <= middle ? layers.count - 1 : middle] =
            full_attention;
        return;
    }
    if (pattern) {
        layers.list = kinds_of_pattern(pattern, model.layers.full_first);
    } else if (model.layers.period != 0) {
        layers.list = kinds_of_period(model.layers.period, model.layers.full_first,
                                      sliding_attention);
    }
}

void read_rotating(const Scopes& scope, const ModelType& model, Layers& layers) {
    const Field list = find_first(scope, {"no_rope_layers"});
    if (list && !(list.value->is_array() && list.value->empty())) {
        // Despite the name of the key, 1 means that the layer rotates.
        for (const std::uint64_t rotates : listed(list, 0, 1))
            layers.rotating.push_back(rotates != 0);
        require_length(layers, list, layers.rotating.size());
        const Field interval = find_first(scope, {"no_rope_layer_interval"});
        const std::uint64_t every = interval ? whole_number(interval, 1, max_layers) : 0;
        for (std::uint64_t layer = 0; every != 0 && layer < layers.rotating.size(); ++layer) {
            if (layers.rotating[layer] != ((layer + 1) % every != 0)) {
                layers.ignored.push_back(ignored(interval) + list.name +
                                         " is read, which differs at layer " +
                                         std::to_string(layer));
                break;
            }
        }
    } else if (const Field interval = find_first(scope, {"no_rope_layer_interval"})) {
        layers.no_rope_interval = whole_number(interval, 1, max_layers);
    } else {
        layers.no_rope_interval = model.no_rope_layer_interval;
    }
    layers.without_rope_is_full = model.full_without_rope;
}

// Reads the cross-attention layers of Llama 3.2's vision models, which do not rotate.
void read_crossing(const Scopes& scope, Layers& layers) {
    const Field list = find_first(scope, {"cross_attention_layers"});
    if (!list) return;
    const std::uint64_t count = layers.count != 0 ? layers.count : max_layers;
    for (const std::uint64_t layer : listed(list, 0, count - 1)) {
        layers.crossing.resize(std::max<std::uint64_t>(layers.crossing.size(), layer + 1));
        layers.crossing[layer] = true;
    }
}

}  // namespace

LayerNumbers listed_numbers(const Field& field, const Layers& layers) {
    require_array(field);
    if (field.value->size() > max_layers) {
        invalid_data("{} has {} elements: it must have at most {}", field.name, field.value->size(),
                     max_layers);
    }
    LayerNumbers numbers = {field.name, {}};
    if (!field.value->empty()) numbers.values = list_of_numbers(field);
    require_length(layers, field, numbers.values.size());
    if (layers.count != 0) numbers.values.resize(layers.count);
    return numbers;
}

Layers read_layers(const Scope& config, const ModelType& model, std::vector<std::string> named) {
    Layers layers;
    layers.prefix = config.prefix;
    layers.named = std::move(named);
    layers.rule = model.layers.rule;
    layers.none_rotates = model.nope_key != nullptr;
    if (model.indexer) layers.beside.push_back("indexer");
    const Scopes scope = {config};
    if (const Field count = find(scope, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}))
        layers.count = whole_number(count, 1, max_layers);
    if (layers.rule == LayerRule::same && find_base(scope, Base::local))
        layers.rule = LayerRule::local_base;
    if (layers.rule == LayerRule::none_on_full_of_sliding) {
        layers.rule = find_first(scope, {"sliding_window"}) ? LayerRule::none_on_full
                                                            : LayerRule::same;
    }
    read_types(scope, model, layers);
    read_crossing(scope, layers);
    read_bases(scope, layers);
    if (layers.bases.values.empty()) {
        read_rotating(scope, model, layers);
    } else {
        for (const double base : layers.bases.values) layers.rotating.push_back(base != 0);
        layers.find_still();
    }
    return layers;
}

}  // namespace vkrope
