// SPDX-License-Identifier: MIT
// Vision towers that have a rotary embedding, and what their classes do that no file says.
#pragma once

#include <cstdint>
#include <string>

#include "vkrope/types.hpp"

namespace vkrope {

/// The frequencies of the axes, n = the channels of one: head_dim / 2 or / 3, rounded down to whole
/// pairs.
enum class Spectrum {
    same,         ///< both base^(-2j / n): Qwen2-VL's VisionRotaryEmbedding
    alternating,  ///< the even and the odd of base^(-2j / (2 n)): Pixtral's PixtralRotaryEmbedding
    by_turns,     ///< both base^(-2j / n), and the axes alternate from pair to pair: MoonViT's
                  ///< Rope2DPosEmb
    /// Both base^(-2j / n) turns per unit of a coordinate that goes from -1 to 1. The centre of
    /// patch i of N is at (2i + 1 - N) / N, so that 2i + 1 - N is a position and 2 pi / N a factor
    /// of the frequencies: DINOv3's DINOv3ViTRopePositionEmbedding.
    centred,
    /// Both base^(-2j / n) in layers that attend to windows; times window / N in the others, for an
    /// image of N patches on a side: SAM 3's Sam3ViTLayer.
    windowed,
};

struct Tower {
    const char* name;  ///< model_type of the vision_config, or of the whole
    Spectrum spectrum = Spectrum::same;
    Pairing pairing = VKROPE_HALF_SPLIT;
    std::uint32_t hidden_size = 0, heads = 0;  ///< the defaults of its configuration class; 0: none
    const char* axes = "row, column";
    std::uint32_t axis_count = 2;
    bool windows = false;  ///< each axis has a window of its own, where its pairs are formed
    double rope_theta = 10000;
    const char* key_prefix = "";   ///< of its keys: the memory attention of SAM 2 is one of several
    bool prefix_optional = false;  ///< its keys may also be without it
    bool whole_file = false;       ///< its fields are at the top level: there is no language model
    std::uint32_t image_size = 0, patch_size = 0;  ///< defaults, where the frequencies need them
    bool norms = false;  ///< Q and K have RMS norms of each head with a weight, V without one
    const char* note = nullptr;  ///< what the file does not say
};

/// The row of a tower; null if the table does not have it.
const Tower* find_tower(const std::string& name);

/// Why the rotary embedding of a tower cannot be imported; null if it can, or if it is unknown.
const char* unsupported_tower(const std::string& name);

}  // namespace vkrope
