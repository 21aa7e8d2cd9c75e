// SPDX-License-Identifier: MIT
// Reads the kinds of layers and lists of one number per layer. Sources: llama.cpp's
// get_key_or_arr() for lists under the name of the single number; src/llama-hparams.cpp of
// ik_llama.cpp for names that end in _per_layer (Step 3.5).
#include <algorithm>
#include <utility>

#include "model/gguf/readers.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_gguf_layers = 4096;  // llama.cpp allows 512

class GgufLayerTypes {
   public:
    GgufLayerTypes(GgufFields& keys, const GgufArchitecture& architecture,
                   std::uint64_t layer_count)
        : keys_(keys), architecture_(architecture), count_(layer_count) {}

    /// Returns whether some layers use a sliding window.
    bool some_slide() {
        const Field window = keys_.find("attention.sliding_window");
        const std::uint64_t width = window ? whole_number(window, 0, max_whole) : 0;
        if (!architecture_.window_decides) {
            return architecture_.layers.period != 0 ||
                   architecture_.layers.rule != LayerRule::same ||
                   keys_.find("attention.sliding_window_pattern");
        }
        const bool by_default = architecture_.window_by_default ||
                                (architecture_.sliding_layer_count != 0 &&
                                 count_ == architecture_.sliding_layer_count);
        return window ? width > 0 : by_default;
    }

    /// Returns the type of each layer.
    std::vector<std::string> list(bool some_slide) {
        std::vector<std::string> types(std::size_t(count_), full_attention);
        if (architecture_.layers.rule == LayerRule::compressed) {
            compress(types);
        } else if (some_slide) {
            slide(types);
        }
        const Field recurrent = keys_.find("attention.recurrent_layers");
        if (architecture_.linear_period != 0) keys_.find("full_attention_interval");
        if (recurrent && recurrent.is_list()) {
            const std::vector<std::uint64_t> each = one_a_layer(recurrent, 1);
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if (each[layer] != 0) types[layer] = "linear_attention";
            }
        } else if (architecture_.linear_period != 0) {
            const Field interval = keys_.find("full_attention_interval");
            const std::uint64_t period = interval ? whole_number(interval, 1, max_gguf_layers)
                                                  : architecture_.linear_period;
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if ((layer + 1) % period != 0) {
                    types[layer] = "linear_attention";
                }
            }
        }
        for (const char* name : {"attention.head_count", "attention.head_count_kv"}) {
            const Field field = keys_.find(name);
            if (!field || !field.is_list()) {
                continue;
            }
            const std::vector<std::uint64_t> heads = one_a_layer(field, max_heads);
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if (heads[layer] == 0) {
                    types[layer] = "recurrent";  // a recurrence, a convolution or nothing
                }
            }
        }
        return types;
    }

    /// Returns for each layer whether it has RoPE; empty if the file does not state it. A 0 in a
    /// list of bases or widths means a layer without RoPE.
    std::vector<bool> rotating() {
        std::vector<bool> turns;
        const Field pattern = architecture_.rope_pattern ? keys_.find("attention.rope_pattern")
                                                         : Field();
        if (pattern) {
            const std::vector<std::uint64_t> each = one_a_layer(pattern, 1);
            turns.assign(each.begin(), each.end());
        }
        for (const char* name : {"rope.freq_base", "rope.dimension_count"}) {
            const Field field = keys_.find(name);
            if (!field.is_list()) continue;
            const std::vector<double> each = list_of_numbers(field);
            require_one_a_layer(field, each.size(), count_);
            if (std::find(each.begin(), each.end(), 0) == each.end()) continue;
            if (turns.empty()) turns = turning_by_interval();
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if (each[layer] == 0) turns[layer] = false;
            }
        }
        return turns;
    }

   private:
    std::vector<bool> turning_by_interval() const {
        std::vector<bool> turns(std::size_t(count_), true);
        const std::uint64_t interval = architecture_.no_rope_interval;
        for (std::uint64_t layer = 0; interval != 0 && layer < count_; ++layer) {
            turns[layer] = (layer + 1) % interval != 0;
        }
        return turns;
    }

    void compress(std::vector<std::string>& types) {
        const Field field = keys_.required("attention.compress_ratios",
                                           "it selects the base of each layer");
        const std::vector<std::uint64_t> ratios = whole_numbers(field, 0, 128);
        if (ratios.size() < count_) {
            require_one_a_layer(field, ratios.size(), count_);
        }
        for (std::uint64_t layer = 0; layer < count_; ++layer) {
            types[layer] = compressed_attention(ratios[layer]);
            if (types[layer].empty()) {
                invalid_data("{}[{}] is {}: it must be 0, 4 or 128", field.name, layer,
                             ratios[layer]);
            }
        }
    }

    void slide(std::vector<std::string>& types) {
        std::uint64_t period = architecture_.layers.period;
        std::vector<std::uint64_t> slides;  // for each layer
        if (const Field pattern = keys_.find("attention.sliding_window_pattern")) {
            if (pattern.is_list()) {
                slides = one_a_layer(pattern, 1);
            } else {
                period = whole_number(pattern, 0, max_gguf_layers);  // 0: all layers slide
            }
        } else if (period == 0) {
            invalid_data("{} is missing: it selects the layers with a sliding window",
                         pattern.name);
        }
        for (std::uint64_t layer = 0; layer < count_; ++layer) {
            const std::uint64_t full_in_period = architecture_.layers.full_first ? 0 : period - 1;
            if (!slides.empty() ? slides[layer] != 0
                                : period == 0 || layer % period != full_in_period) {
                types[layer] = architecture_.sliding;
            }
        }
    }

    std::vector<std::uint64_t> one_a_layer(const Field& field, std::uint64_t high) const {
        std::vector<std::uint64_t> numbers = whole_numbers(field, 0, high);
        require_one_a_layer(field, numbers.size(), count_);
        return numbers;
    }

    GgufFields& keys_;
    const GgufArchitecture& architecture_;
    const std::uint64_t count_;
};

/// Fails unless `single`, a key for all layers or for one kind of layer, equals the number of some
/// layer in the list.
///
/// exactly  `single` is for the selected layers, and must equal `picked`, their number in the list
void require_agreement(const Field& list, const Field& single, const Field& picked, bool exactly) {
    if (!single || single.is_list()) return;
    const double value = finite_number(single);
    const std::vector<double> each = list_of_numbers(list);
    const bool explained = std::any_of(each.begin(), each.end(), [&](double number) {
        return number == value || number == 0;  // for 0 the other key applies
    });
    if (exactly ? value != finite_number(picked) : !explained) {
        invalid_data("{} but {} is {} for {}: they must agree", stated(single), list.name,
                     shown(picked),
                     exactly ? "these layers" : "these layers, and has the other number for none");
    }
}

}  // namespace

std::uint64_t gguf_layer_count(GgufFields& keys) {
    const Field count = keys.find("block_count");
    return count ? whole_number(count, 1, max_gguf_layers) : 0;
}

GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const Query& query, Warnings& warnings) {
    GgufLayerTypes layers(keys, architecture, layer_count);
    const bool slide = layers.some_slide();
    Layers found;
    found.no_rope_interval = architecture.no_rope_interval;
    found.rule = slide ? architecture.layers.rule : LayerRule::same;
    found.count = layer_count;
    if (layer_count != 0) {
        std::vector<std::string> types = layers.list(slide);
        if (slide || std::count(types.begin(), types.end(), full_attention) !=
                         std::ptrdiff_t(types.size())) {
            found.list = std::move(types);
        }
        found.rotating = layers.rotating();
        found.find_still();
    } else if (slide || architecture.linear_period != 0) {
        keys.required("block_count", "layers of this architecture differ");
    }
    GgufLayer layer;
    layer.kind = found.choose(query, warnings);
    layer.sliding = layer.kind.type == architecture.sliding;
    if (slide && !layer.sliding) {
        keys.pass_over("rope.freq_base_swa");
        keys.pass_over("rope.dimension_count_swa");
    }
    layer.layers = std::move(found);
    return layer;
}

Field GgufLayerNumbers::per_layer(const char* name) {
    return keys_.find((std::string(name) + "_per_layer").c_str());
}

bool GgufLayerNumbers::are_listed(const char* name) {
    return keys_.find(name).is_list() || per_layer(name).is_list();
}

Field GgufLayerNumbers::of_asked(const Field& field, const Field& otherwise) {
    if (!field.is_list()) return field;
    LayerNumbers numbers = {field.name, list_of_numbers(field)};
    require_one_a_layer(field, numbers.values.size(), layer_.layers.count);
    if (otherwise) {
        std::replace(numbers.values.begin(), numbers.values.end(), 0.0, finite_number(otherwise));
    }
    const std::optional<double> number = layer_.layers.common(numbers, query_, layer_.kind);
    if (!number) {
        invalid_data("{} has no number above 0 for layers of type {}", field.name,
                     layer_.kind.type);
    }
    picked_.push_back(*number);
    return {field.name, &picked_.back(), "float64"};
}

Field GgufLayerNumbers::of_layer(const char* name, const char* sliding_name) {
    const Field all = keys_.find(name), each = per_layer(name);
    const Field list = each.is_list() ? each : all;
    if (!list.is_list()) {
        const Field own = layer_.sliding ? keys_.find(sliding_name) : Field();
        return own ? of_asked(own) : all;
    }
    const Field sliding = keys_.find(sliding_name);
    const Field single = layer_.sliding && sliding ? sliding : all;
    const bool fills = each.is_list() && !single.is_list();
    Field picked = of_asked(list, fills ? single : Field());
    require_agreement(list, sliding, picked, layer_.sliding);
    require_agreement(list, all, picked, false);
    return picked;
}

}  // namespace vkrope
