// SPDX-License-Identifier: MIT
// Computes the bits that the contract promises on every device: cos and sin as the angle source
// computes them (the shader's source, compiled as C++), four products and two sums in f32, each
// rounded to nearest even, and the result rounded once more to the stored type. A device may differ
// if it flushes subnormals, and in the bits of a NaN.
#pragma once

#include "conformance/builtin/check.hpp"
#include "verify/definition.hpp"
#include "verify/shader_source/angles.hpp"

namespace vkrope::conformance {

class ShaderBits {
   public:
    // Keeps a reference to the operation, which must outlive this object.
    ShaderBits(const verify::Operation& operation, bool flushes);

    // Compares every element of the outputs of a tensor, unless they have ops around the rotation,
    // and measures the distance of each element from the exact value.
    void compare(TensorIndex which, const verify::Bytes& after, Test& test) const;

   private:
    // Compares the elements of one destination, which starts at `out_byte` of the memory.
    void compare_rows(const oracle::Definition& definition, TensorIndex which, std::size_t out_byte,
                      const verify::Bytes& after, const char* destination, Test& test) const;

    // The index of a token and a pair; `pair` counts [head groups, pairs].
    struct Turn {
        std::uint64_t token = 0;
        std::size_t pair = 0;
        int member = 0;            // the row of the pair's matrix
        std::int64_t further = 0;  // added to the position of the token
    };

    std::int64_t position(const Turn& turn) const;

    // Returns cos and sin without regard to the direction.
    CosSin cos_sin(const Turn& turn) const;

    // Returns cos and sin for the direction of the call.
    CosSin directed(const Turn& turn) const;

    const verify::Operation& operation_;
    bool flushes_;
    std::vector<std::int64_t> positions_;
    std::vector<std::uint32_t> axis_ = {};  // position axis of each pair
    shader_source::Angles angles_;
};

}  // namespace vkrope::conformance
