// SPDX-License-Identifier: MIT
// Finds the class of a model, and the objects that contain the numbers of the selected layers.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hf/model_types.hpp"
#include "model/hf/scaling_section.hpp"
#include "model/layers.hpp"

namespace vkrope {

// Kinds of layers that a base may belong to by its name.
enum class Base {
    any,    // rope_theta, rotary_emb_base, global_rope_theta ...
    local,  // a name with "local", "sliding" or "swa": the base of sliding layers
};

// Returns the keys in these objects that name a base.
std::vector<std::string> base_names(const Scopes& scopes, Base which);

// Returns the base that these objects state under any name; empty if there is none. Fails if two
// of them differ. With Base::any, ignores differing values that some local base also has.
Field find_base(const Scopes& scopes, Base which);

// Names of the key that selects the pairing.
inline const std::initializer_list<const char*> pairing_names = {
    "rope_interleaved", "rope_interleave", "rotary_emb_interleaved"};

// Names of keys for the pairing whose values differ between frameworks.
inline const std::initializer_list<const char*> other_pairing_names = {
    "rope_style",       "rotary_style",  "rotary_interleaved",
    "rope_traditional", "is_neox_style", "rope_is_neox_style"};

// Names of the key for the period of full-attention layers.
inline const std::initializer_list<const char*> pattern_names = {
    "sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers",
    "full_attention_interval", "layer_switch"};

// Returns the numbers of a field that lists one per layer; 0 for a layer without a number.
LayerNumbers listed_numbers(const Field& field, const Layers& layers);

// Reads the kinds of layers of the language model.
//
// config  the language model's own object
// named   layer types that have their own rope_parameters
Layers read_layers(const Scope& config, const ModelType& model, std::vector<std::string> named);

struct ModelClass {
    ModelType type;              // Llama's, with a null name, if the table has no row
    std::string name = "llama";  // name in messages
    Field unknown;               // a model_type that is not in the table

    // Returns the model_type as shown in messages.
    std::string shown_type() const;

    // Returns the warning that a field is missing and that the default of this class is assumed.
    std::string assumed(const char* field, double value) const;
};

// Returns whether a model turns off the latent attention of its class.
bool without_latent_attention(const Scopes& top);

struct Source : ModelClass {
    Scope config;  // the language model's own object
    std::shared_ptr<const json>
        // A copy of the object, if it lists numbers by layer; `config` then refers to the copy.
        of_layer;
    Scopes top;  // the object, and an attn_config inside the object
    ScalingSections sections;
    LayerKind layer;              // the selected kind of layer
    ScalingSection section;       // the section of that kind
    std::optional<double> base;   // base of the layers, if the file lists one per layer
    std::optional<double> share;  // rotated share of the head, if listed for each layer
    std::vector<double> shares;   // shares of all layers, if listed
    bool mixed = false;           // the model also has layers of another kind

    // Returns whether rope_parameters has one section per layer type.
    bool by_type() const { return !sections.by_type.empty(); }

    // Returns `top` and the section.
    Scopes both() const;
};

// Finds the class and the objects of the selected layers. Fails for an unsupported configuration.
Source find_source(const Scope& whole, const Scope& config, const Query& query, Warnings& warnings);

// Returns whether sliding layers have their own base.
bool has_local_base(const Scopes& top);

// For models with a section per layer type. The sections take precedence; the top level repeats
// one of them or is for older readers. Warns of a value there that is in no section.
//
// own         the value in the section that is read
// names       names of the same field at the top level
// in_section  name of the field in a section
void warn_unless_of_a_type(const Source& source, const Field& own, const Keys& names,
                           const char* in_section, Warnings& warnings);

// Returns the one of these model_types that `architectures` names; empty if none.
std::string named_by_architecture(const Field& architectures,
                                  const std::vector<std::string_view>& types);

}  // namespace vkrope
