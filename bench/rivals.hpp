// SPDX-License-Identifier: MIT
// What else one could do: shaders of our own that get at cos and sin as other libraries do, and the
// processor.
#pragma once

#include "layer.hpp"
#include "roof/shader.hpp"

namespace vkrope::bench {

enum class Way : std::uint32_t {
    ggml = 0,  // one pair an invocation; pow, cos and sin in every head; a workgroup of 1 x 256 x 1
               // for each head row
    onnxruntime = 1,   // one pair an invocation; cos and sin in buffers
    ncnn = 2,          // one pair of four heads an invocation; cos and sin in a texture
    ggml_along_x = 3,  // as ggml, with full workgroups along x, which is kinder to devices that run
                       // these in step
};
const char* word_for(Way way) noexcept;

/// Push constants of rival.comp.
struct RivalPush {
    std::uint32_t tokens = 0, heads = 0, first_position = 0;
    float theta_scale = 0;
    std::uint32_t fold_log2 = 0, row_texels = 0;
};

/// A rotation of plain shapes by one of these ways: Q, then K, each a dispatch.
class Rival {
   public:
    /// The layer outlives it.
    Rival(Device& device, const Layer& layer, Way way);
    Status record(VkCommandBuffer commands);

    /// What its check allows. Tables are ours, so that only the rotation itself rounds: the bound
    /// of direct tables. With pow the angle is a float, off by as much as the device's pow, cos and
    /// sin are, times the position: 1/16 of (|x0| + |x1|), which still tells it from any other
    /// rotation.
    double bound_u() const noexcept {
        return way_ == Way::ggml || way_ == Way::ggml_along_x ? 0x1p-4 / 0x1p-24 : 3;
    }

   private:
    const Layer& layer_;
    Way way_;
    AngleTable texture_;
    Buffer cos_, sin_;
    Shader shader_;
    RivalPush push_;
};

/// A shader that finds nothing to do: what a dispatch costs before it moves anything.
class Idle {
   public:
    Idle(Device& device, std::uint32_t workgroup_size);
    /// Binds any buffer, whose bytes stay as they are.
    Status record(VkCommandBuffer commands, const VkDescriptorBufferInfo& any,
                  std::uint64_t workgroups);

   private:
    Shader shader_;
};

/// Rotates packed rows of `heads` heads on all cores; half_split, all channels, position = number
/// of the token.
///
/// cos_sin  [tokens, head_dim / 2] pairs
void rotate_on_cpu(Element element, const void* in, void* out, const float* cos_sin,
                   std::uint64_t tokens, std::uint32_t heads, std::uint32_t head_dim);

/// The table of rotate_on_cpu().
std::vector<float> cpu_table(const Shape& shape);

}  // namespace vkrope::bench
