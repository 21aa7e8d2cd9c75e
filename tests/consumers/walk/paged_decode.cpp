// SPDX-License-Identifier: MIT
// A llama-like engine: one decode step of 64 sequences into a paged KV cache.
#include <vector>

#include "walk.hpp"

namespace walk::paged_decode {

namespace {

constexpr std::uint32_t head_dim = 128, q_heads = 32, k_heads = 8, page_size = 16, sequences = 64;

struct State {
    vkrope::Rotation rope;
    vkrope::AnglePlan plan;
    VkImageView table = VK_NULL_HANDLE;
    vkrope::Kernel* kernel = nullptr;
    vkrope::DescriptorArena* arenas[3] = {};  // one per frame in flight
};

}  // namespace

vkrope::Status load(const Gpu& gpu, std::string_view config_json, State& state) {
    const auto model = vkrope::from_hf_config(config_json);
    if (!model) return model.status;
    state.rope = model.value;
    const auto plan = vkrope::plan_angles(state.rope, vkrope::AngleSource::factored_texture, state.rope.max_position, 4096);
    if (!plan) return plan.status;
    state.plan = plan.value;
    std::vector<std::byte> texels(state.plan.bytes);
    if (vkrope::Status s = vkrope::fill_angles(state.rope, state.plan, texels.data(), texels.size()); !s) return s;
    state.table = gpu.upload_texture(state.plan.format, state.plan.extent, state.plan.usage, texels);
    const auto kernel = vkrope::create(gpu.ref, {.pairing = state.rope.pairing,
                                                 .rotary_dim = state.rope.rotary_dim,
                                                 .q = {vkrope::Element::f32, vkrope::Element::f32, state.rope.head_dim, 0},
                                                 .k = {vkrope::Element::f32, vkrope::Element::f16, state.rope.head_dim, 0},
                                                 .angles = state.plan.source,
                                                 .positions = vkrope::PositionSource::ids,
                                                 .scatter_k = true});
    if (!kernel) return kernel.status;
    state.kernel = kernel.value;
    if (gpu.ref.enabled & vkrope::push_descriptor) return {};
    for (vkrope::DescriptorArena*& arena : state.arenas) {
        const auto made = vkrope::create_arena(state.kernel, 32);
        if (!made) return made.status;
        arena = made.value;
    }
    return {};
}

// Activations in f32; a cache of [pages, 16, 8, 128] in f16 for each layer; slot -1 is padding.
vkrope::Status rope_layer(VkCommandBuffer commands, const State& state, const Buffers& buffers, std::uint32_t layer, int frame) {
    constexpr std::int64_t row = std::int64_t{k_heads} * head_dim;
    VkDescriptorBufferInfo cache = buffers.cache;
    cache.offset += layer * cache.range;
    return vkrope::record(
        commands, state.kernel,
        {.tokens = sequences,
         .q_in = {.where = buffers.q, .heads = q_heads},
         .q_out = {.where = buffers.q, .heads = q_heads},
         .k_in = {.where = buffers.k, .heads = k_heads},
         .k_out = {.where = cache, .heads = k_heads, .head_stride = head_dim},
         .positions = {.ids = buffers.ids},
         .angles = {.plan = &state.plan, .view = state.table},
         .k_rows = {.slots = buffers.slots, .page_size = page_size, .page_stride = page_size * row, .row_stride = row}},
        state.arenas[frame]);
}

vkrope::Code today(const Gpu& gpu, std::string_view config_json) {
    State state;
    const vkrope::Status loaded = load(gpu, config_json, state);
    return loaded ? rope_layer(gpu.commands, state, gpu.buffers, 3, 0).code : loaded.code;
}

}  // namespace walk::paged_decode
