// SPDX-License-Identifier: MIT
#include "model/hf_layers.hpp"

#include <algorithm>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

constexpr const char* full = "full_attention";
constexpr const char* sliding = "sliding_attention";
constexpr const char* chunked = "chunked_attention";
constexpr std::uint64_t max_layers = 65536;

/// Kinds of layers that are no softmax attention, and do not rotate.
constexpr const char* other_kinds[] = {"conv", "gated_delta", "lightning_attention", "linear_attention", "mamba", "mamba2",
                                       "mlp",  "recurrent"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Keys by which older files give every layer its kind, and what the values mean.
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

/// Keys that list the layers that are attention among others.
constexpr const char* index_keys[] = {"attn_layer_indices", "full_attn_idxs"};  // Bamba, LFM2

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
            fail(Code::invalid_data, "%s[%llu] is %s: must be %s", field.name.c_str(), ull{kinds.size()}, shown(entry).c_str(),
                 key.of_one == nullptr ? "a string" : "0 or 1");
        }
    }
    return kinds;
}

void require_array(const Field& field) {
    if (!field.value->is_array()) {
        fail(Code::invalid_data, "%s is %s: must be a list", field.name.c_str(), shown(*field.value).c_str());
    }
}

}  // namespace

Layers::Layers(const Scope& config, const ModelType& model, const std::vector<std::string>& named)
    : config_(config), scope_{config}, named_(named), rule_(model.layers) {
    if (const Field count = find_first(scope_, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"})) {
        count_ = whole_number(count, 1, max_layers);
    }
    if (rule_ == LayerRule::same && find_first(scope_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"})) {
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
        fail(Code::invalid_data, "%s has %llu elements: must have one a layer, %llu", field.name.c_str(), ull{length}, ull{count_});
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
        if (key.name != std::string("block_types")) {  // which repeats
            require_length(field, list_.size());
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
    const Field pattern = find_first(
        scope_, {"sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval"});
    if (pattern && pattern.value->is_string()) {  // EXAONE 4: "LLLG", repeated
        for (const char c : pattern.value->get<std::string>()) {
            list_.push_back(c == 'L' ? sliding : full);
        }
        return;
    }
    if (model.period != 0 || pattern) {
        const bool by_class = model.period != 0;
        period_ = pattern ? whole_number(pattern, 1, max_layers) : model.period;
        full_in_period_ = by_class && model.full_layers == FullLayers::first_of_period ? 0 : period_ - 1;
        if (pattern && pattern.name.find("full_attention_interval") != std::string::npos) {  // Qwen3-Next
            for (std::uint64_t layer = 0; layer < period_; ++layer) {
                list_.push_back(layer == full_in_period_ ? full : "linear_attention");
            }
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
    if (std::any_of(std::begin(other_kinds), std::end(other_kinds), [&](const char* kind) { return type == kind; })) {
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

/// The kinds of layers that there are, full attention first.
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
    std::stable_partition(found.begin(), found.end(), [](const std::string& type) { return type == full; });
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
        fail(Code::invalid_data, "%slayer_types is missing: which of the layer types layer %llu has is unknown",
             config_.prefix.c_str(), ull{layer});
    }
    return {type, rotates(layer) && type_rotates(type)};
}

LayerKind Layers::of_type(const std::string& type) const {
    return {type, type_rotates(type)};
}

LayerKind Layers::choose(const ModelQuery& query, std::vector<std::string>& warnings) const {
    const std::vector<std::string> all = types();
    if (query.layer >= 0) {
        const auto layer = std::uint64_t(query.layer);
        if (count_ != 0 && layer >= count_) {
            fail(Code::invalid_argument, "layer is %d: the model has %llu", query.layer, ull{count_});
        }
        return of_layer(layer);
    }
    if (!query.layer_type.empty()) {
        const std::string asked(query.layer_type);
        if (all.empty()) {
            fail(Code::invalid_argument, "layer_type is '%s': the model has no layer types", shown_key(asked).c_str());
        }
        if (!contains(all, asked)) {
            fail(Code::invalid_argument, "layer_type is '%s': the model has %s", shown_key(asked).c_str(), joined(all).c_str());
        }
        return of_type(asked);
    }
    const bool some_by_number =
        !rotating_.empty() ? std::find(rotating_.begin(), rotating_.end(), false) != rotating_.end() : no_rope_interval_ != 0;
    if (all.empty() || (all.size() == 1 && type_rotates(all[0]))) {
        if (some_by_number) {
            warnings.push_back("some layers have no RoPE: a layer that has is assumed");
        }
        if (all.empty() && rule_ == LayerRule::local_base) {
            warnings.push_back("ignored the base of local layers: no layer_types say which those are");
        }
        return {all.empty() ? std::string() : all[0], true};
    }
    const auto rotating = std::find_if(all.begin(), all.end(), [&](const std::string& type) { return type_rotates(type); });
    const LayerKind chosen = of_type(rotating == all.end() ? all[0] : *rotating);
    const bool differ = rule_ != LayerRule::same || !named_.empty() ||
                        std::any_of(all.begin(), all.end(), [&](const std::string& type) { return !type_rotates(type); });
    if (differ || some_by_number) {
        warnings.push_back("the model has layers of several types (" + joined(all) + "): " + shown_key(chosen.type) + " assumed");
    }
    return chosen;
}

}  // namespace vkrope
