// SPDX-License-Identifier: MIT
// A model of two layer types from its config.json: one kernel, two tables, layers without RoPE skipped, and a cache shift that leaves out
// the attention factor.
#include <array>
#include <cstdio>

#include "walk.hpp"

namespace walk::layer_types {

namespace {

struct Layer {
    bool rotates = true;
    std::size_t table = 0;
};

struct Tables {
    std::array<vkrope::Rotation, 2> rope;
    std::array<vkrope::AnglePlan, 2> plan;
    std::array<VkImageView, 2> view = {};

    vkrope::Angles of(const Layer& layer) const { return {&plan[layer.table], view[layer.table], {}}; }
};

}  // namespace

vkrope::Status load(const Gpu& gpu, std::string_view config_json, Tables& tables, std::vector<Layer>& layers) {
    const char* types[2] = {"full_attention", "sliding_attention"};
    for (std::size_t i = 0; i < 2; ++i) {
        auto rope = vkrope::from_hf_config(config_json, {.layer_type = types[i], .seq_len = 131072});
        if (!rope) return rope.status;
        for (const std::string& warning : rope->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
        const auto plan = vkrope::plan_angles(rope.value, vkrope::AngleSource::factored_texture, 131072, 4096);
        if (!plan) return plan.status;
        std::vector<std::byte> texels(plan->bytes);
        if (vkrope::Status s = vkrope::fill_angles(rope.value, plan.value, texels.data(), texels.size()); !s) return s;
        tables.rope[i] = std::move(rope.value);
        tables.plan[i] = plan.value;
        tables.view[i] = gpu.upload_texture(plan->format, plan->extent, plan->usage, texels);
    }
    for (std::size_t n = 0; n < layers.size(); ++n) {
        const auto one = vkrope::from_hf_config(config_json, {.layer = int(n)});
        if (!one) return one.status;
        layers[n].rotates = one->rotates;
    }
    return {};
}

// The attention factor multiplies once, here.
vkrope::Status rotate(VkCommandBuffer commands, const vkrope::Kernel* kernel, const Tables& tables, const Layer& layer,
                      const vkrope::Tensor& q, const vkrope::Tensor& k, const VkDescriptorBufferInfo& ids, std::uint32_t tokens) {
    if (!layer.rotates) return {};
    return vkrope::record(
        commands, kernel,
        {.tokens = tokens, .q_in = q, .q_out = q, .k_in = k, .k_out = k, .positions = {.ids = ids}, .angles = tables.of(layer)});
}

// Keys that carry the factor already move to other positions.
vkrope::Status shift_cache(VkCommandBuffer commands, const vkrope::Kernel* kernel, const Tables& tables, const Layer& layer,
                           const vkrope::Tensor& cache, const VkDescriptorBufferInfo& deltas, std::uint32_t cells) {
    return vkrope::record(commands, kernel,
                          {.tokens = cells,
                           .k_in = cache,
                           .k_out = cache,
                           .positions = {.ids = deltas},
                           .angles = tables.of(layer),
                           .gain = vkrope::Gain::omit});
}

vkrope::Code today(const Gpu& gpu, std::string_view config_json) {
    Tables tables;
    std::vector<Layer> layers(2);
    const vkrope::Status loaded = load(gpu, config_json, tables, layers);
    if (!loaded) return loaded.code;
    const auto kernel = vkrope::create(gpu.ref, {.rotary_dim = tables.rope[0].rotary_dim,
                                                 .q = {.head_dim = tables.rope[0].head_dim},
                                                 .k = {.head_dim = tables.rope[0].head_dim},
                                                 .angles = tables.plan[0].source,
                                                 .positions = vkrope::PositionSource::ids});
    if (!kernel) return kernel.status.code;
    const vkrope::Tensor q{.where = gpu.buffers.q, .heads = 4}, k{.where = gpu.buffers.k, .heads = 2};
    const vkrope::Status rotated = rotate(gpu.commands, kernel.value, tables, layers[0], q, k, gpu.buffers.ids, 8);
    return rotated ? shift_cache(gpu.commands, kernel.value, tables, layers[0], k, gpu.buffers.ids, 8).code : rotated.code;
}

}  // namespace walk::layer_types
