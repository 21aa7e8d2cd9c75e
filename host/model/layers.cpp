// SPDX-License-Identifier: MIT
#include "model/layers.hpp"

#include <algorithm>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// Kinds of layers without softmax attention, which have no rows of Q and K.
constexpr auto other_kinds = names("conv", "gated_delta", "lightning_attention", "linear_attention",
                                   "mamba", "mamba2", "mlp", "moe", "recurrent");

// Kinds of layers that rotate; "hybrid" has attention and a recurrence in parallel.
constexpr auto rotating_kinds = names(chunked_attention, "compressed_sparse_attention",
                                      "deepseek_sparse_attention", full_attention,
                                      "heavily_compressed_attention", "hybrid", "minimax_m3_sparse",
                                      sliding_attention, windowed_attention);

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + shown_key(name);
    return text;
}

}  // namespace

void require_one_a_layer(const Field& list, std::size_t length, std::uint64_t layers) {
    if (length != layers)
        invalid_data("{} has {} elements: it must have one a layer, {}", list.name, length, layers);
}

bool Layers::type_rotates(const std::string& type) const {
    if (none_rotates || contains(other_kinds, type) || contains(still, type)) return false;
    return !(type == full_attention && (rule == LayerRule::none_on_full || without_rope_is_full));
}

bool Layers::rotates(std::uint64_t layer) const {
    if (!rotating.empty()) return layer >= rotating.size() || rotating[layer];
    return no_rope_interval == 0 || (layer + 1) % no_rope_interval != 0;
}

std::string Layers::type_of(std::uint64_t layer) const {
    if (!list.empty()) return list[layer % list.size()];
    if (without_rope_is_full) return rotates(layer) ? chunked_attention : full_attention;
    return {};
}

// Returns the kinds of layers of the model, full attention first.
std::vector<std::string> Layers::types() const {
    std::vector<std::string> found;
    if (!list.empty()) {
        found = list;
    } else if (without_rope_is_full) {
        found = {full_attention, chunked_attention};
    } else {
        found = named;
        if (found.empty() && rule == LayerRule::local_base)
            found = {full_attention, sliding_attention};  // which layers are which is not known
    }
    std::stable_partition(found.begin(), found.end(),
                          [](const std::string& type) { return type == full_attention; });
    std::vector<std::string> once;
    for (const std::string& type : found)
        if (!contains(once, type)) once.push_back(type);
    return once;
}

LayerKind Layers::of_layer(std::uint64_t layer) const {
    const std::string type = type_of(layer);
    if (type.empty() && (!named.empty() || rule == LayerRule::local_base)) {
        invalid_data("{}layer_types is missing: which of the layer types layer {} has is unknown",
                     prefix, layer);
    }
    const bool crosses = layer < crossing.size() && crossing[layer];
    return {type, !crosses && rotates(layer) && type_rotates(type), crosses};
}

LayerKind Layers::of_type(const std::string& type) const {
    return {type, type_rotates(type)};
}

LayerKind Layers::choose(const Query& query, Warnings& warnings) const {
    const std::vector<std::string> all = types();
    warnings.insert(warnings.end(), ignored.begin(), ignored.end());
    LayerKind chosen = chosen_of(all, query, warnings);
    const bool any = query.layer < 0 && query.layer_type.empty();
    for (const std::string& type : all) {
        // A type with its own parameters needs no warning.
        if (!contains(rotating_kinds, type) && !contains(other_kinds, type) &&
            !contains(named, type) && (any || type == chosen.type)) {
            warn(warnings, "layer type {} is unknown: assuming that it rotates as {} does",
                 shown_key(type), sliding_attention);
        }
    }
    for (const std::string& type : named) {
        if (!contains(all, type)) {
            warn(warnings, "ignored rope_parameters.{}: the model has no layers of that type",
                 shown_key(type));
        }
    }
    return chosen;
}

void Layers::find_still() {
    for (const std::string& type : types()) {
        bool turns = rotating.empty();
        for (std::uint64_t layer = 0; layer < rotating.size() && !turns; ++layer)
            turns = rotating[layer] && type_of(layer) == type;
        if (!turns) still.push_back(type);
    }
}

bool Layers::has_other_types(const LayerKind& kind) const {
    const std::vector<std::string> all = types();
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& type) { return type != kind.type; });
}

std::optional<double> Layers::common(const LayerNumbers& numbers, const Query& query,
                                     const LayerKind& kind, bool may_differ) const {
    const std::vector<double>& values = numbers.values;
    std::optional<double> found;
    for (std::uint64_t layer = 0; layer < values.size(); ++layer) {
        const bool meant = query.layer >= 0 ? layer == std::uint64_t(query.layer)
                                            : kind.type.empty() || type_of(layer) == kind.type;
        if (!meant || (kind.rotates && values[layer] == 0)) continue;
        if (found && *found != values[layer]) {
            if (may_differ) return std::nullopt;
            invalid_argument("{} has {} and {} for layers of one kind: ask for a single layer",
                             numbers.name, shown_number(*found), shown_number(values[layer]));
        }
        found = values[layer];
    }
    if (query.layer >= 0 && std::size_t(query.layer) < values.size() && !found && !may_differ)
        not_supported("{} is 0 for layer {}: this layer has no RoPE", numbers.name, query.layer);
    if (query.layer >= 0 && !values.empty() && !found && !may_differ)
        invalid_argument("query.layer is {}: {} has no entry for it", query.layer, numbers.name);
    return found;
}

LayerKind Layers::chosen_of(const std::vector<std::string>& all, const Query& query,
                            Warnings& warnings) const {
    if (query.layer >= 0) {
        const auto layer = std::uint64_t(query.layer);
        if (count != 0 && layer >= count)
            invalid_argument("query.layer is {}: the model has only {} layers", query.layer, count);
        return of_layer(layer);
    }
    if (!query.layer_type.empty()) {
        const std::string asked(query.layer_type);
        std::vector<std::string> there = all;
        there.insert(there.end(), beside.begin(), beside.end());
        if (there.empty()) {
            invalid_argument("query.layer_type is '{}': the model has no layer types",
                             shown_key(asked));
        }
        if (!contains(all, asked)) {
            invalid_argument("query.layer_type is '{}': the layer types of the model are {}",
                             shown_key(asked), joined(there));
        }
        return of_type(asked);
    }
    const bool some_by_number = !crossing.empty() ||
                                (rotating.empty() ? no_rope_interval != 0
                                                  : std::find(rotating.begin(), rotating.end(),
                                                              false) != rotating.end());
    if (all.empty() || (all.size() == 1 && (none_rotates || type_rotates(all[0])))) {
        if (some_by_number)
            warnings.push_back("some layers have no RoPE: assuming a layer with RoPE");
        return {all.empty() ? std::string() : all[0], !none_rotates};
    }
    const auto turning = std::find_if(all.begin(), all.end(),
                                      [&](const std::string& type) { return type_rotates(type); });
    LayerKind chosen = of_type(turning == all.end() ? all[0] : *turning);
    const bool differ = rule != LayerRule::same || !named.empty() ||
                        std::any_of(all.begin(), all.end(),
                                    [&](const std::string& type) { return !type_rotates(type); });
    if (differ || some_by_number) {
        warn(warnings, "the model has layers of several types ({}): assuming {}", joined(all),
             shown_key(chosen.type));
    }
    return chosen;
}

}  // namespace vkrope
