// SPDX-License-Identifier: MIT
// Imports LTX-Video and LTX-2. Source: LTXVideoRotaryPosEmbed and LTX2AudioVideoRotaryPosEmbed in
// src/diffusers/models/transformers/transformer_ltx.py and transformer_ltx2.py of diffusers, and
// rope_interpolation_scale of its pipeline_ltx.py, at commit 58eb52c0.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using std::numbers::pi;

constexpr double too_fast = 0x1p11;      // radians per position
constexpr std::uint64_t most = 1 << 24;  // maximum of any size in the file

constexpr const char* video = "video_attention";
constexpr const char* audio = "audio_attention";
constexpr const char* video_cross = "video_cross_attention";
constexpr const char* audio_cross = "audio_cross_attention";

/// Channels of one attention, over all heads of a token, and the distance in x between two ids.
struct Attention {
    std::uint64_t heads = 0, head_dim = 0;
    std::vector<double> steps;  ///< one per axis: for 3 axes, or for time only
    double theta = 10000;
    bool split = false;  ///< half_split within each head
};

/// Reads fields with the defaults of the class.
class Fields {
   public:
    Fields(const json& config, Warnings& warnings) : scope_{&config, ""}, warnings_(warnings) {}

    std::uint64_t number(const char* name, std::uint64_t otherwise) {
        return read(name, otherwise,
                    [](const Field& field) { return whole_number(field, 1, most); });
    }
    double positive(const char* name, double otherwise) {
        return read(name, otherwise, positive_number);
    }
    std::string word(const char* name, const std::string& otherwise) {
        return read(name, otherwise, text);
    }
    /// Returns one element of a list with three elements.
    double third(const char* name, std::size_t index, double otherwise) {
        const Field field = find({scope_}, {name});
        if (field) return positive_number(elements(field, 3, 3)[index]);
        if (index == 1) assume(name, "8, 32, 32");  // warns once: element 1 is read first
        return otherwise;
    }

   private:
    template <class Value, class Read>
    Value read(const char* name, const Value& otherwise, Read&& value_of) {
        if (const Field field = find({scope_}, {name})) return value_of(field);
        assume(name, otherwise);
        return otherwise;
    }
    template <class Value>
    void assume(const char* name, const Value& value) {
        warn(warnings_, "{} is missing: assuming {}, the default of its class", name, value);
    }

    const Scope scope_;
    Warnings& warnings_;
};

/// Assigns axes and frequencies to the pairs of a row; the first `shift` pairs do not rotate.
struct Row {
    std::uint64_t pairs, axes, steps, shift;

    Row(std::uint64_t channels, std::size_t axis_count)
        : pairs(channels / 2), axes(axis_count), steps(channels / (2 * axis_count)),
          shift(pairs - steps * axes) {}
    bool turns(std::uint64_t pair) const { return pair >= shift; }
    std::uint64_t axis(std::uint64_t pair) const { return (pair - shift) % axes; }
    /// Returns w of a pair.
    double growth(std::uint64_t pair, double theta) const {
        const std::uint64_t f = (pair - shift) / axes;
        return steps == 1 ? 1 : std::pow(theta, double(f) / double(steps - 1));
    }
};

double checked(double frequency, std::uint64_t pair, double theta) {
    if (frequency < too_fast) return frequency;
    invalid_data(
        "rope_theta {} makes the frequency of pair {} {} radians per position: it must be below "
        "2048",
        shown_number(theta), pair, frequency);
}

/// Returns -pi / 2 * w reduced by whole turns.
double phase_of(double growth) {
    return -2 * pi * std::remainder(growth / 4, 1.0);
}

void require_row(const Attention& attention) {
    const std::uint64_t channels = attention.heads * attention.head_dim;
    const std::uint64_t widest = attention.split ? attention.head_dim : channels;
    if (attention.head_dim % 2 != 0 || widest > max_head_dim ||
        channels < 2 * attention.steps.size() || channels > most) {
        invalid_data(
            "num_attention_heads is {} and attention_head_dim is {}: the head must be even, and "
            "the rotated row at most {} channels",
            attention.heads, attention.head_dim, max_head_dim);
    }
}

/// Sets a rotation that treats all heads of a token as one row, with interleaved pairs.
void turn_rows(RopeParams& rotation, const Attention& attention) {
    const Row row(attention.heads * attention.head_dim, attention.steps.size());
    rotation.pairing = VKROPE_INTERLEAVED;
    rotation.head_dim = rotation.rotary_dim = std::uint32_t(2 * row.pairs);
    for (std::uint64_t pair = 0; pair < row.pairs; ++pair) {
        const double growth = row.turns(pair) ? row.growth(pair, attention.theta) : 0;
        const double step = row.turns(pair) ? attention.steps[row.axis(pair)] : 0;
        rotation.inv_freq.push_back(checked(pi * growth * step, pair, attention.theta));
        rotation.phase.push_back(phase_of(growth));
    }
    if (row.axes == 1) return;
    rotation.sections.order = VKROPE_SECTIONS_INTERLEAVED;
    rotation.sections.axes = std::uint32_t(row.axes);
    for (std::uint64_t axis = 0; axis < row.axes; ++axis) {
        rotation.sections.pairs[axis] = std::uint32_t((row.pairs + row.axes - 1 - axis) / row.axes);
    }
    const char* names[] = {"frame", "row", "column"};
    std::string order;
    for (std::uint64_t slot = 0; slot < 3; ++slot) {
        order += (slot == 0 ? "" : ", ") + std::string(names[(slot + 3 - row.shift % 3) % 3]);
    }
    warn(rotation, "positions of the axes: {}", order);
}

/// Sets a rotation with separate frequencies for each head. The axis of a pair differs between
/// heads, so the angle is a sum in which the other axes have frequency 0.
void turn_heads(RopeParams& rotation, const Attention& attention) {
    const Row row(attention.heads * attention.head_dim, attention.steps.size());
    const std::uint64_t pairs = attention.head_dim / 2;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = std::uint32_t(attention.head_dim);
    rotation.head_groups = std::uint32_t(attention.heads);
    rotation.inv_freq.assign(attention.heads * row.axes * pairs, 0);
    rotation.phase.assign(attention.heads * pairs, 0);
    for (std::uint64_t at = row.shift; at < row.pairs; ++at) {
        const std::uint64_t head = at / pairs, pair = at % pairs, axis = row.axis(at);
        const double growth = row.growth(at, attention.theta);
        rotation.inv_freq[(head * row.axes + axis) * pairs + pair] = checked(
            pi * growth * attention.steps[axis], at, attention.theta);
        rotation.phase[head * pairs + pair] = phase_of(growth);
    }
    if (row.axes == 1) return;
    rotation.sections.order = VKROPE_SECTIONS_SUM;
    rotation.sections.axes = std::uint32_t(row.axes);
    rotation.warnings.push_back("positions of the axes: frame, row, column");
}

void turn(RopeParams& rotation, const Attention& attention) {
    require_row(attention);
    attention.split ? turn_heads(rotation, attention) : turn_rows(rotation, attention);
    if (!attention.split) {
        rotation.warnings.push_back(
            "a head of this rotation is the row of a token: all heads of Q or of K");
    }
}

RopeParams first_generation(const json& config, const Query& query) {
    if (!query.layer_type.empty()) {
        invalid_argument("the model is of diffusers: its layers all have the same RoPE");
    }
    RopeParams rotation;
    Fields fields(config, rotation.warnings);
    Attention attention;
    attention.heads = fields.number("num_attention_heads", 32);
    attention.head_dim = fields.number("attention_head_dim", 64);
    const double patch = double(fields.number("patch_size", 1)),
                 patch_t = double(fields.number("patch_size_t", 1));
    attention.steps = {8.0 / 25 * patch_t / 20, 32 * patch / 2048, 32 * patch / 2048};
    turn(rotation, attention);
    rotation.warnings.push_back(
        "assuming 25 frames per second and a VAE that compresses 8 by 32 by 32: for F frames per "
        "second multiply the frequencies of the frame axis by 25 / F");
    return rotation;
}

RopeParams second_generation(const json& config, const Query& query) {
    RopeParams rotation;
    Fields fields(config, rotation.warnings);
    const std::string_view kind = query.layer_type.empty() ? video : query.layer_type;
    const bool of_video = kind == video || kind == video_cross;
    const bool cross = kind == video_cross || kind == audio_cross;
    if (!of_video && !cross && kind != audio) {
        invalid_argument("query.layer_type is '{}': the model has {}, {}, {} and {}",
                         shown_key(std::string(kind)), video, audio, video_cross, audio_cross);
    }
    if (query.layer_type.empty()) {
        warn(rotation, "layer types differ: assuming {}", video);
    }
    Attention attention;
    const std::string type = fields.word("rope_type", "interleaved");
    attention.split = type == "split";
    if (!attention.split && type != "interleaved") {
        not_supported("rope_type is \"{}\": it must be interleaved or split", shown_key(type));
    }
    attention.theta = fields.positive("rope_theta", 10000);
    attention.heads = of_video ? fields.number("num_attention_heads", 32)
                               : fields.number("audio_num_attention_heads", 32);
    if (cross) {
        const std::uint64_t width = fields.number("audio_cross_attention_dim", 2048);
        if (width % attention.heads != 0) {
            invalid_data("audio_cross_attention_dim is {}: it must be a multiple of the heads, {}",
                         width, attention.heads);
        }
        attention.head_dim = width / attention.heads;
    } else {
        attention.head_dim = of_video ? fields.number("attention_head_dim", 128)
                                      : fields.number("audio_attention_head_dim", 64);
    }
    double longest = of_video || cross ? fields.positive("pos_embed_max_pos", 20) : 0;
    if (!of_video || cross) {
        longest = std::max(longest, fields.positive("audio_pos_embed_max_pos", 20));
    }
    // An id is the sum of the two ends of a patch, so the middle of the patch is half the id.
    if (of_video) {
        attention.steps = {0.5 / 24 / longest};
        rotation.warnings.push_back(
            "positions of time: the sum of the first frame of a patch of the VAE and of the next "
            "patch's, 1, 10, 26, 42, ... for 8 frames a patch; assuming 24 frames per second: for "
            "F multiply the frequencies of the axis by 24 / F");
    } else {
        const double rate = fields.positive("audio_sampling_rate", 16000),
                     hop = fields.positive("audio_hop_length", 160);
        attention.steps = {0.5 * hop / rate / longest};
        rotation.warnings.push_back(
            "positions of time: the sum of the first spectrum of a patch and of the next patch's, "
            "1, 6, 14, 22, ... for 4 spectra a patch");
    }
    if (kind == video) {
        const double patch = double(fields.number("patch_size", 1));
        const double sides[] = {fields.positive("base_height", 2048),
                                fields.positive("base_width", 2048)};
        for (std::size_t i = 0; i < 2; ++i) {
            attention.steps.push_back(fields.third("vae_scale_factors", i + 1, 32) * patch / 2 /
                                      sides[i]);
        }
        rotation.warnings.push_back("row and column count twice: 2 row + 1, 2 column + 1");
    }
    turn(rotation, attention);
    return rotation;
}

}  // namespace

bool is_ltx(const std::string& class_name) {
    return class_name == "LTXVideoTransformer3DModel" ||
           class_name == "LTX2VideoTransformer3DModel";
}

RopeParams ltx_rotation(const json& config, const Query& query) {
    const Field name = find({{&config, ""}}, {"_class_name"});
    const bool second = text(name) == "LTX2VideoTransformer3DModel";
    RopeParams rotation = second ? second_generation(config, query)
                                 : first_generation(config, query);
    warn_of_unread({&config, ""}, {"rope_theta", "rope_type", "base_height", "base_width"},
                   rotation.warnings);
    rotation.warnings.push_back(of_unknown_norms);
    return rotation;
}

}  // namespace vkrope
