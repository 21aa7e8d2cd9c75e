// SPDX-License-Identifier: MIT
// Declares the rules for all kinds of model files, for the query and for the result.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// The reason why the rotation of some models is not read, and the alternative.
inline constexpr const char* two_angles_a_pair =
    "the two channels of a pair rotate by different angles, which no rotation can represent; give "
    "cos and sin of each channel to plan_cos_sin_cache, with channel_angles";

// Fails if numbers that are valid separately give frequencies or factors that no table can
// contain.
//
// turning    number of leading pairs that have a frequency; the others do not rotate
// base       base of the frequencies, which the file calls base_name
void require_usable(const RopeParams& rotation, std::size_t turning, double base,
                    const char* base_name);

// Sets the base and the unscaled frequencies of the rotated channels.
//
// base_name  name of the base in the file
void set_base(RopeParams& rotation, double base, const char* base_name);

// Adds the frequencies of one more axis, base^(-2j / width) times `factor`, and its section.
void add_axis(RopeParams& rotation, std::uint32_t width, double base, double factor = 1);

// Warns if a sequence is longer than the sequences in the model's training.
void warn_of_length(RopeParams& rotation, std::uint64_t seq_len);

// Returns the eps of a norm: the number of a field, or `otherwise`, the default of the class.
float norm_eps(const Field& field, double otherwise);

// Limits the number of warnings and adds one that states how many were dropped.
void shorten(Warnings& warnings);

// Warning for a class whose code has not been checked for norms of Q and K.
inline constexpr const char* of_unknown_norms =
    "whether Q and K have norms is not known for this class: none is read";

// Warning for Mistral 4. Mistral4Attention in transformers (huggingface/transformers#47435) and
// llama.cpp multiply by the factor named here; sgl-project/sglang#26203 contains Mistral's file.
inline constexpr const char* of_readers_that_differ =
    "readers disagree on the softmax scale of this model: transformers and llama.cpp multiply it "
    "by the square of YaRN's magnitude, which is read here; SGLang does not where Mistral's own "
    "file has apply_scale false";

}  // namespace vkrope
