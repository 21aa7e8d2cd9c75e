// SPDX-License-Identifier: MIT
// Training: forward in bf16 on packed [tokens, groups, q_per_group + 2, D] (Megatron, InternLM2),
// backward on f32 gradients.
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

vkrope::KernelInfo kernel_info(const vkrope::RopeParams& rope, vkrope::Element in,
                               vkrope::Element out, vkrope::AngleSource source) {
    return {.pairing = rope.pairing,
            .rotary_dim = rope.rotary_dim,
            .tensor = {{in, out, D, 0}, {in, out, D, 0}},
            .angles = source,
            .positions = VKROPE_POSITIONS_IDS};
}

// V, plane per_group + 1, keeps its bits.
vkrope::Status forward(VkCommandBuffer commands, const Made& bf16_in_place, const Table& table,
                       const Buffers& buffers, const vkrope::Positions& positions) {
    const vkrope::Tensor q = plane(buffers.cache, 0, per_group),
                         k = plane(buffers.cache, per_group, 1);
    return vkrope::record(commands, bf16_in_place.kernel,
                          {.batch = batch,
                           .tokens = seq,
                           .in = {q, k},
                           .out = {q, k},
                           .positions = positions,
                           .angles = table.angles()},
                          bf16_in_place.arena);
}

// The transpose: the attention factor multiplies again, and is not divided out.
vkrope::Status backward(VkCommandBuffer commands, const Made& f32_to_bf16, const Table& table,
                        const Buffers& buffers, const vkrope::Positions& positions) {
    return vkrope::record(
        commands, f32_to_bf16.kernel,
        {.batch = batch,
         .tokens = seq,
         .in = {gradient(buffers.q, groups * per_group), gradient(buffers.k, groups)},
         .out = {plane(buffers.cache, 0, per_group), plane(buffers.cache, per_group, 1)},
         .positions = positions,
         .angles = table.angles(),
         .direction = VKROPE_INVERSE,
         .gain = VKROPE_GAIN_APPLY},
        f32_to_bf16.arena);
}

}  // namespace

std::vector<Step> steps(const Gpu& gpu, std::string_view config_json) {
    using vkrope::AngleSource, vkrope::Element;
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_FACTORED_TEXTURE, seq, taken);
    const Made there(gpu.ref,
                     kernel_info(model.rope, VKROPE_BF16, VKROPE_BF16, model.table.plan.source));
    taken.push_back({"forward kernel", there.status});
    const Made back(gpu.ref,
                    kernel_info(model.rope, VKROPE_F32, VKROPE_BF16, model.table.plan.source));
    taken.push_back({"backward kernel", back.status});
    // One row of ids, which both sequences share.
    const vkrope::Positions wide{
        .ids = gpu.buffers.ids64, .int64 = true, .batch_stride = vkrope::broadcast},
        narrow{.ids = gpu.buffers.ids, .batch_stride = vkrope::broadcast};
    const auto run = [&](auto&& way, const Made& made, const vkrope::Positions& positions) {
        return gpu.run([&](VkCommandBuffer commands) {
            return way(commands, made, model.table, gpu.buffers, positions);
        });
    };
    taken.push_back({"forward, int64 ids", run(forward, there, wide)});
    taken.push_back({"forward, int32 ids", run(forward, there, narrow)});
    taken.push_back({"backward, int64 ids", run(backward, back, wide)});
    taken.push_back({"backward, int32 ids", run(backward, back, narrow)});
    return taken;
}

}  // namespace walk::training
