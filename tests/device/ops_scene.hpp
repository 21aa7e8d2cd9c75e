// SPDX-License-Identifier: MIT
// Calls with norms, biases, clip and scale, which the oracle checks, and ways to carry them out.
#pragma once

#include "support/recording.hpp"

namespace vkrope::test {

/// A call, by what its results depend on.
struct Scene {
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    std::uint32_t batch = 1, tokens = 5;
    std::uint32_t q_heads = 0, k_heads = 0, v_heads = 0;
    float q_scale = 1;
    Bytes q = {}, k = {}, v = {};  ///< inputs, packed; empty: random
    std::uint32_t parameter_seed = 0;
    std::uint32_t first_set_tokens = 0;  ///< of two sets, the second has the seed second_seed
};

inline constexpr std::uint32_t second_seed = 20;

/// How it is carried out, which changes no bit.
struct Way {
    Mapping mapping = VKROPE_MAPPING_CPU;
    std::uint32_t lead = 0;  ///< elements before each tensor: the access becomes narrower
    bool in_place = false;
    bool slots = false;                       ///< K and V go to a cache, in reverse order
    std::uint32_t page_rows = 0;              ///< above 0: of such pages, [heads, rows] in each
    std::uint32_t range = 0, workgroups = 0;  ///< above 0: limits that the device reports instead
    std::uint32_t storage_buffers = 0;        ///< above 0: such a limit
    std::uint32_t gap = 0;                    ///< channels between stored rows, in whole blocks
    bool beside = false;  ///< slots: K and V of a head side by side in one row, of one buffer
};

/// Packed; made scales as f32 [batch, tokens, heads], empty without any.
struct Results {
    Bytes q, k, v;
    Bytes q_scales, k_scales, v_scales;
};

/// Fails unless the bytes around every output stay as they are.
Results carry_out(Scene scene, const Way& way);

/// The inputs of a scene that gives none.
void fill_inputs(Scene& scene);

/// Within the contract, and the same bits in every way, or in this share of the ways.
void check_ways(const Scene& scene);

}  // namespace vkrope::test
