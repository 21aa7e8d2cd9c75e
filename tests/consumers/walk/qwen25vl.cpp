// SPDX-License-Identifier: MIT
// Qwen2.5-VL: chunked prefill with M-RoPE ids [3, max_tokens], of which a chunk uses [first, first + n); then decode.
#include "walk.hpp"

namespace walk::qwen25vl {

namespace {

constexpr std::uint32_t q_heads = 28, k_heads = 4, head_dim = 128;
constexpr std::int64_t packed_row = (q_heads + 2 * k_heads) * head_dim;

}  // namespace

// Text: 16 x t, 24 x h, 24 x w, pairs of head_dim 128.
vkrope::Result<vkrope::Kernel*> text_kernel(const Gpu& gpu, std::string_view config_json, vkrope::Rotation& rope) {
    auto read = vkrope::from_hf_config(config_json, {.tower = "text"});
    if (!read) return {read.status, nullptr};
    rope = std::move(read.value);
    return vkrope::create(gpu.ref, {.pairing = rope.pairing,
                                    .rotary_dim = rope.rotary_dim,
                                    .q = {vkrope::Element::bf16, vkrope::Element::bf16, head_dim, 0},
                                    .k = {vkrope::Element::bf16, vkrope::Element::bf16, head_dim, 0},
                                    .angles = vkrope::AngleSource::factored_texture,
                                    .positions = vkrope::PositionSource::axis_ids});
}

// Vision: head_dim 80, axes (h, w), the exponent restarts on each.
vkrope::Result<vkrope::Kernel*> vision_kernel(const Gpu& gpu, std::string_view config_json, vkrope::Rotation& rope) {
    auto read = vkrope::from_hf_config(config_json, {.tower = "vision"});
    if (!read) return {read.status, nullptr};
    rope = std::move(read.value);
    return vkrope::create(gpu.ref, {.pairing = rope.pairing,
                                    .rotary_dim = rope.rotary_dim,
                                    .q = {vkrope::Element::bf16, vkrope::Element::bf16, 80, 0},
                                    .k = {vkrope::Element::bf16, vkrope::Element::bf16, 80, 0},
                                    .angles = vkrope::AngleSource::computed,
                                    .positions = vkrope::PositionSource::axis_ids});
}

// Q and K are views into packed rows [tokens, 36, 128].
vkrope::Status prefill_chunk(VkCommandBuffer commands, const vkrope::Kernel* kernel, const Buffers& buffers,
                             const vkrope::Angles& angles, std::uint32_t first, std::uint32_t n, std::uint32_t max_tokens) {
    vkrope::Positions slice{.ids = buffers.ids, .axis_stride = max_tokens};  // three rows, a slice of each
    slice.ids.offset += first * sizeof(std::int32_t);
    slice.ids.range -= first * sizeof(std::int32_t);
    const vkrope::Tensor q{.where = buffers.q, .heads = q_heads, .token_stride = packed_row};
    const vkrope::Tensor k{.where = buffers.k, .heads = k_heads, .token_stride = packed_row};
    return vkrope::record(commands, kernel,
                          {.tokens = n, .q_in = q, .q_out = q, .k_in = k, .k_out = k, .positions = slice, .angles = angles});
}

// The three axes of a text token agree: one row of ids serves all.
vkrope::Status decode(VkCommandBuffer commands, const vkrope::Kernel* kernel, const Buffers& buffers, const vkrope::Angles& angles,
                      std::uint32_t sequences) {
    const vkrope::Tensor q{.where = buffers.q, .heads = q_heads}, k{.where = buffers.k, .heads = k_heads};
    return vkrope::record(commands, kernel,
                          {.tokens = sequences,
                           .q_in = q,
                           .q_out = q,
                           .k_in = k,
                           .k_out = k,
                           .positions = {.ids = buffers.ids, .axis_stride = 0},
                           .angles = angles});
}

vkrope::Code today(const Gpu& gpu, std::string_view config_json) {
    vkrope::Rotation text, vision;
    const auto text_made = text_kernel(gpu, config_json, text);
    if (!text_made) return text_made.status.code;
    const auto vision_made = vision_kernel(gpu, config_json, vision);
    if (!vision_made) return vision_made.status.code;
    const vkrope::Status chunk = prefill_chunk(gpu.commands, text_made.value, gpu.buffers, {}, 0, 8, 64);
    return chunk ? decode(gpu.commands, text_made.value, gpu.buffers, {}, 8).code : chunk.code;
}

}  // namespace walk::qwen25vl
