// SPDX-License-Identifier: MIT
// DeepSeek-V3: q [tokens, 128, 192] rotates channels 128 to 191; kv_a [tokens, 576] rotates 512 to 575 and goes to the latent cache.
#include "walk.hpp"

namespace walk::mla {

namespace {

constexpr std::uint32_t heads = 128, q_dim = 192, latent_dim = 576, page_size = 64;

}  // namespace

// rotary_dim 64, offsets 128 and 512, attention factor 1.
vkrope::Result<vkrope::Kernel*> mla_kernel(const Gpu& gpu, std::string_view config_json, vkrope::Rotation& rope) {
    auto read = vkrope::from_hf_config(config_json);
    if (!read) return {read.status, nullptr};
    rope = std::move(read.value);
    return vkrope::create(gpu.ref, {.pairing = vkrope::Pairing::interleaved,
                                    .rotary_dim = rope.rotary_dim,
                                    .q = {vkrope::Element::bf16, vkrope::Element::bf16, q_dim, rope.q_rotary_offset},
                                    .k = {vkrope::Element::bf16, vkrope::Element::bf16, latent_dim, rope.k_rotary_offset},
                                    .angles = vkrope::AngleSource::computed,
                                    .positions = vkrope::PositionSource::ids,
                                    .scatter_k = true});
}

// Q in place, 64 of 192 channels. K out of place into the paged cache: the 512 latent channels are copied, the last 64 rotated.
vkrope::Status mla_layer(VkCommandBuffer commands, const vkrope::Kernel* kernel, const Buffers& buffers, std::uint32_t tokens) {
    const vkrope::Tensor q{.where = buffers.q, .heads = heads};
    return vkrope::record(
        commands, kernel,
        {.tokens = tokens,
         .q_in = q,
         .q_out = q,
         .k_in = {.where = buffers.k, .heads = 1},
         .k_out = {.where = buffers.cache, .heads = 1},
         .positions = {.ids = buffers.ids},
         .k_rows = {
             .slots = buffers.slots, .page_size = page_size, .page_stride = page_size * latent_dim, .row_stride = latent_dim}});
}

// Unabsorbed prefill: k [tokens, 128, 192] wants the one rotated k_pe in each of its heads. Both views start at the window.
vkrope::Status expand_k_pe(VkCommandBuffer commands, const vkrope::Kernel* window_kernel, VkDescriptorBufferInfo kv_a,
                           VkDescriptorBufferInfo k, VkDescriptorBufferInfo positions, std::uint32_t tokens) {
    kv_a.offset += 512 * 2;
    kv_a.range -= 512 * 2;
    k.offset += 128 * 2;
    k.range -= 128 * 2;
    return vkrope::record(commands, window_kernel,
                          {.tokens = tokens,
                           .k_in = {.where = kv_a, .heads = heads, .token_stride = latent_dim, .head_stride = vkrope::broadcast},
                           .k_out = {.where = k, .heads = heads, .token_stride = std::int64_t{heads} * q_dim, .head_stride = q_dim},
                           .positions = {.ids = positions}});
}

// 192^-1/2 times what the model's scaling asks for.
float softmax_scale(const vkrope::Rotation& rope) {
    return 0.0721687836f * float(rope.softmax_scale);
}

vkrope::Code today(const Gpu& gpu, std::string_view config_json) {
    vkrope::Rotation rope;
    const auto kernel = mla_kernel(gpu, config_json, rope);
    if (!kernel) return kernel.status.code;
    const vkrope::Status layer = mla_layer(gpu.commands, kernel.value, gpu.buffers, 8);
    if (!layer) return layer.code;
    return softmax_scale(rope) > 0
               ? expand_k_pe(gpu.commands, kernel.value, gpu.buffers.k, gpu.buffers.cache, gpu.buffers.ids, 8).code
               : vkrope::Code::invalid_data;
}

}  // namespace walk::mla
