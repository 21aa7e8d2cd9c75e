// SPDX-License-Identifier: MIT
// Imports LTX-Video and LTX-2. Source: LTXVideoRotaryPosEmbed and LTX2AudioVideoRotaryPosEmbed in
// src/diffusers/models/transformers/transformer_ltx.py and transformer_ltx2.py of diffusers, and
// rope_interpolation_scale of its pipeline_ltx.py, at commit 58eb52c0.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "model/hf/class_fields.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using std::numbers::pi;

constexpr double too_fast = 0x1p11;  // radians per position

constexpr std::string_view video = "video_attention";
constexpr std::string_view audio = "audio_attention";
constexpr std::string_view video_cross = "video_cross_attention";
constexpr std::string_view audio_cross = "audio_cross_attention";

// Channels of one attention, over all heads of a token, and the distance in x between two ids.
struct Attention {
    Size heads, head_dim;
    std::vector<double> steps;  // one per axis: for 3 axes, or for time only
    double theta = 10000;
    bool split = false;  // half_split within each head
};

// Sets the frequencies and phases. The axes take turns over the channels of all heads of a token,
// behind the channels that no axis needs. In a row of all heads the pairs are interleaved. With
// `split`, each head has its own frequencies, and the axis of a pair differs between heads, so the
// angle is a sum in which the other axes have frequency 0.
void turn(RopeParams& rotation, const Attention& of) {
    const std::uint64_t head_dim = rotated(of.head_dim, 2, 2), axes = of.steps.size();
    const std::uint64_t pairs = of.heads.value * head_dim / 2,
                        most = of.split ? max_size : max_head_dim;
    const std::uint64_t rounds = pairs / axes, still = pairs % axes;
    if (rounds == 0 || 2 * pairs > most) {
        invalid_data("{} and {}: the row of all heads must have {} to {} channels", of.heads.said,
                     of.head_dim.said, 2 * axes, most);
    }
    const std::uint64_t sum = of.split ? axes : 1, width = of.split ? head_dim / 2 : pairs;
    rotation.pairing = of.split ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = std::uint32_t(2 * width);
    rotation.head_groups = std::uint32_t(pairs / width);
    rotation.inv_freq.assign(sum * pairs, 0);
    rotation.phase.assign(pairs, 0);
    for (std::uint64_t at = still; at < pairs; ++at) {
        const std::uint64_t axis = (at - still) % axes, round = (at - still) / axes;
        const double w = rounds == 1 ? 1 : std::pow(of.theta, double(round) / double(rounds - 1));
        const double frequency = pi * w * of.steps[axis];
        if (!(frequency < too_fast)) {
            invalid_data(
                "rope_theta {} makes the frequency of pair {} {} radians per position: it must be "
                "below 2048",
                shown_number(of.theta), at, frequency);
        }
        const std::uint64_t row = at / width * sum + (of.split ? axis : 0);
        rotation.inv_freq[row * width + at % width] = frequency;
        rotation.phase[at] = -2 * pi * std::remainder(w / 4, 1.0);  // -pi / 2 * w, by whole turns
    }
    const char* names[] = {"frame", "row", "column"};
    std::string order;
    for (std::uint64_t slot = 0; axes == 3 && slot < 3; ++slot) {
        const std::uint64_t axis = of.split ? slot : (slot + 3 - still) % 3;
        order += (slot == 0 ? "" : ", ") + std::string(names[axis]);
        rotation.sections.pairs[slot] = of.split ? 0 : std::uint32_t((pairs + 2 - slot) / 3);
    }
    if (axes == 3) {
        rotation.sections.order = of.split ? VKROPE_SECTIONS_SUM : VKROPE_SECTIONS_INTERLEAVED;
        rotation.sections.axes = 3;
        warn(rotation, "positions of the axes: {}", order);
    }
    if (!of.split) {
        rotation.warnings.push_back(
            "a head of this rotation is the row of a token: all heads of Q or of K");
    }
}

Attention first_generation(ClassFields& fields, const Query& query, Warnings& warnings) {
    require_no_layer(query, "the model is of diffusers");
    const double side = 32 * double(fields.size("patch_size", 1).value) / 2048,
                 patch_t = double(fields.size("patch_size_t", 1).value);
    warnings.push_back(
        "assuming 25 frames per second and a VAE that compresses 8 by 32 by 32: for F frames per "
        "second multiply the frequencies of the frame axis by 25 / F");
    return {.heads = fields.size("num_attention_heads", 32),
            .head_dim = fields.size("attention_head_dim", 64),
            .steps = {8.0 / 25 * patch_t / 20, side, side}};
}

Attention second_generation(ClassFields& fields, const Query& query, Warnings& warnings) {
    if (query.layer >= 0) {
        invalid_argument("query.layer is {}: layer_type selects an attention of LTX-2",
                         query.layer);
    }
    const std::string_view kind = query.layer_type.empty() ? video : query.layer_type;
    const bool of_video = kind == video || kind == video_cross;
    const bool cross = kind == video_cross || kind == audio_cross;
    if (!of_video && !cross && kind != audio) {
        invalid_argument("query.layer_type is '{}': the model has {}, {}, {} and {}",
                         shown_key(std::string(kind)), video, audio, video_cross, audio_cross);
    }
    if (query.layer_type.empty()) warn(warnings, "layer types differ: assuming {}", video);
    Attention attention;
    const Field type = fields.find({"rope_type"});
    if (!type) fields.assume("rope_type", "interleaved");
    attention.split = type && text(type) == "split";
    if (type && !attention.split && text(type) != "interleaved")
        not_supported("{}: it must be interleaved or split", stated(type));
    attention.theta = fields.positive("rope_theta", 10000);
    attention.heads = fields.size({of_video ? "num_attention_heads" : "audio_num_attention_heads"},
                                  32);
    attention.head_dim = cross      ? quotient(fields.size("audio_cross_attention_dim", 2048),
                                               attention.heads)
                         : of_video ? fields.size("attention_head_dim", 128)
                                    : fields.size("audio_attention_head_dim", 64);
    double longest = of_video || cross ? fields.positive("pos_embed_max_pos", 20) : 0;
    if (!of_video || cross)
        longest = std::max(longest, fields.positive("audio_pos_embed_max_pos", 20));
    // An id is the sum of the two ends of a patch, so the middle of the patch is half the id.
    if (of_video) {
        attention.steps = {0.5 / 24 / longest};
        warnings.push_back(
            "positions of time: the sum of the first frame of a patch of the VAE and of the next "
            "patch's, 1, 10, 26, 42, ... for 8 frames a patch; assuming 24 frames per second: for "
            "F multiply the frequencies of the axis by 24 / F");
    } else {
        const double rate = fields.positive("audio_sampling_rate", 16000),
                     hop = fields.positive("audio_hop_length", 160);
        attention.steps = {0.5 * hop / rate / longest};
        warnings.push_back(
            "positions of time: the sum of the first spectrum of a patch and of the next patch's, "
            "1, 6, 14, 22, ... for 4 spectra a patch");
    }
    if (kind == video) {
        const double patch = double(fields.size("patch_size", 1).value);
        const json otherwise = {8, 32, 32};
        const std::vector<Field> factors = fields.list("vae_scale_factors", otherwise, 3, 3);
        for (const std::size_t axis : {1, 2}) {
            const double side = fields.positive(axis == 1 ? "base_height" : "base_width", 2048);
            attention.steps.push_back(positive_number(factors[axis]) * patch / 2 / side);
        }
        warnings.push_back("row and column count twice: 2 row + 1, 2 column + 1");
    }
    return attention;
}

}  // namespace

RopeParams ltx_rotation(const Scope& scope, const Query& query) {
    const std::string name = text(find({scope}, {"_class_name"}));
    RopeParams rotation;
    ClassFields fields = {scope, name, rotation.warnings};
    const bool second = name == "LTX2VideoTransformer3DModel";
    turn(rotation, second ? second_generation(fields, query, rotation.warnings)
                          : first_generation(fields, query, rotation.warnings));
    if (second)  // keys of other attentions, and of the time steps
        know({scope}, {"base_height", "base_width", "cross_attn_timestep_scale_multiplier"});
    warn_of_unread(scope, name, rotation.warnings);
    rotation.warnings.push_back(of_unknown_norms);
    return rotation;
}

}  // namespace vkrope
