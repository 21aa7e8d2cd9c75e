// SPDX-License-Identifier: MIT
// Rotates the tensors of DeepSeek-V3: channels 128 to 191 of q [tokens, 128, 192], and channels 512
// to 575 of kv_a [tokens, 576], which is written to the latent cache.
#include "walk.hpp"

namespace walk {

namespace {

constexpr std::uint32_t heads = 128, nope_dim = 128, rope_dim = 64, q_dim = nope_dim + rope_dim,
                        latent_dim = 512, row_dim = latent_dim + rope_dim, page_size = 64,
                        tokens = 8;

// The model has rotary_dim 64, offsets 128 and 512, and attention factor 1.
vkrope::KernelInfo kernel_info(const vkrope::RopeParams& rope, vkrope::AngleSource source) {
    return {.pairing = VKROPE_INTERLEAVED,
            .rotary_dim = rope.rotary_dim,
            .tensor = {{VKROPE_BF16, VKROPE_BF16, q_dim, rope.q_rotary_offset},
                       {VKROPE_BF16, VKROPE_BF16, row_dim, rope.k_rotary_offset}},
            .angles = source,
            .positions = VKROPE_POSITIONS_IDS,
            .scatter_kv = true};
}

// Rotates 64 of 192 channels of Q in place. K goes out of place to the paged cache: the 512 latent
// channels are copied, the last 64 are rotated.
vkrope::Call mla_layer(const Table& table, const Buffers& buffers) {
    const vkrope::Tensor q{.where = buffers.q, .heads = heads};
    return {.tokens = tokens,
            .in = {q, {.where = buffers.k, .heads = 1}},
            .out = {q, {.where = buffers.cache, .heads = 1}},
            .positions = {.ids = buffers.ids},
            .angles = table.angles(),
            .paged_cache = {.slot_mapping = buffers.slot_mapping,
                            .page_size = page_size,
                            .page_stride = page_size * row_dim,
                            .row_stride = row_dim}};
}

// In an unabsorbed prefill, each head of k [tokens, 128, 192] needs the one rotated k_pe. Both
// views start at the window.
vkrope::Call expand_k_pe(const Table& table, const Buffers& buffers) {
    VkDescriptorBufferInfo kv_a = buffers.k, k = buffers.cache;
    kv_a.offset += latent_dim * 2;
    kv_a.range -= latent_dim * 2;
    k.offset += nope_dim * 2;
    k.range -= nope_dim * 2;
    return {.tokens = tokens,
            .in = {{},
                   {.where = kv_a,
                    .heads = heads,
                    .token_stride = row_dim,
                    .head_stride = vkrope::broadcast}},
            .out = {{},
                    {.where = k,
                     .heads = heads,
                     .token_stride = std::int64_t{heads} * q_dim,
                     .head_stride = q_dim}},
            .positions = {.ids = buffers.ids},
            .angles = table.angles()};
}

}  // namespace

std::vector<Step> mla(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_COMPUTED, 1, taken);
    const Made made(gpu.ref, kernel_info(model.rope, VKROPE_ANGLES_COMPUTED));
    taken.push_back({"kernel", made.status});
    taken.push_back({"layer", gpu.rotate(made, mla_layer(model.table, gpu.buffers))});
    const Made window(gpu.ref, {.pairing = VKROPE_INTERLEAVED,
                                .rotary_dim = rope_dim,
                                .tensor = {{}, {VKROPE_BF16, VKROPE_BF16, rope_dim, 0}},
                                .angles = VKROPE_ANGLES_COMPUTED,
                                .positions = VKROPE_POSITIONS_IDS});
    taken.push_back({"window kernel", window.status});
    taken.push_back({"expand", gpu.rotate(window, expand_k_pe(model.table, gpu.buffers))});
    return taken;
}

}  // namespace walk
