// SPDX-License-Identifier: MIT
// Hugging Face config.json -> Rotation. Meaning of the fields: modeling_rope_utils.py of
// transformers.
#include "model/hf/config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/hf/field.hpp"
#include "model/hf/finish.hpp"
#include "model/hf/layers.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/nesting.hpp"
#include "model/hf/scaling.hpp"
#include "model/hf/sections.hpp"
#include "model/hf/unsupported.hpp"
#include "model/hf/vision.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// Reads one configuration; each function sets the fields of the Rotation that it is named after.
class Import {
   public:
    Import(const json& whole, const ModelQuery& query)
        : whole_(whole), query_(query), model_scope_(language_model(whole)),
          config_(model_scope_.config), top_(lookups(config_)) {}

    Rotation run() {
        model_type();
        const ScalingSections sections = scaling_sections(config_, model_, rotation_.warnings);
        for (const auto& [type, section] : sections.by_type) {
            require_known_scaling(section);  // report an unknown type first
        }
        if (sections.by_type.empty()) {
            require_known_scaling(sections.all);
        }
        refuse_unsupported_keys(top_, model_.name != nullptr && model_.rope_asked_by == nullptr &&
                                          !model_.absolute_is_meant);
        refuse_without_rope(sections);
        refuse_scaling_of_attention();
        layer_ = Layers(config_, model_, sections.types()).choose(query_, rotation_.warnings);
        choose_section(sections);
        pairing();
        head_dim();
        max_position();
        if (layer_.rotates) {
            rotary_dim();
            inv_freq();
        } else {
            rotation_.rotates = false;
        }
        rotation_.finish = model_finish(model_name_, top_, both_, layer_.rotates);
        for (const std::string& key : ignored_keys(top_, model_.rotary_object)) {
            warn("ignored key " + key);
        }
        for (std::string& warning : ignored_around(model_scope_)) {
            warn(std::move(warning));
        }
        return std::move(rotation_);
    }

   private:
    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    /// The key with its value, for messages.
    static std::string stated(const Field& field) {
        return field.name + " is " + shown(*field.value);
    }

    void assumed(const char* field, double value) {
        warn(std::string(field) + " is missing: " + shown_number(value) +
             " assumed, the default of " + model_name_);
    }

    /// DBRX and MPT have their numbers in attn_config.
    static Scopes lookups(const Scope& config) {
        Scopes scopes = {config};
        if (const Field inner = find_first({config}, {"attn_config"});
            inner && inner.value->is_object()) {
            scopes.push_back({inner.value, inner.name + "."});
        }
        return scopes;
    }

    void model_type() {
        Field field = find({config_}, {"model_type"});
        if (!field || (text(field).empty() && config_.object != &whole_)) {
            field = find({{&whole_, ""}}, {"model_type"});  // the text model has this class
        }
        if (!field) {
            warn("model_type is missing: defaults and pairing of llama assumed");
            return;
        }
        const std::string name = text(field);
        if (const char* reason = unsupported_model_type(name)) {
            fail(Code::not_supported, "%s is %s: %s", field.name.c_str(),
                 shown(*field.value).c_str(), reason);
        }
        if (const ModelType* row = find_model_type(name)) {
            model_ = *row;
            model_name_ = row->name;
            refuse_variants();
            return;
        }
        unknown_type_ = field;
        warn("model_type " + shown(*field.value) +
             " is unknown: defaults and pairing of llama assumed");
    }

    /// Handles models that share a model_type with others but differ from them.
    void refuse_variants() {
        // The smallest DeepSeek models have Llama's attention.
        if (model_.qk_rope_head_dim != 0 && without_latent_attention()) {
            model_ = *find_model_type("deepseek");
        }
        if (model_name_ == "baichuan") {
            const Field hidden = find({config_}, {"hidden_size"});
            if (hidden && *hidden.value == 5120) {
                fail(Code::not_supported,
                     "hidden_size is 5120: Baichuan's 13B models have ALiBi, no rotary embedding");
            }
        }
    }

    bool without_latent_attention() const {
        const Field latent = find(top_, {"use_mla"});
        return latent && !truth(latent);
    }

    void refuse_without_rope(const ScalingSections& sections) const {
        const char* key = model_.rope_asked_by;
        Scopes scopes = top_;
        scopes.push_back(sections.all.scope());
        if (key != nullptr && !find_first(scopes, {key})) {
            fail(Code::not_supported, "%s is missing: without it model_type %s does not use RoPE",
                 key, model_.name);
        }
        // An unknown class may have no RoPE at all.
        if (model_.name == nullptr && unknown_type_ && !names_rope(top_)) {
            fail(Code::not_supported, "%s: it is unknown, and no key names RoPE",
                 stated(unknown_type_).c_str());
        }
    }

    /// MPT has its scaling in attn_config, once for each implementation that it may use.
    void refuse_scaling_of_attention() const {
        const Field chosen = find_first(top_, {"rope_impl"});
        const bool by_transformers = chosen && *chosen.value == "hf";
        const Field section = find_first(top_,
                                         {by_transformers ? "rope_hf_config" : "rope_dail_config"});
        const Field type = section && section.value->is_object()
                               ? find_first({{section.value, section.name + "."}}, {"type"})
                               : Field();
        const char* plain = by_transformers ? "no_scaling" : "original";
        if (type && *type.value != plain) {
            fail(Code::not_supported, "%s: only %s is supported there", stated(type).c_str(),
                 plain);
        }
    }

    /// Several formulas are called ntk.
    void require_known_scaling(const ScalingSection& section) const {
        if (scaling_type(section) == "ntk" && !model_.mixed_ntk) {
            const Field type = find_first({section.scope()}, {"rope_type", "type"});
            fail(Code::not_supported, "%s: its formula is known of model_type new alone",
                 stated(type).c_str());
        }
    }

    void choose_section(const ScalingSections& sections) {
        const ScalingSection* found = sections.of(layer_.type);
        if (found == nullptr && layer_.rotates) {
            fail(Code::invalid_data, "rope_parameters has nothing for layer type %s",
                 shown_key(layer_.type).c_str());
        }
        by_type_ = !sections.by_type.empty();
        for (const auto& [type, section] : sections.by_type) {
            type_scopes_.push_back(section.scope());
        }
        const bool unscaled = !by_type_ && !layer_.is_full() &&
                              (model_.layers == LayerRule::local_base ||
                               model_.layers == LayerRule::scaled_on_full || has_local_base());
        section_ = found == nullptr ? ScalingSection()
                   : unscaled       ? found->without_scaling()
                                    : *found;
        rotation_.rope_type = scaling_type(section_);
        both_ = top_;
        both_.push_back(section_.scope());
    }

    /// ModernBERT says in this way that local layers have the base of the others.
    bool local_base_is_global() const {
        const auto entry = config_.object->find("local_rope_theta");
        return entry != config_.object->end() && entry->is_null() && !has_local_base();
    }

    bool has_local_base() const {
        return bool(
            find_first(top_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"}));
    }

    void pairing() {
        rotation_.pairing = model_.pairing;
        if (const Field field = find(
                top_, {"rope_interleaved", "rope_interleave", "rotary_emb_interleaved"})) {
            const Pairing wanted = truth(field) ? Pairing::interleaved : Pairing::half_split;
            // DeepSeek's classes have both pairings and the key chooses; other classes have one.
            if (model_.name != nullptr && model_.qk_rope_head_dim == 0 &&
                wanted != model_.pairing && !query_.pairing && model_name_ != "nomic_bert") {
                fail(Code::invalid_data, "%s is %s: contradicts the pairing of model_type %s",
                     field.name.c_str(), shown(*field.value).c_str(), model_.name);
            }
            rotation_.pairing = wanted;
        }
        rotation_.pairing = query_.pairing.value_or(rotation_.pairing);
    }

    void head_dim() {
        if (latent_head_dim()) {
            return;
        }
        if (layer_.type == "full_attention") {
            if (const Field field = find(top_, {"global_head_dim"})) {
                rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
                return;
            }
            if (model_.global_head_dim != 0) {
                rotation_.head_dim = model_.global_head_dim;
                assumed("global_head_dim", model_.global_head_dim);
                return;
            }
        }
        if (const Field field = find(top_, {"swa_head_dim"});
            field && layer_.type == "sliding_attention") {
            rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
            return;
        }
        if (model_.doubled_heads) {
            doubled_head_dim();
        } else if (const Field field = find(top_, {"head_dim", "kv_channels", "attention_head_dim",
                                                   "hidden_size_per_head"})) {
            rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
        } else if (model_.head_dim != 0 && !config_.object->contains("head_dim")) {
            rotation_.head_dim = model_.head_dim;
            assumed("head_dim", model_.head_dim);
        } else {
            rotation_.head_dim = divided_head_dim();
        }
    }

    void doubled_head_dim() {
        const Field field = find(top_, {"head_dim", "attention_head_dim"});
        rotation_.head_dim = field ? std::uint32_t(whole_number(field, 2, max_head_dim))
                                   : 2 * divided_head_dim();
        if (rotation_.head_dim > max_head_dim) {
            fail(Code::invalid_data, "head_dim becomes %u: must be at most 65534",
                 rotation_.head_dim);
        }
        const Field other = find_first(top_, {"kv_channels"});
        if (other && *other.value != rotation_.head_dim) {
            warn("ignored key " + other.name + ", which is " + shown(*other.value) +
                 ": heads are " + std::to_string(rotation_.head_dim) +
                 " wide, as attention is twice as wide as hidden_size");
        }
    }

    /// Multi-head latent attention rotates the tail of each query row, and the tail of the one row
    /// of latent channels.
    bool latent_head_dim() {
        const Field rope = find(top_, {"qk_rope_head_dim"});
        if (without_latent_attention()) {
            if (rope && is_set(*rope.value)) {
                warn("ignored key " + rope.name + ", which is " + shown(*rope.value) +
                     ": use_mla is false");
            }
            return false;
        }
        if (rope ? *rope.value == 0 : model_.qk_rope_head_dim == 0) {
            return false;
        }
        latent_ = true;
        const auto width = [&](const Field& field, const char* name, std::uint64_t low,
                               std::uint32_t otherwise) {
            if (!field) {
                assumed(name, otherwise);
            }
            return field ? std::uint32_t(whole_number(field, low, max_head_dim)) : otherwise;
        };
        rotation_.head_dim = width(rope, "qk_rope_head_dim", 2, model_.qk_rope_head_dim);
        const Field nope = find(top_, {"qk_nope_head_dim"});
        if (!nope && model_.qk_nope_head_dim == 0) {
            fail(Code::invalid_data,
                 "qk_nope_head_dim is missing: it is where the window of a query begins");
        }
        rotation_.q_rotary_offset = width(nope, "qk_nope_head_dim", 0, model_.qk_nope_head_dim);
        rotation_.k_rotary_offset = width(find(top_, {"kv_lora_rank"}), "kv_lora_rank", 0,
                                          model_.kv_lora_rank);
        const Field other = find_first(top_, {"head_dim"});
        if (other && *other.value != rotation_.head_dim) {
            warn("ignored key " + other.name + ": qk_rope_head_dim is what turns");
        }
        return true;
    }

    /// A count of the file, or the default of the model's class.
    std::uint64_t count(std::initializer_list<const char*> names, std::uint32_t otherwise,
                        std::uint64_t high, Field& field) {
        field = find(top_, names);
        if (field) {
            return whole_number(field, 1, high);
        }
        if (otherwise == 0) {
            fail(Code::invalid_data, "%s is missing: needed where there is no head_dim",
                 *names.begin());
        }
        assumed(*names.begin(), otherwise);
        return otherwise;
    }

    std::uint32_t divided_head_dim() {
        Field hidden, heads;
        const std::uint64_t width = count({"hidden_size", "n_embd", "d_model", "model_dim"},
                                          model_.hidden_size, max_hidden_size, hidden);
        const std::uint64_t number = count(
            {"num_attention_heads", "n_head", "n_heads", "decoder_num_attention_heads"},
            model_.num_attention_heads, max_heads, heads);
        const std::uint64_t head_dim = width / number;
        if (width % number != 0 || head_dim < 2 || head_dim > max_head_dim) {
            fail(Code::invalid_data,
                 "%s is %llu and %s is %llu: their quotient, head_dim, must be whole, 2 to 65534",
                 hidden ? hidden.name.c_str() : "hidden_size",
                 static_cast<unsigned long long>(width),
                 heads ? heads.name.c_str() : "num_attention_heads",
                 static_cast<unsigned long long>(number));
        }
        return std::uint32_t(head_dim);
    }

    void rotary_dim() {
        const Field factor = share_of_head();
        const Field given = find(top_, {"rotary_dim", "attn_rotary_emb"});
        if (latent_ || rotation_.rope_type == "proportional") {
            rotation_.rotary_dim = rotation_.head_dim;
            require_valid_rotary_dim({});
            latent_ ? agree_with_latent(given, factor) : agree_with_proportional(given, factor);
            return;
        }
        if (given) {
            rotation_.rotary_dim = std::uint32_t(whole_number(given, 2, max_head_dim));
            require_valid_rotary_dim(given);
        }
        if (factor) {
            const std::uint32_t product = partial(rotation_.head_dim, factor);
            if (given && product != rotation_.rotary_dim) {
                fail(Code::invalid_data, "%s is %u but %s asks for %u: they must agree",
                     given.name.c_str(), rotation_.rotary_dim, factor.name.c_str(), product);
            }
            rotation_.rotary_dim = product;
            require_valid_rotary_dim(factor);
        }
        if (!given && !factor) {
            assume_rotary_dim();
        }
        turning_pairs_ = rotation_.rotary_dim / 2;
    }

    Field share_of_head() {
        if (const Field own = by_type_ ? partial_rotary_factor({section_.scope()}) : Field()) {
            warn_unless_of_a_type(own, {"partial_rotary_factor"}, "partial_rotary_factor");
            return own;
        }
        return partial_rotary_factor(both_);
    }

    /// Latent attention rotates all of qk_rope_head_dim. A given width, or a share of a whole query
    /// row, must agree.
    void agree_with_latent(const Field& given, const Field& factor) {
        turning_pairs_ = rotation_.rotary_dim / 2;
        if (given && whole_number(given, 2, max_head_dim) != rotation_.rotary_dim) {
            fail(Code::invalid_data,
                 "%s is %s but qk_rope_head_dim, all of which turns, is %u: they must agree",
                 given.name.c_str(), shown(*given.value).c_str(), rotation_.rotary_dim);
        }
        if (!factor || *factor.value == 1) {
            return;
        }
        const std::uint32_t row = rotation_.q_rotary_offset + rotation_.head_dim;
        if (std::lround(portion(factor) * row) != long(rotation_.rotary_dim)) {
            fail(Code::invalid_data,
                 "%s is %s but qk_rope_head_dim, all of which turns, is %u, in query rows of %u: "
                 "they must agree",
                 factor.name.c_str(), shown(*factor.value).c_str(), rotation_.rotary_dim, row);
        }
        warn("ignored key " + factor.name + ": it says of a query row of " + std::to_string(row) +
             " what qk_rope_head_dim does");
    }

    /// The window of a proportional rotation is the whole head; its slower pairs do not rotate.
    void agree_with_proportional(const Field& given, const Field& factor) {
        share_ = factor ? portion(factor) : 1;
        turning_pairs_ = std::uint32_t(rotation_.head_dim * share_) / 2;
        if (turning_pairs_ == 0) {
            fail(Code::invalid_data, "%s is %s: turns no pair of a head_dim of %u",
                 factor.name.c_str(), shown(*factor.value).c_str(), rotation_.head_dim);
        }
        if (!given) {
            return;
        }
        const std::uint64_t width = whole_number(given, 2, max_head_dim);
        if (width != 2 * turning_pairs_ && width != rotation_.head_dim) {
            fail(Code::invalid_data,
                 "%s is %llu but rope_type proportional turns %u channels in a window of %u: they "
                 "must agree",
                 given.name.c_str(), static_cast<unsigned long long>(width), 2 * turning_pairs_,
                 rotation_.head_dim);
        }
        warn("ignored key " + given.name + ": rope_type proportional does not use it");
    }

    double portion(const Field& factor) const {
        const double value = positive_number(factor);
        if (value > 1) {
            fail(Code::invalid_data, "%s is %s: must be at most 1", factor.name.c_str(),
                 shown(*factor.value).c_str());
        }
        return value;
    }

    /// int(head_dim * factor), as transformers computes it.
    std::uint32_t partial(std::uint32_t head_dim, const Field& factor) const {
        return std::uint32_t(head_dim * portion(factor));
    }

    void assume_rotary_dim() {
        rotation_.rotary_dim = std::uint32_t(rotation_.head_dim * model_.partial_rotary_factor);
        if (model_.rotary_dim != 0) {
            rotation_.rotary_dim = model_.rotary_dim;
            assumed("rotary_dim", model_.rotary_dim);
        } else if (model_.partial_rotary_factor != 1) {
            assumed("partial_rotary_factor", model_.partial_rotary_factor);
        }
        require_valid_rotary_dim({});
    }

    void require_valid_rotary_dim(const Field& source) const {
        const std::uint32_t value = rotation_.rotary_dim;
        if (value >= 2 && value <= rotation_.head_dim && value % 2 == 0) {
            return;
        }
        const std::string reason = source ? source.name + " is " + shown(*source.value) + ": "
                                          : std::string();
        fail(Code::invalid_data,
             "%srotary_dim becomes %u: must be even, 2 to head_dim, which is %u", reason.c_str(),
             value, rotation_.head_dim);
    }

    double rope_theta() {
        if (const Field own = by_type_ ? find({section_.scope()}, {"rope_theta"}) : Field()) {
            warn_unless_of_a_type(own,
                                  {"rope_theta", "global_rope_theta", "rope_local_base_freq",
                                   "local_rope_theta", "swa_rope_theta"},
                                  "rope_theta");
            return positive_number(own);
        }
        const bool local = !layer_.is_full() &&
                           (model_.layers == LayerRule::local_base || has_local_base()) &&
                           !local_base_is_global();
        const Field field =
            local ? find(top_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"})
                  : find(both_, {"rope_theta", "global_rope_theta", "rotary_emb_base",
                                 "rotary_base", "rope_embedding_base", "rope_freq_constant"});
        const double theta = field   ? positive_number(field)
                             : local ? model_.local_rope_theta
                                     : model_.rope_theta;
        if (theta == 0) {
            fail(Code::invalid_data,
                 "rope_theta is missing: model_type %s has no default that holds for all versions",
                 model_.name);
        }
        if (!field) {
            assumed(local ? "rope_local_base_freq" : "rope_theta", theta);
            if (!local && model_.rope_theta_since_5 != 0) {
                rotation_.warnings.back() += ", whose default in transformers 5 is " +
                                             shown_number(model_.rope_theta_since_5);
            }
        }
        const Field ratio = find(top_, {"rope_ratio"});  // ChatGLM
        return ratio ? theta * positive_number(ratio) : theta;
    }

    /// For models with a section per layer type. The sections count; the top level repeats one of
    /// them, or is for older readers. Warns of a value there that no section has.
    void warn_unless_of_a_type(const Field& own, std::initializer_list<const char*> names,
                               const char* in_section) {
        for (const char* name : names) {
            const Field other = find_first(top_, {name});
            const bool known = std::any_of(
                type_scopes_.begin(), type_scopes_.end(), [&](const Scope& scope) {
                    const Field field = other ? find_first({scope}, {in_section}) : Field();
                    return field && *field.value == *other.value;
                });
            if (other && !known) {
                warn("ignored key " + other.name + ", which is " + shown(*other.value) + ": " +
                     own.name + " is read, which is " + shown(*own.value));
            }
        }
    }

    void inv_freq() {
        const double base = rope_theta();
        rotation_.base = base;
        std::vector<double>& frequencies = rotation_.inv_freq;
        frequencies.resize(rotation_.rotary_dim / 2);
        if (const Status status = default_inv_freq(base, rotation_.rotary_dim, frequencies.data());
            !status) {
            fail(Code::invalid_data, "rope_theta: %s", status.what);
        }
        apply_scaling(section_,
                      {config_, base, share_, latent_ && !model_.plain_yarn, query_.seq_len},
                      rotation_);
        qwen_dynamic_ntk();
        rotation_.sections = position_sections(section_, config_, model_, rotation_.rotary_dim / 2,
                                               rotation_.warnings);
        require_usable(rotation_, turning_pairs_, base, "rope_theta");
    }

    /// The first Qwen: NTK-aware scaling by alpha = 2^(ceil(log2(r)) + 1) - 1, where r is the ratio
    /// of the sequence to the trained length, at least 1.
    void qwen_dynamic_ntk() {
        const Field field = find(top_, {"use_dynamic_ntk"});
        if (!field || !truth(field)) {
            return;
        }
        if (!model_.grows_by_doubling) {
            warn("ignored key " + field.name + ": only the class of model_type qwen has it");
            return;
        }
        if (rotation_.rope_type != "default") {
            fail(Code::invalid_data,
                 "%s is true and the rope_type is %s: only one of them can scale",
                 field.name.c_str(), rotation_.rope_type.c_str());
        }
        if (rotation_.max_position == 0) {
            fail(Code::invalid_data, "seq_length is missing: use_dynamic_ntk needs it");
        }
        if (query_.seq_len == 0) {
            warn(
                "use_dynamic_ntk depends on the length, which is unknown: no longer than trained "
                "assumed");
        }
        const double longer = double(std::max(query_.seq_len, rotation_.max_position)) /
                              double(rotation_.max_position);
        const double step = std::ceil(std::log2(longer));  // doublings of the trained length
        const double alpha = std::max(std::exp2(step + 1) - 1, 1.0);
        rotation_.longest_seq_len = rotation_.max_position << static_cast<unsigned>(step);
        if (const Status status = scale_ntk(rotation_.inv_freq, alpha); !status) {
            fail(Code::invalid_data, "use_dynamic_ntk: %s", status.what);
        }
    }

    void max_position() {
        // The first Qwen was trained with seq_length; its max_position_embeddings is the length
        // that scaling reaches.
        const bool trained = model_.grows_by_doubling && find_first(top_, {"use_dynamic_ntk"});
        const Field field = trained ? find_first(top_, {"seq_length", "max_position_embeddings"})
                                    : find_first(
                                          top_, {"max_position_embeddings", "n_positions",
                                                 "seq_length", "max_seq_len", "max_sequence_length",
                                                 "model_max_length", "max_context_length"});
        if (field) {
            rotation_.max_position = whole_number(field, 1, max_whole);
        }
        const bool grows = rotation_.rope_type == "dynamic" || trained;
        if (rotation_.max_position != 0 && query_.seq_len > rotation_.max_position && !grows) {
            warn("seq_len is " + std::to_string(query_.seq_len) + ": the model was made for " +
                 std::to_string(rotation_.max_position));
        }
    }

    const json& whole_;
    const ModelQuery& query_;
    const LanguageModel model_scope_;
    const Scope& config_;  // the language model's own object
    const Scopes top_;
    Scopes both_;
    ScalingSection section_;  // of the layers that are asked for
    LayerKind layer_;
    bool by_type_ = false;             // rope_parameters has one section per layer type
    Scopes type_scopes_;               // those sections
    bool latent_ = false;              // multi-head latent attention
    double share_ = 1;                 // rotated share of the head, in a proportional rotation
    std::uint32_t turning_pairs_ = 0;  // the other pairs of the window do not rotate
    Field unknown_type_;               // a model_type that the table does not have
    ModelType model_;                  // llama's, with a null name, unless the table has a row
    std::string model_name_ = "llama";
    Rotation rotation_;
};

/// The tower is text or vision. All layers of a vision tower have the same RoPE.
void check_tower(const ModelQuery& query) {
    if (query.tower != "text" && query.tower != "vision") {
        fail(Code::invalid_argument, "tower is '%s': must be text or vision",
             shown_key(std::string(query.tower)).c_str());
    }
    if (query.tower == "vision" && (query.layer >= 0 || !query.layer_type.empty())) {
        fail(Code::invalid_argument, "tower is 'vision': its layers all have the same RoPE");
    }
}

}  // namespace

HfConfig::HfConfig(std::string_view json_text) {
    problem_ = status_of("the configuration", [&] {
        document_ = parse_json(json_text);
        if (!document_.is_object()) {
            fail(Code::invalid_data, "the document is %s: must be an object",
                 shown(document_).c_str());
        }
    });
}

Result<Rotation> HfConfig::rotation(const ModelQuery& query) const {
    if (!problem_) {
        return {problem_, {}};
    }
    Rotation rotation;
    const Status status = status_of("the configuration", [&] {
        check_query(query);
        check_tower(query);
        if (query.tower == "vision") {
            rotation = vision_rotation(document_);
            rotation.pairing = query.pairing.value_or(rotation.pairing);
        } else {
            rotation = Import(document_, query).run();
        }
        shorten(rotation.warnings);
    });
    return {status, std::move(rotation)};
}

Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query) {
    return HfConfig(json_text).rotation(query);
}

}  // namespace vkrope
