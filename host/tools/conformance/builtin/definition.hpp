// SPDX-License-Identifier: MIT
// The bits that the contract promises on every device: cos and sin as the angle source computes
// them (the source of the shader, compiled as C++), four products and two sums in f32, each rounded
// to nearest even, and the result rounded once more to the stored type. A device may differ if it
// flushes subnormals, and in the bits of a NaN.
#pragma once

#include "conformance/builtin/check.hpp"
#include "conformance/builtin/trial_oracle.hpp"
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

   private:
    /// Where a pair of a token is; `pair` counts [head groups, pairs].
    struct Turn {
        std::uint64_t token = 0;
        std::size_t pair = 0;
        int member = 0;            // whose row of the pair's matrix is wanted
        std::int64_t further = 0;  // by how much the position is greater than that of the token
    };

    std::int64_t position(const Turn& turn) const;

    /// Returns cos and sin, before the direction is applied.
    CosSin cos_sin(const Turn& turn) const;

    /// With the direction.
    CosSin directed(const reference::Operation& operation, const Turn& turn) const;

    const Trial& trial_;
    const std::vector<std::int64_t>& positions_;
    bool flushes_;
    std::vector<double> inv_freq_;
    std::vector<std::uint32_t> axis_ = {};  // position axis of each pair
    shader_source::Angles angles_;
    ExactAngles exact_;
};

}  // namespace vkrope::conformance
