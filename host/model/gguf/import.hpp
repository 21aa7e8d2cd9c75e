// SPDX-License-Identifier: MIT
// Declares the import of one RoPE of a GGUF file, whose parts are in several files.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/field.hpp"
#include "model/gguf/architectures.hpp"
#include "model/gguf/file.hpp"
#include "model/key_words.hpp"
#include "model/layers.hpp"
#include "model/names.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

inline constexpr std::uint64_t max_gguf_layers = 4096;  // llama.cpp allows 512

// Returns whether the file has a value that turns something on.
inline bool is_on(const Field& field) {
    return field && is_set(*field.value);
}

// Words of keys for one kind of layers.
inline constexpr auto of_sliding = names("local", "sliding", "swa");
inline constexpr auto of_full = names("full", "global");

class GgufImport {
   public:
    GgufImport(const GgufFile& file, const Query& query);

    // Each function that it calls sets the fields of the RopeParams that its name mentions.
    RopeParams run();

   private:
    // Returns the key "<architecture>.<name>"; empty if the file does not have it.
    Field find(const std::string& name);

    // Returns the key with the words of `name` and one of `marks`, in any order, such as
    // "rope.freq_base_swa" and "rope.local.freq_base". Fails if two such keys differ.
    Field find_of(std::span<const std::string_view> marks, const std::string& name);

    // Like find(), but fails if the key is missing; `because` states why the key is needed.
    Field required(const std::string& name, const char* because);

    // Warns that a key is missing and which value is assumed; `because` ends the sentence.
    void assume(const Field& field, double value, const std::string& because);

    // ---- import.cpp ----
    void split();
    void architecture();
    void widths();  // also sets the offsets
    void latent_widths(const Field& count);
    std::uint32_t divided_head_dim();
    void inv_freq();
    double base();
    void readers_differ();
    void judge_unread();

    // ---- layers.cpp ----
    void choose_layer();
    bool some_slide();
    std::vector<std::string> layer_types(bool slide);
    std::vector<bool> rotating_layers();
    void keys_of_unknown_layers();
    std::vector<std::uint64_t> one_a_layer(const Field& field, std::uint64_t high) const;

    // Replaces a list by the number of the chosen layers; returns any other field unchanged.
    // `otherwise` replaces a 0 in the list.
    Field picked(const Field& field, const Field& otherwise = {});

    // Returns the number of the chosen layers: from a list of one per layer, with this name or
    // with _per_layer added, or else from the key for layers of their kind, or else from the key
    // for all layers. Fails if a list and a single number contradict each other.
    Field of_layer(const std::string& name);

    // Returns whether one of the two names of that list exists and is a list.
    bool are_listed(const std::string& name);

    // ---- scaling.cpp: the keys "rope.scaling.*", the tensors of divisors, the axes ----
    void scale();
    Field scaling(const std::string& name);
    std::string scaling_type();
    double factor(const std::string& type);
    std::vector<double> divisors(const std::string& type);
    double original_length();
    void yarn(const std::string& type, double factor, GgmlScaling& scaling);
    void name_unused_scaling();
    void sections();

    // ---- ops.cpp ----
    void ops();
    std::uint32_t head_count(const char* key);
    void norms();
    bool norm_of(const std::string& tensor, std::uint32_t head_count, std::uint32_t row,
                 Norm& norm);
    float eps(NormKind kind);
    void norms_without_weight();
    void clip();
    void query_scale();
    void scores();

    const GgufFile& file_;
    const Query& query_;
    const std::string name_, prefix_;
    Reads asked_for_;
    GgufArchitecture row_;     // Llama's row if the table has no row
    Layers layers_;            // layers of the model
    LayerKind kind_;           // the chosen layer
    bool slides_ = false;      // the chosen layer has a sliding window
    bool unscaled_ = false;    // the scaling is that of other layers
    bool norms_told_ = false;  // a warning has explained why the norms are not known
    std::deque<json> picked_;  // values that returned fields point to
    RopeParams rotation_;
};

}  // namespace vkrope
