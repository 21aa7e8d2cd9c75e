// SPDX-License-Identifier: MIT
// Runs one decode step of a llama-like engine with 64 sequences into a paged KV cache.
#include "walk.hpp"

namespace walk {

namespace {

constexpr std::uint32_t head_dim = 128, q_heads = 32, k_heads = 8, page_size = 16, sequences = 64;

vkrope::KernelInfo kernel_info(const vkrope::RopeParams& rope, vkrope::AngleSource source) {
    return {.pairing = rope.pairing,
            .rotary_dim = rope.rotary_dim,
            .tensor = {{VKROPE_F32, VKROPE_F32, rope.head_dim, 0},
                       {VKROPE_F32, VKROPE_F16, rope.head_dim, 0}},
            .angles = source,
            .positions = VKROPE_POSITIONS_IDS,
            .scatter_kv = true};
}

// The activations are f32; each layer has a cache [pages, 16, 8, 128] of f16; slot -1 is padding.
vkrope::Call rope_layer(const Table& table, const Buffers& buffers, std::uint32_t layer) {
    constexpr std::int64_t row = std::int64_t{k_heads} * head_dim;
    VkDescriptorBufferInfo cache = buffers.cache;
    cache.range = sequences * row * 2;
    cache.offset += layer * cache.range;
    return {.tokens = sequences,
            .in = {{.where = buffers.q, .heads = q_heads}, {.where = buffers.k, .heads = k_heads}},
            .out = {{.where = buffers.q, .heads = q_heads},
                    {.where = cache, .heads = k_heads, .head_stride = head_dim}},
            .positions = {.ids = buffers.ids},
            .angles = table.angles(),
            .paged_cache = {.slot_mapping = buffers.slot_mapping,
                            .page_size = page_size,
                            .page_stride = page_size * row,
                            .row_stride = row}};
}

}  // namespace

std::vector<Step> paged_decode(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_FACTORED_TEXTURE, 0, taken);
    const Made made(gpu.ref, kernel_info(model.rope, model.table.plan.source));
    taken.push_back({"kernel", made.status});
    taken.push_back({"layer", gpu.rotate(made, rope_layer(model.table, gpu.buffers, 3))});
    return taken;
}

}  // namespace walk
