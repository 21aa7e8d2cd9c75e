// SPDX-License-Identifier: MIT
// Imports the rotation of diffusion transformers. Source of every row: models/transformers and
// models/controlnets of diffusers at commit 58eb52c0; frequencies are from get_1d_rotary_pos_embed
// in its embeddings.py, ids of text tokens from its pipelines.
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

/// The division of a head's channels among the axes.
enum class Division {
    listed,   ///< the file lists the channels of each axis
    halves,   ///< two axes of half the channels each
    thirds,   ///< three axes; height and width have the even part of a third, time the rest
    eighths,  ///< three axes; time has 2/8, height and width 3/8 each: CogVideoX
};

/// Classes, with the defaults of their constructors.
struct Denoiser {
    Names names;
    Division division = Division::listed;
    const char* axes_key = "axes_dims_rope";  ///< key of the list
    std::uint32_t axes[4] = {16, 56, 56};     ///< default of the list; 0: none
    Pairing pairing = VKROPE_INTERLEAVED;
    double theta = 10000;          ///< default of rope_theta
    bool theta_is_read = false;    ///< the class has a rope_theta
    bool theta_is_scaled = false;  ///< the base of each axis is scaled by rope_scale
    std::uint32_t head_dim = 128;  ///< default of attention_head_dim, if it is read
    const char* positions = "id 0, row, column";
    const char* note = nullptr;         ///< a rule that the file does not state
    const char* asked_by = nullptr;     ///< no RoPE unless this key is true
    const char* switched_by = nullptr;  ///< a key that changes the positions if it is true
    const char* switched = nullptr;     ///< the change of positions
};

constexpr const char* text_stands = "tokens of the text are not turned";
constexpr const char* text_at_0 = "a text token has id 0 on all axes";
constexpr const char* frames = "frame, row, column";

const Denoiser denoisers[] = {
    {.names = {"AnyFlowTransformer3DModel", "SkyReelsV2Transformer3DModel",
               "WanAnimateTransformer3DModel", "WanTransformer3DModel", "WanVACETransformer3DModel",
               // in Wan's own files, see wan/modules/model.py
               "VaceWanModel", "WanModel"},
     .division = Division::thirds,
     .positions = frames},
    {.names = {"BriaFiboTransformer2DModel", "BriaTransformer2DModel"},
     .theta_is_read = true,
     .note = text_at_0},
    {.names = {"ChromaTransformer2DModel", "FluxControlNetModel", "FluxTransformer2DModel"},
     .note = text_at_0},
    {.names = {"ChronoEditTransformer3DModel"},
     .division = Division::thirds,
     .positions = frames,
     .note = "of two frames the second has position temporal_skip_len - 1"},
    // get_3d_rotary_pos_embed(), with the arguments of CogVideoXPipeline.
    {.names = {"CogVideoXTransformer3DModel", "ConsisIDTransformer3DModel"},
     .division = Division::eighths,
     .head_dim = 64,
     .positions = frames,
     .note =
         "tokens of the text are not turned; without patch_size_t rows and columns are resized to "
         "the sample's, so that coordinates are whole numbers only there",
     .asked_by = "use_rotary_positional_embeddings"},
    {.names = {"CogView4Transformer2DModel"},
     .division = Division::halves,
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions =
         "row * rope_axes_dim[0] / rows, column * rope_axes_dim[1] / columns, rounded down",
     .note = text_stands},
    {.names = {"CosmosControlNetModel", "CosmosTransformer3DModel"},
     .division = Division::thirds,
     .pairing = VKROPE_HALF_SPLIT,
     .theta_is_scaled = true,
     .positions = frames,
     .note =
         "for a video of F frames per second, multiply the frequencies of the first axis by 24 / "
         "F"},
    {.names = {"Flux2Transformer2DModel"},
     .axes = {32, 32, 32, 32},
     .theta = 2000,
     .theta_is_read = true,
     .positions = "image, row, column, text token",
     .note = "a text token has 0, 0, 0 and its number"},
    {.names = {"GlmImageTransformer2DModel"},
     .division = Division::halves,
     .pairing = VKROPE_HALF_SPLIT,
     .head_dim = 40,
     .positions = "row, column",
     .note = text_stands},
    {.names = {"HiDreamImageTransformer2DModel"}, .axes = {}, .note = text_at_0},
    {.names = {"HunyuanImageTransformer2DModel"},
     .axes_key = "rope_axes_dim",
     .axes = {64, 64},
     .theta = 256,
     .theta_is_read = true,
     .positions = "row, column",
     .note = text_stands},
    {.names = {"HunyuanVideo15Transformer3DModel", "HunyuanVideoTransformer3DModel",
               "MotifVideoTransformer3DModel"},
     .axes_key = "rope_axes_dim",
     .theta = 256,
     .theta_is_read = true,
     .positions = frames,
     .note = text_stands},
    {.names = {"HunyuanVideoFramepackTransformer3DModel"},
     .axes_key = "rope_axes_dim",
     .theta = 256,
     .theta_is_read = true,
     .positions = frames,
     .note =
         "tokens of the text are not turned; frames are those of the pipeline's indices, and the "
         "reduced frames of the history have means of cos and sin, which no rotation can "
         "represent"},
    {.names = {"Kandinsky5Transformer3DModel"},
     .axes_key = "axes_dims",
     .axes = {16, 24, 24},
     .positions = frames,
     .note = "divide the frequencies of an axis by the pipeline's scale_factor of it; the text "
             "blocks have one position, and default frequencies of the whole head"},
    {.names = {"Krea2Transformer2DModel"},
     .axes = {32, 48, 48},
     .theta = 1000,
     .theta_is_read = true,
     .note = text_at_0},
    {.names = {"LongCatImageTransformer2DModel"},
     .positions = "id 1, row + 512, column + 512",
     .note = "text token i has 0, i, i; 512 is the pipeline's length of the text"},
    {.names = {"Lumina2Transformer2DModel"},
     .axes_key = "axes_dim_rope",
     .axes = {32, 32, 32},
     .positions = "text token, row, column",
     .note = "text tokens count from 0 on the first axis, where the image has their number"},
    // QwenEmbedRope with scale_rope.
    {.names = {"NucleusMoEImageTransformer2DModel", "QwenImageControlNetModel",
               "QwenImageTransformer2DModel"},
     .positions = "frame + number of the image, row - ceil(rows / 2), column - ceil(columns / 2)",
     .note = "a text token has one position on all axes; the first has the largest of rows / 2 and "
             "columns / 2, rounded down, of all images",
     .switched_by = "use_layer3d_rope",
     .switched =
         "the last image has frame -1, and the first text token at least the number of images "
         "before it"},
    {.names = {"OvisImageTransformer2DModel"}, .note = "text token i has 0, i, i"},
    {.names = {"SanaVideoTransformer3DModel"},
     .division = Division::thirds,
     .head_dim = 112,
     .positions = frames,
     .note = "of linear attention: its normaliser takes Q and K that are not turned"},
    {.names = {"WanAnimate2Transformer3DModel"},
     .division = Division::thirds,
     .positions = frames,
     .note =
         "the reference begins at refer_offset_t, refer_offset_h and refer_offset_w (-1: the side "
         "of the video), with refer_stride between its frames"},
    {.names = {"ZImageTransformer2DModel"},
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
     "it rotates as the transformer beside it, whose config.json has the axes"},
};

/// Reads one file; each function sets the fields of the RopeParams that its name mentions.
class DenoiserImport {
   public:
    explicit DenoiserImport(const json& config)
        : config_{{&config, ""}}, name_(find(config_, {"_class_name"})), row_(row()) {}

    RopeParams run() {
        require_rope();
        const std::vector<std::uint32_t> widths = axes();
        const double theta = this->theta();
        std::uint64_t sum = 0;
        for (const std::uint32_t width : widths) sum += width;
        const std::uint32_t head_dim = stated_head_dim();
        if (sum > max_head_dim || (head_dim != 0 && head_dim != sum)) {
            invalid_data("{} adds up to {}: it must be the width of a head, {}", row_.axes_key, sum,
                         head_dim != 0 ? head_dim : unsigned(max_head_dim));
        }
        const std::vector<double> scales = this->scales(widths.size());
        rotation_.pairing = row_.pairing;
        rotation_.head_dim = rotation_.rotary_dim = std::uint32_t(sum);
        for (const std::uint32_t width : widths) {
            // Scales by NTK for `width` channels; a scale of 1 changes nothing, whatever the width.
            const double scale = scales[rotation_.sections.axes];
            const double base = scale == 1 ? theta
                                           : theta * std::pow(scale, width / (double(width) - 2));
            add_axis(rotation_, width, base);
        }
        require_usable(rotation_, rotation_.inv_freq.size(), theta, "rope_theta");
        say_positions();
        return std::move(rotation_);
    }

   private:
    const Denoiser& row() const {
        const std::string wanted = text(name_);
        if (const char* reason = reason_of(refused, wanted)) {
            not_supported("{}: {}", stated(name_), reason);
        }
        const Denoiser* found = find_row(denoisers, wanted);
        if (found == nullptr) {
            not_supported(
                "{}: it is unknown; the transformer of a pipeline has its own config.json",
                stated(name_));
        }
        return *found;
    }

    void require_rope() const {
        if (row_.asked_by == nullptr) return;
        const Field asked = find(config_, {row_.asked_by});
        if (!asked || !truth(asked)) {
            not_supported("{} is {}: without it {} has no rotary embedding", row_.asked_by,
                          asked ? "false" : "missing", text(name_));
        }
    }

    void assume(const char* key, double value) {
        warn(rotation_, "{} is missing: assuming {}, the default of {}", key, shown_number(value),
             text(name_));
    }

    /// Returns the width of a head as stated in the file; 0 if it is not stated.
    std::uint32_t stated_head_dim() const {
        if (const Field field = find(config_, {"attention_head_dim"})) {
            return std::uint32_t(whole_number(field, 2, max_head_dim));
        }
        const Field width = find(config_, {"hidden_size", "dim"});
        const Field heads = find(config_, {"num_attention_heads", "num_heads", "n_heads"});
        return width && heads ? std::uint32_t(whole_number(width, 2, max_hidden_size) /
                                              whole_number(heads, 1, max_heads))
                              : 0;
    }

    std::vector<std::uint32_t> listed_axes() {
        std::vector<std::uint32_t> widths;
        const Field field = find(config_, {row_.axes_key});
        if (!field && row_.axes[0] == 0) {
            invalid_data("{} is missing", row_.axes_key);
        }
        if (!field) {
            for (const std::uint32_t width : row_.axes) {
                if (width != 0) widths.push_back(width);
            }
            warn(rotation_, "{} is missing: assuming the default of {}", row_.axes_key,
                 text(name_));
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

    std::vector<std::uint32_t> axes() {
        if (row_.division == Division::listed) {
            return listed_axes();
        }
        std::uint32_t head_dim = stated_head_dim();
        if (head_dim == 0) {
            head_dim = row_.head_dim;
            assume("attention_head_dim", head_dim);
        }
        const bool halves = row_.division == Division::halves,
                   eighths = row_.division == Division::eighths;
        const std::uint32_t unit = eighths ? 16 : halves ? 4 : 2, least = unit == 2 ? 12 : unit;
        if (head_dim % unit != 0 || head_dim < least) {
            invalid_data("attention_head_dim is {}: it must be a multiple of {}, at least {}",
                         head_dim, unit, least);
        }
        if (halves) return {head_dim / 2, head_dim / 2};
        if (eighths) return {head_dim / 4, head_dim / 8 * 3, head_dim / 8 * 3};
        const std::uint32_t third = 2 * (head_dim / 6);
        return {head_dim - 2 * third, third, third};
    }

    double theta() {
        const Field field = find(config_, {"rope_theta"});
        if (field && row_.theta_is_read) {
            return positive_number(field);
        }
        if (field) {
            warn(rotation_, "ignored key rope_theta: its class does not have it");
        } else if (row_.theta_is_read) {
            assume("rope_theta", row_.theta);
        }
        return row_.theta;
    }

    /// Returns the NTK factors of the axes.
    std::vector<double> scales(std::size_t axes) {
        if (!row_.theta_is_scaled) return std::vector<double>(axes, 1);
        const Field field = find(config_, {"rope_scale"});
        if (!field) {
            warn(rotation_, "rope_scale is missing: assuming 2, 1, 1, the default of its class");
            return {2, 1, 1};
        }
        std::vector<double> scales;
        for (const Field& one : elements(field, 3, 3)) {
            scales.push_back(positive_number(one));
        }
        return scales;
    }

    /// Adds warnings about the positions of the axes and about rules of the class.
    void say_positions() {
        warn(rotation_, "positions of the axes: {}", row_.positions);
        if (row_.note != nullptr) rotation_.warnings.push_back(row_.note);
        const Field other = row_.switched_by ? find(config_, {row_.switched_by}) : Field();
        if (other && truth(other)) {
            warn(rotation_, "{}: {}", stated(other), row_.switched);
        }
        const auto or_none = [](const char* key) { return key == nullptr ? "" : key; };
        warn_of_unread(config_[0],
                       {"rope_theta", row_.axes_key, row_.theta_is_scaled ? "rope_scale" : "",
                        or_none(row_.asked_by), or_none(row_.switched_by), "rope_axes_dim",
                        "rope_max_seq_len"},
                       rotation_.warnings);
        rotation_.warnings.push_back(of_unknown_norms);
    }

    const Scopes config_;
    const Field name_;
    const Denoiser& row_;
    RopeParams rotation_;
};

}  // namespace

bool is_diffusers(const json& config) {
    if (!find({{&config, ""}}, {"_class_name"})) return false;
    const auto type = config.find("model_type");  // t2v or i2v in Wan's own files
    return type == config.end() || !type->is_string() ||
           find_model_type(type->get<std::string>()) == nullptr;
}

RopeParams diffusers_rotation(const json& config) {
    return DenoiserImport(config).run();
}

}  // namespace vkrope
