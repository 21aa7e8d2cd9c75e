// SPDX-License-Identifier: MIT
// Imports the RopeParams of a Hugging Face config.json. Source of the meaning of the fields:
// modeling_rope_utils.py of transformers.
#include "model/hf/config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/defaults.hpp"
#include "model/hf/importers.hpp"
#include "model/hf/nesting.hpp"
#include "model/hf/readers.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

Pairing read_pairing(const Source& source, bool latent, const Query& query) {
    const ModelType& type = source.type;
    const Field field = find(source.top, pairing_names), embedding = position_embedding(source.top);
    const PositionEmbedding named = read_position_embedding(embedding);
    const Field& said = field ? field : embedding;
    const Pairing stated_pairing = field ? truth(field) ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT
                                         : named.pairing;
    if (query.pairing) {
        // Keys of several frameworks, which have different values.
        know(source.top, other_pairing_names);
        return query.pairing;
    }
    if (field && named.pairing && named.pairing != stated_pairing) disagree(field, embedding);
    if (type.name == nullptr) {
        if (const Field other = find_first(source.top, other_pairing_names);
            other && !stated_pairing) {
            not_supported(
                "{}: it selects the channels of a pair, but is not read for an unknown "
                "model_type; give a pairing to read the file anyway",
                stated(other));
        }
    }
    const bool latent_by_class = type.latent.qk_rope_head_dim != 0;
    // Classes with latent attention may have either pairing; most are interleaved.
    if (latent && !latent_by_class && !stated_pairing) {
        not_supported(
            "model_type {} is not known to have latent attention, but qk_rope_head_dim means it, "
            "so that the pairing is not known; give a pairing to read the file anyway",
            source.shown_type());
    }
    if (!stated_pairing) return type.pairing;
    // DeepSeek's classes support both pairings, and the key selects one; other classes support one.
    if (type.name != nullptr && !latent && !latent_by_class && stated_pairing != type.pairing &&
        !type.pairing_stated) {
        invalid_data(
            "{}: contradicts the pairing of model_type {}; give a pairing to read the file anyway",
            stated(said), type.name);
    }
    return stated_pairing;
}

// Fails if position_embedding_type names a scaling that the section does not state.
void require_named_scaling(const Source& source, const std::string& rope_type) {
    const Field embedding = position_embedding(source.top);
    const std::string named = read_position_embedding(embedding).scaling;
    if (!named.empty() && named != rope_type)
        invalid_data("{} but the rope_type is {}: they must agree", stated(embedding), rope_type);
}

constexpr double compress_rope_theta = 160000;  // default of DeepseekV4Config in transformers

// Returns whether local layers have the base of the other layers, as with ModernBERT's null base.
bool local_base_is_global(const Source& source) {
    return !base_names(source.top, Base::local).empty() && !has_local_base(source.top);
}

// Warns of bases that differ from every base in the list of one base per layer.
void warn_beside_list(const Source& source, Warnings& warnings) {
    const Field of_layers = find_first(source.top, {"layer_rope_theta"}),
                list = of_layers ? of_layers : find_first(source.top, {"rope_theta"});
    for (const Scope& scope : source.both()) {
        const Field single = find_first({scope}, {"rope_theta"});
        if (single && list && !single.value->is_array() &&
            std::find(list.value->begin(), list.value->end(), *single.value) == list.value->end()) {
            warn(warnings, "ignored key {}: {} is read, which has no such base", stated(single),
                 list.name);
        }
    }
}

// Returns the base of the selected kind of layer: models with sliding layers may have two bases.
double rope_theta(const Source& source, Warnings& warnings) {
    know(source.top, Keys(base_names(source.top, Base::local)));
    know(source.both(), Keys(base_names(source.both(), Base::any)));
    if (source.base) {
        warn_beside_list(source, warnings);
        return *source.base;
    }
    const bool compressed = source.type.layers.rule == LayerRule::compressed;
    const Field of_compressed = compressed ? find(source.top, {"compress_rope_theta"}) : Field();
    if (const Field in_section = source.by_type() ? find({source.section.scope()}, {"rope_theta"})
                                                  : Field()) {
        Keys all(base_names(source.top, Base::any));
        const std::vector<std::string> local = base_names(source.top, Base::local);
        all.names.insert(all.names.end(), local.begin(), local.end());
        warn_unless_of_a_type(source, in_section, all, "rope_theta", warnings);
        return positive_number(in_section);
    }
    if (compressed && !source.by_type() && source.layer.type != sliding_attention) {
        if (of_compressed) return positive_number(of_compressed);
        warnings.push_back(source.assumed("compress_rope_theta", compress_rope_theta));
        return compress_rope_theta;
    }
    const bool local = !source.layer.is_full() &&
                       (source.type.layers.rule == LayerRule::local_base ||
                        has_local_base(source.top)) &&
                       !local_base_is_global(source);
    const Field field = find_base(local ? source.top : source.both(),
                                  local ? Base::local : Base::any);
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
    const bool has_ratio = source.type.name == nullptr || source.name == "chatglm";
    const Field ratio = has_ratio ? find(source.top, {"rope_ratio"}) : Field();
    return ratio ? theta * positive_number(ratio) : theta;
}

void read_max_position(const Source& source, std::uint64_t seq_len, RopeParams& rotation) {
    // The first Qwen was trained with seq_length; its max_position_embeddings is the length with
    // scaling.
    const bool trained = source.type.grows_by_doubling &&
                         find_first(source.top, {"use_dynamic_ntk"});
    const bool of_nomic = source.type.dynamic_factor != nullptr && rotation.rope_type == "dynamic";
    const Field field = trained ? find_first(source.top, {"seq_length", "max_position_embeddings"})
                        : of_nomic
                            ? find_first(source.top, {"max_trained_positions"})
                            : find_preferred(source.top,
                                             {"max_position_embeddings", "n_positions",
                                              "seq_length", "max_seq_len", "max_sequence_length",
                                              "model_max_length", "max_context_length"},
                                             rotation.warnings);
    if (of_nomic && !field)
        invalid_data("max_trained_positions is missing: {} needs it", source.section.name);
    rotation.max_position = field ? whole_number(field, 1, max_whole) : 0;
    if (rotation.rope_type != "dynamic" && !trained) warn_of_length(rotation, seq_len);
}

// Applies the NTK-aware scaling of the first Qwen with alpha = 2^(ceil(log2(r)) + 1) - 1, where r
// is the sequence length divided by the trained length, at least 1.
void qwen_dynamic_ntk(const Source& source, std::uint64_t seq_len, RopeParams& rotation) {
    const Field field = source.type.grows_by_doubling ? find(source.top, {"use_dynamic_ntk"})
                                                      : Field();
    if (!field || !truth(field)) return;
    if (rotation.rope_type != "default") {
        invalid_data("{} is true and the rope_type is {}: only one of them can scale", field.name,
                     rotation.rope_type);
    }
    if (rotation.max_position == 0) invalid_data("seq_length is missing: use_dynamic_ntk needs it");
    if (seq_len == 0) {
        rotation.warnings.push_back(
            "use_dynamic_ntk depends on the length, which is unknown: assuming it is no longer "
            "than trained");
    }
    const double longer = double(std::max(seq_len, rotation.max_position)) /
                          double(rotation.max_position);
    const double step = std::ceil(std::log2(longer));  // doublings of the trained length
    const double alpha = std::max(std::exp2(step + 1) - 1, 1.0);
    rotation.longest_seq_len = rotation.max_position << unsigned(step);
    require(scale_ntk(rotation.inv_freq, alpha), "use_dynamic_ntk");
}

void read_frequencies(const Source& source, const Head& head, const RotaryDim& window,
                      std::uint64_t seq_len, RopeParams& rotation) {
    const double base = rope_theta(source, rotation.warnings);
    set_base(rotation, base, "rope_theta");
    apply_scaling(source.section, {source.config, base, window.share, head.latent, seq_len},
                  rotation);
    qwen_dynamic_ntk(source, seq_len, rotation);
    rotation.sections = position_sections(source.section, source.config, source.type,
                                          rotation.rotary_dim / 2, rotation.warnings);
    require_usable(rotation, window.turning_pairs, base, "rope_theta");
    alternate_axes(source.type, rotation);
    if (source.type.reversed) {
        for (double& frequency : rotation.inv_freq) frequency = -frequency;
        rotation.base = 0;  // no base gives negative frequencies
    }
}

// Changes the rotation of a layer into that of its indexer, the small attention that selects keys
// in sparse attention. The indexer has the same frequencies but another row width and pairing.
// Source: DeepseekV32Indexer and GlmMoeDsaIndexer in transformers, which differ in pairing.
// indexer_rope_interleave is from deepseek_v2.py of vLLM and SGLang, where a missing key is false.
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

// Judges the keys that no rule looked for.
void judge_unread_keys(const Source& source, const LanguageModel& model, const Query& query,
                       RopeParams& rotation) {
    const bool known = source.type.name != nullptr;
    UnreadKeys keys({.name = "model_type " + source.shown_type(),
                     .known = known,
                     .rotates = !rotation.no_rope,
                     .layer_asked = query.layer >= 0 || !query.layer_type.empty(),
                     .scaled = rotation.rope_type != "default",
                     .has_norms = rotation.ops.tensor[Q].norm.kind != VKROPE_NORM_NONE},
                    rotation.warnings);
    judge_unread(source.config, keys);
    judge_unread_around(model, keys);
    if (keys.says_norms()) {
        rotation.ops.norms_known = false;
    } else if (known && !rotation.ops.norms_known) {
        warn(rotation, "whether Q and K have norms is not known for this model of model_type {}",
             source.name);
    }
}

RopeParams text_rotation(const Scope& whole, const Query& asked) {
    Query query = asked;
    const bool of_indexer = query.layer_type == "indexer";
    if (of_indexer) query.layer_type = {};
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
        require_named_scaling(source, rotation.rope_type);
        const RotaryDim window = read_rotary_dim(source, head, rotation.rope_type, warnings);
        rotation.rotary_dim = window.rotary_dim;
        if (source.type.tail_window)
            rotation.q_rotary_offset = rotation.k_rotary_offset = head.head_dim - window.rotary_dim;
        read_frequencies(source, head, window, query.seq_len, rotation);
        if (source.type.softmax_differs && rotation.softmax_scale != 1)
            warnings.push_back(of_readers_that_differ);
    }
    rotation.softmax_scale *= scale_of_scores(
        source, head.latent ? head.head_dim + head.q_rotary_offset : head.head_dim, warnings);
    rotation.ops = model_ops(source.type.name != nullptr ? find_model_type(source.name) : nullptr,
                             source.top, source.both(), source.layer, head);
    if (head.latent && source.type.latent.scaled) {
        warn(warnings,
             "{} multiplies the normalised latent channels by (hidden_size / kv_lora_rank)^0.5, "
             "and its queries by a factor, too, which no op says: multiply the norm's weight",
             source.name);
    }
    if (source.type.indexer)
        know(source.top, {"index_head_dim", "index_n_heads", "indexer_rope_interleave"});
    judge_unread_keys(source, model, query, rotation);
    if (of_indexer) become_indexer(source, query, rotation);
    for (std::string& warning : ignored_around(model)) warnings.push_back(std::move(warning));
    return rotation;
}

// Takes a key out of an object, at any depth. Returns whether there is such a key.
bool take_out(json& value, const std::string& prefix, const std::string& name) {
    bool found = false;
    if (value.is_array())
        for (json& entry : value) found = take_out(entry, prefix, name) || found;
    if (!value.is_object()) return found;
    for (auto entry = value.begin(); entry != value.end();) {
        const std::string full_name = prefix + shown_key(entry.key());
        const std::string inner = full_name + (entry->is_array() ? "[]." : ".");
        if (full_name == name) {
            entry = value.erase(entry);
            found = true;
            continue;
        }
        if (name.starts_with(inner)) found = take_out(*entry, inner, name) || found;
        ++entry;
    }
    return found;
}

json without_ignored(json document, const Query& query) {
    for (const std::string& name : query.ignore)
        if (!take_out(document, "", name))
            invalid_argument("query.ignore has '{}': the file has no such key", shown_key(name));
    return document;
}

void check_tower(const Query& query) {
    if (query.tower != "text" && query.tower != "vision") {
        invalid_argument("query.tower is '{}': it must be text or vision",
                         shown_key(std::string(query.tower)));
    }
}

}  // namespace

HfConfig::HfConfig(std::string_view json_text) {
    problem_ = status_of(
        "the configuration",
        [&] {
            document_ = parse_json(json_text);
            if (!document_.is_object())
                invalid_data("the document is {}: it must be an object", shown(document_));
        });
}

const json& HfConfig::language_model() const {
    const json* found = &document_;
    // A document with two language models is read only if the query ignores one.
    (void)status_of("the configuration", [&] {
        if (document_.is_object()) found = vkrope::language_model({&document_, ""}).config.object;
    });
    return *found;
}

Result<RopeParams> HfConfig::rotation(const ModelQuery& asked) const {
    if (!problem_) return {problem_, {}};
    RopeParams rotation;
    const Status status = status_of("the configuration", [&] {
        const Query query = checked(asked);
        check_tower(query);
        Reads reads;
        const json document = without_ignored(document_, query);
        const bool tower = query.tower == "vision" || is_vision_model(document);
        const auto read = is_checkpoint_params(document) ? checkpoint_rotation
                          : is_timm(document)            ? timm_rotation
                          : is_diffusers(document)       ? diffusers_rotation
                          : tower                        ? vision_rotation
                                                         : text_rotation;
        rotation = read({&document, "", &reads}, query);
        rotation.pairing = value_or(query.pairing, rotation.pairing);
        for (const std::string& name : query.ignore)
            warn(rotation, "ignored key {}: the query asks for it", shown_key(name));
        shorten(rotation.warnings);
    });
    return {status, std::move(rotation)};
}

}  // namespace vkrope
