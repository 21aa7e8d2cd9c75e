// SPDX-License-Identifier: MIT
// Computes a Hadamard transform as a product with the Hadamard matrix.
#pragma once

#include "roof/shader.hpp"

namespace vkrope::bench {

/// Shader that multiplies rows by a Hadamard matrix. Move-only.
class MatrixProduct {
   public:
    /// Uses the orthonormal Hadamard matrix of n channels in Sylvester's order; n is a power of two
    /// and at least 4.
    MatrixProduct(Device& device, std::uint32_t n);

    /// Frees the descriptor sets of earlier records, whose commands must have completed.
    Status reset() { return shader_.take_sets(max_records); }
    static constexpr std::uint32_t max_records = 3;

    /// Records out[r] = matrix * in[r], for f32 rows [rows, n].
    void record(VkCommandBuffer commands, const VkDescriptorBufferInfo& in,
                const VkDescriptorBufferInfo& out, std::uint32_t rows) const;

   private:
    std::uint32_t n_;
    Buffer matrix_;
    Shader shader_;
};

}  // namespace vkrope::bench
