// SPDX-License-Identifier: MIT
// Training: forward in bf16 on packed [tokens, groups, q_per_group + 2, D] (Megatron, InternLM2), backward on f32 gradients.
#include "walk.hpp"

namespace walk::training {

namespace {

constexpr std::uint32_t groups = 8, per_group = 4, D = 128, batch = 2, seq = 64;

// n heads of every group, starting at `first`.
vkrope::Tensor plane(VkDescriptorBufferInfo packed, std::uint32_t first, std::uint32_t n) {
    packed.offset += VkDeviceSize{first} * D * 2;
    packed.range -= VkDeviceSize{first} * D * 2;
    const std::int64_t row = std::int64_t{groups} * (per_group + 2) * D;
    return {.where = packed,
            .heads = groups * n,
            .token_stride = row,
            .head_stride = D,
            .batch_stride = row * seq,
            .heads_per_group = n,
            .group_stride = std::int64_t{per_group + 2} * D};
}

// [batch, heads, seq, D]
vkrope::Tensor gradient(const VkDescriptorBufferInfo& where, std::uint32_t heads) {
    return {.where = where,
            .heads = heads,
            .token_stride = D,
            .head_stride = std::int64_t{seq} * D,
            .batch_stride = std::int64_t{heads} * seq * D};
}

}  // namespace

vkrope::Result<vkrope::Kernel*> make(const Gpu& gpu, const vkrope::Rotation& rope, vkrope::Element in, vkrope::Element out) {
    return vkrope::create(gpu.ref, {.pairing = rope.pairing,
                                    .rotary_dim = rope.rotary_dim,
                                    .q = {in, out, D, 0},
                                    .k = {in, out, D, 0},
                                    .angles = vkrope::AngleSource::factored_texture,
                                    .positions = vkrope::PositionSource::ids});
}

// V, plane per_group + 1, keeps its bits.
vkrope::Status forward(VkCommandBuffer commands, const vkrope::Kernel* bf16_in_place, const Buffers& buffers,
                       const vkrope::Angles& angles) {
    const vkrope::Tensor q = plane(buffers.cache, 0, per_group), k = plane(buffers.cache, per_group, 1);
    return vkrope::record(commands, bf16_in_place,
                          {.batch = batch,
                           .tokens = seq,
                           .q_in = q,
                           .q_out = q,
                           .k_in = k,
                           .k_out = k,
                           .positions = {.ids = buffers.ids, .int64 = true},
                           .angles = angles});
}

// The transpose: the attention factor multiplies again, and is not divided out.
vkrope::Status backward(VkCommandBuffer commands, const vkrope::Kernel* f32_to_bf16, const Buffers& buffers,
                        const vkrope::Angles& angles) {
    return vkrope::record(commands, f32_to_bf16,
                          {.batch = batch,
                           .tokens = seq,
                           .q_in = gradient(buffers.q, groups * per_group),
                           .q_out = plane(buffers.cache, 0, per_group),
                           .k_in = gradient(buffers.k, groups),
                           .k_out = plane(buffers.cache, per_group, 1),
                           .positions = {.ids = buffers.ids, .int64 = true},
                           .angles = angles,
                           .direction = vkrope::Direction::inverse,
                           .gain = vkrope::Gain::apply});
}

vkrope::Code today(const Gpu& gpu, std::string_view config_json) {
    const auto rope = vkrope::from_hf_config(config_json);
    if (!rope) return rope.status.code;
    const auto forward_kernel = make(gpu, rope.value, vkrope::Element::bf16, vkrope::Element::bf16);
    if (!forward_kernel) return forward_kernel.status.code;
    const auto backward_kernel = make(gpu, rope.value, vkrope::Element::f32, vkrope::Element::bf16);
    if (!backward_kernel) return backward_kernel.status.code;
    const vkrope::Status there = forward(gpu.commands, forward_kernel.value, gpu.buffers, {});
    return there ? backward(gpu.commands, backward_kernel.value, gpu.buffers, {}).code : there.code;
}

}  // namespace walk::training
