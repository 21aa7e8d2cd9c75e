// SPDX-License-Identifier: MIT
// Source of every row: src/diffusers/models/transformers/transformer_*.py of diffusers, at commit
// 58eb52c0; the frequencies are from get_1d_rotary_pos_embed in its embeddings.py.
#include "model/hf/diffusers.hpp"

#include <cmath>
#include <string>
#include <string_view>

#include "model/hf/field.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/telling_keys.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"
#include "model/rotation_rules.hpp"
#include "model/sorted_table.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// How the channels of a head are divided among the axes.
enum class Division {
    listed,  ///< the file lists the channels of each axis
    halves,  ///< two axes, a half each
    thirds,  ///< three axes; height and width have the even part of a third, time the rest
};

/// One class, with the defaults of its constructor.
struct Denoiser {
    const char* name;
    Division division = Division::listed;
    const char* axes_key = "axes_dims_rope";  ///< of the list
    std::uint32_t axes[4] = {16, 56, 56};     ///< default of the list; 0: none
    Pairing pairing = Pairing::interleaved;
    double theta = 10000;          ///< default of rope_theta
    bool theta_is_read = false;    ///< the class has a rope_theta
    bool theta_is_scaled = false;  ///< for each axis, by rope_scale
    std::uint32_t head_dim = 128;  ///< default of attention_head_dim, if it is read
    const char* positions = "id 0, row, column";
    const char* note = nullptr;  ///< what the file does not say
};

constexpr const char* text_stands = "tokens of the text are not turned";
constexpr const char* frames = "frame, row, column";

constexpr Denoiser flux(const char* name, bool theta_is_read = false) {
    return {.name = name, .theta_is_read = theta_is_read};
}
constexpr Denoiser hunyuan(const char* name) {
    return {.name = name,
            .axes_key = "rope_axes_dim",
            .theta = 256,
            .theta_is_read = true,
            .positions = frames,
            .note = text_stands};
}
constexpr Denoiser wan(const char* name) {
    return {.name = name, .division = Division::thirds, .positions = frames};
}

// Sorted by name.
constexpr Denoiser denoisers[] = {
    wan("AnyFlowTransformer3DModel"),
    flux("BriaFiboTransformer2DModel", true),
    flux("BriaTransformer2DModel", true),
    flux("ChromaTransformer2DModel"),
    {.name = "ChronoEditTransformer3DModel",
     .division = Division::thirds,
     .positions = frames,
     .note = "of two frames the second has position temporal_skip_len - 1"},
    {.name = "CogView4Transformer2DModel",
     .division = Division::halves,
     .pairing = Pairing::half_split,
     .head_dim = 40,
     .positions =
         "row * rope_axes_dim[0] / rows, column * rope_axes_dim[1] / columns, rounded down",
     .note = text_stands},
    {.name = "CosmosTransformer3DModel",
     .division = Division::thirds,
     .pairing = Pairing::half_split,
     .theta_is_scaled = true,
     .positions = frames,
     .note = "for a video of F frames per second, multiply the frequencies of the first axis by "
             "24 / F"},
    {.name = "Flux2Transformer2DModel",
     .axes = {32, 32, 32, 32},
     .theta = 2000,
     .theta_is_read = true,
     .positions = "image, row, column, text token"},
    flux("FluxTransformer2DModel"),
    {.name = "GlmImageTransformer2DModel",
     .division = Division::halves,
     .pairing = Pairing::half_split,
     .head_dim = 40,
     .positions = "row, column",
     .note = text_stands},
    {.name = "HiDreamImageTransformer2DModel", .axes = {}},
    {.name = "HunyuanImageTransformer2DModel",
     .axes_key = "rope_axes_dim",
     .axes = {64, 64},
     .theta = 256,
     .theta_is_read = true,
     .positions = "row, column",
     .note = text_stands},
    hunyuan("HunyuanVideo15Transformer3DModel"),
    hunyuan("HunyuanVideoTransformer3DModel"),
    {.name = "Kandinsky5Transformer3DModel",
     .axes_key = "axes_dims",
     .axes = {16, 24, 24},
     .positions = frames,
     .note = "divide the frequencies of an axis by the pipeline's scale_factor of it; the text "
             "blocks have one position, and default frequencies of the whole head"},
    flux("LongCatImageTransformer2DModel"),
    {.name = "Lumina2Transformer2DModel",
     .axes_key = "axes_dim_rope",
     .axes = {32, 32, 32},
     .positions = "text token, row, column"},
    flux("OvisImageTransformer2DModel"),
    {.name = "QwenImageTransformer2DModel",
     .positions = "frame, row - ceil(rows / 2), column - ceil(columns / 2); a text token has one "
                  "position on all axes"},
    wan("SkyReelsV2Transformer3DModel"),
    wan("VaceWanModel"),  // this and WanModel in Wan's own files, whose code is
                          // wan/modules/model.py
    wan("WanAnimateTransformer3DModel"),
    wan("WanModel"),
    wan("WanTransformer3DModel"),
    wan("WanVACETransformer3DModel"),
    {.name = "ZImageTransformer2DModel",
     .axes_key = "axes_dims",
     .axes = {32, 48, 48},
     .theta = 256,
     .theta_is_read = true,
     .positions = "text token, row, column"},
};

struct Refused {
    const char* name;
    const char* reason;
};

// Sorted by name.
constexpr Refused refused[] = {
    {"ErnieImageTransformer2DModel", two_angles_a_pair},
    {"MochiTransformer3DModel",
     "its frequencies are learned, the weight pos_frequencies of 3 axes, heads and pairs; with it, "
     "fill a Rotation whose sections have SectionOrder::sum, with a head group for each head"},
};
static_assert(sorted(denoisers) && sorted(refused), "the tables are searched by bisection");

const Denoiser& find_denoiser(const Field& name) {
    const std::string wanted = text(name);
    if (const Refused* row = find_row(refused, wanted)) {
        fail(Code::not_supported, "%s: %s", stated(name).c_str(), row->reason);
    }
    const Denoiser* found = find_row(denoisers, wanted);
    if (found == nullptr) {
        fail(Code::not_supported,
             "%s: it is unknown; the transformer of a pipeline has a config.json of its own",
             stated(name).c_str());
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

std::uint32_t head_dim_of(const Scope& config, const Denoiser& denoiser,
                          std::vector<std::string>& warnings) {
    if (const std::uint32_t stated = stated_head_dim(config)) {
        return stated;
    }
    warnings.push_back("attention_head_dim is missing: assuming " +
                       std::to_string(denoiser.head_dim) + ", the default of " + denoiser.name);
    return denoiser.head_dim;
}

std::vector<std::uint32_t> listed_axes(const Scope& config, const Denoiser& denoiser,
                                       std::vector<std::string>& warnings) {
    std::vector<std::uint32_t> widths;
    const Field field = find({config}, {denoiser.axes_key});
    if (!field && denoiser.axes[0] == 0) {
        fail(Code::invalid_data, "%s is missing", denoiser.axes_key);
    }
    if (!field) {
        for (const std::uint32_t width : denoiser.axes) {
            if (width != 0) widths.push_back(width);
        }
        warnings.push_back(std::string(denoiser.axes_key) +
                           " is missing: assuming the default of " + denoiser.name);
        return widths;
    }
    if (!field.value->is_array() || field.value->size() < 2 || field.value->size() > max_axes) {
        fail(Code::invalid_data, "%s is %s: it must be a list of 2 to %u numbers",
             field.name.c_str(), shown(*field.value).c_str(), max_axes);
    }
    for (const json& entry : *field.value) {
        const Field one = {field.name + "[" + std::to_string(widths.size()) + "]", &entry};
        widths.push_back(std::uint32_t(whole_number(one, 2, max_head_dim)));
        if (widths.back() % 2 != 0) {
            fail(Code::invalid_data, "%s is %u: it must be even", one.name.c_str(), widths.back());
        }
    }
    return widths;
}

std::vector<std::uint32_t> axes_of(const Scope& config, const Denoiser& denoiser,
                                   std::vector<std::string>& warnings) {
    if (denoiser.division == Division::listed) {
        return listed_axes(config, denoiser, warnings);
    }
    const std::uint32_t head_dim = head_dim_of(config, denoiser, warnings);
    const bool halves = denoiser.division == Division::halves;
    const std::uint32_t unit = halves ? 4 : 2, least = halves ? 4 : 12;
    if (head_dim % unit != 0 || head_dim < least) {
        fail(Code::invalid_data,
             "attention_head_dim is %u: it must be a multiple of %u, at least %u", head_dim, unit,
             least);
    }
    if (halves) return {head_dim / 2, head_dim / 2};
    const std::uint32_t third = 2 * (head_dim / 6);
    return {head_dim - 2 * third, third, third};
}

double theta_of(const Scope& config, const Denoiser& denoiser, std::vector<std::string>& warnings) {
    const Field field = find({config}, {"rope_theta"});
    if (!denoiser.theta_is_read) {
        if (field) warnings.push_back("ignored key rope_theta: its class does not have it");
        return denoiser.theta;
    }
    if (field) return positive_number(field);
    warnings.push_back("rope_theta is missing: assuming " + shown_number(denoiser.theta) +
                       ", the default of " + denoiser.name);
    return denoiser.theta;
}

/// The NTK factors of the axes.
std::vector<double> scales_of(const Scope& config, std::vector<std::string>& warnings) {
    std::vector<double> scales = {2, 1, 1};
    const Field field = find({config}, {"rope_scale"});
    if (!field) {
        warnings.push_back("rope_scale is missing: assuming 2, 1, 1, the default of its class");
        return scales;
    }
    if (!field.value->is_array() || field.value->size() != scales.size()) {
        fail(Code::invalid_data, "rope_scale is %s: it must be a list of 3 numbers",
             shown(*field.value).c_str());
    }
    for (std::size_t axis = 0; axis < scales.size(); ++axis) {
        scales[axis] = positive_number(
            {"rope_scale[" + std::to_string(axis) + "]", &(*field.value)[axis]});
    }
    return scales;
}

}  // namespace

bool is_diffusers(const json& config) {
    if (!config.contains("_class_name")) return false;
    const auto type = config.find("model_type");  // Wan's own files say t2v or i2v there
    return type == config.end() || !type->is_string() ||
           find_model_type(type->get<std::string>()) == nullptr;
}

Rotation diffusers_rotation(const json& config) {
    const Scope scope = {&config, ""};
    const Denoiser& denoiser = find_denoiser(find({scope}, {"_class_name"}));
    Rotation rotation;
    const std::vector<std::uint32_t> widths = axes_of(scope, denoiser, rotation.warnings);
    const double theta = theta_of(scope, denoiser, rotation.warnings);
    std::uint64_t sum = 0;
    for (const std::uint32_t width : widths) sum += width;
    const std::uint32_t head_dim = stated_head_dim(scope);
    if (sum > max_head_dim || (head_dim != 0 && head_dim != sum)) {
        fail(Code::invalid_data, "%s adds up to %llu: it must be the width of a head, %u",
             denoiser.axes_key, static_cast<unsigned long long>(sum),
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
        rotation.sections.pairs[rotation.sections.axes++] = width / 2;
        for (std::uint32_t j = 0; j < width / 2; ++j) {
            rotation.inv_freq.push_back(std::pow(base, -2.0 * j / width));
        }
    }
    require_usable(rotation, rotation.inv_freq.size(), theta, "rope_theta");
    rotation.warnings.push_back(std::string("positions of the axes: ") + denoiser.positions);
    if (denoiser.note != nullptr) rotation.warnings.push_back(denoiser.note);
    const bool scale_is_read = denoiser.theta_is_scaled;
    warn_of_unread(scope,
                   {"rope_theta", denoiser.axes_key, scale_is_read ? "rope_scale" : "rope_theta",
                    "rope_axes_dim", "rope_max_seq_len"},
                   rotation.warnings);
    rotation.warnings.push_back(of_unknown_norms);
    return rotation;
}

}  // namespace vkrope
