// SPDX-License-Identifier: MIT
// Imports the RopeParams of a Hugging Face config.json. Source of the meaning of the fields:
// modeling_rope_utils.py of transformers.
#include "model/hf/config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "defaults.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/hf/readers.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

Pairing read_pairing(const Source& source, bool latent, const Query& query) {
    const ModelType& type = source.type;
    const Field field = find(source.top, pairing_names);
    const Pairing wanted = !field         ? type.pairing
                           : truth(field) ? VKROPE_INTERLEAVED
                                          : VKROPE_HALF_SPLIT;
    if (query.pairing) {
        return query.pairing;
    }
    // Keys of several frameworks, which have different values.
    const Field other = find_first(
        source.top, {"rope_style", "rotary_style", "rotary_interleaved", "rope_traditional",
                     "is_neox_style", "rope_is_neox_style"});
    if (type.name == nullptr && !field && other) {
        not_supported(
            "{}: it selects the channels of a pair, but is not read for an unknown model_type; "
            "give a pairing to read the file anyway",
            stated(other));
    }
    const bool latent_by_class = type.latent.qk_rope_head_dim != 0;
    // Classes with latent attention may have either pairing; most are interleaved.
    if (latent && !latent_by_class && !field) {
        not_supported(
            "model_type {} is not known to have latent attention, but qk_rope_head_dim means it, "
            "so that the pairing is not known; give a pairing to read the file anyway",
            source.shown_type());
    }
    // DeepSeek's classes support both pairings, and the key selects one; other classes support one.
    if (type.name != nullptr && !latent && !latent_by_class && wanted != type.pairing &&
        source.name != "nomic_bert") {
        invalid_data(
            "{}: contradicts the pairing of model_type {}; give a pairing to read the file anyway",
            stated(field), type.name);
    }
    return wanted;
}

constexpr double compress_rope_theta = 160000;  // default of DeepseekV4Config in transformers

/// Returns whether local layers have the base of the other layers, as with ModernBERT's null base.
bool local_base_is_global(const Source& source) {
    const auto entry = source.config.object->find("local_rope_theta");
    return entry != source.config.object->end() && entry->is_null() && !has_local_base(source.top);
}

/// Returns the base of the selected kind of layer: models with sliding layers may have two bases.
double rope_theta(const Source& source, Warnings& warnings) {
    if (source.base) {
        const Field of_layers = find_first(source.top, {"layer_rope_theta"}),
                    list = of_layers ? of_layers : find_first(source.top, {"rope_theta"});
        for (const Scope& scope : source.both()) {
            const Field single = find_first({scope}, {"rope_theta"});
            if (single && list && !single.value->is_array() &&
                std::find(list.value->begin(), list.value->end(), *single.value) ==
                    list.value->end()) {
                warn(warnings, "ignored key {}: {} is read, which has no such base", stated(single),
                     list.name);
            }
        }
        return *source.base;
    }
    if (const Field own = source.by_type() ? find({source.section.scope()}, {"rope_theta"})
                                           : Field()) {
        warn_unless_of_a_type(source, own,
                              {"rope_theta", "global_rope_theta", "rope_local_base_freq",
                               "local_rope_theta", "swa_rope_theta"},
                              "rope_theta", warnings);
        return positive_number(own);
    }
    if (source.type.layers.rule == LayerRule::compressed && !source.by_type() &&
        source.layer.type != sliding_attention) {
        if (const Field own = find(source.top, {"compress_rope_theta"})) {
            return positive_number(own);
        }
        warnings.push_back(source.assumed("compress_rope_theta", compress_rope_theta));
        return compress_rope_theta;
    }
    const bool local = !source.layer.is_full() &&
                       (source.type.layers.rule == LayerRule::local_base ||
                        has_local_base(source.top)) &&
                       !local_base_is_global(source);
    const Field field = local ? find(source.top, local_base_names)
                              : find_unless_of(source.top, local_base_names, source.both(),
                                               base_names);
    const double theta = field   ? positive_number(field)
                         : local ? source.type.local_rope_theta
                                 : source.type.rope_theta;
    if (theta == 0) {
        invalid_data(
            "rope_theta is missing: model_type {} has no default that holds for all versions",
            source.type.name);
    }
    if (!field) {
        warnings.push_back(source.assumed(local ? "rope_local_base_freq" : "rope_theta", theta));
        if (!local && source.type.rope_theta_since_5 != 0) {
            warnings.back() += ", whose default in transformers 5 is " +
                               shown_number(source.type.rope_theta_since_5);
        }
    }
    const Field ratio = find(source.top, {"rope_ratio"});  // ChatGLM
    return ratio ? theta * positive_number(ratio) : theta;
}

void read_max_position(const Source& source, std::uint64_t seq_len, RopeParams& rotation) {
    // The first Qwen was trained with seq_length; its max_position_embeddings is the length with
    // scaling.
    const bool trained = source.type.grows_by_doubling &&
                         find_first(source.top, {"use_dynamic_ntk"});
    const Field field = trained ? find_first(source.top, {"seq_length", "max_position_embeddings"})
                                : find_first(source.top,
                                             {"max_position_embeddings", "n_positions",
                                              "seq_length", "max_seq_len", "max_sequence_length",
                                              "model_max_length", "max_context_length"});
    rotation.max_position = field ? whole_number(field, 1, max_whole) : 0;
    if (rotation.rope_type != "dynamic" && !trained) {
        warn_of_length(rotation, seq_len);
    }
}

/// Applies the NTK-aware scaling of the first Qwen with alpha = 2^(ceil(log2(r)) + 1) - 1, where r
/// is the sequence length divided by the trained length, at least 1.
void qwen_dynamic_ntk(const Source& source, std::uint64_t seq_len, RopeParams& rotation) {
    const Field field = find(source.top, {"use_dynamic_ntk"});
    if (!field || !truth(field)) {
        return;
    }
    if (!source.type.grows_by_doubling) {
        warn(rotation, "ignored key {}: only the class of model_type qwen has it", field.name);
        return;
    }
    if (rotation.rope_type != "default") {
        invalid_data("{} is true and the rope_type is {}: only one of them can scale", field.name,
                     rotation.rope_type);
    }
    if (rotation.max_position == 0) {
        invalid_data("seq_length is missing: use_dynamic_ntk needs it");
    }
    if (seq_len == 0) {
        rotation.warnings.push_back(
            "use_dynamic_ntk depends on the length, which is unknown: assuming it is no longer "
            "than trained");
    }
    const double longer = double(std::max(seq_len, rotation.max_position)) /
                          double(rotation.max_position);
    const double step = std::ceil(std::log2(longer));  // doublings of the trained length
    const double alpha = std::max(std::exp2(step + 1) - 1, 1.0);
    rotation.longest_seq_len = rotation.max_position << static_cast<unsigned>(step);
    require(scale_ntk(rotation.inv_freq, alpha), "use_dynamic_ntk");
}

void read_frequencies(const Source& source, const Head& head, const RotaryDim& window,
                      std::uint64_t seq_len, RopeParams& rotation) {
    const double base = rope_theta(source, rotation.warnings);
    set_base(rotation, base, "rope_theta");
    apply_scaling(source.section,
                  {source.config, base, window.share, head.latent, seq_len, source.name}, rotation);
    qwen_dynamic_ntk(source, seq_len, rotation);
    rotation.sections = position_sections(source.section, source.config, source.type,
                                          rotation.rotary_dim / 2, rotation.warnings);
    require_usable(rotation, window.turning_pairs, base, "rope_theta");
    alternate_axes(source.type, rotation);
}

/// Changes the rotation of a layer into that of its indexer, the small attention that selects keys
/// in sparse attention. The indexer has the same frequencies but another row width and pairing.
/// Source: DeepseekV32Indexer and GlmMoeDsaIndexer in transformers, which differ in pairing.
/// indexer_rope_interleave is from deepseek_v2.py of vLLM and SGLang, where a missing key is false.
void become_indexer(const Source& source, const Query& query, RopeParams& rotation) {
    const ModelType& type = source.type;
    if (!type.indexer) {
        invalid_argument("query.layer_type is 'indexer': model_type {} is not known to have one",
                         type.name == nullptr ? "(unknown)" : type.name);
    }
    const Field width = find_first(source.top, {"index_head_dim"}),
                heads = find_first(source.top, {"index_n_heads"}),
                pairing = find_first(source.top, {"indexer_rope_interleave"});
    rotation.head_dim = width ? std::uint32_t(whole_number(width, 2, max_head_dim)) : 128;
    if (rotation.head_dim < rotation.rotary_dim) {
        invalid_data("{} is {}: it must be at least qk_rope_head_dim, which is {}",
                     width ? width.name.c_str() : "index_head_dim", rotation.head_dim,
                     rotation.rotary_dim);
    }
    rotation.q_rotary_offset = rotation.k_rotary_offset = 0;
    rotation.pairing = value_or(query.pairing, !pairing         ? *type.indexer
                                               : truth(pairing) ? VKROPE_INTERLEAVED
                                                                : VKROPE_HALF_SPLIT);
    rotation.softmax_scale = 1;
    rotation.ops = {};
    rotation.ops.norms_known = true;
    rotation.ops.tensor[K].norm = {.kind = VKROPE_NORM_LAYER,
                                   .eps = 1e-6f,
                                   .weight = VKROPE_PARAMETER_CHANNEL,
                                   .bias = VKROPE_PARAMETER_CHANNEL};
    rotation.ops.q_heads = heads ? std::uint32_t(whole_number(heads, 1, max_heads)) : 0;
    rotation.ops.k_heads = 1;
    rotation.warnings.push_back(
        "the indexer rotates the first channels of its rows; DeepSeek's own code then multiplies "
        "them by a Hadamard matrix, which no field of the file states");
}

RopeParams text_rotation(const json& whole, Query query) {
    const bool of_indexer = query.layer_type == "indexer";
    if (of_indexer) {
        query.layer_type = {};
    }
    const LanguageModel model = language_model(whole);
    RopeParams rotation;
    Warnings& warnings = rotation.warnings;
    const Source source = find_source(whole, model.config, query, warnings);
    rotation.rope_type = scaling_type(source.section);
    const Head head = read_head(source, warnings);
    rotation.pairing = read_pairing(source, head.latent, query);
    rotation.head_dim = head.head_dim;
    rotation.q_rotary_offset = head.q_rotary_offset;
    rotation.k_rotary_offset = head.k_rotary_offset;
    read_max_position(source, query.seq_len, rotation);
    rotation.no_rope = !source.layer.rotates;
    if (!rotation.no_rope) {
        const RotaryDim window = read_rotary_dim(source, head, rotation.rope_type, warnings);
        rotation.rotary_dim = window.rotary_dim;
        if (source.type.tail_window) {
            rotation.q_rotary_offset = rotation.k_rotary_offset = head.head_dim - window.rotary_dim;
        }
        read_frequencies(source, head, window, query.seq_len, rotation);
        if (source.type.softmax_differs && rotation.softmax_scale != 1) {
            warnings.push_back(of_readers_that_differ);
        }
    }
    const bool known = source.type.name != nullptr;
    rotation.ops = model_ops(known ? find_model_type(source.name) : nullptr, source.top,
                             source.both(), source.layer);
    const bool said = name_unread_keys(source, query, model.around, rotation);
    if (known && !rotation.ops.norms_known && !said) {
        warn(warnings, "whether Q and K have norms is not known for this model of model_type {}",
             source.name);
    }
    if (of_indexer) {
        become_indexer(source, query, rotation);
    }
    for (std::string& warning : ignored_around(model)) {
        warnings.push_back(std::move(warning));
    }
    return rotation;
}

void check_tower(const Query& query) {
    if (query.tower != "text" && query.tower != "vision") {
        invalid_argument("query.tower is '{}': it must be text or vision",
                         shown_key(std::string(query.tower)));
    }
}

/// Returns the rotation of a diffusion transformer, which has no separate vision tower.
RopeParams denoiser_rotation(const json& document, const Query& query) {
    if (query.tower == "vision") {
        invalid_argument("query.tower is 'vision': a model of diffusers has no tower beside it");
    }
    const Field name = find({{&document, ""}}, {"_class_name"});
    const bool ltx = name && name.value->is_string() && is_ltx(text(name));
    if (query.layer >= 0 || (!ltx && !query.layer_type.empty())) {
        invalid_argument("the model is of diffusers: its layers all have the same RoPE");
    }
    return ltx ? ltx_rotation(document, query) : diffusers_rotation(document);
}

/// Returns the rotation of a timm model, which is itself a vision tower.
RopeParams patches_rotation(const json& document, const Query& query) {
    if (query.layer >= 0 || !query.layer_type.empty()) {
        invalid_argument("the model is of timm: its layers all have the same RoPE");
    }
    return timm_rotation(document);
}

}  // namespace

HfConfig::HfConfig(std::string_view json_text) {
    problem_ = status_of("the configuration", [&] {
        document_ = parse_json(json_text);
        if (!document_.is_object()) {
            invalid_data("the document is {}: it must be an object", shown(document_));
        }
    });
}

const json& HfConfig::language_model() const {
    return document_.is_object() ? *vkrope::language_model(document_).config.object : document_;
}

Result<RopeParams> HfConfig::rotation(const ModelQuery& asked) const {
    if (!problem_) {
        return {problem_, {}};
    }
    RopeParams rotation;
    const Status status = status_of("the configuration", [&] {
        const Query query = checked(asked);
        check_tower(query);
        if (is_checkpoint_params(document_)) {
            rotation = checkpoint_rotation(document_, query);
        } else if (is_timm(document_)) {
            rotation = patches_rotation(document_, query);
            rotation.pairing = value_or(query.pairing, rotation.pairing);
        } else if (is_diffusers(document_)) {
            rotation = denoiser_rotation(document_, query);
            rotation.pairing = value_or(query.pairing, rotation.pairing);
        } else if (query.tower == "vision" || is_vision_model(document_)) {
            rotation = vision_rotation(document_, query);
            rotation.pairing = value_or(query.pairing, rotation.pairing);
        } else {
            rotation = text_rotation(document_, query);
        }
        shorten(rotation.warnings);
    });
    return {status, std::move(rotation)};
}

}  // namespace vkrope
