// SPDX-License-Identifier: MIT
#include "model/gguf/layers.hpp"

#include <algorithm>
#include <utility>

#include "model/import_error.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;

constexpr std::uint64_t max_gguf_layers = 4096;  // llama.cpp allows 512

class GgufLayerTypes {
   public:
    GgufLayerTypes(GgufFields& keys, const GgufArchitecture& architecture,
                   std::uint64_t layer_count)
        : keys_(keys), architecture_(architecture), count_(layer_count) {}

    /// Whether some layers attend to a window only.
    bool some_slide() {
        const GgufField window = keys_.find("attention.sliding_window");
        const std::uint64_t width = window ? whole_number(window, 0, max_whole) : 0;
        if (!architecture_.window_decides) {
            return architecture_.period != 0 || architecture_.layers != GgufLayers::same ||
                   keys_.find("attention.sliding_window_pattern");
        }
        const bool by_default = architecture_.window_by_default ||
                                (architecture_.sliding_layer_count != 0 &&
                                 count_ == architecture_.sliding_layer_count);
        return window ? width > 0 : by_default;
    }

    /// The type of each layer.
    std::vector<std::string> list(bool some_slide) {
        std::vector<std::string> types(std::size_t(count_), full_attention);
        if (architecture_.layers == GgufLayers::compressed) {
            compress(types);
        } else if (some_slide) {
            slide(types);
        }
        const GgufField recurrent = keys_.find("attention.recurrent_layers");
        if (architecture_.linear_period != 0) keys_.find("full_attention_interval");
        if (recurrent && recurrent.value->is_list()) {
            const std::vector<std::uint64_t> each = whole_numbers(recurrent, 0, 1);
            require_one_a_layer(recurrent, each.size());
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if (each[layer] != 0) types[layer] = "linear_attention";
            }
        } else if (architecture_.linear_period != 0) {
            const GgufField interval = keys_.find("full_attention_interval");
            const std::uint64_t period = interval ? whole_number(interval, 1, max_gguf_layers)
                                                  : architecture_.linear_period;
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if ((layer + 1) % period != 0) {
                    types[layer] = "linear_attention";
                }
            }
        }
        for (const char* name : {"attention.head_count", "attention.head_count_kv"}) {
            const GgufField field = keys_.find(name);
            if (!field || !field.value->is_list()) {
                continue;
            }
            const std::vector<std::uint64_t> heads = whole_numbers(field, 0, max_heads);
            require_one_a_layer(field, heads.size());
            for (std::uint64_t layer = 0; layer < count_; ++layer) {
                if (heads[layer] == 0) {
                    types[layer] = "recurrent";  // or a convolution, or nothing: not attention
                }
            }
        }
        return types;
    }

    /// Which layers have RoPE; empty if the file does not say. A 0 in a list of bases or widths is
    /// a layer without.
    std::vector<bool> rotating() {
        std::vector<bool> turns;
        const GgufField pattern = architecture_.rope_pattern ? keys_.find("attention.rope_pattern")
                                                             : GgufField();
        if (pattern) {
            const std::vector<std::uint64_t> each = whole_numbers(pattern, 0, 1);
            require_one_a_layer(pattern, each.size());
            turns.assign(each.begin(), each.end());
        }
        for (const char* name : {"rope.freq_base", "rope.dimension_count"}) {
            const GgufField field = keys_.find(name);
            if (!field.is_list()) continue;
            const std::vector<double> each = list_of_numbers(field);
            require_one_a_layer(field, each.size());
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
        const GgufField field = keys_.required("attention.compress_ratios",
                                               "it says which layers have which base");
        const std::vector<std::uint64_t> ratios = whole_numbers(field, 0, 128);
        if (ratios.size() < count_) {
            require_one_a_layer(field, ratios.size());
        }
        for (std::uint64_t layer = 0; layer < count_; ++layer) {
            types[layer] = compressed_attention(ratios[layer]);
            if (types[layer].empty()) {
                fail(VKROPE_ERROR_INVALID_DATA, "%s[%llu] is %llu: it must be 0, 4 or 128",
                     field.name.c_str(), ull{layer}, ull{ratios[layer]});
            }
        }
    }

    void slide(std::vector<std::string>& types) {
        std::uint64_t period = architecture_.period;
        std::vector<std::uint64_t> slides;  // of each layer
        if (const GgufField pattern = keys_.find("attention.sliding_window_pattern")) {
            if (pattern.value->is_list()) {
                slides = whole_numbers(pattern, 0, 1);
                require_one_a_layer(pattern, slides.size());
            } else {
                period = whole_number(pattern, 0, max_gguf_layers);  // 0: all layers slide
            }
        } else if (period == 0) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s is missing: it says which layers use a sliding window",
                 pattern.name.c_str());
        }
        for (std::uint64_t layer = 0; layer < count_; ++layer) {
            const std::uint64_t full_in_period = architecture_.full_first ? 0 : period - 1;
            if (!slides.empty() ? slides[layer] != 0
                                : period == 0 || layer % period != full_in_period) {
                types[layer] = architecture_.sliding;
            }
        }
    }

    void require_one_a_layer(const GgufField& field, std::size_t length) const {
        if (length != count_) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s has %llu elements: it must have one a layer, %llu",
                 field.name.c_str(), ull{length}, ull{count_});
        }
    }

    GgufFields& keys_;
    const GgufArchitecture& architecture_;
    const std::uint64_t count_;
};

LayerRule rule_of(GgufLayers layers) {
    switch (layers) {
        case GgufLayers::local_base: return LayerRule::local_base;
        case GgufLayers::unscaled_sliding: return LayerRule::scaled_on_full;
        case GgufLayers::none_on_full: return LayerRule::none_on_full;
        case GgufLayers::compressed: return LayerRule::compressed;
        default: return LayerRule::same;
    }
}

}  // namespace

std::uint64_t gguf_layer_count(GgufFields& keys) {
    const GgufField count = keys.find("block_count");
    return count ? whole_number(count, 1, max_gguf_layers) : 0;
}

GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const ModelQuery& query,
                            std::vector<std::string>& warnings) {
    GgufLayerTypes layers(keys, architecture, layer_count);
    const bool slide = layers.some_slide();
    Layers found;
    found.no_rope_interval = architecture.no_rope_interval;
    found.rule = slide ? rule_of(architecture.layers) : LayerRule::same;
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

}  // namespace vkrope
