// SPDX-License-Identifier: MIT
// Hugging Face config.json -> Rotation. Meaning of the fields: modeling_rope_utils.py of
// transformers.
#include "defaults.hpp"
#include "model/hf/config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/hf/base.hpp"
#include "model/hf/checkpoint_params.hpp"
#include "model/hf/diffusers.hpp"
#include "model/hf/diffusers_ltx.hpp"
#include "model/hf/finish.hpp"
#include "model/hf/head.hpp"
#include "model/hf/indexer.hpp"
#include "model/hf/nesting.hpp"
#include "model/hf/rotary_dim.hpp"
#include "model/hf/scaling.hpp"
#include "model/hf/scaling_types.hpp"
#include "model/hf/sections.hpp"
#include "model/hf/source.hpp"
#include "model/hf/timm.hpp"
#include "model/hf/unsupported.hpp"
#include "model/hf/vision.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

Pairing read_pairing(const Source& source, bool latent, const ModelQuery& query) {
    const ModelType& type = source.model.type;
    const Field field = find(source.top,
                             {"rope_interleaved", "rope_interleave", "rotary_emb_interleaved"});
    const Pairing wanted = !field         ? type.pairing
                           : truth(field) ? VKROPE_INTERLEAVED
                                          : VKROPE_HALF_SPLIT;
    if (query.pairing) {
        return query.pairing;
    }
    // Words of several frameworks, each with values of its own.
    const Field other = find_first(
        source.top, {"rope_style", "rotary_style", "rotary_interleaved", "rope_traditional",
                     "is_neox_style", "rope_is_neox_style"});
    if (type.name == nullptr && !field && other) {
        fail(VKROPE_ERROR_NOT_SUPPORTED,
             "%s: it says which channels form a pair, which is not read for a model_type that is "
             "not known: give a pairing to read it anyway",
             stated(other).c_str());
    }
    const bool latent_by_class = type.qk_rope_head_dim != 0;
    // Classes with latent attention have either pairing, most of them interleaved.
    if (latent && !latent_by_class && !field) {
        fail(VKROPE_ERROR_NOT_SUPPORTED,
             "model_type %s is not known to have latent attention, which qk_rope_head_dim says, so "
             "which channels form a pair is not known: give a pairing to read it anyway",
             source.model.shown_type().c_str());
    }
    // DeepSeek's classes have both pairings and the key chooses; other classes have one.
    if (type.name != nullptr && !latent && !latent_by_class && wanted != type.pairing &&
        source.model.name != "nomic_bert") {
        fail(VKROPE_ERROR_INVALID_DATA,
             "%s is %s: contradicts the pairing of model_type %s; give a pairing to read it anyway",
             field.name.c_str(), shown(*field.value).c_str(), type.name);
    }
    return wanted;
}

std::uint64_t read_max_position(const Source& source, const std::string& rope_type,
                                std::uint64_t seq_len, std::vector<std::string>& warnings) {
    // The first Qwen was trained with seq_length; its max_position_embeddings is the length
    // that scaling reaches.
    const bool trained = source.model.type.grows_by_doubling &&
                         find_first(source.top, {"use_dynamic_ntk"});
    const Field field = trained ? find_first(source.top, {"seq_length", "max_position_embeddings"})
                                : find_first(source.top,
                                             {"max_position_embeddings", "n_positions",
                                              "seq_length", "max_seq_len", "max_sequence_length",
                                              "model_max_length", "max_context_length"});
    const std::uint64_t max_position = field ? whole_number(field, 1, max_whole) : 0;
    const bool grows = rope_type == "dynamic" || trained;
    if (max_position != 0 && seq_len > max_position && !grows) {
        warnings.push_back("seq_len is " + std::to_string(seq_len) + ": the model was made for " +
                           std::to_string(max_position));
    }
    return max_position;
}

/// The first Qwen: NTK-aware scaling by alpha = 2^(ceil(log2(r)) + 1) - 1, where r is the ratio
/// of the sequence to the trained length, at least 1.
void qwen_dynamic_ntk(const Source& source, std::uint64_t seq_len, Rotation& rotation) {
    const Field field = find(source.top, {"use_dynamic_ntk"});
    if (!field || !truth(field)) {
        return;
    }
    if (!source.model.type.grows_by_doubling) {
        rotation.warnings.push_back("ignored key " + field.name +
                                    ": only the class of model_type qwen has it");
        return;
    }
    if (rotation.rope_type != "default") {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is true and the rope_type is %s: only one of them can scale",
             field.name.c_str(), rotation.rope_type.c_str());
    }
    if (rotation.max_position == 0) {
        fail(VKROPE_ERROR_INVALID_DATA, "seq_length is missing: use_dynamic_ntk needs it");
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
    if (const Status status = scale_ntk(rotation.inv_freq, alpha); !status) {
        fail(VKROPE_ERROR_INVALID_DATA, "use_dynamic_ntk: %s", status.what);
    }
}

void read_frequencies(const Source& source, const Head& head, const RotaryDim& window,
                      std::uint64_t seq_len, Rotation& rotation) {
    const double base = rope_theta(source, rotation.warnings);
    rotation.base = base;
    std::vector<double>& frequencies = rotation.inv_freq;
    frequencies.resize(rotation.rotary_dim / 2);
    if (const Status status = default_inv_freq(base, rotation.rotary_dim, frequencies.data());
        !status) {
        fail(VKROPE_ERROR_INVALID_DATA, "rope_theta: %s", status.what);
    }
    apply_scaling(source.section,
                  {source.config, base, window.share, head.latent, seq_len, source.model.name},
                  rotation);
    qwen_dynamic_ntk(source, seq_len, rotation);
    rotation.sections = position_sections(source.section, source.config, source.model.type,
                                          rotation.rotary_dim / 2, rotation.warnings);
    require_usable(rotation, window.turning_pairs, base, "rope_theta");
    alternate_axes(source.model.type, rotation);
}

Rotation text_rotation(const json& whole, ModelQuery query) {
    const bool of_indexer = query.layer_type == "indexer";
    if (of_indexer) {
        query.layer_type = {};
    }
    const LanguageModel model = language_model(whole);
    Rotation rotation;
    std::vector<std::string>& warnings = rotation.warnings;
    const Source source = find_source(whole, model.config, query, warnings);
    rotation.rope_type = scaling_type(source.section);
    const Head head = read_head(source, warnings);
    rotation.pairing = read_pairing(source, head.latent, query);
    rotation.head_dim = head.head_dim;
    rotation.q_rotary_offset = head.q_rotary_offset;
    rotation.k_rotary_offset = head.k_rotary_offset;
    rotation.max_position = read_max_position(source, rotation.rope_type, query.seq_len, warnings);
    rotation.rotates = source.layer.rotates;
    if (rotation.rotates) {
        const RotaryDim window = read_rotary_dim(source, head, rotation.rope_type, warnings);
        rotation.rotary_dim = window.rotary_dim;
        if (source.model.type.tail_window) {
            rotation.q_rotary_offset = rotation.k_rotary_offset = head.head_dim - window.rotary_dim;
        }
        read_frequencies(source, head, window, query.seq_len, rotation);
        if (source.model.type.softmax_differs && rotation.softmax_scale != 1) {
            warnings.push_back(of_readers_that_differ);
        }
    }
    const bool known = source.model.type.name != nullptr;
    rotation.finish = model_finish(known ? source.model.name : "", source.top, source.both(),
                                   source.layer);
    const bool said = name_unread_keys(source, query, model.around, rotation);
    if (known && !rotation.finish.norms_known && !said) {
        warnings.push_back("whether Q and K have norms is not known for this model of model_type " +
                           source.model.name);
    }
    if (of_indexer) {
        become_indexer(source, query, rotation);
    }
    for (std::string& warning : ignored_around(model)) {
        warnings.push_back(std::move(warning));
    }
    return rotation;
}

void check_tower(const ModelQuery& query) {
    if (query.tower != "text" && query.tower != "vision") {
        fail(VKROPE_ERROR_INVALID_ARGUMENT, "tower is '%s': it must be text or vision",
             shown_key(std::string(query.tower)).c_str());
    }
}

/// The rotation of a diffusion transformer, whose images are not a tower beside it.
Rotation denoiser_rotation(const json& document, const ModelQuery& query) {
    if (query.tower == "vision") {
        fail(VKROPE_ERROR_INVALID_ARGUMENT,
             "tower is 'vision': a model of diffusers has no tower beside it");
    }
    const Field name = find({{&document, ""}}, {"_class_name"});
    const bool ltx = name && name.value->is_string() && is_ltx(text(name));
    if (query.layer >= 0 || (!ltx && !query.layer_type.empty())) {
        fail(VKROPE_ERROR_INVALID_ARGUMENT,
             "the model is of diffusers: its layers all have the same RoPE");
    }
    return ltx ? ltx_rotation(document, query) : diffusers_rotation(document);
}

/// The one rotation of a model of timm, which is a vision tower by itself.
Rotation patches_rotation(const json& document, const ModelQuery& query) {
    if (query.layer >= 0 || !query.layer_type.empty()) {
        fail(VKROPE_ERROR_INVALID_ARGUMENT, "the model is of timm: its layers all have the same RoPE");
    }
    return timm_rotation(document);
}

}  // namespace

HfConfig::HfConfig(std::string_view json_text) {
    problem_ = status_of("the configuration", [&] {
        document_ = parse_json(json_text);
        if (!document_.is_object()) {
            fail(VKROPE_ERROR_INVALID_DATA, "the document is %s: it must be an object",
                 shown(document_).c_str());
        }
    });
}

const json& HfConfig::language_model() const {
    return document_.is_object() ? *vkrope::language_model(document_).config.object : document_;
}

Result<Rotation> HfConfig::rotation(const ModelQuery& query) const {
    if (!problem_) {
        return {problem_, {}};
    }
    Rotation rotation;
    const Status status = status_of("the configuration", [&] {
        check_query(query);
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

Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query) {
    return HfConfig(json_text).rotation(query);
}

}  // namespace vkrope
