// SPDX-License-Identifier: MIT
// Judges the quantised output of another engine: every known mistake of a store is its definition
// with one change, and the codes and scales are compared with each.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/mistakes.hpp"
#include "verify/oracle/quantise_verdict.hpp"

namespace vkrope::tools {

/// A quantised output: the right definition, the bytes and the made scales.
struct StoredOutput {
    oracle::QuantisedStore store;
    std::span<const std::uint8_t> codes;  // whole blocks, in the layout of the output
    std::vector<float> scales;            // [batch, tokens, heads] if scales are made
};

/// The axis that lies innermost in what the engine stored.
enum class BlockAxis { channels, tokens, heads };

/// How the engine may have stored a tensor.
struct StoreTrial {
    oracle::QuantisedStore store;
    std::vector<float> scales;  // as StoredOutput::scales, of the trial's tokens
    BlockAxis along = BlockAxis::channels;
    /// Converts the bytes of one block to the bytes of the definition; empty: they are equal.
    std::function<void(std::span<std::uint8_t> block)> reorder = {};
};

struct StoreMistake {
    std::string name, meaning;
    StoreTrial trial;
};

/// The definition.
StoreTrial right_store(const StoredOutput& stored);

/// Every mistake that this type, and a tensor of this shape, can have.
std::vector<StoreMistake> store_mistakes(const StoredOutput& stored, const oracle::Tensor& out);

/// Compares the codes and scales of a trial's tokens with the steps before the store.
oracle::CodesVerdict compare_stored(const StoredOutput& stored, const StoreTrial& store,
                                    const Trial& trial, const oracle::Ops& steps, double bound_u,
                                    const void* input, const std::function<void(double)>& progress);

}  // namespace vkrope::tools
