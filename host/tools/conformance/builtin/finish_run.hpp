// SPDX-License-Identifier: MIT
// The steps of a scene on a device, in one way.
#pragma once

#include "conformance/builtin/finish_scene.hpp"

namespace vkrope::conformance::scenes {

inline constexpr std::uint32_t batch = 2, tokens = 5, q_heads = 3, k_heads = 2;
inline constexpr std::int32_t first_position = 9;

/// What changes no bit.
struct Way {
    Mapping mapping = VKROPE_MAPPING_AUTOMATIC;
    bool in_place = false, slots = false;
    std::uint32_t lead = 0;  // elements before each tensor, which narrow the access
};

struct Outputs {
    Bytes q, k, v;
    Bytes q_scales, k_scales, v_scales;  // made ones, f32 [batch, tokens, heads]
    bool operator==(const Outputs&) const = default;
};

/// Weights and biases of a kernel: as the device has them, and as the oracle takes them.
struct Parameters {
    struct OfTensor {
        std::vector<float> bias, weight, norm_bias, store_scale;
    };
    std::array<OfTensor, 3> tensors;
    std::vector<float> filled;
};

/// Rows of all tokens of a tensor with `heads` heads.
std::size_t rows_of(std::uint32_t heads);
/// [batch, tokens, heads, head_dim]; tensors of different seeds differ.
Bytes input_of(const Scene& scene, std::uint32_t heads, std::uint32_t seed);
KernelInfo kernel_of(const Scene& scene, const Way& way);
Parameters parameters_of(const KernelInfo& info);
Rotation rotation_of(const Scene& scene);
/// A factor for each token of the batch, some of them below 1.
std::vector<float> token_scales();

Outputs run(DeviceUnderTest& device, const Scene& scene, const Way& way);

}  // namespace vkrope::conformance::scenes
