// SPDX-License-Identifier: MIT
// Declares the readers of the parts of a GGUF file: keys, kinds of layers, scaling of the
// frequencies, axes of positions, and ops before and after the rotation.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/gguf/architectures.hpp"
#include "model/gguf/file.hpp"
#include "model/key_words.hpp"
#include "model/layers.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// ---- Keys of one architecture ----

/// An unread key whose name concerns RoPE or ops.
struct GgufUnread {
    Field field;
    Says says = Says::nothing;
};

class GgufFields {
   public:
    GgufFields(const GgufFile& file, std::string architecture)
        : file_(file), prefix_(std::move(architecture) + ".") {}

    /// Returns the key "<architecture>.<name>"; empty if the file does not have it.
    Field find(const char* name);

    /// Like find(), but fails if the key is missing; `because` states why the key is needed.
    Field required(const char* name, const char* because);

    /// Marks keys with this beginning as read, because they belong to another layer.
    void pass_over(const char* beginning);

    /// Returns the unread keys of the architecture whose names concern RoPE, a scaling, layers or
    /// norms.
    std::vector<GgufUnread> unread() const;

   private:
    const GgufFile& file_;
    const std::string prefix_;
    std::set<std::string> asked_for_;
};

/// Warns that a key is missing and which value is assumed; `because` ends the sentence.
void warn_of_assumed(const Field& field, double value, const std::string& because,
                     Warnings& warnings);

// ---- Layers ----

struct GgufLayer {
    LayerKind kind;
    bool sliding = false;  ///< the layer has a sliding window
    Layers layers;         ///< layers of the model
};

/// Returns block_count; 0 if the file does not have it.
std::uint64_t gguf_layer_count(GgufFields& keys);

/// Chooses a layer like Layers::choose() for an equivalent config.json.
GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const Query& query, Warnings& warnings);

/// Reads numbers for which a file has one value for all layers or a list with one per layer.
class GgufLayerNumbers {
   public:
    /// `layer`: the layer chosen for the query.
    GgufLayerNumbers(GgufFields& keys, const GgufLayer& layer, const Query& query)
        : keys_(keys), layer_(layer), query_(query) {}

    /// Replaces a list by the number of the selected layers; returns any other field unchanged.
    ///
    /// otherwise  replaces a 0 in the list
    Field of_asked(const Field& field, const Field& otherwise = {});

    /// Returns the number of the selected layers: from a list of one per layer, with this name or
    /// with _per_layer added, or else from the key for sliding layers, or else from the key for all
    /// layers. Fails if a list and a single number contradict each other.
    Field of_layer(const char* name, const char* sliding_name);

    /// Returns whether one of the two names of that list exists and is a list.
    bool are_listed(const char* name);

   private:
    Field per_layer(const char* name);

    GgufFields& keys_;
    const GgufLayer& layer_;
    const Query& query_;
    std::deque<json> picked_;  // values that the returned fields point to
};

// ---- Scaling: the keys "rope.scaling.*" and the tensors of divisors, as in llama.cpp ----

struct GgufScalingInput {
    const GgufFile& file;
    const GgufArchitecture& architecture;
    bool sliding = false;  ///< the layer has a sliding window
    std::uint64_t seq_len = 0;
};

/// Scales the unscaled frequencies of rotation.base; sets the attention factor, the softmax scale
/// and the rope_type. Warns of assumptions and ignored values.
void apply_gguf_scaling(GgufFields& keys, const GgufScalingInput& input, RopeParams& rotation);

// ---- Axes: rope.dimension_sections ----

/// Sets the sections and adds warnings. Also sets the pairing to half_split, the only one of ggml's
/// rope of several axes.
///
/// pairing_is_asked_for  the query selects the pairing, which then does not change
void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, RopeParams& rotation);

// ---- Ops around the rotation ----

/// Returns the ops of a layer: the norms whose weights the file contains, with its eps, and the
/// architecture's norms without weights, clamping and query scale.
///
/// architecture  its row; without a name, the norms of its tensors are not known
/// rotation      pairing, head_dim and `rotates` of the layer; a norm of another width is left out
///               with a warning
ModelOps gguf_ops(GgufFields& keys, const GgufFile& file, const GgufArchitecture& architecture,
                  const Query& query, RopeParams& rotation);

}  // namespace vkrope
