// SPDX-License-Identifier: MIT
// Represents the kinds of layers of a model from any kind of file, finds the layers with RoPE, and
// chooses a layer for a query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

inline constexpr const char* full_attention = "full_attention";
inline constexpr const char* sliding_attention = "sliding_attention";
inline constexpr const char* chunked_attention = "chunked_attention";
inline constexpr const char* windowed_attention = "windowed_attention";

// Returns the type of a DeepSeek V4 layer that keeps one of every `ratio` keys; empty if unknown.
constexpr const char* compressed_attention(std::uint64_t ratio) {
    return ratio == 0     ? sliding_attention
           : ratio == 4   ? "compressed_sparse_attention"
           : ratio == 128 ? "heavily_compressed_attention"
                          : "";
}

// Differences of RoPE between the layers of a model.
enum class LayerRule {
    same,            // all layers have the same RoPE
    local_base,      // sliding layers have their own base and no scaling: Gemma 3, ModernBERT
    scaled_on_full,  // sliding layers have no scaling: OLMo 3
    none_on_full,    // full-attention layers have no RoPE: Cohere 2
    none_on_full_of_sliding,  // as none_on_full, if `sliding_window` is set: EXAONE 4
    scaled_on_listed,         // types that yarn_only_types does not list have no scaling: Step 3.5
    compressed,  // sliding layers have no scaling, others use compress_rope_theta: DeepSeek V4
};

// Pattern of layers in a class of models, for files without a pattern.
struct LayerPattern {
    LayerRule rule = LayerRule::same;
    std::uint32_t period = 0;  // full-attention layers are this many layers apart; 0: no pattern
    bool full_first = false;   // the full-attention layer is the first of a period, not the last
};

// Kind of layer, which determines its RoPE.
struct LayerKind {
    std::string
        type;  // "full_attention", "sliding_attention", ...; empty if the model has one kind
    bool rotates = true;   // false for a layer without RoPE
    bool crosses = false;  // true for a layer that attends to an image
    bool is_full() const { return type.empty() || type == "full_attention"; }
};

// List of one number per layer.
struct LayerNumbers {
    std::string name;            // name in messages
    std::vector<double> values;  // empty: not listed
};

// Fails unless a list has an element for each layer.
void require_one_a_layer(const Field& list, std::size_t length, std::uint64_t layers);

// Layers of a model, from its file or its class.
struct Layers {
    std::string prefix;              // prefix of keys in messages
    std::vector<std::string> named;  // layer types that have their own parameters
    LayerRule rule = LayerRule::same;
    std::uint64_t count = 0;        // 0: unknown
    std::vector<std::string> list;  // type of each layer, repeated; empty: not known
    std::vector<bool> rotating;     // for each layer; empty: see no_rope_interval
    // True for each layer that attends to an image; false beyond the end.
    std::vector<bool> crossing;
    std::uint64_t no_rope_interval = 0;  // 0: none
    LayerNumbers bases;                  // 0: the layer has no RoPE
    LayerNumbers shares;                 // rotated share of the head
    std::vector<std::string> still;      // layer types none of whose layers rotates
    // Types that a query may select in addition to the types of layers.
    std::vector<std::string> beside;
    // Warnings about keys that contradict a key with precedence.
    std::vector<std::string> ignored;
    bool without_rope_is_full = false;  // layers without RoPE are full attention: Llama 4
    bool none_rotates = false;          // no layer has RoPE: Kimi Linear

    // Returns the kind that the query selects, or the most likely one with a warning that names
    // it.
    LayerKind choose(const Query& query, Warnings& warnings) const;

    // Returns the number that the layers of the query share; nothing without a list. For a kind
    // that rotates, only numbers above 0 count. If numbers differ, returns nothing with
    // `may_differ` and fails otherwise.
    //
    // kind  the chosen kind
    std::optional<double> common(const LayerNumbers& numbers, const Query& query,
                                 const LayerKind& kind, bool may_differ = false) const;

    // Returns whether the model has layers of another type than `kind`.
    bool has_other_types(const LayerKind& kind) const;

    // Fills `still`: layer types without a rotating layer, if the model lists rotating layers.
    void find_still();

   private:
    std::string type_of(std::uint64_t layer) const;
    bool type_rotates(const std::string& type) const;
    bool rotates(std::uint64_t layer) const;
    std::vector<std::string> types() const;
    LayerKind chosen_of(const std::vector<std::string>& all, const Query& query,
                        Warnings& warnings) const;
    LayerKind of_layer(std::uint64_t layer) const;
    LayerKind of_type(const std::string& type) const;
};

}  // namespace vkrope
