// SPDX-License-Identifier: MIT
// Caches that have K and V of a token in one row.
#include "ops_scene.hpp"

namespace vkrope::test {

TEST_CASE("K and V of a token side by side in one row of a cache") {
    const auto scene_of = [](Element in, Element out, std::uint32_t k_dim, std::uint32_t v_dim) {
        return Scene{.info = {.pairing = VKROPE_HALF_SPLIT,
                              .rotary_dim = 2,
                              .tensor = {{.in = in, .out = in, .head_dim = k_dim, .heads = 4},
                                         {.in = in, .out = out, .head_dim = k_dim, .heads = 3},
                                         {.in = in, .out = out, .head_dim = v_dim, .heads = 3}},
                              .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                     .batch = 2,
                     .tokens = 37,
                     .q_heads = 4,
                     .k_heads = 3,
                     .v_heads = 3};
    };
    const Norm rms = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    std::vector<Scene> scenes = {
        scene_of(VKROPE_F16, VKROPE_F16, 64, 64), scene_of(VKROPE_BF16, VKROPE_F32, 64, 32),
        // Rows of 10 bytes: K and V of a token share a word.
        scene_of(VKROPE_F16, VKROPE_BF16, 5, 5), scene_of(VKROPE_F16, VKROPE_E4M3FN, 64, 64),
        scene_of(VKROPE_F32, VKROPE_INT8, 3, 3), scene_of(VKROPE_F16, VKROPE_Q8_0, 64, 64),
        scene_of(VKROPE_BF16, VKROPE_Q5_0, 32, 64)};
    scenes[1].info.tensor[K].ops = {.norm = rms, .scale = 0.5f};
    for (const std::size_t made : {3, 4})
        scenes[made].info.tensor[K].ops = scenes[made].info.tensor[V].ops = {
            .store_scale = VKROPE_STORE_SCALE_MADE};
    scenes[5].info.tensor[K].ops = {.norm = rms, .hadamard = 64};
    scenes[5].info.tensor[V].ops = {.hadamard = 64};
    const auto beside = [](Mapping mapping, std::uint32_t lead, std::uint32_t page_rows) {
        return Way{.mapping = mapping,
                   .lead = lead,
                   .slots = true,
                   .page_rows = page_rows,
                   .beside = true};
    };
    std::vector<Way> ways = {beside(VKROPE_MAPPING_GPU, 0, 16), beside(VKROPE_MAPPING_CPU, 0, 16),
                             beside(VKROPE_MAPPING_GPU, 1, 4),  beside(VKROPE_MAPPING_CPU, 3, 0),
                             beside(VKROPE_MAPPING_GPU, 0, 16), beside(VKROPE_MAPPING_GPU, 2, 4)};
    ways[4].range = 1u << 14;
    for (std::size_t i = 0; i < scenes.size(); ++i) {
        CAPTURE(i);
        const Results usual = carry_out(scenes[i], {});
        // Too few for V beside K.
        ways[5].storage_buffers = is_made(scenes[i].info.tensor[K].ops.store_scale) ? 8 : 7;
        for (std::size_t w = 0; w < ways.size(); w += sweep_share()) {
            CAPTURE(w);
            if (i != 0 && w % 3 != i % 3) continue;  // each way with some types is enough
            if (ways[w].range != 0 && scenes[i].info.tensor[K].head_dim < 64) continue;  // it fits
            const Results results = carry_out(scenes[i], ways[w]);
            CHECK(results.q == usual.q);
            CHECK(results.k == usual.k);
            CHECK(results.v == usual.v);
            CHECK(results.k_scales == usual.k_scales);
            CHECK(results.v_scales == usual.v_scales);
        }
    }
}

}  // namespace vkrope::test
