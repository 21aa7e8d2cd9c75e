// SPDX-License-Identifier: MIT
// Source of every row: models/transformers and models/controlnets of diffusers, at commit 58eb52c0;
// the frequencies are from get_1d_rotary_pos_embed in its embeddings.py, the ids of text tokens
// from its pipelines.
#include <cmath>
#include <string>
#include <string_view>

#include "model/hf/importers.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/nesting.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

/// How the channels of a head are divided among the axes.
enum class Division {
    listed,   ///< the file lists the channels of each axis
    halves,   ///< two axes, a half each
    thirds,   ///< three axes; height and width have the even part of a third, time the rest
    eighths,  ///< three axes; time has two eighths, height and width three each: CogVideoX
};

/// One class, with the defaults of its constructor.
struct Denoiser {
    const char* name;
    Division division = Division::listed;
    const char* axes_key = "axes_dims_rope";  ///< of the list
    std::uint32_t axes[4] = {16, 56, 56};     ///< default of the list; 0: none
    Pairing pairing = VKROPE_INTERLEAVED;
    double theta = 10000;          ///< default of rope_theta
    bool theta_is_read = false;    ///< the class has a rope_theta
    bool theta_is_scaled = false;  ///< for each axis, by rope_scale
    std::uint32_t head_dim = 128;  ///< default of attention_head_dim, if it is read
    const char* positions = "id 0, row, column";
    const char* note = nullptr;         ///< what the file does not say
    const char* asked_by = nullptr;     ///< no RoPE unless this key is true
    const char* switched_by = nullptr;  ///< a key that changes the positions if it is true
    const char* switched = nullptr;     ///< how it does
};

constexpr const char* text_stands = "tokens of the text are not turned";
constexpr const char* text_at_0 = "a text token has id 0 on all axes";
constexpr const char* frames = "frame, row, column";

constexpr Denoiser flux(const char* name, bool theta_is_read = false) {
    return {.name = name, .theta_is_read = theta_is_read, .note = text_at_0};
}
constexpr Denoiser hunyuan(const char* name, const char* note = text_stands) {
    return {.name = name,
            .axes_key = "rope_axes_dim",
            .theta = 256,
            .theta_is_read = true,
            .positions = frames,
            .note = note};
}
constexpr Denoiser wan(const char* name, const char* note = nullptr, std::uint32_t head_dim = 128) {
    return {.name = name,
            .division = Division::thirds,
            .head_dim = head_dim,
            .positions = frames,
            .note = note};
}
constexpr Denoiser cosmos(const char* name) {
    return {.name = name,
            .division = Division::thirds,
            .pairing = VKROPE_HALF_SPLIT,
            .theta_is_scaled = true,
            .positions = frames,
            .note =
                "for a video of F frames per second, multiply the frequencies of the first axis by "
                "24 / F"};
}
/// get_3d_rotary_pos_embed(), as CogVideoXPipeline calls it.
constexpr Denoiser cog_video(const char* name) {
    return {.name = name,
            .division = Division::eighths,
            .head_dim = 64,
            .positions = frames,
            .note =
                "tokens of the text are not turned; without patch_size_t rows and columns are "
                "resized to the sample's, so that coordinates are whole numbers only there",
            .asked_by = "use_rotary_positional_embeddings"};
}
/// QwenEmbedRope with scale_rope.
constexpr Denoiser qwen_image(const char* name) {
    return {.name = name,
            .positions =
                "frame + number of the image, row - ceil(rows / 2), "
                "column - ceil(columns / 2)",
            .note =
                "a text token has one position on all axes; the first has the largest of "
                "rows / 2 and columns / 2, rounded down, of all images",
            .switched_by = "use_layer3d_rope",
            .switched =
                "the last image has frame -1, and the first text token at least the number "
                "of images before it"};
}

constexpr Denoiser denoisers[] = {
    wan("AnyFlowTransformer3DModel"),
    flux("BriaFiboTransformer2DModel", true),
    flux("BriaTransformer2DModel", true),
    flux("ChromaTransformer2DModel"),
    {.name = "ChronoEditTransformer3DModel",
     .division = Division::thirds,
     .positions = frames,
     .note = "of two frames the second has position temporal_skip_len - 1"},
    cog_video("CogVideoXTransformer3DModel"),
    {.name = "CogView4Transformer2DModel",
     .division = Division::halves,
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions =
         "row * rope_axes_dim[0] / rows, column * rope_axes_dim[1] / columns, rounded down",
     .note = text_stands},
    cog_video("ConsisIDTransformer3DModel"),
    cosmos("CosmosControlNetModel"),
    cosmos("CosmosTransformer3DModel"),
    {.name = "Flux2Transformer2DModel",
     .axes = {32, 32, 32, 32},
     .theta = 2000,
     .theta_is_read = true,
     .positions = "image, row, column, text token",
     .note = "a text token has 0, 0, 0 and its number"},
    flux("FluxControlNetModel"),
    flux("FluxTransformer2DModel"),
    {.name = "GlmImageTransformer2DModel",
     .division = Division::halves,
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions = "row, column",
     .note = text_stands},
    {.name = "HiDreamImageTransformer2DModel", .axes = {}, .note = text_at_0},
    {.name = "HunyuanImageTransformer2DModel",
     .axes_key = "rope_axes_dim",
     .axes = {64, 64},
     .theta = 256,
     .theta_is_read = true,
     .positions = "row, column",
     .note = text_stands},
    hunyuan("HunyuanVideo15Transformer3DModel"),
    hunyuan("HunyuanVideoFramepackTransformer3DModel",
            "tokens of the text are not turned; frames are those of the pipeline's indices, and "
            "the reduced frames of the history have means of cos and sin, which no rotation says"),
    hunyuan("HunyuanVideoTransformer3DModel"),
    {.name = "Kandinsky5Transformer3DModel",
     .axes_key = "axes_dims",
     .axes = {16, 24, 24},
     .positions = frames,
     .note = "divide the frequencies of an axis by the pipeline's scale_factor of it; the text "
             "blocks have one position, and default frequencies of the whole head"},
    {.name = "Krea2Transformer2DModel",
     .axes = {32, 48, 48},
     .theta = 1000,
     .theta_is_read = true,
     .note = text_at_0},
    {.name = "LongCatImageTransformer2DModel",
     .positions = "id 1, row + 512, column + 512",
     .note = "text token i has 0, i, i; 512 is the pipeline's length of the text"},
    {.name = "Lumina2Transformer2DModel",
     .axes_key = "axes_dim_rope",
     .axes = {32, 32, 32},
     .positions = "text token, row, column",
     .note = "text tokens count from 0 on the first axis, where the image has their number"},
    hunyuan("MotifVideoTransformer3DModel"),
    qwen_image("NucleusMoEImageTransformer2DModel"),
    {.name = "OvisImageTransformer2DModel", .note = "text token i has 0, i, i"},
    qwen_image("QwenImageControlNetModel"),
    qwen_image("QwenImageTransformer2DModel"),
    wan("SanaVideoTransformer3DModel",
        "of linear attention: its normaliser takes Q and K that are not turned", 112),
    wan("SkyReelsV2Transformer3DModel"),
    wan("VaceWanModel"),  // this and WanModel in Wan's own files, whose code is
                          // wan/modules/model.py
    wan("WanAnimate2Transformer3DModel",
        "the reference begins at refer_offset_t, refer_offset_h and refer_offset_w (-1: the side "
        "of the video), with refer_stride between its frames"),
    wan("WanAnimateTransformer3DModel"),
    wan("WanModel"),
    wan("WanTransformer3DModel"),
    wan("WanVACETransformer3DModel"),
    {.name = "ZImageTransformer2DModel",
     .axes_key = "axes_dims",
     .axes = {32, 48, 48},
     .theta = 256,
     .theta_is_read = true,
     .positions = "text token, row, column",
     .note = "text tokens count from 1 on the first axis, where the image has their number, padded "
             "to a multiple of 32, plus 1"},
};

constexpr Refusal refused[] = {
    {"AuraFlowTransformer2DModel", no_rotary_embedding},
    {"CogView3PlusTransformer2DModel", no_rotary_embedding},
    {"DiTTransformer2DModel", no_rotary_embedding},
    {"ErnieImageTransformer2DModel", two_angles_a_pair},
    {"MochiTransformer3DModel",
     "its frequencies are learned, the weight pos_frequencies of 3 axes, heads and pairs; with it, "
     "fill a RopeParams whose sections have VKROPE_SECTIONS_SUM, with a head group for each head"},
    {"PixArtTransformer2DModel", no_rotary_embedding},
    {"SD3ControlNetModel", no_rotary_embedding},
    {"SD3Transformer2DModel", no_rotary_embedding},
    {"SanaTransformer2DModel", no_rotary_embedding},
    {"ZImageControlNetModel",
     "it turns as the transformer beside it, whose config.json has the axes"},
};

const Denoiser& find_denoiser(const Field& name) {
    const std::string wanted = text(name);
    if (const char* reason = reason_of(refused, wanted)) {
        not_supported("{}: {}", stated(name), reason);
    }
    const Denoiser* found = find_row(denoisers, wanted);
    if (found == nullptr) {
        not_supported(
            "{}: it is unknown; the transformer of a pipeline has a config.json of its own",
            stated(name));
    }
    return *found;
}

/// The head by what the file says of it; 0 if it says nothing.
std::uint32_t stated_head_dim(const Scope& config) {
    if (const Field field = find({config}, {"attention_head_dim"})) {
        return std::uint32_t(whole_number(field, 2, max_head_dim));
    }
    const Field width = find({config}, {"hidden_size", "dim"});
    const Field heads = find({config}, {"num_attention_heads", "num_heads", "n_heads"});
    return width && heads ? std::uint32_t(whole_number(width, 2, max_hidden_size) /
                                          whole_number(heads, 1, max_heads))
                          : 0;
}

std::uint32_t head_dim_of(const Scope& config, const Denoiser& denoiser, Warnings& warnings) {
    if (const std::uint32_t stated = stated_head_dim(config)) {
        return stated;
    }
    warn(warnings, "attention_head_dim is missing: assuming {}, the default of {}",
         denoiser.head_dim, denoiser.name);
    return denoiser.head_dim;
}

std::vector<std::uint32_t> listed_axes(const Scope& config, const Denoiser& denoiser,
                                       Warnings& warnings) {
    std::vector<std::uint32_t> widths;
    const Field field = find({config}, {denoiser.axes_key});
    if (!field && denoiser.axes[0] == 0) {
        invalid_data("{} is missing", denoiser.axes_key);
    }
    if (!field) {
        for (const std::uint32_t width : denoiser.axes) {
            if (width != 0) widths.push_back(width);
        }
        warn(warnings, "{} is missing: assuming the default of {}", denoiser.axes_key,
             denoiser.name);
        return widths;
    }
    for (const Field& one : elements(field, 2, max_axes)) {
        widths.push_back(std::uint32_t(whole_number(one, 2, max_head_dim)));
        if (widths.back() % 2 != 0) {
            refuse(one, "even");
        }
    }
    return widths;
}

std::vector<std::uint32_t> axes_of(const Scope& config, const Denoiser& denoiser,
                                   Warnings& warnings) {
    if (denoiser.division == Division::listed) {
        return listed_axes(config, denoiser, warnings);
    }
    const std::uint32_t head_dim = head_dim_of(config, denoiser, warnings);
    const bool halves = denoiser.division == Division::halves,
               eighths = denoiser.division == Division::eighths;
    const std::uint32_t unit = eighths ? 16 : halves ? 4 : 2, least = unit == 2 ? 12 : unit;
    if (head_dim % unit != 0 || head_dim < least) {
        invalid_data("attention_head_dim is {}: it must be a multiple of {}, at least {}", head_dim,
                     unit, least);
    }
    if (halves) return {head_dim / 2, head_dim / 2};
    if (eighths) return {head_dim / 4, head_dim / 8 * 3, head_dim / 8 * 3};
    const std::uint32_t third = 2 * (head_dim / 6);
    return {head_dim - 2 * third, third, third};
}

void require_rope(const Scope& config, const Denoiser& denoiser) {
    if (denoiser.asked_by == nullptr) return;
    const Field asked = find({config}, {denoiser.asked_by});
    if (!asked || !truth(asked)) {
        not_supported("{} is {}: without it {} has no rotary embedding", denoiser.asked_by,
                      asked ? "false" : "missing", denoiser.name);
    }
}

double theta_of(const Scope& config, const Denoiser& denoiser, Warnings& warnings) {
    const Field field = find({config}, {"rope_theta"});
    if (!denoiser.theta_is_read) {
        if (field) warnings.push_back("ignored key rope_theta: its class does not have it");
        return denoiser.theta;
    }
    if (field) return positive_number(field);
    warn(warnings, "rope_theta is missing: assuming {}, the default of {}",
         shown_number(denoiser.theta), denoiser.name);
    return denoiser.theta;
}

/// The NTK factors of the axes.
std::vector<double> scales_of(const Scope& config, Warnings& warnings) {
    const Field field = find({config}, {"rope_scale"});
    if (!field) {
        warnings.push_back("rope_scale is missing: assuming 2, 1, 1, the default of its class");
        return {2, 1, 1};
    }
    std::vector<double> scales;
    for (const Field& one : elements(field, 3, 3)) {
        scales.push_back(positive_number(one));
    }
    return scales;
}

}  // namespace

bool is_diffusers(const json& config) {
    if (!find({{&config, ""}}, {"_class_name"})) return false;
    const auto type = config.find("model_type");  // Wan's own files say t2v or i2v there
    return type == config.end() || !type->is_string() ||
           find_model_type(type->get<std::string>()) == nullptr;
}

RopeParams diffusers_rotation(const json& config) {
    const Scope scope = {&config, ""};
    const Denoiser& denoiser = find_denoiser(find({scope}, {"_class_name"}));
    require_rope(scope, denoiser);
    RopeParams rotation;
    const std::vector<std::uint32_t> widths = axes_of(scope, denoiser, rotation.warnings);
    const double theta = theta_of(scope, denoiser, rotation.warnings);
    std::uint64_t sum = 0;
    for (const std::uint32_t width : widths) sum += width;
    const std::uint32_t head_dim = stated_head_dim(scope);
    if (sum > max_head_dim || (head_dim != 0 && head_dim != sum)) {
        invalid_data("{} adds up to {}: it must be the width of a head, {}", denoiser.axes_key, sum,
                     head_dim != 0 ? head_dim : unsigned(max_head_dim));
    }
    const std::vector<double> scales = denoiser.theta_is_scaled
                                           ? scales_of(scope, rotation.warnings)
                                           : std::vector<double>(widths.size(), 1);
    rotation.pairing = denoiser.pairing;
    rotation.head_dim = rotation.rotary_dim = std::uint32_t(sum);
    for (const std::uint32_t width : widths) {
        // NTK scaling of width channels; no scaling for 1, whatever the width.
        const double scale = scales[rotation.sections.axes];
        const double base = scale == 1 ? theta
                                       : theta * std::pow(scale, width / (double(width) - 2));
        add_axis(rotation, width, base);
    }
    require_usable(rotation, rotation.inv_freq.size(), theta, "rope_theta");
    warn(rotation, "positions of the axes: {}", denoiser.positions);
    if (denoiser.note != nullptr) rotation.warnings.push_back(denoiser.note);
    const Field other = denoiser.switched_by ? find({scope}, {denoiser.switched_by}) : Field();
    if (other && truth(other)) {
        warn(rotation, "{}: {}", stated(other), denoiser.switched);
    }
    const auto or_none = [](const char* key) { return key == nullptr ? "" : key; };
    warn_of_unread(scope,
                   {"rope_theta", denoiser.axes_key, denoiser.theta_is_scaled ? "rope_scale" : "",
                    or_none(denoiser.asked_by), or_none(denoiser.switched_by), "rope_axes_dim",
                    "rope_max_seq_len"},
                   rotation.warnings);
    rotation.warnings.push_back(of_unknown_norms);
    return rotation;
}

}  // namespace vkrope
