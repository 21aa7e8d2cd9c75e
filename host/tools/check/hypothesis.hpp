// SPDX-License-Identifier: MIT
// One tensor of an engine, and the operations that the engine may have computed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/meaning.hpp"
#include "verify/oracle/verdict.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

using Positions = std::vector<std::int64_t>;  // positions on one axis, [batch, tokens]

// The definition of one tensor, perhaps with changes, and the layout in which it reads the tensor.
// The positions of its operation are those of the first axis.
struct Hypothesis : oracle::Definition {
    Sections sections = {};                     // the axes of the pairs
    std::uint64_t first_in = 0, first_out = 0;  // offsets of the first element
    const void* input = nullptr;                // replaces that of the observation; null: does not
    std::vector<float> scales = {};             // [batch, tokens, heads, groups] if scales are made
    // Channels of a row that another hypothesis computes.
    std::vector<bool> other_channels = {};  // [head_dim]; empty: none
    std::shared_ptr<const Hypothesis> of_other_channels = {};
    std::string detail = {};  // as Mistake::Named::detail
};

// Returns the number of channels of a head row that the norm takes.
inline std::uint64_t normed_channels(const oracle::Definition& of) {
    return of.ops.norm.channels == 0 ? of.in.head_dim : of.ops.norm.channels;
}

// Sets the axis of each pair.
inline void set_sections(Hypothesis& hypothesis, const Sections& sections) {
    hypothesis.sections = sections;
    std::vector<std::uint32_t>& axes = hypothesis.operation.further.axes;
    axes.resize(hypothesis.operation.inv_freq.size() / hypothesis.operation.head_groups);
    for (std::uint32_t pair = 0; pair < axes.size(); ++pair) axes[pair] = axis_of(sections, pair);
}

// Applies the same change to the positions of each axis.
template <class Hypothesis, class Change>
void each_axis(Hypothesis& hypothesis, const Change& change) {
    change(hypothesis.operation.positions);
    for (auto& positions : hypothesis.operation.further.positions) change(positions);
}

// Another RoPE of the model: that of other layers, or of another sequence length.
struct OtherRotation {
    std::string mistake;  // as Match::mistake
    std::string detail;   // as Mistake::Named::detail
    RopeParams rotation;
};

// One tensor, the engine's output, and what the model says about the tensor.
struct Observation {
    Hypothesis right;
    const void* input = nullptr;
    const void* output = nullptr;              // an output of numbers
    std::span<const std::uint8_t> codes = {};  // a quantised output, in whole blocks
    bool with_ops = false;                     // errors are shares of a row, not of a pair
    // The fields below are used only by mistakes.
    double base = 0;                    // as RopeParams::base
    double softmax_scale = 1;           // as RopeParams::softmax_scale
    std::uint64_t other_offset = 0;     // rotary offset of the other tensor, K or Q
    const void* other_input = nullptr;  // input of the other tensor; null: not given
    oracle::Tensor other_in = {};
    std::vector<double> other_weight = {};   // weight of the other tensor's norm; empty: none
    bool other_norm_is_right = false;        // the other tensor has the same norm, and is right
    std::vector<OtherRotation> others = {};  // empty if the model does not rotate the tensor
    std::vector<YarnScaling> yarn = {};      // candidates for the YaRN parameters of the file
    std::optional<Hypothesis> rotated = {};  // for V: V rotated like K
    std::int64_t max_position = 0;           // length of the model; 0: unknown
    // Returns the RoPEs of the same file with another number in it, read at the first call.
    std::function<const std::vector<OtherRotation>&()> variations = {};
};

}  // namespace vkrope::tools
