// SPDX-License-Identifier: MIT
// Runs Qwen2.5-VL: a chunked prefill with M-RoPE ids [3, max_tokens], of which a chunk uses
// [first, first + n), and then decode.
#include "walk.hpp"

namespace walk {

namespace {

constexpr std::uint32_t q_heads = 28, k_heads = 4, head_dim = 128, vision_heads = 16,
                        max_position = 4096;
constexpr std::int64_t packed_row = (q_heads + 2 * k_heads) * head_dim;

// For text, head_dim is 128 and 16 pairs use axis t, 24 axis h and 24 axis w. For vision, head_dim
// is 80, the axes are (h, w), and the exponents restart on each axis.
vkrope::KernelInfo kernel_info(const vkrope::RopeParams& rope, vkrope::AngleSource source,
                               vkrope::PositionSource positions) {
    return {
        .pairing = rope.pairing,
        .rotary_dim = rope.rotary_dim,
        .tensor = {{VKROPE_BF16, VKROPE_BF16, rope.head_dim, 0},
                   {VKROPE_BF16, VKROPE_BF16, rope.head_dim, 0}},
        .angles = source,
        .positions = positions,
        .sections = positions == VKROPE_POSITIONS_AXIS_IDS ? rope.sections : vkrope::Sections{}};
}

// Q and K are views into packed rows [tokens, 36, 128]: Q is heads 0 to 27, K is heads 28 to 31.
vkrope::Call prefill_chunk(const Table& table, const Buffers& buffers, std::uint32_t first,
                           std::uint32_t n, std::uint32_t max_tokens) {
    vkrope::Positions slice{.ids = buffers.ids,
                            .axis_stride = max_tokens};  // a slice of each of three rows
    slice.ids.offset += first * sizeof(std::int32_t);
    slice.ids.range -= first * sizeof(std::int32_t);
    VkDescriptorBufferInfo keys = buffers.q;
    keys.offset += q_heads * head_dim * 2;
    keys.range -= q_heads * head_dim * 2;
    const vkrope::Tensor q{.where = buffers.q, .heads = q_heads, .token_stride = packed_row};
    const vkrope::Tensor k{.where = keys, .heads = k_heads, .token_stride = packed_row};
    return {.tokens = n, .in = {q, k}, .out = {q, k}, .positions = slice, .angles = table.angles()};
}

// The three axes of a text token have the same id, so one row of ids serves all of them.
vkrope::Call decode(const Table& table, const Buffers& buffers, std::uint32_t sequences) {
    const vkrope::Tensor q{.where = buffers.q, .heads = q_heads},
        k{.where = buffers.k, .heads = k_heads};
    return {.tokens = sequences,
            .in = {q, k},
            .out = {q, k},
            .positions = {.ids = buffers.ids, .axis_stride = vkrope::broadcast},
            .angles = table.angles()};
}

// Patches have a row and a column: ids [2, patches].
vkrope::Call vision_block(const Table& turns, const Buffers& buffers, std::uint32_t patches) {
    const vkrope::Tensor q{.where = buffers.q, .heads = vision_heads},
        k{.where = buffers.k, .heads = vision_heads};
    return {.tokens = patches,
            .in = {q, k},
            .out = {q, k},
            .positions = {.ids = buffers.ids},
            .angles = turns.angles()};
}

}  // namespace

std::vector<Step> qwen25vl(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const auto text = vkrope::from_hf_config(config_json, {.tower = "text"});
    taken.push_back({"text model", text.status});
    const auto vision = vkrope::from_hf_config(config_json, {.tower = "vision"});
    taken.push_back({"vision model", vision.status});
    const auto table = make_table(gpu, text.value, VKROPE_ANGLES_FACTORED_TEXTURE, max_position);
    taken.push_back({"text table", table.status});
    const Made axes(gpu.ref,
                    kernel_info(text.value, table->plan.source, VKROPE_POSITIONS_AXIS_IDS));
    taken.push_back({"text kernel", axes.status});
    taken.push_back(
        {"prefill", gpu.rotate(axes, prefill_chunk(table.value, gpu.buffers, 16, 8, 64))});
    taken.push_back({"decode", gpu.rotate(axes, decode(table.value, gpu.buffers, 8))});

    const auto turns = make_table(gpu, vision.value, VKROPE_ANGLES_COMPUTED, 1);
    taken.push_back({"vision angles", turns.status});
    const Made patches(
        gpu.ref, kernel_info(vision.value, VKROPE_ANGLES_COMPUTED, VKROPE_POSITIONS_AXIS_IDS));
    taken.push_back({"vision kernel", patches.status});
    taken.push_back({"vision", gpu.rotate(patches, vision_block(turns.value, gpu.buffers, 48))});
    return taken;
}

}  // namespace walk
