// SPDX-License-Identifier: MIT
// Declares the rivals: shaders that obtain cos and sin as other libraries do, and a CPU rotation.
#pragma once

#include "copy_roof/shader.hpp"
#include "layer.hpp"

namespace vkrope::bench {

enum class Way : std::uint32_t {
    ggml = 0,  // one pair per invocation; pow, cos and sin in every head; one workgroup of 1 x 256
               // x 1 per head row
    onnxruntime = 1,   // one pair per invocation; cos and sin in buffers
    ncnn = 2,          // one pair of four heads per invocation; cos and sin in a texture
    ggml_along_x = 3,  // like ggml, but with full workgroups along x, which is faster on devices
                       // that run only invocations along x in lockstep
};
const char* word_for(Way way) noexcept;

// Push constants of rival.comp.
struct RivalPush {
    std::uint32_t tokens = 0, heads = 0, first_position = 0;
    float theta_scale = 0;
    std::uint32_t fold_log2 = 0, row_texels = 0;
};

// Rotates with one of these shaders: Q, then K, with one dispatch each. The operation must be
// is_plain().
class Rival {
   public:
    Rival(Device& device, const verify::Operation& operation, Way way);

    // Must be called before record() records `calls` times into a new command buffer.
    Status begin(std::uint32_t calls = 1) { return shader_.take_sets(2 * calls); }
    // Uses the buffers of Q and K.
    Status record(VkCommandBuffer commands, const Call& call);

    // With pow, the angle is a float whose error is the error of the device's pow, cos and sin
    // times the position. The bound is then 1/16 of (|x0| + |x1|), which still distinguishes the
    // rotation from any other rotation.
    static constexpr double pow_bound_u = 0x1p-4 / 0x1p-24;
    // Returns the error bound of the check. With a table only the rotation itself rounds, so the
    // bound of direct tables applies.
    double bound_u() const noexcept {
        return way_ == Way::ggml || way_ == Way::ggml_along_x ? pow_bound_u : 3;
    }

   private:
    Way way_;
    std::uint32_t pairs_, pairs_per_invocation_;
    AngleTable texture_;
    Buffer cos_, sin_;
    tools::Shader shader_;
    RivalPush push_;
};

// A shader that does nothing, to measure the cost of a dispatch without memory traffic.
class Idle {
   public:
    Idle(Device& device, std::uint32_t workgroup_size);
    // Must be called before record() records `calls` times into a new command buffer.
    Status begin(std::uint32_t calls) { return shader_.take_sets(calls); }
    // Binds any buffer without changing the bytes.
    Status record(VkCommandBuffer commands, const VkDescriptorBufferInfo& any,
                  std::uint64_t workgroups);

   private:
    tools::Shader shader_;
};

// Shader that multiplies rows by a Hadamard matrix. Move-only.
class MatrixProduct {
   public:
    // Uses the orthonormal Hadamard matrix of n channels in Sylvester's order; n is a power of two
    // and at least 4.
    MatrixProduct(Device& device, std::uint32_t n);

    // Frees the descriptor sets of earlier records, whose commands must have completed.
    Status reset() { return shader_.take_sets(max_records); }
    static constexpr std::uint32_t max_records = 3;

    // Records out[r] = matrix * in[r], for f32 rows [rows, n].
    void record(VkCommandBuffer commands, const VkDescriptorBufferInfo& in,
                const VkDescriptorBufferInfo& out, std::uint32_t rows) const;

   private:
    std::uint32_t n_;
    Buffer matrix_;
    tools::Shader shader_;
};

// Rotates packed rows of `heads` heads on all cores, with half_split pairs in all channels and
// positions equal to token indices.
//
// cos_sin  [tokens, head_dim / 2] pairs
void rotate_on_cpu(Element element, const void* in, void* out, const float* cos_sin,
                   std::uint64_t tokens, std::uint32_t heads, std::uint32_t head_dim);

// Returns the table for rotate_on_cpu().
std::vector<float> cpu_table(const verify::Operation& operation);

}  // namespace vkrope::bench
