// SPDX-License-Identifier: MIT
// Source of every row: the classes of transformers that the names belong to; MoonViT's
// modeling_kimi_vl.py.
#include "model/hf/vision_towers.hpp"

#include <algorithm>
#include <iterator>

#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

constexpr Tower memory_attention(const char* name) {
    return {.name = name,
            .pairing = VKROPE_INTERLEAVED,
            .hidden_size = 256,
            .heads = 1,
            .axes = "column, row",
            .key_prefix = "memory_attention_",
            .whole_file = true,
            .note =
                "of the memory attention alone: its keys have the positions of the image once "
                "more for each remembered frame, and object pointers are not turned"};
}

constexpr Tower gemma4(const char* name) {
    return {.name = name,
            .hidden_size = 768,
            .heads = 12,
            .axes = "column, row; of padding 0, 0",
            .windows = true,
            .rope_theta = 100,
            .norms = true};
}

/// Rope2DPosEmbRepeated of the released file's own modeling_kimi_k25.py, and
/// Kimi_K25VisionRotaryEmbedding in transformers, whose loader rearranges the weights.
constexpr Tower kimi_k25(const char* name) {
    return {.name = name,
            .spectrum = Spectrum::by_turns,
            .pairing = VKROPE_INTERLEAVED,
            .hidden_size = 1152,
            .heads = 16,
            .axes = "column, row; the same in each frame",
            .key_prefix = "vt_",
            .prefix_optional = true};
}

/// MiniMaxM3Vision3DRotaryEmbedding of NVIDIA's Megatron Bridge, as the released weights need it.
constexpr Tower minimax_m3(const char* name) {
    return {.name = name,
            .hidden_size = 1280,
            .heads = 16,
            .axes = "frame, row, column",
            .axis_count = 3};
}

// Not sorted: there are few.
constexpr Tower towers[] = {
    {.name = "qwen2_vl", .hidden_size = 1280, .heads = 16},
    {.name = "qwen2_vl_vision", .hidden_size = 1280, .heads = 16},
    {.name = "qwen2_5_vl", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_vl_vision", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni_thinker", .hidden_size = 3584, .heads = 16},
    {.name = "qwen2_5_omni_vision_encoder", .hidden_size = 3584, .heads = 16},
    {.name = "qwen3_vl", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_vl_moe_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_5_moe_vision", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe_thinker", .hidden_size = 1152, .heads = 16},
    {.name = "qwen3_omni_moe_vision_encoder", .hidden_size = 1152, .heads = 16},
    {.name = "glm4v", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_vision", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_moe", .hidden_size = 1536, .heads = 12},
    {.name = "glm4v_moe_vision", .hidden_size = 1536, .heads = 12},
    {.name = "ernie4_5_vl_moe"},
    {.name = "ernie4_5_vl_moe_vision"},
    {.name = "dots_ocr"},
    {.name = "dots_vit"},
    {.name = "paddleocr_vl"},
    {.name = "paddleocr_vl_vision"},
    {.name = "pixtral", .spectrum = Spectrum::alternating, .hidden_size = 1024, .heads = 16},
    {.name = "llama4",
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 768,
     .heads = 16,
     .axes = "column + 1, row + 1"},
    {.name = "llama4_vision_model",
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 768,
     .heads = 16,
     .axes = "column + 1, row + 1"},
    {.name = "moonvit",
     .spectrum = Spectrum::by_turns,
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 1152,
     .heads = 16,
     .axes = "column, row"},
    kimi_k25("kimi_k25"),
    kimi_k25("kimi_k25_vision"),
    gemma4("gemma4"),
    gemma4("gemma4_vision"),
    minimax_m3("minimax_m3_vl"),
    minimax_m3("minimax_m3_vl_vision"),
    {.name = "dinov3_vit",
     .spectrum = Spectrum::centred,
     .hidden_size = 384,
     .heads = 6,
     .rope_theta = 100,
     .whole_file = true,
     .image_size = 224,
     .patch_size = 16},
    memory_attention("sam2_video"),
    memory_attention("sam3_tracker_video"),
    {.name = "sam3_vit_model",
     .spectrum = Spectrum::windowed,
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 1024,
     .heads = 16,
     .axes = "column, row, in the window of the layer if it has one",
     .whole_file = true,
     .image_size = 1008,
     .patch_size = 14},
};

struct UnsupportedTower {
    const char* name;
    const char* reason;
};

constexpr UnsupportedTower unsupported_towers[] = {
    // Its released weights need this: facebookresearch/vjepa2#15.
    {"vjepa2", two_angles_a_pair},
};

/// The row of a name in a short table.
template <class Row, std::size_t count>
const Row* row_of(const Row (&rows)[count], const std::string& name) {
    const auto* found = std::find_if(std::begin(rows), std::end(rows),
                                     [&](const Row& row) { return name == row.name; });
    return found == std::end(rows) ? nullptr : found;
}

}  // namespace

const Tower* find_tower(const std::string& name) {
    return row_of(towers, name);
}

const char* unsupported_tower(const std::string& name) {
    const UnsupportedTower* row = row_of(unsupported_towers, name);
    return row == nullptr ? nullptr : row->reason;
}

}  // namespace vkrope
