// SPDX-License-Identifier: MIT
// The bits that the contract promises on every device: cos and sin as the angle source computes
// them (the source of the shader, compiled as C++), four products and two sums in f32, each rounded
// to nearest even, and the result rounded once more to the stored type. A device may differ if it
// flushes subnormals, and in the bits of a NaN.
#pragma once

#include "conformance/builtin/check.hpp"
#include "conformance/shader_source/angles.hpp"
#include "reference/oracle.hpp"

namespace vkrope::conformance {

struct Trial;

class Definition {
   public:
    /// positions  [axes, batch, tokens]
    Definition(const Trial& trial, const std::vector<std::int64_t>& positions, bool flushes);

    /// Compares every element of an output, and measures its distance from the exact value. Returns
    /// the number of tokens whose position is not covered.
    ///
    /// before  what was where the output is now
    std::uint64_t hold(const reference::Operation& operation, const reference::Tensor& in,
                       const reference::Tensor& out, const std::byte* input,
                       const std::byte* before, const std::byte* output, char name,
                       Findings& findings) const;

    std::vector<std::uint32_t> axis = {};  // position axis of each pair

   private:
    /// Returns cos and sin of a pair, before the direction is applied.
    CosSin cos_sin(std::int64_t position, std::size_t pair) const;

    /// The same, with the direction, for a position `further` than that of the token; nothing if
    /// the table does not cover it.
    std::optional<CosSin> neighbour(const reference::Operation& operation, std::uint64_t token,
                                    std::size_t pair, std::int64_t further) const;

    const Trial& trial_;
    const std::vector<std::int64_t>& positions_;
    bool flushes_;
    std::vector<double> inv_freq_;
    shader_source::Angles angles_;
};

}  // namespace vkrope::conformance
