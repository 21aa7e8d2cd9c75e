// SPDX-License-Identifier: MIT
// Imports the rotation of diffusion transformers. Source of every row: models/transformers and
// models/controlnets of diffusers at commit 58eb52c0; frequencies are from get_1d_rotary_pos_embed
// in its embeddings.py, ids of text tokens from its pipelines.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "model/hf/class_fields.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/nesting.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using Widths = std::initializer_list<std::uint32_t>;

// Classes, with the defaults of their constructors.
struct Denoiser {
    Names names;
    Widths shares = {};  // of the axes in a head; empty: the file lists the channels of each axis
    const char* axes_key = "axes_dims_rope";  // key of the list
    Widths axes = {16, 56, 56};               // default of the list; empty: none
    Pairing pairing = VKROPE_INTERLEAVED;
    double theta = 0;              // default of rope_theta; 0: none, and the base is 10000
    bool theta_is_scaled = false;  // the base of each axis is scaled by rope_scale
    std::uint32_t head_dim = 128;  // default of attention_head_dim, if it is read
    // Positions of the axes, and rules that the file does not state.
    const char* positions = "id 0, row, column; a text token has id 0 on all axes";
    const char* asked_by = nullptr;     // no RoPE unless this key is true
    const char* switched_by = nullptr;  // a key that changes the positions if it is true
    const char* switched = nullptr;     // the change of positions
    const char* refused = nullptr;      // the reason why it is not read
};

const Denoiser denoisers[] = {
    {.names = {"AnyFlowTransformer3DModel", "SkyReelsV2Transformer3DModel",
               "WanAnimateTransformer3DModel", "WanTransformer3DModel", "WanVACETransformer3DModel",
               // in Wan's own files, see wan/modules/model.py
               "VaceWanModel", "WanModel"},
     .shares = {1, 1, 1},
     .positions = "frame, row, column"},
    {.names = {"BriaFiboTransformer2DModel", "BriaTransformer2DModel"}, .theta = 10000},
    {.names = {"ChromaTransformer2DModel", "FluxControlNetModel", "FluxTransformer2DModel"}},
    {.names = {"ChronoEditTransformer3DModel"},
     .shares = {1, 1, 1},
     .positions = "frame, row, column; of two frames the second has temporal_skip_len - 1"},
    // get_3d_rotary_pos_embed(), with the arguments of CogVideoXPipeline.
    {.names = {"CogVideoXTransformer3DModel", "ConsisIDTransformer3DModel"},
     .shares = {2, 3, 3},
     .head_dim = 64,
     .positions = "frame, row, column; tokens of the text are not turned; without patch_size_t "
                  "rows and columns are resized to the sample's, so that coordinates are whole "
                  "numbers only there",
     .asked_by = "use_rotary_positional_embeddings"},
    {.names = {"CogView4Transformer2DModel"},
     .shares = {1, 1},
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions = "row * rope_axes_dim[0] / rows, column * rope_axes_dim[1] / columns, rounded "
                  "down; tokens of the text are not turned"},
    {.names = {"CosmosControlNetModel", "CosmosTransformer3DModel"},
     .shares = {1, 1, 1},
     .pairing = VKROPE_HALF_SPLIT,
     .theta_is_scaled = true,
     .positions = "frame, row, column; for a video of F frames per second, multiply the "
                  "frequencies of the first axis by 24 / F"},
    {.names = {"Flux2Transformer2DModel"},
     .axes = {32, 32, 32, 32},
     .theta = 2000,
     .positions = "image, row, column, text token; a text token has 0, 0, 0 and its number"},
    {.names = {"GlmImageTransformer2DModel"},
     .shares = {1, 1},
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions = "row, column; tokens of the text are not turned"},
    {.names = {"HiDreamImageTransformer2DModel"}, .axes = {}},
    {.names = {"HunyuanImageTransformer2DModel"},
     .axes_key = "rope_axes_dim",
     .axes = {64, 64},
     .theta = 256,
     .positions = "row, column; tokens of the text are not turned"},
    {.names = {"HunyuanVideo15Transformer3DModel", "HunyuanVideoTransformer3DModel",
               "MotifVideoTransformer3DModel"},
     .axes_key = "rope_axes_dim",
     .theta = 256,
     .positions = "frame, row, column; tokens of the text are not turned"},
    {.names = {"HunyuanVideoFramepackTransformer3DModel"},
     .axes_key = "rope_axes_dim",
     .theta = 256,
     .positions = "frame, row, column; tokens of the text are not turned; frames are those of the "
                  "pipeline's indices, and the reduced frames of the history have means of cos and "
                  "sin, which no rotation can represent"},
    {.names = {"Kandinsky5Transformer3DModel"},
     .axes_key = "axes_dims",
     .axes = {16, 24, 24},
     .positions = "frame, row, column; divide the frequencies of an axis by the pipeline's "
                  "scale_factor of it; the text blocks have one position, and default frequencies "
                  "of the whole head"},
    {.names = {"Krea2Transformer2DModel"}, .axes = {32, 48, 48}, .theta = 1000},
    {.names = {"LongCatImageTransformer2DModel"},
     .positions = "id 1, row + 512, column + 512; text token i has 0, i, i; 512 is the pipeline's "
                  "length of the text"},
    {.names = {"Lumina2Transformer2DModel"},
     .axes_key = "axes_dim_rope",
     .axes = {32, 32, 32},
     .positions = "text token, row, column; text tokens count from 0 on the first axis, where the "
                  "image has their number"},
    // QwenEmbedRope with scale_rope.
    {.names = {"NucleusMoEImageTransformer2DModel", "QwenImageControlNetModel",
               "QwenImageTransformer2DModel"},
     .positions = "frame + number of the image, row - ceil(rows / 2), column - ceil(columns / 2); "
                  "a text token has one position on all axes; the first has the largest of rows / "
                  "2 and columns / 2, rounded down, of all images",
     .switched_by = "use_layer3d_rope",
     .switched = "the last image has frame -1, and the first text token at least the number of "
                 "images before it"},
    {.names = {"OvisImageTransformer2DModel"},
     .positions = "id 0, row, column; text token i has 0, i, i"},
    {.names = {"SanaVideoTransformer3DModel"},
     .shares = {1, 1, 1},
     .head_dim = 112,
     .positions = "frame, row, column; of linear attention: its normaliser takes Q and K that are "
                  "not turned"},
    {.names = {"WanAnimate2Transformer3DModel"},
     .shares = {1, 1, 1},
     .positions = "frame, row, column; the reference begins at refer_offset_t, refer_offset_h and "
                  "refer_offset_w (-1: the side of the video), with refer_stride between its "
                  "frames"},
    {.names = {"ZImageTransformer2DModel"},
     .axes_key = "axes_dims",
     .axes = {32, 48, 48},
     .theta = 256,
     .positions = "text token, row, column; text tokens count from 1 on the first axis, where the "
                  "image has their number, padded to a multiple of 32, plus 1"},
    {.names = {"AuraFlowTransformer2DModel", "CogView3PlusTransformer2DModel",
               "DiTTransformer2DModel", "PixArtTransformer2DModel", "SD3ControlNetModel",
               "SD3Transformer2DModel", "SanaTransformer2DModel"},
     .refused = no_rotary_embedding},
    {.names = {"ErnieImageTransformer2DModel"}, .refused = two_angles_a_pair},
    {.names = {"MochiTransformer3DModel"},
     .refused = "its frequencies are learned, the weight pos_frequencies of 3 axes, heads and "
                "pairs; with it, fill a RopeParams whose sections have VKROPE_SECTIONS_SUM, with a "
                "head group for each head"},
    {.names = {"ZImageControlNetModel"},
     .refused = "it rotates as the transformer beside it, whose config.json has the axes"},
};

// Classes whose angles have a phase.
constexpr auto ltx = names("LTXVideoTransformer3DModel", "LTX2VideoTransformer3DModel");

const Denoiser& row_of(const Field& name) {
    const Denoiser* row = find_row(denoisers, text(name));
    if (row == nullptr || row->refused != nullptr) {
        not_supported("{}: {}", stated(name),
                      row ? row->refused
                          : "it is unknown; the transformer of a pipeline has its own config.json");
    }
    return *row;
}

// Returns the width of a head as stated in the file; 0 if it is not stated.
Size stated_head_dim(const Scope& config) {
    const Field width = find({config}, {"hidden_size", "dim"}),
                heads = find({config}, {"num_attention_heads", "num_heads", "n_heads"});
    return agreed(find({config}, {"attention_head_dim"}),
                  width && heads ? quotient(size_of(width), size_of(heads)) : Size());
}

// Returns the channels of each axis.
std::vector<std::uint32_t> axes_of(const Denoiser& row, const Size& stated_head,
                                   ClassFields& fields) {
    std::vector<std::uint32_t> widths;
    if (row.shares.size() == 0) {
        if (row.axes.size() == 0 && !fields.find({row.axes_key}))
            invalid_data("{} is missing", row.axes_key);
        const json otherwise = std::vector<std::uint32_t>(row.axes);
        for (const Field& one : fields.list(row.axes_key, otherwise, 2, max_axes))
            widths.push_back(rotated(size_of(one), 2, 2));
        return widths;
    }
    // Each axis has whole pairs. What thirds leave over belongs to time, the first axis.
    const std::uint32_t sum = std::accumulate(row.shares.begin(), row.shares.end(), 0u);
    const bool thirds = sum == 3;
    const Size head = stated_head.value != 0 ? stated_head
                                             : fields.size("attention_head_dim", row.head_dim);
    const std::uint32_t head_dim = rotated(head, thirds ? 2 : 2 * sum, thirds ? 12 : 2 * sum);
    for (const std::uint32_t share : row.shares)
        widths.push_back(2 * (head_dim * share / (2 * sum)));
    if (thirds) widths[0] = head_dim - 2 * widths[1];
    return widths;
}

double theta_of(const Denoiser& row, ClassFields& fields) {
    if (row.theta != 0) return fields.positive("rope_theta", row.theta);
    // The class's own base may be stated; any other rope_theta is reported as an unread key.
    const auto base = fields.scope.object->find("rope_theta");
    if (base != fields.scope.object->end() && *base == 10000) know({fields.scope}, {"rope_theta"});
    return 10000;
}

}  // namespace

bool is_diffusers(const json& document) {
    if (!find({{&document, ""}}, {"_class_name"})) return false;
    const auto type = document.find("model_type");  // t2v or i2v in Wan's own files
    return type == document.end() || !type->is_string() ||
           find_model_type(type->get<std::string>()) == nullptr;
}

RopeParams diffusers_rotation(const Scope& scope, const Query& query) {
    if (query.tower == "vision")
        invalid_argument("query.tower is 'vision': a model of diffusers has no tower beside it");
    const Field name = find({scope}, {"_class_name"});
    if (contains(ltx, text(name))) return ltx_rotation(scope, query);
    require_no_layer(query, "the model is of diffusers");
    const Denoiser& row = row_of(name);
    RopeParams rotation;
    ClassFields fields = {scope, text(name), rotation.warnings};
    const Field asked = row.asked_by ? fields.find({row.asked_by}) : Field();
    if (row.asked_by && !(asked && truth(asked))) {
        not_supported("{} is {}: without it {} has no rotary embedding", row.asked_by,
                      asked ? "false" : "missing", fields.owner);
    }
    const Size head = stated_head_dim(scope);
    const std::vector<std::uint32_t> widths = axes_of(row, head, fields);
    const std::uint64_t sum = std::accumulate(widths.begin(), widths.end(), std::uint64_t{0});
    if (sum > max_head_dim || (head.value != 0 && head.value != sum)) {
        invalid_data("{} adds up to {}: it must be the width of a head, {}", row.axes_key, sum,
                     head.value != 0 ? head.said : "at most " + std::to_string(max_head_dim));
    }
    rotation.pairing = row.pairing;
    rotation.head_dim = rotation.rotary_dim = std::uint32_t(sum);
    const double theta = theta_of(row, fields);
    const json otherwise = {2, 1, 1};
    const std::vector<Field> scales = row.theta_is_scaled
                                          ? fields.list("rope_scale", otherwise, 3, 3)
                                          : std::vector<Field>();
    for (std::size_t axis = 0; axis < widths.size(); ++axis) {
        // Scales by NTK for the channels of the axis; 1 changes nothing, whatever their number.
        const double scale = scales.empty() ? 1 : positive_number(scales[axis]),
                     width = widths[axis];
        add_axis(rotation, widths[axis],
                 scale == 1 ? theta : theta * std::pow(scale, width / (width - 2)));
    }
    require_usable(rotation, rotation.inv_freq.size(), theta, "rope_theta");
    warn(rotation, "positions of the axes: {}", row.positions);
    const Field other = row.switched_by ? fields.find({row.switched_by}) : Field();
    if (other && truth(other)) warn(rotation, "{}: {}", stated(other), row.switched);
    // Keys of the pipeline's positions, of embeddings that are added, and of the time steps.
    know({scope}, {"interpolation_scale", "rope_max_seq_len", "rope_temporal_skip_len",
                   "spatial_interpolation_scale", "temporal_compression_ratio",
                   "temporal_interpolation_scale", "time_theta"});
    if (row.shares.size() == 2) know({scope}, {"rope_axes_dim"});
    warn_of_unread(scope, fields.owner, rotation.warnings);
    rotation.warnings.push_back(of_unknown_norms);
    return rotation;
}

}  // namespace vkrope
