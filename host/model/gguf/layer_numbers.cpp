// SPDX-License-Identifier: MIT
// Lists under the name of the single number: what llama.cpp's get_key_or_arr() reads for other
// keys; those that end in _per_layer: src/llama-hparams.cpp of ik_llama.cpp, for Step 3.5.
#include "model/gguf/layer_numbers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/import_error.hpp"

namespace vkrope {
namespace {

/// Fails unless `single`, a key for all layers or for one kind of them, is what the list says of
/// some layer.
///
/// exactly  it is for the layers asked for, of which the list says `picked`
void require_agreement(const GgufField& list, const GgufField& single, const GgufField& picked,
                       bool exactly) {
    if (!single || single.is_list()) return;
    const double value = finite_number(single);
    const std::vector<double> each = list_of_numbers(list);
    const bool explained = std::any_of(each.begin(), each.end(), [&](double number) {
        return number == value || number == 0;  // a 0 leaves it to the other key
    });
    if (exactly ? value != finite_number(picked) : !explained) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s but %s is %s for %s: they must agree",
             single.name.c_str(), shown(single).c_str(), list.name.c_str(), shown(picked).c_str(),
             exactly ? "these layers" : "these layers, and has the other number for none");
    }
}

}  // namespace

GgufField GgufLayerNumbers::per_layer(const char* name) {
    return keys_.find((std::string(name) + "_per_layer").c_str());
}

bool GgufLayerNumbers::are_listed(const char* name) {
    return keys_.find(name).is_list() || per_layer(name).is_list();
}

GgufField GgufLayerNumbers::of_asked(const GgufField& field, const GgufField& otherwise) {
    if (!field.is_list()) return field;
    LayerNumbers numbers = {field.name, list_of_numbers(field)};
    const std::uint64_t count = layer_.layers.count;
    if (numbers.values.size() != count) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s has %llu elements: it must have one a layer, %llu",
             field.name.c_str(), static_cast<unsigned long long>(numbers.values.size()),
             static_cast<unsigned long long>(count));
    }
    if (otherwise) {
        std::replace(numbers.values.begin(), numbers.values.end(), 0.0, finite_number(otherwise));
    }
    const std::optional<double> number = layer_.layers.common(numbers, query_, layer_.kind);
    if (!number) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s has no number above 0 for layers of type %s",
             field.name.c_str(), layer_.kind.type.c_str());
    }
    picked_.push_back({.type = GgufType::float64, .known = true, .numbers = {*number}});
    return {field.name, &picked_.back()};
}

GgufField GgufLayerNumbers::of_layer(const char* name, const char* sliding_name) {
    const GgufField all = keys_.find(name), each = per_layer(name);
    const GgufField list = each.is_list() ? each : all;
    if (!list.is_list()) {
        const GgufField own = layer_.sliding ? keys_.find(sliding_name) : GgufField();
        return own ? of_asked(own) : all;
    }
    const GgufField sliding = keys_.find(sliding_name);
    const GgufField single = layer_.sliding && sliding ? sliding : all;
    const bool fills = each.is_list() && !single.is_list();
    GgufField picked = of_asked(list, fills ? single : GgufField());
    require_agreement(list, sliding, picked, layer_.sliding);
    require_agreement(list, all, picked, false);
    return picked;
}

}  // namespace vkrope
