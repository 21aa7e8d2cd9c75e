// SPDX-License-Identifier: MIT
// Readers of the parts of a GGUF file: its keys, the kinds of its layers, the scaling of the
// frequencies, the axes of positions, and what stands around the rotation.
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

/// A key that nobody has asked for although its name says something.
struct GgufUnread {
    Field field;
    Says says = Says::nothing;
};

class GgufFields {
   public:
    GgufFields(const GgufFile& file, std::string architecture)
        : file_(file), prefix_(std::move(architecture) + ".") {}

    /// The key "<architecture>.<name>"; empty if the file does not have it.
    Field find(const char* name);

    /// Like find(), but fails if the key is missing; `because` says what needs it.
    Field required(const char* name, const char* because);

    /// Marks keys with this beginning as read, since they belong to another layer.
    void pass_over(const char* beginning);

    /// Keys of the architecture that say something of RoPE, a scaling, layers or norms, and that
    /// nobody has asked for.
    std::vector<GgufUnread> unread() const;

   private:
    const GgufFile& file_;
    const std::string prefix_;
    std::set<std::string> asked_for_;
};

/// Warns that a key is missing and which value is assumed; `because` is the end of the sentence.
void warn_of_assumed(const Field& field, double value, const std::string& because,
                     Warnings& warnings);

// ---- Layers ----

struct GgufLayer {
    LayerKind kind;
    bool sliding = false;  ///< it attends to a window
    Layers layers;         ///< of the model
};

/// block_count; 0 if the file does not have it.
std::uint64_t gguf_layer_count(GgufFields& keys);

/// Chooses as Layers::choose() does for an equivalent config.json.
GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const Query& query, Warnings& warnings);

/// Numbers of which a file has one for all layers, or a list of one for each.
class GgufLayerNumbers {
   public:
    /// `layer` is what the query asks for, once it has been chosen.
    GgufLayerNumbers(GgufFields& keys, const GgufLayer& layer, const Query& query)
        : keys_(keys), layer_(layer), query_(query) {}

    /// A list is replaced by the number of the layers asked for; any other field stays what it is.
    ///
    /// otherwise  takes the place of a 0 in the list
    Field of_asked(const Field& field, const Field& otherwise = {});

    /// The number of the layers asked for: from a list of one a layer, which may have this name or
    /// end in _per_layer, or else from the key for sliding layers if the file has one, or else from
    /// the key for all layers. Fails if a list and a single number contradict each other.
    Field of_layer(const char* name, const char* sliding_name);

    /// Whether one of the two names of that list has a list.
    bool are_listed(const char* name);

   private:
    Field per_layer(const char* name);

    GgufFields& keys_;
    const GgufLayer& layer_;
    const Query& query_;
    std::deque<json> picked_;  // what the returned fields point to
};

// ---- Scaling: the keys "rope.scaling.*" and the tensors of divisors, as llama.cpp has them ----

struct GgufScalingInput {
    const GgufFile& file;
    const GgufArchitecture& architecture;
    bool sliding = false;  ///< the layer attends to a window
    std::uint64_t seq_len = 0;
};

/// Scales the unscaled frequencies of rotation.base; sets the attention factor, the softmax scale
/// and the rope_type. Warns of what was assumed or ignored.
void apply_gguf_scaling(GgufFields& keys, const GgufScalingInput& input, RopeParams& rotation);

// ---- Axes: rope.dimension_sections ----

/// Sets the sections and adds warnings. Also sets the pairing to half_split, the only one of ggml's
/// rope of several axes.
///
/// pairing_is_asked_for  the pairing does not change
void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, RopeParams& rotation);

// ---- Steps around the rotation ----

/// The ops of a layer: the norms whose weights the file holds, with its eps, what the
/// architecture normalises without weights, clamps and query scales.
///
/// architecture  its row; without a name, which norms a tensor belongs to is not known
/// rotation      pairing, head_dim and `rotates` of the layer; a norm of another width is left out
///               with a warning
ModelOps gguf_ops(GgufFields& keys, const GgufFile& file, const GgufArchitecture& architecture,
                  const Query& query, RopeParams& rotation);

}  // namespace vkrope
