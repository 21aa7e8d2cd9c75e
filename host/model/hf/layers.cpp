// SPDX-License-Identifier: MIT
#include "model/hf/layers.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

constexpr const char* full = "full_attention";
constexpr const char* sliding = "sliding_attention";
constexpr const char* chunked = "chunked_attention";
constexpr std::uint64_t max_layers = 65536;

/// Kinds of layers that are not softmax attention, and do not rotate.
constexpr const char* other_kinds[] = {
    "conv", "gated_delta", "lightning_attention", "linear_attention", "mamba", "mamba2", "mlp",
    "moe",  "recurrent"};

template <class Names>
bool contains(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Kinds that rotate; "hybrid" has attention and a recurrence side by side.
constexpr const char* rotating_kinds[] = {chunked,  "deepseek_sparse_attention", full,
                                          "hybrid", "minimax_m3_sparse",         sliding};

/// Keys of older files that list the kind of every layer, and what the values mean.
struct ListKey {
    const char* name;
    const char* of_zero;  ///< numbers: what 0 and 1 mean
    const char* of_one;
};
constexpr ListKey list_keys[] = {
    {"layer_types", nullptr, nullptr},
    {"block_types", nullptr, nullptr},             // RecurrentGemma
    {"layers_block_type", nullptr, nullptr},       // Granite 4, Bamba
    {"attn_type_list", "linear_attention", full},  // MiniMax
    {"hybrid_layer_pattern", full, sliding},       // MiMo
};

/// Keys that list the attention layers of a mixed model.
constexpr const char* index_keys[] = {"attn_layer_indices", "full_attn_idxs"};  // Bamba, LFM2

/// Keys that say how full-attention layers repeat.
constexpr std::initializer_list<const char*> patterns = {
    "sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers",
    "full_attention_interval"};

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "" : ", ") + shown_key(name);
    }
    return text;
}

std::vector<std::string> kinds_of(const Field& field, const ListKey& key) {
    std::vector<std::string> kinds;
    for (const json& entry : *field.value) {
        if (key.of_one == nullptr && entry.is_string()) {
            std::string kind = entry.get<std::string>();
            kinds.push_back(kind == "attention" ? full : kind);
        } else if (key.of_one != nullptr && (entry == 0 || entry == 1)) {
            kinds.push_back(entry == 0 ? key.of_zero : key.of_one);
        } else {
            fail(Code::invalid_data, "%s[%llu] is %s: must be %s", field.name.c_str(),
                 ull{kinds.size()}, shown(entry).c_str(),
                 key.of_one == nullptr ? "a string" : "0 or 1");
        }
    }
    return kinds;
}

/// Limits the number of layer types, since each is compared with every other.
void require_few(const Field& field, const std::vector<std::string>& kinds) {
    const std::size_t count = std::set<std::string_view>(kinds.begin(), kinds.end()).size();
    if (count > max_layer_types) {
        fail(Code::invalid_data, "%s has %zu layer types: must have at most %zu",
             field.name.c_str(), count, max_layer_types);
    }
}

void require_array(const Field& field) {
    if (!field.value->is_array()) {
        fail(Code::invalid_data, "%s is %s: must be a list", field.name.c_str(),
             shown(*field.value).c_str());
    }
}

}  // namespace

Layers::Layers(const Scope& config, const ModelType& model, const std::vector<std::string>& named)
    : config_(config), scope_{config}, named_(named), rule_(model.layers) {
    if (const Field count = find_first(
            scope_, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"})) {
        count_ = whole_number(count, 1, max_layers);
    }
    if (rule_ == LayerRule::same &&
        find_first(scope_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"})) {
        rule_ = LayerRule::local_base;
    }
    if (rule_ == LayerRule::none_on_full_of_sliding) {
        rule_ = find_first(scope_, {"sliding_window"}) ? LayerRule::none_on_full : LayerRule::same;
    }
    read_types(model);
    read_rotating(model);
}

void Layers::require_length(const Field& field, std::size_t length) const {
    if (count_ != 0 && length != count_) {
        fail(Code::invalid_data, "%s has %llu elements: must have one a layer, %llu",
             field.name.c_str(), ull{length}, ull{count_});
    }
}

void Layers::read_types(const ModelType& model) {
    for (const ListKey& key : list_keys) {
        const Field field = find_first(scope_, {key.name});
        if (!field || (field.value->is_array() && field.value->empty())) {
            continue;
        }
        require_array(field);
        list_ = kinds_of(field, key);
        require_few(field, list_);
        if (key.name != std::string("block_types")) {  // block_types repeats
            require_length(field, list_.size());
            compare_with_pattern(field.name, model.full_layers == FullLayers::first_of_period);
        }
        return;
    }
    for (const char* key : index_keys) {
        const Field field = find_first(scope_, {key});
        if (!field || count_ == 0) {
            continue;
        }
        require_array(field);
        list_.assign(count_, "mamba");
        for (const json& entry : *field.value) {
            list_[whole_number({field.name + "[]", &entry}, 0, count_ - 1)] = full;
        }
        return;
    }
    const Field pattern = find_first(scope_, patterns);
    if (pattern && pattern.value->is_string()) {  // EXAONE 4: "LLLG", repeated
        const std::string letters = text(pattern);
        if (letters.size() > max_layers) {
            fail(Code::invalid_data, "%s has %zu letters: must have at most %llu",
                 pattern.name.c_str(), letters.size(), ull{max_layers});
        }
        for (const char c : letters) {
            list_.push_back(c == 'L' ? sliding : full);
        }
        return;
    }
    const Field step = find_first(
        scope_, {"mamba_step"});  // PLaMo 2: the middle one of mamba_step layers is attention
    const Field enabled = find_first(scope_, {"mamba_enabled"});
    if (step && !(enabled && !truth(enabled))) {
        list_.assign(whole_number(step, 1, max_layers), "mamba");
        const std::uint64_t middle = list_.size() / 2;
        list_[count_ != 0 && count_ <= middle ? count_ - 1 : middle] = full;
        return;
    }
    if (model.period != 0 || pattern) {
        const bool by_class = model.period != 0;
        period_ = pattern ? whole_number(pattern, 1, max_layers) : model.period;
        full_in_period_ = by_class && model.full_layers == FullLayers::first_of_period
                              ? 0
                              : period_ - 1;
        if (pattern &&
            pattern.name.find("full_attention_interval") != std::string::npos) {  // Qwen3-Next
            for (std::uint64_t layer = 0; layer < period_; ++layer) {
                list_.push_back(layer == full_in_period_ ? full : "linear_attention");
            }
        }
    }
}

/// A list overrides a pattern beside it, as in transformers.
void Layers::compare_with_pattern(const std::string& name, bool full_first) {
    const Field pattern = find_first(scope_, patterns);
    if (!pattern) {
        return;
    }
    const bool letters = pattern.value->is_string();
    const std::string of_letters = letters ? pattern.value->get<std::string>() : std::string();
    const std::uint64_t period = letters ? of_letters.size() : whole_number(pattern, 1, max_layers);
    for (std::uint64_t layer = 0; layer < list_.size() && period != 0; ++layer) {
        const std::uint64_t m = layer % period;
        const bool is_full = letters ? of_letters[m] != 'L' : m == (full_first ? 0 : period - 1);
        if (is_full != (list_[layer] == full)) {
            ignored_.push_back("ignored key " + pattern.name + ", which is " +
                               shown(*pattern.value) + ": " + name +
                               " is read, which differs at layer " + std::to_string(layer));
            return;
        }
    }
}

void Layers::read_rotating(const ModelType& model) {
    const Field list = find_first(scope_, {"no_rope_layers"});
    if (list && !(list.value->is_array() && list.value->empty())) {
        require_array(list);
        for (const json& entry : *list.value) {  // despite its name 1 is a layer with RoPE
            rotating_.push_back(whole_number({list.name + "[]", &entry}, 0, 1) != 0);
        }
        require_length(list, rotating_.size());
        const Field interval = find_first(scope_, {"no_rope_layer_interval"});
        const std::uint64_t every = interval ? whole_number(interval, 1, max_layers) : 0;
        for (std::uint64_t layer = 0; every != 0 && layer < rotating_.size(); ++layer) {
            if (rotating_[layer] != ((layer + 1) % every != 0)) {
                ignored_.push_back("ignored key " + interval.name + ", which is " +
                                   shown(*interval.value) + ": " + list.name +
                                   " is read, which differs at layer " + std::to_string(layer));
                break;
            }
        }
    } else if (const Field interval = find_first(scope_, {"no_rope_layer_interval"})) {
        no_rope_interval_ = whole_number(interval, 1, max_layers);
    } else {
        no_rope_interval_ = model.no_rope_layer_interval;
    }
    without_rope_is_full_ = model.full_without_rope;
    // Llama 3.2's vision models: layers that attend to the image do not rotate.
    const Field crossing = find_first(scope_, {"cross_attention_layers"});
    if (crossing && count_ != 0 && rotating_.empty()) {
        require_array(crossing);
        rotating_.assign(count_, true);
        for (const json& entry : *crossing.value) {
            rotating_[whole_number({crossing.name + "[]", &entry}, 0, count_ - 1)] = false;
        }
    }
}

bool Layers::type_rotates(const std::string& type) const {
    if (contains(other_kinds, type)) {
        return false;
    }
    return !(type == full && (rule_ == LayerRule::none_on_full || without_rope_is_full_));
}

bool Layers::rotates(std::uint64_t layer) const {
    if (!rotating_.empty()) {
        return layer >= rotating_.size() || rotating_[layer];
    }
    return no_rope_interval_ == 0 || (layer + 1) % no_rope_interval_ != 0;
}

std::string Layers::type_of(std::uint64_t layer) const {
    if (!list_.empty()) {
        return list_[layer % list_.size()];
    }
    if (without_rope_is_full_) {
        return rotates(layer) ? chunked : full;
    }
    if (period_ != 0) {
        return layer % period_ == full_in_period_ ? full : sliding;
    }
    return {};
}

/// The kinds of layers of the model, full attention first.
std::vector<std::string> Layers::types() const {
    std::vector<std::string> found;
    if (!list_.empty()) {
        found = list_;
    } else if (without_rope_is_full_) {
        found = {full, chunked};
    } else if (period_ != 0) {
        found = {full};
        if (period_ > 1) {
            found.push_back(sliding);
        }
    } else {
        found = named_;
    }
    std::stable_partition(found.begin(), found.end(),
                          [](const std::string& type) { return type == full; });
    std::vector<std::string> once;
    for (const std::string& type : found) {
        if (!contains(once, type)) {
            once.push_back(type);
        }
    }
    return once;
}

LayerKind Layers::of_layer(std::uint64_t layer) const {
    const std::string type = type_of(layer);
    if (type.empty() && !named_.empty()) {
        fail(Code::invalid_data,
             "%slayer_types is missing: which of the layer types layer %llu has is unknown",
             config_.prefix.c_str(), ull{layer});
    }
    return {type, rotates(layer) && type_rotates(type)};
}

LayerKind Layers::of_type(const std::string& type) const {
    return {type, type_rotates(type)};
}

LayerKind Layers::choose(const ModelQuery& query, std::vector<std::string>& warnings) const {
    const std::vector<std::string> all = types();
    warnings.insert(warnings.end(), ignored_.begin(), ignored_.end());
    const LayerKind chosen = chosen_of(all, query, warnings);
    const bool any = query.layer < 0 && query.layer_type.empty();
    for (const std::string& type : all) {
        // A type with parameters of its own needs no warning.
        if (!contains(rotating_kinds, type) && !contains(other_kinds, type) &&
            !contains(named_, type) && (any || type == chosen.type)) {
            warnings.push_back("layer type " + shown_key(type) +
                               " is unknown: assumed to rotate as " + sliding + " does");
        }
    }
    for (const std::string& type : named_) {
        if (!contains(all, type)) {
            warnings.push_back("ignored rope_parameters." + shown_key(type) +
                               ": the model has no layers of that type");
        }
    }
    return chosen;
}

LayerKind Layers::chosen_of(const std::vector<std::string>& all, const ModelQuery& query,
                            std::vector<std::string>& warnings) const {
    if (query.layer >= 0) {
        const auto layer = std::uint64_t(query.layer);
        if (count_ != 0 && layer >= count_) {
            fail(Code::invalid_argument, "layer is %d: the model has %llu", query.layer,
                 ull{count_});
        }
        return of_layer(layer);
    }
    if (!query.layer_type.empty()) {
        const std::string asked(query.layer_type);
        if (all.empty()) {
            fail(Code::invalid_argument, "layer_type is '%s': the model has no layer types",
                 shown_key(asked).c_str());
        }
        if (!contains(all, asked)) {
            fail(Code::invalid_argument, "layer_type is '%s': the model has %s",
                 shown_key(asked).c_str(), joined(all).c_str());
        }
        return of_type(asked);
    }
    const bool some_by_number = !rotating_.empty() ? std::find(rotating_.begin(), rotating_.end(),
                                                               false) != rotating_.end()
                                                   : no_rope_interval_ != 0;
    if (all.empty() || (all.size() == 1 && type_rotates(all[0]))) {
        if (some_by_number) {
            warnings.push_back("some layers have no RoPE: a layer that has is assumed");
        }
        if (all.empty() && rule_ == LayerRule::local_base) {
            warnings.push_back(
                "ignored the base of local layers: no layer_types say which those are");
        }
        return {all.empty() ? std::string() : all[0], true};
    }
    const auto rotating = std::find_if(all.begin(), all.end(),
                                       [&](const std::string& type) { return type_rotates(type); });
    const LayerKind chosen = of_type(rotating == all.end() ? all[0] : *rotating);
    const bool differ = rule_ != LayerRule::same || !named_.empty() ||
                        std::any_of(all.begin(), all.end(),
                                    [&](const std::string& type) { return !type_rotates(type); });
    if (differ || some_by_number) {
        warnings.push_back("the model has layers of several types (" + joined(all) +
                           "): " + shown_key(chosen.type) + " assumed");
    }
    return chosen;
}

}  // namespace vkrope
