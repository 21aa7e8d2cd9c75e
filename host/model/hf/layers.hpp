// SPDX-License-Identifier: MIT
// The kinds of layers of a model, and which of them have RoPE.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/hf/field.hpp"
#include "model/hf/model_types.hpp"
#include "vkrope/model.hpp"

namespace vkrope {

/// A kind of layer, to choose its RoPE.
struct LayerKind {
    std::string
        type;  ///< "full_attention", "sliding_attention", ...; empty if the model has one kind
    bool rotates = true;  ///< false for a layer without RoPE
    bool is_full() const { return type.empty() || type == "full_attention"; }
};

/// The layers of a configuration: `layer_types`, older keys with the same meaning, or the pattern
/// of the model's class.
class Layers {
   public:
    /// config  the language model's own object
    /// named   layer types that have rope_parameters of their own
    Layers(const Scope& config, const ModelType& model, const std::vector<std::string>& named);

    /// The kind that the query asks for; if it asks for none, the one that a reader most likely
    /// means, with a warning that names it.
    LayerKind choose(const ModelQuery& query, std::vector<std::string>& warnings) const;

   private:
    void read_types(const ModelType& model);
    void compare_with_pattern(const std::string& name, bool full_first);
    void read_rotating(const ModelType& model);
    std::string type_of(std::uint64_t layer) const;
    bool type_rotates(const std::string& type) const;
    bool rotates(std::uint64_t layer) const;
    std::vector<std::string> types() const;
    LayerKind chosen_of(const std::vector<std::string>& all, const ModelQuery& query,
                        std::vector<std::string>& warnings) const;
    void require_length(const Field& field, std::size_t length) const;
    LayerKind of_layer(std::uint64_t layer) const;
    LayerKind of_type(const std::string& type) const;

    const Scope config_;
    const Scopes scope_;
    const std::vector<std::string> named_;
    LayerRule rule_;
    std::uint64_t count_ = 0;             // 0: unknown
    std::vector<std::string> list_;       // by layer; empty: by pattern
    std::uint64_t period_ = 0;            // 0: no pattern
    std::uint64_t full_in_period_ = 0;    // the layer of a period that is full attention
    std::vector<bool> rotating_;          // by layer; empty: by interval
    std::uint64_t no_rope_interval_ = 0;  // 0: none
    std::vector<std::string> ignored_;    // keys that a list overrides and that contradict it
    bool without_rope_is_full_ = false;  // layers without RoPE are the full-attention ones: Llama 4
};

}  // namespace vkrope
