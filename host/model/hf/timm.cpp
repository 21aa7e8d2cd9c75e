// SPDX-License-Identifier: MIT
// Imports the rotation of timm models. Source of every row: the functions of timm's models/eva.py
// at commit aa4b5850, with RotaryEmbeddingCat and RotaryEmbeddingDinoV3 of its
// layers/pos_embed_sincos.py. EVA-02 is arXiv:2303.11331, RoPE-ViT arXiv:2403.13298, the Perception
// Encoder arXiv:2504.13181.
#include <numbers>
#include <string>

#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_pixels = 1 << 24;  // maximum on a side

enum class Grid {
    counted,   ///< patch i has position i + offset
    referred,  ///< (i + offset) reference / N, for N patches on the axis: EVA's resizing
    centred,   ///< (2i + 1 - N) / N turns per period: DINOv3
    learned,   ///< the frequencies are weights
};

/// Functions of timm; the defaults are those of timm's class Eva.
struct Architecture {
    Names names;
    Grid grid = Grid::referred;
    std::uint32_t patch = 16, reference = 16, offset = 0, head_dim = 64;
    bool column_first = false;  ///< grid_indexing is 'xy'
    double theta = 10000;
};

const Architecture architectures[] = {
    {.names = {"eva02_base_patch14_224", "eva02_base_patch14_448", "eva02_large_patch14_224",
               "eva02_large_patch14_448", "eva02_large_patch14_clip_224",
               "eva02_large_patch14_clip_336", "eva02_small_patch14_224", "eva02_small_patch14_336",
               "eva02_tiny_patch14_224", "eva02_tiny_patch14_336"},
     .patch = 14},
    {.names = {"eva02_base_patch16_clip_224", "vit_base_patch16_rope_reg1_gap_256",
               "vit_betwixt_patch16_rope_reg4_gap_256", "vit_medium_patch16_rope_reg1_gap_256",
               "vit_mediumd_patch16_rope_reg1_gap_256"}},
    {.names = {"vit_base_patch16_dinov3", "vit_base_patch16_dinov3_qkvb",
               "vit_huge_plus_patch16_dinov3", "vit_huge_plus_patch16_dinov3_qkvb",
               "vit_large_patch16_dinov3", "vit_large_patch16_dinov3_qkvb",
               "vit_small_patch16_dinov3", "vit_small_patch16_dinov3_qkvb",
               "vit_small_plus_patch16_dinov3", "vit_small_plus_patch16_dinov3_qkvb",
               "vit_tiny_patch16_dinov3_qkvb"},
     .grid = Grid::centred,
     .theta = 100},
    {.names = {"vit_7b_patch16_dinov3"}, .grid = Grid::centred, .head_dim = 128, .theta = 100},
    {.names = {"vit_base_patch16_rope_224", "vit_base_patch16_rope_ape_224",
               "vit_large_patch16_rope_224", "vit_large_patch16_rope_ape_224",
               "vit_small_patch16_rope_224", "vit_small_patch16_rope_ape_224"},
     .grid = Grid::counted,
     .column_first = true,
     .theta = 100},
    {.names = {"vit_base_patch16_rope_mixed_224", "vit_base_patch16_rope_mixed_ape_224",
               "vit_large_patch16_rope_mixed_224", "vit_large_patch16_rope_mixed_ape_224",
               "vit_small_patch16_rope_mixed_224", "vit_small_patch16_rope_mixed_ape_224"},
     .grid = Grid::learned},
    // The Perception Encoder; the largest model has wider heads and a grid that starts at 0.
    {.names = {"vit_pe_core_base_patch16_224"}, .reference = 14, .offset = 1, .column_first = true},
    {.names = {"vit_pe_core_large_patch14_336"},
     .patch = 14,
     .reference = 24,
     .offset = 1,
     .column_first = true},
    {.names = {"vit_pe_core_small_patch16_384", "vit_pe_core_tiny_patch16_384"},
     .reference = 24,
     .offset = 1,
     .column_first = true},
    {.names = {"vit_pe_lang_large_patch14_448", "vit_pe_spatial_large_patch14_448"},
     .patch = 14,
     .reference = 32,
     .offset = 1,
     .column_first = true},
    {.names = {"vit_pe_spatial_base_patch16_512", "vit_pe_spatial_small_patch16_512",
               "vit_pe_spatial_tiny_patch16_512"},
     .reference = 32,
     .offset = 1,
     .column_first = true},
    {.names = {"vit_pe_core_gigantic_patch14_448", "vit_pe_lang_gigantic_patch14_448",
               "vit_pe_spatial_gigantic_patch14_448"},
     .patch = 14,
     .reference = 32,
     .head_dim = 96,
     .column_first = true},
};

const Architecture& find_architecture(const Scope& config) {
    const Field name = find({config}, {"architecture"});
    const Architecture* found = find_row(architectures, text(name));
    if (found == nullptr) {
        not_supported(
            "{}: it is not known, and timm's files do not state whether a model rotates, or its "
            "frequencies",
            stated(name));
    }
    if (found->grid == Grid::learned) {
        not_supported(
            "{}: its frequencies are learned, weights for each layer, head and axis; with them, "
            "fill a RopeParams whose sections have VKROPE_SECTIONS_SUM",
            stated(name));
    }
    return *found;
}

/// Fails if arguments in the file, which override those of the function, change the rotation.
void refuse_arguments(const Scope& config) {
    const Field arguments = find({config}, {"model_args"});
    if (!arguments) return;
    if (!arguments.value->is_object()) {
        invalid_data("{}: it must be an object", stated(arguments));
    }
    const Scope inside = {arguments.value, "model_args."};
    for (const char* key : {"embed_dim", "num_heads", "patch_size", "ref_feat_shape",
                            "rope_grid_indexing", "rope_grid_offset", "rope_rotate_half",
                            "rope_temperature", "rope_type", "use_rot_pos_emb"}) {
        if (const Field field = find({inside}, {key})) {
            not_supported("{}: only the architecture's own value is known", stated(field));
        }
    }
}

/// Number of patches on each side of the images that the file is for.
struct Patches {
    std::uint64_t rows, columns;
};

Patches patches_of(const Scope& config, const Architecture& architecture) {
    const Field inner = find({config}, {"pretrained_cfg"});
    const Scope pretrained = inner && inner.value->is_object()
                                 ? Scope{inner.value, "pretrained_cfg."}
                                 : config;
    const Field size = find({pretrained}, {"input_size"});
    if (!size) {
        invalid_data("pretrained_cfg.input_size is missing: the frequencies need it");
    }
    const std::vector<Field> sides = elements(size, 3, 3);  // channels, rows, columns
    const auto patches = [&](const Field& side) {
        return whole_number(side, architecture.patch, max_pixels) / architecture.patch;
    };
    return {patches(sides[1]), patches(sides[2])};
}

/// Returns the frequencies of an axis of N patches divided by theta^(-j / n).
double factor_of(const Architecture& architecture, std::uint64_t patches) {
    switch (architecture.grid) {
        case Grid::referred: return double(architecture.reference) / double(patches);
        case Grid::centred: return 2 * std::numbers::pi / double(patches);
        default: return 1;
    }
}

std::string positions_of(const Architecture& architecture, const Patches& patches) {
    const auto one = [&](const char* name, std::uint64_t count) {
        if (architecture.grid == Grid::centred)
            return "2 " + std::string(name) + " + 1 - " + std::to_string(count);
        return name + (architecture.offset == 0 ? std::string()
                                                : " + " + std::to_string(architecture.offset));
    };
    const std::string row = one("row", patches.rows), column = one("column", patches.columns);
    return architecture.column_first ? column + ", " + row : row + ", " + column;
}

}  // namespace

bool is_timm(const json& config) {
    const auto name = config.find("architecture");
    return name != config.end() && name->is_string() && !config.contains("model_type");
}

RopeParams timm_rotation(const json& config) {
    const Scope scope = {&config, ""};
    const Architecture& architecture = find_architecture(scope);
    refuse_arguments(scope);
    const Patches patches = patches_of(scope, architecture);
    RopeParams rotation;
    rotation.pairing = architecture.grid == Grid::centred ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = architecture.head_dim;
    const std::uint64_t row_first[] = {patches.rows, patches.columns};
    for (const bool second : {false, true}) {
        add_axis(rotation, architecture.head_dim / 2, architecture.theta,
                 factor_of(architecture, row_first[second != architecture.column_first]));
    }
    require_usable(rotation, rotation.inv_freq.size(), architecture.theta, "rope_temperature");
    warn(rotation,
         "positions of the patches: {}; tokens before the patches have position 0 on both axes",
         positions_of(architecture, patches));
    if (architecture.grid != Grid::counted) {
        warn(rotation,
             "the frequencies are those of {} by {} patches; with N on an axis multiply those of "
             "the axis by its patches here / N",
             patches.rows, patches.columns);
    }
    // No function sets qk_norm, and without qk_norm EvaBlock has no norms of Q and K.
    rotation.ops.norms_known = !warn_of_unread(scope, {}, rotation.warnings);
    return rotation;
}

}  // namespace vkrope
