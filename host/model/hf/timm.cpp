// SPDX-License-Identifier: MIT
// Imports the rotation of timm models. Source of every row: the functions of timm's models/eva.py
// at commit aa4b5850, with RotaryEmbeddingCat and RotaryEmbeddingDinoV3 of its
// layers/pos_embed_sincos.py. EVA-02 is arXiv:2303.11331, RoPE-ViT arXiv:2403.13298, the Perception
// Encoder arXiv:2504.13181.
#include <numbers>
#include <string>

#include "model/hf/class_fields.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

enum class Grid {
    counted,   // patch i has position i + offset
    referred,  // (i + offset) 16 / N, for N patches on the axis: EVA's resizing
    native,    // (i + offset) n / N, for n patches in the image size of the name
    centred,   // (2i + 1 - N) / N turns per period: DINOv3
    learned,   // the frequencies are weights
};

// Functions of timm; the defaults are those of its class Eva.
struct Architecture {
    Names names;
    Grid grid = Grid::referred;
    std::uint32_t offset = 0, head_dim = 64;
    bool column_first = false;  // grid_indexing is 'xy'
    double theta = 10000;
};

const Architecture architectures[] = {
    {.names = {"eva02_base_patch14_224", "eva02_base_patch14_448", "eva02_base_patch16_clip_224",
               "eva02_large_patch14_224", "eva02_large_patch14_448", "eva02_large_patch14_clip_224",
               "eva02_large_patch14_clip_336", "eva02_small_patch14_224", "eva02_small_patch14_336",
               "eva02_tiny_patch14_224", "eva02_tiny_patch14_336",
               "vit_base_patch16_rope_reg1_gap_256", "vit_betwixt_patch16_rope_reg4_gap_256",
               "vit_medium_patch16_rope_reg1_gap_256", "vit_mediumd_patch16_rope_reg1_gap_256"}},
    {.names = {"vit_base_patch16_dinov3", "vit_huge_plus_patch16_dinov3",
               "vit_large_patch16_dinov3", "vit_small_patch16_dinov3",
               "vit_small_plus_patch16_dinov3", "vit_tiny_patch16_dinov3"},
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
    {.names = {"vit_pe_core_base_patch16_224", "vit_pe_core_large_patch14_336",
               "vit_pe_core_small_patch16_384", "vit_pe_core_tiny_patch16_384",
               "vit_pe_lang_large_patch14_448", "vit_pe_spatial_base_patch16_512",
               "vit_pe_spatial_large_patch14_448", "vit_pe_spatial_small_patch16_512",
               "vit_pe_spatial_tiny_patch16_512"},
     .grid = Grid::native,
     .offset = 1,
     .column_first = true},
    {.names = {"vit_pe_core_gigantic_patch14_448", "vit_pe_lang_gigantic_patch14_448",
               "vit_pe_spatial_gigantic_patch14_448"},
     .grid = Grid::native,
     .head_dim = 96,
     .column_first = true},
};

const Architecture& architecture_of(const Field& name) {
    const std::string of = text(name);
    const Architecture* found = find_row(architectures, of.substr(0, of.find("_qkvb")));
    if (found == nullptr || found->grid == Grid::learned) {
        not_supported("{}: {}", stated(name),
                      found == nullptr
                          ? "it is not known, and timm's files do not state whether a model "
                            "rotates, or its frequencies"
                          : "its frequencies are learned, weights for each layer, head and axis; "
                            "with them, fill a RopeParams whose sections have VKROPE_SECTIONS_SUM");
    }
    return *found;
}

// Returns the number in the name of an architecture after the last `mark`.
std::uint64_t number_after(const std::string& name, std::string_view mark) {
    return std::stoull(name.substr(name.rfind(mark) + mark.size()));
}

}  // namespace

bool is_timm(const json& document) {
    const auto name = document.find("architecture");
    return name != document.end() && name->is_string() && !document.contains("model_type");
}

RopeParams timm_rotation(const Scope& scope, const Query& query) {
    require_no_layer(query, "the model is of timm");
    const Field name = find({scope}, {"architecture"}), inner = find({scope}, {"pretrained_cfg"});
    const Architecture& model = architecture_of(name);
    const Field arguments = find({scope}, {"model_args"});  // they override those of the function
    const Field own = arguments ? find_first({object(scope, arguments)},
                                             {"embed_dim", "img_size", "num_heads", "patch_size",
                                              "ref_feat_shape", "use_rot_pos_emb"})
                                : Field();
    if (own) not_supported("{}: only the architecture's own value is known", stated(own));
    const Field size = find({inner ? object(scope, inner) : scope}, {"input_size"});
    if (!size) invalid_data("pretrained_cfg.input_size is missing: the frequencies need it");
    RopeParams rotation;
    const bool centred = model.grid == Grid::centred;
    rotation.pairing = centred ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = model.head_dim;
    const std::uint64_t patch = number_after(text(name), "_patch");
    const std::vector<Field> sides = elements(size, 3, 3);  // channels, rows, columns
    const std::uint64_t rows = whole_number(sides[1], patch, max_size) / patch,
                        columns = whole_number(sides[2], patch, max_size) / patch;
    std::string positions;
    for (const bool column : {model.column_first, !model.column_first}) {
        const std::uint64_t patches = column ? columns : rows;
        const double factor = centred                        ? 2 * std::numbers::pi
                              : model.grid == Grid::referred ? 16
                              : model.grid == Grid::native
                                  ? double(number_after(text(name), "_") / patch)
                                  : double(patches);
        add_axis(rotation, model.head_dim / 2, model.theta, factor / double(patches));
        const std::string index = column ? "column" : "row";
        positions += (positions.empty() ? "" : ", ") +
                     (centred ? "2 " + index + " + 1 - " + std::to_string(patches) : index) +
                     (model.offset != 0 ? " + " + std::to_string(model.offset) : "");
    }
    require_usable(rotation, rotation.inv_freq.size(), model.theta, "rope_temperature");
    warn(rotation,
         "positions of the patches: {}; tokens before the patches have position 0 on both axes",
         positions);
    if (model.grid != Grid::counted) {
        warn(rotation,
             "the frequencies are those of {} by {} patches; with N on an axis multiply those of "
             "the axis by its patches here / N",
             rows, columns);
    }
    // No function sets qk_norm, and without qk_norm EvaBlock has no norms of Q and K.
    rotation.ops.norms_known = !warn_of_unread(scope, text(name), rotation.warnings);
    return rotation;
}

}  // namespace vkrope
