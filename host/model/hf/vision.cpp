// SPDX-License-Identifier: MIT
// Imports vision towers that have a rotary embedding. Contains their table, which makes this file
// longer than others. Source of every row: the classes of transformers to which the names belong;
// MoonViT's modeling_kimi_vl.py.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>

#include "model/hf/class_fields.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/hf/source.hpp"
#include "model/layers.hpp"
#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

// Formula for the frequencies of the axes. n is the number of channels of one axis: head_dim / 2
// or head_dim / 3, rounded down to whole pairs.
enum class Spectrum {
    same,         // base^(-2j / n) on both: Qwen2-VL's VisionRotaryEmbedding
    alternating,  // the even and the odd of base^(-2j / (2 n)): Pixtral's PixtralRotaryEmbedding
    by_turns,     // base^(-2j / n) on both; the axes alternate from pair to pair: MoonViT's
                  // Rope2DPosEmb
    // base^(-2j / n) turns on both, per unit of a coordinate that goes from -1 to 1. The centre of
    // patch i of N is at (2i + 1 - N) / N, so 2i + 1 - N is the position and 2 pi / N a factor of
    // the frequencies: DINOv3's DINOv3ViTRopePositionEmbedding.
    centred,
    // base^(-2j / n) on both in layers that attend to windows, multiplied by window / N in the
    // other layers for an image with N patches on a side: SAM 3's Sam3ViTLayer.
    windowed,
};

// Two sizes whose quotient counts; 0: none.
struct Ratio {
    std::uint32_t whole = 0, part = 0;
};

struct Tower {
    Names names;  // model_type of the tower, or of the objects around it
    Spectrum spectrum = Spectrum::same;
    Pairing pairing = VKROPE_HALF_SPLIT;
    Ratio width = {};  // defaults of its class: the width, and the number of heads
    // Key of its width. In other classes hidden_size may be the width of the language model.
    const char* width_key = "hidden_size";
    const char* axes = "row, column";
    std::uint32_t axis_count = 2;
    bool windows = false;          // each axis forms its pairs within a separate window
    bool states_head_dim = false;  // head_dim need not be width / heads
    double rope_theta = 10000;
    // Prefix of its keys; the memory attention of SAM 2 is one of several attentions in a file.
    const char* key_prefix = "";
    bool whole_file = false;     // the fields are at the top level, without a language model
    Ratio side = {};             // defaults of image_size and patch_size
    bool norms = false;          // Q and K have RMS norms of each head with a weight, V one without
    const char* note = nullptr;  // a rule that the file does not state
    const char* refused = nullptr;  // the reason why it is not read
};

const Tower towers[] = {
    {.names = {"qwen2_vl", "qwen2_vl_vision"}, .width = {1280, 16}, .width_key = "embed_dim"},
    {.names = {"qwen2_5_vl", "qwen2_5_vl_vision", "qwen2_5_omni", "qwen2_5_omni_thinker",
               "qwen2_5_omni_vision_encoder"},
     .width = {3584, 16}},
    {.names = {"qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision", "qwen3_5",
               "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision", "qwen3_omni_moe",
               "qwen3_omni_moe_thinker", "qwen3_omni_moe_vision_encoder"},
     .width = {1152, 16}},
    {.names = {"glm4v", "glm4v_vision", "glm4v_moe", "glm4v_moe_vision"}, .width = {1536, 12}},
    {.names = {"ernie4_5_vl_moe", "ernie4_5_vl_moe_vision", "paddleocr_vl", "paddleocr_vl_vision"}},
    {.names = {"dots_ocr", "dots_vit"}, .width = {1536, 12}, .width_key = "embed_dim"},
    {.names = {"pixtral"}, .spectrum = Spectrum::alternating, .width = {1024, 16}},
    {.names = {"llama4", "llama4_vision_model"},
     .pairing = VKROPE_INTERLEAVED,
     .width = {768, 16},
     .axes = "column + 1, row + 1"},
    {.names = {"moonvit"},
     .spectrum = Spectrum::by_turns,
     .pairing = VKROPE_INTERLEAVED,
     .width = {1152, 16},
     .axes = "column, row"},
    // Rope2DPosEmbRepeated of the released file's own modeling_kimi_k25.py, and
    // Kimi_K25VisionRotaryEmbedding in transformers, whose loader rearranges the weights.
    {.names = {"kimi_k25", "kimi_k25_vision"},
     .spectrum = Spectrum::by_turns,
     .pairing = VKROPE_INTERLEAVED,
     .width = {1152, 16},
     .axes = "column, row; the same in each frame",
     .key_prefix = "vt_"},
    {.names = {"gemma4", "gemma4_vision"},
     .width = {768, 12},
     .axes = "column, row; of padding 0, 0",
     .windows = true,
     .states_head_dim = true,
     .rope_theta = 100,
     .norms = true},
    // MiniMaxM3Vision3DRotaryEmbedding of NVIDIA's Megatron Bridge, which the released weights
    // require.
    {.names = {"minimax_m3_vl", "minimax_m3_vl_vision"},
     .width = {1280, 16},
     .axes = "frame, row, column",
     .axis_count = 3},
    {.names = {"dinov3_vit"},
     .spectrum = Spectrum::centred,
     .width = {384, 6},
     .rope_theta = 100,
     .whole_file = true,
     .side = {224, 16}},
    {.names = {"sam2_video", "sam3_tracker_video"},
     .pairing = VKROPE_INTERLEAVED,
     .width = {256, 1},
     .axes = "column, row",
     .key_prefix = "memory_attention_",
     .whole_file = true,
     .note = "of the memory attention alone: its keys have the positions of the image once "
             "more for each remembered frame, and object pointers are not turned"},
    {.names = {"sam3_vit_model"},
     .spectrum = Spectrum::windowed,
     .pairing = VKROPE_INTERLEAVED,
     .width = {1024, 16},
     .axes = "column, row, in the window of the layer if it has one",
     .whole_file = true,
     .side = {1008, 14}},
    // The released weights need two angles per pair: facebookresearch/vjepa2#15.
    {.names = {"vjepa2"}, .whole_file = true, .refused = two_angles_a_pair},
};

const Keys head_names = {"num_heads", "num_attention_heads"};
constexpr std::uint64_t max_vision_layers = 4096;

// An object that may be a tower.
struct Place {
    Scope scope;
    std::string type;  // its model_type, or that of the nearest object around it
    int likeness = 0;  // how much its content is like that of a vision tower; 0: not at all
};

// Returns the model_type, or that which `architectures` names.
std::string type_of(const Scope& scope) {
    if (const Field field = find({scope}, {"model_type"})) return text(field);
    std::vector<std::string_view> types = {"sam3", "sam3_video"};
    for (const Tower& tower : towers) types.insert(types.end(), tower.names);
    return named_by_architecture(find({scope}, {"architectures"}), types);
}

Place place_in(const Place& outer, const Field& object) {
    Place place = {inside(outer.scope, object), outer.type};
    const Scope unread = {object.value, place.scope.prefix};  // a hostile file has many objects
    const auto has = [&](const Keys& names) { return bool(find_first({unread}, names)); };
    const std::string own = type_of(unread);
    const Field mode = find_first({unread}, {"rope_mode"});
    // MiniMax M3's tower has RoPE, although CLIP, whose model_type it may have, has none.
    const bool turns_clip = own == "clip_vision_model" && mode && text(mode) == "3d";
    if (!own.empty() && !turns_clip) place.type = own;
    if (object.name.ends_with("vision_config")) {
        place.likeness = 4;
    } else if (has(head_names) && !has({"vocab_size"})) {
        const bool sized = has({"hidden_size", "embed_dim", "rope_theta", "rope_parameters"});
        place.likeness = find_row(towers, own) != nullptr                          ? 3
                         : has({"patch_size", "image_size", "spatial_merge_size"}) ? 2
                                                                                   : int(sized);
    }
    return place;
}

// Appends the objects in a place, but not the memory attention of a tracker, which is not the
// tower of the file around it.
void append_places(const Place& outer, const json* language, std::vector<Place>& places) {
    for (const auto& [key, value] : outer.scope.object->items()) {
        if (!value.is_object()) continue;
        Place place = place_in(outer, {outer.scope.prefix + shown_key(key), &value});
        const Tower* tower = find_row(towers, place.type);
        if (tower != nullptr && tower->whole_file && *tower->key_prefix != 0) continue;
        if (&value == language && place.likeness < 3) place.likeness = 0;
        places.push_back(place);
        append_places(place, language, places);
    }
}

// Returns the object that is most like a vision tower, or the backbone inside it.
Place find_tower(const Place& whole) {
    std::vector<Place> places;
    append_places(whole, language_model(whole.scope).config.object, places);
    Place best;
    for (const Place& place : places)
        if (place.likeness > best.likeness) best = place;
    if (best.likeness == 0) {
        invalid_argument(
            "query.tower is 'vision': the model has no vision_config, and no other object with the "
            "heads and sizes of a tower");
    }
    for (const Place& place : places) {
        if (place.likeness == best.likeness && *place.scope.object != *best.scope.object) {
            invalid_data("{} and {} differ, and each may be the vision tower: remove one of them",
                         best.scope.prefix, place.scope.prefix);
        }
    }
    const Field backbone = find_first({best.scope}, {"backbone_config"});
    return backbone && backbone.value->is_object() ? place_in(best, backbone) : best;
}

const Tower& tower_of(const Place& place) {
    for (const auto& [key, value] : place.scope.object->items()) {
        const Field field = {place.scope.prefix + shown_key(key), &value};
        refuse_switch(field, key);
        if (key == "position_embedding_type" && value != "rope")
            not_supported("{}: it is not RoPE", stated(field));
    }
    const Tower* tower = find_row(towers, place.type);
    if (tower == nullptr || tower->refused != nullptr) {
        not_supported("query.tower is 'vision': the vision tower \"{}\": {}", shown_key(place.type),
                      tower ? tower->refused : "it is not known to have a rotary embedding");
    }
    return *tower;
}

std::uint32_t head_dim(const Tower& tower, ClassFields& fields) {
    const Field own = fields.find({"head_dim"}), own_heads = fields.find(head_names);
    const bool has_sizes = fields.find({tower.width_key}) && own_heads;
    Size computed;
    if (!own || (has_sizes && !tower.states_head_dim)) {
        Size heads = own_heads ? size_of(own_heads)
                               : fields.size("num_attention_heads", tower.width.part);
        if (const Field rate = fields.find({"downsample_rate"}))
            heads = {heads.value * size_of(rate).value, heads.said + ", " + stated(rate)};
        computed = quotient(fields.size(tower.width_key, tower.width.whole), heads);
    }
    return rotated(agreed(own, computed), tower.axis_count == 2 ? 4 : 2, 2 * tower.axis_count);
}

double base_of(const Tower& tower, const ClassFields& fields) {
    Field theta = fields.find({"rope_theta"});
    if (const Field section = find_first({fields.scope}, {"rope_parameters"})) {
        const Scope parameters = object(fields.scope, section);
        const Field type = find({parameters}, {"rope_type", "type"}),
                    own = find({parameters}, {"rope_theta"});
        if (type && text(type) != "default" && text(type) != "axial")
            not_supported("{}: a vision tower has no scaling", stated(type));
        if (theta && own && *theta.value != *own.value) disagree(theta, own);
        if (own) theta = own;
    }
    return theta ? positive_number(theta) : tower.rope_theta;
}

// Sets the frequencies and the axis of each pair.
void set_axes(const Tower& tower, double base, RopeParams& rotation) {
    const std::uint32_t count = tower.axis_count, pairs = rotation.head_dim / count / 2,
                        width = 2 * pairs;
    const bool by_turns = tower.spectrum == Spectrum::by_turns;
    rotation.rotary_dim = count * width;
    for (std::uint32_t pair = 0; pair < count * pairs; ++pair) {
        const std::uint32_t axis = by_turns ? pair % count : pair / pairs,
                            j = by_turns ? pair / count : pair % pairs;
        const bool between = tower.spectrum == Spectrum::alternating && axis == 1;
        rotation.inv_freq.push_back(std::pow(base, -(2.0 * j + between) / width));
    }
    rotation.sections.axes = count;
    for (std::uint32_t axis = 0; axis < count; ++axis) {
        if (tower.windows) rotation.windows[axis] = {axis * width, width};
        rotation.sections.pairs[axis] = by_turns ? 1 : pairs;
    }
}

// Returns the factor of the frequencies of the queried layer; see Spectrum.
double step_of(const Tower& tower, ClassFields& fields, const Query& query) {
    const bool windowed = tower.spectrum == Spectrum::windowed;
    if (!windowed) require_no_layer(query, "query.tower is 'vision'");
    if (!windowed && tower.spectrum != Spectrum::centred) return 1;
    const Size image = fields.size("image_size", tower.side.whole),
               patch = fields.size("patch_size", tower.side.part);
    const std::uint64_t side = image.value / patch.value;  // patches of the images of the file
    if (side == 0) invalid_data("{}: it must be at least patch_size, {}", image.said, patch.value);
    if (!windowed) {
        const std::string n = std::to_string(side);
        warn(fields.warnings,
             "positions of the vision tower: 2 row + 1 - {}, 2 column + 1 - {}, and 0, 0 for a "
             "prefix token; for N patches on an axis instead of {}, use N there and multiply its "
             "frequencies by {} / N",
             n, n, n, n);
        return 2 * std::numbers::pi / double(side);
    }
    const std::uint64_t window = fields.size("window_size", 24).value;
    const Size count = fields.size("num_hidden_layers", 32);
    if (count.value > max_vision_layers)
        invalid_data("{}: it must be at most {}", count.said, max_vision_layers);
    Layers layers;
    layers.prefix = fields.scope.prefix;
    layers.named = {full_attention, windowed_attention};
    layers.count = count.value;
    layers.list.assign(layers.count, windowed_attention);
    const json full = {7, 15, 23, 31};
    for (const Field& one : fields.list("global_attn_indexes", full, 1, max_vision_layers))
        layers.list[whole_number(one, 0, layers.count - 1)] = full_attention;
    if (!layers.choose(query, fields.warnings).is_full()) return 1;
    warn(fields.warnings,
         "for N patches on a side instead of {}, multiply the frequencies by {} / N", side, side);
    return double(window) / double(side);
}

}  // namespace

bool is_vision_model(const json& document) {
    const std::string type = type_of({&document, ""});
    const Tower* tower = find_row(towers, type);
    return (tower != nullptr && tower->whole_file) || type == "sam3" || type == "sam3_video";
}

RopeParams vision_rotation(const Scope& document, const Query& query) {
    Place place = {document, type_of(document)};
    const Tower* whole = find_row(towers, place.type);
    if (whole == nullptr || !whole->whole_file) place = find_tower(place);
    const Tower& tower = tower_of(place);
    RopeParams rotation;
    ClassFields fields = {place.scope, place.type, rotation.warnings, tower.key_prefix};
    rotation.pairing = tower.pairing;
    rotation.head_dim = head_dim(tower, fields);
    const double base = base_of(tower, fields);
    set_axes(tower, base, rotation);
    const double step = step_of(tower, fields, query);
    for (double& frequency : rotation.inv_freq) frequency *= step;
    if (tower.spectrum != Spectrum::centred)
        warn(rotation, "positions of the vision tower: {}", tower.axes);
    if (tower.note != nullptr) rotation.warnings.push_back(tower.note);
    if (tower.norms) {
        Norm norm = {.kind = VKROPE_NORM_RMS, .eps = norm_eps(fields.find({"rms_norm_eps"}), 1e-6)};
        rotation.ops.tensor[V].norm = norm;
        norm.weight = VKROPE_PARAMETER_CHANNEL;
        rotation.ops.tensor[Q].norm = rotation.ops.tensor[K].norm = norm;
    }
    know({place.scope}, {"global_attn_indexes", "rope_mode", "memory_attention_rope_dropout",
                         "memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes"});
    const bool other_norms = warn_of_unread(place.scope, place.type, rotation.warnings);
    rotation.ops.norms_known = tower.norms || !other_norms;
    require_usable(rotation, rotation.inv_freq.size(), base, fields.key("rope_theta").c_str());
    return rotation;
}

}  // namespace vkrope
