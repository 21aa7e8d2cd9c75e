// SPDX-License-Identifier: MIT
// Runs the forward pass of training on packed bf16 [tokens, groups, q_per_group + 2, D] (Megatron,
// InternLM2), and the backward pass on f32 gradients.
#include "walk.hpp"

namespace walk {

namespace {

constexpr std::uint32_t groups = 8, per_group = 4, D = 128, batch = 2, seq = 64;

// Returns a tensor of n heads of every group, from head `first` on.
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

// Returns a tensor with the layout [batch, heads, seq, D].
vkrope::Tensor gradient(const VkDescriptorBufferInfo& where, std::uint32_t heads) {
    return {.where = where,
            .heads = heads,
            .token_stride = D,
            .head_stride = std::int64_t{seq} * D,
            .batch_stride = std::int64_t{heads} * seq * D};
}

vkrope::KernelInfo kernel_info(const vkrope::RopeParams& rope, vkrope::Element in,
                               vkrope::Element out, vkrope::AngleSource source) {
    return {.pairing = rope.pairing,
            .rotary_dim = rope.rotary_dim,
            .tensor = {{in, out, D, 0}, {in, out, D, 0}},
            .angles = source,
            .positions = VKROPE_POSITIONS_IDS};
}

// V is plane per_group + 1, which the call leaves unchanged.
vkrope::Call forward(const Table& table, const Buffers& buffers,
                     const vkrope::Positions& positions) {
    const vkrope::Tensor q = plane(buffers.cache, 0, per_group),
                         k = plane(buffers.cache, per_group, 1);
    return {.batch = batch,
            .tokens = seq,
            .in = {q, k},
            .out = {q, k},
            .positions = positions,
            .angles = table.angles()};
}

// Computes the transpose: it multiplies by the attention factor again, and does not divide by it.
vkrope::Call backward(const Table& table, const Buffers& buffers,
                      const vkrope::Positions& positions) {
    return {.batch = batch,
            .tokens = seq,
            .in = {gradient(buffers.q, groups * per_group), gradient(buffers.k, groups)},
            .out = {plane(buffers.cache, 0, per_group), plane(buffers.cache, per_group, 1)},
            .positions = positions,
            .angles = table.angles(),
            .direction = VKROPE_INVERSE,
            .gain = VKROPE_GAIN_APPLY};
}

}  // namespace

std::vector<Step> training(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_FACTORED_TEXTURE, seq, taken);
    const Made there(gpu.ref,
                     kernel_info(model.rope, VKROPE_BF16, VKROPE_BF16, model.table.plan.source));
    taken.push_back({"forward kernel", there.status});
    const Made back(gpu.ref,
                    kernel_info(model.rope, VKROPE_F32, VKROPE_BF16, model.table.plan.source));
    taken.push_back({"backward kernel", back.status});
    // Both sequences share one row of ids.
    const vkrope::Positions wide{
        .ids = gpu.buffers.ids64, .int64 = true, .batch_stride = vkrope::broadcast},
        narrow{.ids = gpu.buffers.ids, .batch_stride = vkrope::broadcast};
    for (const vkrope::Positions& ids : {wide, narrow}) {
        taken.push_back({"forward", gpu.rotate(there, forward(model.table, gpu.buffers, ids))});
        taken.push_back({"backward", gpu.rotate(back, backward(model.table, gpu.buffers, ids))});
    }
    return taken;
}

}  // namespace walk
