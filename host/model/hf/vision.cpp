// SPDX-License-Identifier: MIT
// Imports vision towers that have a rotary embedding. Contains their table, which makes this file
// longer than others. Source of every row: the classes of transformers to which the names belong;
// MoonViT's modeling_kimi_vl.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/layers.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

/// Formula for the frequencies of the axes. n is the number of channels of one axis: head_dim / 2
/// or head_dim / 3, rounded down to whole pairs.
enum class Spectrum {
    same,         ///< base^(-2j / n) on both: Qwen2-VL's VisionRotaryEmbedding
    alternating,  ///< the even and the odd of base^(-2j / (2 n)): Pixtral's PixtralRotaryEmbedding
    by_turns,     ///< base^(-2j / n) on both; the axes alternate from pair to pair: MoonViT's
                  ///< Rope2DPosEmb
    /// base^(-2j / n) turns on both, per unit of a coordinate that goes from -1 to 1. The centre of
    /// patch i of N is at (2i + 1 - N) / N, so 2i + 1 - N is the position and 2 pi / N a factor of
    /// the frequencies: DINOv3's DINOv3ViTRopePositionEmbedding.
    centred,
    /// base^(-2j / n) on both in layers that attend to windows, multiplied by window / N in the
    /// other layers for an image with N patches on a side: SAM 3's Sam3ViTLayer.
    windowed,
};

struct Tower {
    Names names;  ///< model_type of the vision_config, or of the document
    Spectrum spectrum = Spectrum::same;
    Pairing pairing = VKROPE_HALF_SPLIT;
    std::uint32_t hidden_size = 0, heads = 0;  ///< defaults of its configuration class; 0: none
    const char* axes = "row, column";
    std::uint32_t axis_count = 2;
    bool windows = false;  ///< each axis forms its pairs within a separate window
    double rope_theta = 10000;
    /// Prefix of its keys; the memory attention of SAM 2 is one of several attentions in a file.
    const char* key_prefix = "";
    bool prefix_optional = false;  ///< the prefix of its keys may be missing
    bool whole_file = false;       ///< the fields are at the top level, without a language model
    std::uint32_t image_size = 0, patch_size = 0;  ///< defaults, where the frequencies need them
    bool norms = false;  ///< Q and K have RMS norms of each head with a weight, V one without
    const char* note = nullptr;  ///< a rule that the file does not state
};

const Tower towers[] = {
    {.names = {"qwen2_vl", "qwen2_vl_vision"}, .hidden_size = 1280, .heads = 16},
    {.names = {"qwen2_5_vl", "qwen2_5_vl_vision", "qwen2_5_omni", "qwen2_5_omni_thinker",
               "qwen2_5_omni_vision_encoder"},
     .hidden_size = 3584,
     .heads = 16},
    {.names = {"qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision", "qwen3_5",
               "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision", "qwen3_omni_moe",
               "qwen3_omni_moe_thinker", "qwen3_omni_moe_vision_encoder"},
     .hidden_size = 1152,
     .heads = 16},
    {.names = {"glm4v", "glm4v_vision", "glm4v_moe", "glm4v_moe_vision"},
     .hidden_size = 1536,
     .heads = 12},
    {.names = {"ernie4_5_vl_moe", "ernie4_5_vl_moe_vision", "dots_ocr", "dots_vit", "paddleocr_vl",
               "paddleocr_vl_vision"}},
    {.names = {"pixtral"}, .spectrum = Spectrum::alternating, .hidden_size = 1024, .heads = 16},
    {.names = {"llama4", "llama4_vision_model"},
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 768,
     .heads = 16,
     .axes = "column + 1, row + 1"},
    {.names = {"moonvit"},
     .spectrum = Spectrum::by_turns,
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 1152,
     .heads = 16,
     .axes = "column, row"},
    // Rope2DPosEmbRepeated of the released file's own modeling_kimi_k25.py, and
    // Kimi_K25VisionRotaryEmbedding in transformers, whose loader rearranges the weights.
    {.names = {"kimi_k25", "kimi_k25_vision"},
     .spectrum = Spectrum::by_turns,
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 1152,
     .heads = 16,
     .axes = "column, row; the same in each frame",
     .key_prefix = "vt_",
     .prefix_optional = true},
    {.names = {"gemma4", "gemma4_vision"},
     .hidden_size = 768,
     .heads = 12,
     .axes = "column, row; of padding 0, 0",
     .windows = true,
     .rope_theta = 100,
     .norms = true},
    // MiniMaxM3Vision3DRotaryEmbedding of NVIDIA's Megatron Bridge, which the released weights
    // require.
    {.names = {"minimax_m3_vl", "minimax_m3_vl_vision"},
     .hidden_size = 1280,
     .heads = 16,
     .axes = "frame, row, column",
     .axis_count = 3},
    {.names = {"dinov3_vit"},
     .spectrum = Spectrum::centred,
     .hidden_size = 384,
     .heads = 6,
     .rope_theta = 100,
     .whole_file = true,
     .image_size = 224,
     .patch_size = 16},
    {.names = {"sam2_video", "sam3_tracker_video"},
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 256,
     .heads = 1,
     .axes = "column, row",
     .key_prefix = "memory_attention_",
     .whole_file = true,
     .note = "of the memory attention alone: its keys have the positions of the image once "
             "more for each remembered frame, and object pointers are not turned"},
    {.names = {"sam3_vit_model"},
     .spectrum = Spectrum::windowed,
     .pairing = VKROPE_INTERLEAVED,
     .hidden_size = 1024,
     .heads = 16,
     .axes = "column, row, in the window of the layer if it has one",
     .whole_file = true,
     .image_size = 1008,
     .patch_size = 14},
};

constexpr Refusal unsupported_towers[] = {
    // The released weights need two angles per pair: facebookresearch/vjepa2#15.
    {"vjepa2", two_angles_a_pair},
};

constexpr double two_pi = 2 * std::numbers::pi;
constexpr std::uint64_t max_side = 1 << 24, max_vision_layers = 4096;

std::string type_of(const json& object) {
    const Field field = find({{&object, ""}}, {"model_type"});
    return field ? text(field) : std::string();
}

/// Returns vision_config, from the top level, from the thinker_config of an omni model, the
/// vlm_config of a retriever or the detector_config of a tracker, or the backbone_config inside it.
Scope vision_config(const json& config) {
    if (const Field field = find_first({{&config, ""}}, {"vision_config"});
        field && field.value->is_object()) {
        const Scope whole = {field.value, "vision_config."};
        const Field backbone = find_first({whole}, {"backbone_config"});
        return backbone && backbone.value->is_object() ? Scope{backbone.value, backbone.name + "."}
                                                       : whole;
    }
    for (const char* name : {"thinker_config", "vlm_config", "detector_config"}) {
        if (const Field outer = find_first({{&config, ""}}, {name});
            outer && outer.value->is_object()) {
            Scope inner = vision_config(*outer.value);
            inner.prefix = outer.name + "." + inner.prefix;
            return inner;
        }
    }
    invalid_argument("query.tower is 'vision': the model has no vision_config");
}

/// Returns whether model_type names a stand-alone vision tower.
bool is_tower(const std::string& type) {
    const Tower* tower = find_row(towers, type);
    return (tower != nullptr && tower->whole_file) || type == "vjepa2";
}

/// Reads one tower; each function sets the fields of the RopeParams that its name mentions.
class VisionImport {
   public:
    VisionImport(const json& config, const Query& query)
        : query_(query),
          vision_(is_tower(type_of(config)) ? Scope{&config, ""} : vision_config(config)),
          name_(name_of(config)), tower_(tower()) {}

    RopeParams run() {
        rotation_.pairing = tower_.pairing;
        head_dim();
        const double base = this->base();
        axes(base);
        switch (tower_.spectrum) {
            case Spectrum::centred: centre(); break;
            case Spectrum::windowed: shrink(); break;
            default: require_no_layer();
        }
        if (tower_.spectrum != Spectrum::centred) {
            warn(rotation_, "positions of the vision tower: {}", tower_.axes);
        }
        if (tower_.note != nullptr) rotation_.warnings.push_back(tower_.note);
        norms();
        name_unread_keys();
        require_usable(rotation_, rotation_.inv_freq.size(), base, key("rope_theta").c_str());
        return std::move(rotation_);
    }

   private:
    std::string name_of(const json& config) const {
        const std::string own = type_of(*vision_.object);
        return own.empty() || turns_clip() ? type_of(config) : own;
    }

    const Tower& tower() const {
        if (const char* reason = reason_of(unsupported_towers, name_)) {
            not_supported("the vision tower {}: {}", name_, reason);
        }
        const Tower* tower = find_row(towers, name_);
        if (tower == nullptr) {
            not_supported(
                "query.tower is 'vision': the vision tower \"{}\" is not known to have a rotary "
                "embedding",
                shown_key(name_));
        }
        return *tower;
    }

    /// Returns true for MiniMax M3's tower: it has RoPE, although CLIP, whose model_type it has,
    /// has none.
    bool turns_clip() const {
        const Field mode = find_first({vision_}, {"rope_mode"});
        return type_of(*vision_.object) == "clip_vision_model" && mode && text(mode) == "3d";
    }

    std::string key(const char* name) const { return vision_.prefix + tower_.key_prefix + name; }

    Field own(const char* name) const {
        const std::string prefixed = std::string(tower_.key_prefix) + name;
        const Field field = find_first({vision_}, {prefixed.c_str()});
        return field || !tower_.prefix_optional ? field : find_first({vision_}, {name});
    }

    void assume(const std::string& missing, std::uint64_t value) {
        if (value == 0) {
            invalid_data("{} is missing", missing);
        }
        warn(rotation_, "{} is missing: assuming {}, the default of {}", missing, value, name_);
    }

    /// Returns the number under the first of two names that the file has.
    std::uint64_t number(const char* name, const char* other, std::uint64_t otherwise) {
        for (const char* each : {name, other}) {
            if (const Field field = own(each)) return whole_number(field, 1, max_side);
        }
        assume(key(name), otherwise);
        return otherwise;
    }
    std::uint64_t number(const char* name, std::uint64_t otherwise) {
        return number(name, name, otherwise);
    }

    void head_dim() {
        rotation_.head_dim = rotation_.rotary_dim = stated_head_dim();
        if (tower_.axis_count == 2 && rotation_.head_dim % 4 != 0) {
            invalid_data(
                "{}head_dim is {}: it must be a multiple of 4, for two axes of whole pairs",
                vision_.prefix, rotation_.head_dim);
        }
        if (rotation_.head_dim < 2 * tower_.axis_count) {
            invalid_data("{}head_dim is {}: it must be at least {}, a pair for each axis",
                         vision_.prefix, rotation_.head_dim, 2 * tower_.axis_count);
        }
    }

    std::uint32_t stated_head_dim() {
        if (const Field field = own("head_dim")) {
            return std::uint32_t(whole_number(field, 4, 65532));
        }
        // embed_dim comes first, because Qwen2-VL names the language model's width hidden_size.
        const std::uint64_t width = number("embed_dim", "hidden_size", tower_.hidden_size);
        std::uint64_t heads = number("num_heads", "num_attention_heads", tower_.heads);
        if (const Field rate = own("downsample_rate")) heads *= whole_number(rate, 1, max_side);
        if (width % heads != 0 || width / heads < 4 || width / heads > 65532) {
            invalid_data(
                "{} is {} and num_heads is {}: their quotient, head_dim, must be whole, 4 to 65532",
                key("hidden_size"), width, heads);
        }
        return std::uint32_t(width / heads);
    }

    double base() const {
        if (const Field theta = own("rope_theta")) {
            return positive_number(theta);
        }
        if (const Field parameters = own("rope_parameters");
            parameters && parameters.value->is_object()) {
            const Field inner = find({{parameters.value, parameters.name + "."}}, {"rope_theta"});
            return inner ? positive_number(inner) : tower_.rope_theta;
        }
        return tower_.rope_theta;
    }

    void name_unread_keys() {
        const std::string theta = std::string(tower_.key_prefix) + "rope_theta";
        if (warn_of_unread(vision_,
                           {theta.c_str(), "rope_parameters", "rope_mode", "global_attn_indexes",
                            "memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes",
                            "memory_attention_rope_dropout"},
                           rotation_.warnings)) {
            rotation_.ops.norms_known = tower_.norms;
        }
        const Field parameters = own("rope_parameters");
        if (!parameters || !parameters.value->is_object()) return;
        const Scope inside = {parameters.value, parameters.name + "."};
        for (const auto& [name, value] : inside.object->items()) {
            const bool is_type = name == "rope_type" || name == "type";
            if (is_type && value != "default") {
                not_supported("{}{} is {}: a vision tower has no scaling", inside.prefix, name,
                              shown(value));
            }
            if (!is_type && name != "rope_theta" && is_set(value)) {
                warn(rotation_, "ignored key {}{}", inside.prefix, shown_key(name));
            }
        }
    }

    /// Sets the frequencies and the axis of each pair.
    void axes(double base) {
        const std::uint32_t count = tower_.axis_count, pairs = rotation_.head_dim / count / 2,
                            width = 2 * pairs;
        const bool by_turns = tower_.spectrum == Spectrum::by_turns;
        rotation_.rotary_dim = count * width;
        for (std::uint32_t pair = 0; pair < count * pairs; ++pair) {
            const std::uint32_t axis = by_turns ? pair % count : pair / pairs,
                                j = by_turns ? pair / count : pair % pairs;
            const double exponent = tower_.spectrum == Spectrum::alternating ? 2.0 * j + axis
                                                                             : 2.0 * j;
            rotation_.inv_freq.push_back(std::pow(base, -exponent / width));
        }
        rotation_.sections.axes = count;
        for (std::uint32_t axis = 0; axis < count; ++axis) {
            if (tower_.windows) rotation_.windows[axis] = {axis * width, width};
            rotation_.sections.pairs[axis] = by_turns ? 1 : pairs;
        }
    }

    void norms() {
        ModelOps& ops = rotation_.ops;
        ops.norms_known = true;
        if (!tower_.norms) return;
        Norm norm = {.kind = VKROPE_NORM_RMS, .eps = norm_eps(own("rms_norm_eps"), 1e-6)};
        ops.tensor[V].norm = norm;
        norm.weight = VKROPE_PARAMETER_CHANNEL;
        ops.tensor[Q].norm = ops.tensor[K].norm = norm;
    }

    /// Returns the number of patches on a side of the images that the file is for.
    std::uint64_t patches() {
        const std::uint64_t image = number("image_size", tower_.image_size),
                            patch = number("patch_size", tower_.patch_size);
        if (image < patch) {
            invalid_data("{} is {}: it must be at least patch_size, {}", key("image_size"), image,
                         patch);
        }
        return image / patch;
    }

    void scale(double factor) {
        for (double& frequency : rotation_.inv_freq) frequency *= factor;
    }

    /// Includes the step of a coordinate in the frequencies; see Spectrum::centred.
    void centre() {
        require_no_layer();
        const std::uint64_t side = patches();
        scale(two_pi / double(side));
        const std::string n = std::to_string(side);
        warn(rotation_,
             "positions of the vision tower: 2 row + 1 - {}, 2 column + 1 - {}, and 0, 0 for a "
             "prefix token; for N patches on an axis instead of {}, use N there and multiply its "
             "frequencies by {} / N",
             n, n, n, n);
    }

    /// Scales the frequencies by window / N; see Spectrum::windowed.
    void shrink() {
        const std::uint64_t window = number("window_size", 24), side = patches();
        Layers layers;
        layers.prefix = vision_.prefix;
        layers.named = {full_attention, windowed_attention};
        layers.count = number("num_hidden_layers", 32);
        if (layers.count > max_vision_layers) {
            invalid_data("{} is {}: it must be at most {}", key("num_hidden_layers"), layers.count,
                         max_vision_layers);
        }
        layers.list.assign(layers.count, windowed_attention);
        const Field listed = own("global_attn_indexes");
        const json otherwise = {7, 15, 23, 31};
        if (!listed)
            warn(rotation_, "{} is missing: assuming 7, 15, 23, 31", key("global_attn_indexes"));
        if (listed && !listed.value->is_array()) {
            invalid_data("{} must be a list", stated(listed));
        }
        for (const json& entry : listed ? *listed.value : otherwise) {
            const Field one = {key("global_attn_indexes") + "[]", &entry};
            layers.list[whole_number(one, 0, layers.count - 1)] = full_attention;
        }
        if (layers.choose(query_, rotation_.warnings).is_full()) {
            scale(double(window) / double(side));
            warn(rotation_,
                 "for N patches on a side instead of {}, multiply the frequencies by {} / N", side,
                 side);
        }
    }

    void require_no_layer() const {
        if (query_.layer >= 0 || !query_.layer_type.empty()) {
            invalid_argument("query.tower is 'vision': its layers all have the same RoPE");
        }
    }

    const Query& query_;
    const Scope vision_;
    const std::string name_;
    const Tower& tower_;
    RopeParams rotation_;
};

}  // namespace

bool is_vision_model(const json& config) {
    const std::string type = type_of(config);
    return is_tower(type) || type == "sam3" || type == "sam3_video";
}

RopeParams vision_rotation(const json& config, const Query& query) {
    return VisionImport(config, query).run();
}

}  // namespace vkrope
