// SPDX-License-Identifier: MIT
// One tensor of an engine, and what the engine may have computed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rotate/definition.hpp"
#include "verify/oracle/ops.hpp"
#include "verify/oracle/quantise_verdict.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

using Positions = std::vector<std::int64_t>;  // of one axis, [batch, tokens]

/// The axis that lies innermost in what the engine stored.
enum class BlockAxis { channels, tokens, heads };

/// How an engine stores codes.
struct StoreForm {
    oracle::QuantisedStore quantised;
    std::vector<float> scales = {};  // [batch, tokens, heads] if scales are made
    BlockAxis along = BlockAxis::channels;
    /// Converts the bytes of one block to the bytes of the definition; empty: they are equal.
    std::function<void(std::span<std::uint8_t> block)> reorder = {};
};

/// The definition of one tensor, or the definition with a change, and how the tensor is read for
/// it.
struct Hypothesis {
    oracle::Tensor in, out;
    oracle::Operation operation;  // positions of the first axis. Of a tensor that is not rotated it
                                  // has no frequencies
    FurtherAxes further = {};     // positions of the other axes
    oracle::Ops ops = {};         // around the rotation
    std::optional<StoreForm> store = {};        // of a quantised output
    std::uint64_t first_in = 0, first_out = 0;  // first element
    std::string detail = {};                    // ends the meaning of the mistake
};

/// Applies the same change to the positions of each axis.
template <class Change>
void each_axis(Hypothesis& hypothesis, const Change& change) {
    change(hypothesis.operation.positions);
    for (Positions& positions : hypothesis.further.positions) {
        change(positions);
    }
}

/// Another RoPE of the model: of other layers, or at another length.
struct OtherRotation {
    std::string mistake;  // as Match::mistake
    std::string meaning;
    RopeParams rotation;
};

/// One tensor, the output of an engine, and what the model says of it.
struct Observation {
    Hypothesis right;
    const void* input = nullptr;
    const void* output = nullptr;              // of numbers
    std::span<const std::uint8_t> codes = {};  // of a quantised output: whole blocks
    bool with_ops = false;                     // errors are shares of a row, not of a pair
    // Used only by mistakes.
    double base = 0;                         // as RopeParams::base
    double softmax_scale = 1;                // as RopeParams::softmax_scale
    std::uint64_t other_offset = 0;          // rotary offset of the other tensor, K or Q
    std::vector<OtherRotation> others = {};  // of a tensor that the model rotates
    std::vector<YarnScaling> yarn = {};      // what the file may say of YaRN
    std::optional<Hypothesis> rotated = {};  // V, if it were rotated as K is
};

}  // namespace vkrope::tools
