// SPDX-License-Identifier: MIT
// Reads the kinds of layers and lists of one number per layer. Sources: llama.cpp's
// get_key_or_arr() for lists under the name of the single number; src/llama-hparams.cpp of
// ik_llama.cpp for names that end in _per_layer (Step 3.5).
#include <algorithm>
#include <utility>

#include "model/gguf/import.hpp"

namespace vkrope {
namespace {

constexpr const char* linear_attention = "linear_attention";

// Fails unless `single`, a key for all layers or for one kind of layer, equals the number of some
// layer in the list.
//
// exactly  `single` is for the chosen layers, and must equal `number`, theirs in the list
void require_agreement(const Field& list, const Field& single, const Field& number, bool exactly) {
    if (!single || single.is_list()) return;
    const double value = finite_number(single);
    const std::vector<double> each = list_of_numbers(list);
    const bool explained = std::any_of(each.begin(), each.end(), [&](double of_layer) {
        return of_layer == value || of_layer == 0;  // for 0 the other key applies
    });
    if (exactly ? value != finite_number(number) : !explained) disagree(single, number);
}

}  // namespace

bool GgufImport::some_slide() {
    const Field window = find("attention.sliding_window");
    const std::uint64_t width = window ? whole_number(window, 0, max_whole) : 0;
    if (!row_.window_decides) {
        return row_.layers.period != 0 || row_.layers.rule != LayerRule::same ||
               find("attention.sliding_window_pattern");
    }
    const bool by_default = row_.window_by_default || (row_.sliding_layer_count != 0 &&
                                                       layers_.count == row_.sliding_layer_count);
    return window ? width > 0 : by_default;
}

std::vector<std::uint64_t> GgufImport::one_a_layer(const Field& field, std::uint64_t high) const {
    std::vector<std::uint64_t> numbers = whole_numbers(field, 0, high);
    require_one_a_layer(field, numbers.size(), layers_.count);
    return numbers;
}

std::vector<std::string> GgufImport::layer_types(bool slide) {
    std::vector<std::string> types(std::size_t(layers_.count), full_attention);
    const auto set = [&](const char* type, const auto& applies_to) {
        for (std::size_t layer = 0; layer < types.size(); ++layer)
            if (applies_to(layer)) types[layer] = type;
    };
    const auto period_of = [&](const Field& field, std::uint64_t low, std::uint64_t otherwise) {
        return field ? whole_number(field, low, max_gguf_layers) : otherwise;
    };
    if (row_.layers.rule == LayerRule::compressed) {
        const Field field = required("attention.compress_ratios",
                                     "it selects the base of each layer");
        const std::vector<std::uint64_t> ratios = whole_numbers(field, 0, 128);
        if (ratios.size() < types.size()) require_one_a_layer(field, ratios.size(), types.size());
        for (std::size_t layer = 0; layer < types.size(); ++layer) {
            types[layer] = compressed_attention(ratios[layer]);
            if (types[layer].empty()) refuse(element(field, layer), "0, 4 or 128");
        }
    } else if (slide) {
        const Field pattern = find("attention.sliding_window_pattern");
        if (!pattern && row_.layers.period == 0) {
            invalid_data("{} is missing: it selects the layers with a sliding window",
                         pattern.name);
        }
        if (pattern.is_list()) {
            const std::vector<std::uint64_t> each = one_a_layer(pattern, 1);
            set(row_.sliding, [&](std::size_t layer) { return each[layer] != 0; });
        } else {
            const std::uint64_t period = period_of(pattern, 0, row_.layers.period),
                                full = row_.layers.full_first ? 0 : period - 1;
            set(row_.sliding, [&](std::size_t layer) {
                return period == 0 || layer % period != full;  // 0: all layers slide
            });
        }
    }
    if (const Field recurrent = find("attention.recurrent_layers"); recurrent.is_list()) {
        const std::vector<std::uint64_t> each = one_a_layer(recurrent, 1);
        set(linear_attention, [&](std::size_t layer) { return each[layer] != 0; });
    } else if (row_.linear_period != 0) {
        const std::uint64_t period = period_of(find("full_attention_interval"), 1,
                                               row_.linear_period);
        set(linear_attention, [&](std::size_t layer) { return (layer + 1) % period != 0; });
    }
    for (const char* name : {"attention.head_count", "attention.head_count_kv"}) {
        const Field field = find(name);
        if (!field.is_list()) continue;
        const std::vector<std::uint64_t> heads = one_a_layer(field, max_heads);
        // A layer without heads has a recurrence, a convolution or nothing.
        set("recurrent", [&](std::size_t layer) { return heads[layer] == 0; });
    }
    return types;
}

// Returns for each layer whether it has RoPE; empty if the file does not state it. A 0 in a list
// of bases or widths means a layer without RoPE.
std::vector<bool> GgufImport::rotating_layers() {
    std::vector<bool> turns;
    if (const Field pattern = find("attention.rope_pattern")) {
        const std::vector<std::uint64_t> each = one_a_layer(pattern, 1);
        turns.assign(each.begin(), each.end());
    }
    for (const char* name : {"rope.freq_base", "rope.dimension_count"}) {
        const Field field = find(name);
        if (!field.is_list()) continue;
        const std::vector<double> each = list_of_numbers(field);
        require_one_a_layer(field, each.size(), layers_.count);
        if (std::find(each.begin(), each.end(), 0) == each.end()) continue;
        const std::uint64_t interval = row_.no_rope_interval;
        for (std::uint64_t layer = turns.size(); layer < layers_.count; ++layer)
            turns.push_back(interval == 0 || (layer + 1) % interval != 0);
        for (std::uint64_t layer = 0; layer < layers_.count; ++layer)
            turns[layer] = turns[layer] && each[layer] != 0;
    }
    return turns;
}

// If no layer is known to slide, a key for sliding layers shows that there are two kinds of
// layers, whose numbers are unknown. If llama.cpp lets no layer slide, the key is ignored.
void GgufImport::keys_of_unknown_layers() {
    for (const char* name : {"rope.freq_base", "rope.dimension_count", "attention.key_length",
                             "rope.scaling.type", "rope.scaling.factor"}) {
        const Field field = find_of(of_sliding, name);
        if (!field) continue;
        const Field window = find(row_.window_decides ? "attention.sliding_window"
                                                      : "attention.sliding_window_pattern");
        const std::string state = window ? stated(window) : window.name + " is missing";
        if (row_.window_decides) {
            warn(rotation_, "{}{}, so that no layer slides, as in llama.cpp", ignored(field),
                 state);
            continue;
        }
        if (query_.layer >= 0) {
            invalid_argument(
                "query.layer is {}: {} is for sliding layers, but {}, so that it is not known "
                "which layers slide; ask for a layer type",
                query_.layer, field.name, state);
        }
        layers_.named = {full_attention, row_.sliding};
    }
}

void GgufImport::choose_layer() {
    const bool slide = some_slide();
    layers_.no_rope_interval = row_.no_rope_interval;
    layers_.none_rotates = row_.without_rope;
    layers_.rule = slide ? row_.layers.rule : LayerRule::same;
    if (layers_.count != 0) {
        std::vector<std::string> types = layer_types(slide);
        if (slide ||
            std::count(types.begin(), types.end(), full_attention) != std::ptrdiff_t(types.size()))
            layers_.list = std::move(types);
        layers_.rotating = rotating_layers();
        layers_.find_still();
    } else if (slide || row_.linear_period != 0) {
        required("block_count", "layers of this architecture differ");
    }
    if (!slide) keys_of_unknown_layers();
    kind_ = layers_.choose(query_, rotation_.warnings);
    slides_ = kind_.type == row_.sliding;
}

bool GgufImport::are_listed(const std::string& name) {
    return find(name).is_list() || find(name + "_per_layer").is_list();
}

Field GgufImport::picked(const Field& field, const Field& otherwise) {
    if (!field.is_list()) return field;
    LayerNumbers numbers = {field.name, list_of_numbers(field)};
    require_one_a_layer(field, numbers.values.size(), layers_.count);
    if (otherwise)
        std::replace(numbers.values.begin(), numbers.values.end(), 0.0, finite_number(otherwise));
    const std::optional<double> number = layers_.common(numbers, query_, kind_);
    if (!number)
        invalid_data("{} has no number above 0 for layers of type {}", field.name, kind_.type);
    picked_.push_back(*number);
    return {field.name, &picked_.back(), "float64"};
}

Field GgufImport::of_layer(const std::string& name) {
    const Field all = find(name), each = find(name + "_per_layer"),
                sliding = find_of(of_sliding, name), full = find_of(of_full, name);
    if (each && !each.is_list()) refuse(each, "a list with one number for each layer");
    if (full && all && !slides_ && *full.value != *all.value) disagree(full, all);
    const Field& own = slides_ ? sliding : full;
    const Field& single = own ? own : all;
    const Field& list = each ? each : all;
    if (!list.is_list()) return picked(single);
    Field number = picked(list, each && !single.is_list() ? single : Field());
    require_agreement(list, sliding, number, slides_);
    require_agreement(list, full, number, !slides_);
    require_agreement(list, all, number, false);
    return number;
}

}  // namespace vkrope
