// SPDX-License-Identifier: MIT
// The bits that the contract promises on every device: cos and sin as the source of the angles
// makes them (the shader's own source, compiled as C++), four products and two sums in f32, each
// rounded to nearest even, and the result rounded once more to what is stored. A device may differ
// where it flushes subnormals, and in the bits of a NaN.
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

    /// Compares every element of an output, and measures how far it is from the exact value.
    /// Returns how many tokens have a position that is not covered.
    std::uint64_t hold(const reference::Operation& operation, const reference::Tensor& in,
                       const reference::Tensor& out, const std::byte* input,
                       const std::byte* output, char name, Findings& findings) const;

    std::vector<std::uint32_t> axis = {};  // of each pair

   private:
    /// cos and sin of a pair, before the direction.
    CosSin cos_sin(std::int64_t position, std::size_t pair) const;

    const Trial& trial_;
    const std::vector<std::int64_t>& positions_;
    bool flushes_;
    std::vector<double> inv_freq_;
    shader_source::Angles angles_;
};

}  // namespace vkrope::conformance
