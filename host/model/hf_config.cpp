// SPDX-License-Identifier: MIT
// Hugging Face config.json -> Rotation. What each field means: modeling_rope_utils.py of transformers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "model/config_field.hpp"
#include "model/hf_layers.hpp"
#include "model/hf_model_types.hpp"
#include "model/hf_scaling.hpp"
#include "model/hf_unsupported.hpp"
#include "model/hf_vision.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "status.hpp"
#include "vkrope/model.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_head_dim = 65534;  // the widest head row that the kernel takes
constexpr std::uint64_t max_heads = 65536;
constexpr std::uint64_t max_hidden_size = max_head_dim * max_heads;
constexpr std::uint64_t max_whole = std::uint64_t{1} << 53;

std::string printed(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

/// The language model's own object: the document, or one inside it.
Scope language_model(const json& config, const std::string& prefix = "") {
    const Scopes here = {{&config, prefix}};
    for (const char* name : {"text_config", "llm_config", "language_config", "thinker_config"}) {
        const Field field = find_first(here, {name});
        if (!field || !field.value->is_object() || field.value->empty()) {
            continue;
        }
        const bool thinker = name == std::string("thinker_config");  // of an omni model, with its own text_config
        const bool whole = find_first(here, {"hidden_size", "n_embd"}) && find_first(here, {"num_attention_heads", "n_head"});
        if (!thinker && whole && !find_first({{field.value, ""}}, {"hidden_size", "n_embd"})) {
            continue;  // an older file, flat, with an object that only names a class
        }
        return thinker ? language_model(*field.value, field.name + ".") : Scope{field.value, field.name + "."};
    }
    return here[0];
}

/// Reads one configuration; each function sets the fields of the Rotation that it is named after.
class Import {
   public:
    Import(const json& whole, const ModelQuery& query)
        : whole_(whole), query_(query), config_(language_model(whole)), top_(lookups(config_)) {}

    Rotation run() {
        model_type();
        const ScalingSections sections = scaling_sections(config_, model_, rotation_.warnings);
        for (const auto& [type, section] : sections.by_type) {
            scaling_type(section);  // an unknown type is what a user should hear of first
        }
        if (sections.by_type.empty()) {
            scaling_type(sections.all);
        }
        refuse_unsupported_keys(config_, model_.name != nullptr && !model_.rope_if_asked);
        refuse_without_rope();
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
        for (const std::string& key : ignored_keys(whole_, config_)) {
            warn("ignored key " + key);
        }
        return std::move(rotation_);
    }

   private:
    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    void assumed(const char* field, double value) {
        warn(std::string(field) + " is missing: " + printed(value) + " assumed, the default of " + model_name_);
    }

    /// DBRX keeps its numbers in an object of their own.
    static Scopes lookups(const Scope& config) {
        Scopes scopes = {config};
        if (const Field inner = find_first({config}, {"attn_config"}); inner && inner.value->is_object()) {
            scopes.push_back({inner.value, inner.name + "."});
        }
        return scopes;
    }

    void model_type() {
        Field field = find({config_}, {"model_type"});
        if (!field || (text(field).empty() && config_.object != &whole_)) {
            field = find({{&whole_, ""}}, {"model_type"});  // whose text model's class is known
        }
        if (!field) {
            warn("model_type is missing: defaults and pairing of llama assumed");
            return;
        }
        const std::string name = text(field);
        if (const char* reason = unsupported_model_type(name)) {
            fail(Code::not_supported, "%s is %s: %s", field.name.c_str(), shown(*field.value).c_str(), reason);
        }
        if (const ModelType* row = find_model_type(name)) {
            model_ = *row;
            model_name_ = row->name;
            refuse_variants();
            return;
        }
        warn("model_type " + shown(*field.value) + " is unknown: defaults and pairing of llama assumed");
    }

    /// Models that share a model_type with others and are not like them.
    void refuse_variants() {
        // DeepSeek's smallest ones: the attention is Llama's.
        if (const Field latent = find({config_}, {"use_mla"}); latent && !truth(latent) && model_.qk_rope_head_dim != 0) {
            model_ = *find_model_type("deepseek");
        }
        if (model_name_ == "baichuan") {
            const Field hidden = find({config_}, {"hidden_size"});
            if (hidden && *hidden.value == 5120) {
                fail(Code::not_supported, "hidden_size is 5120: Baichuan's 13B models have ALiBi, no rotary embedding");
            }
        }
    }

    void refuse_without_rope() const {
        if (model_.rope_if_asked && !find({config_}, {"position_embedding_type"})) {
            fail(Code::not_supported, "position_embedding_type is missing: without it model_type %s does not use RoPE",
                 model_.name);
        }
    }

    void choose_section(const ScalingSections& sections) {
        const ScalingSection* found = sections.of(layer_.type);
        if (found == nullptr && layer_.rotates) {
            fail(Code::invalid_data, "rope_parameters has nothing for layer type %s", shown_key(layer_.type).c_str());
        }
        by_type_ = !sections.by_type.empty();
        const bool unscaled =
            !by_type_ && !layer_.is_full() &&
            (model_.layers == LayerRule::local_base || model_.layers == LayerRule::scaled_on_full || has_local_base());
        section_ = found == nullptr || unscaled ? ScalingSection() : *found;
        rotation_.rope_type = scaling_type(section_);
        both_ = top_;
        both_.push_back(section_.scope());
    }

    bool has_local_base() const { return bool(find_first(top_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"})); }

    void pairing() {
        rotation_.pairing = model_.pairing;
        if (const Field field = find(top_, {"rope_interleaved", "rope_interleave", "rotary_emb_interleaved"})) {
            const Pairing wanted = truth(field) ? Pairing::interleaved : Pairing::half_split;
            // DeepSeek's classes have both and the key chooses; those of the others have one.
            if (model_.name != nullptr && model_.qk_rope_head_dim == 0 && wanted != model_.pairing && !query_.pairing &&
                model_name_ != "nomic_bert") {
                fail(Code::invalid_data, "%s is %s: contradicts the pairing of model_type %s", field.name.c_str(),
                     shown(*field.value).c_str(), model_.name);
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
        if (const Field field = find(top_, {"swa_head_dim"}); field && layer_.type == "sliding_attention") {
            rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
            return;
        }
        if (const Field field = find(top_, {"head_dim", "kv_channels", "attention_head_dim"})) {
            rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
        } else if (model_.head_dim != 0 && !config_.object->contains("head_dim")) {
            rotation_.head_dim = model_.head_dim;
            assumed("head_dim", model_.head_dim);
        } else {
            rotation_.head_dim = divided_head_dim();
        }
    }

    /// Multi-head latent attention: what turns is the tail of a query row, and that of the one row of latent channels.
    bool latent_head_dim() {
        const Field rope = find(top_, {"qk_rope_head_dim"});
        if (rope ? *rope.value == 0 : model_.qk_rope_head_dim == 0) {
            return false;
        }
        latent_ = true;
        const auto width = [&](const Field& field, const char* name, std::uint64_t low, std::uint32_t otherwise) {
            if (!field) {
                assumed(name, otherwise);
            }
            return field ? std::uint32_t(whole_number(field, low, max_head_dim)) : otherwise;
        };
        rotation_.head_dim = width(rope, "qk_rope_head_dim", 2, model_.qk_rope_head_dim);
        const Field nope = find(top_, {"qk_nope_head_dim"});
        if (!nope && model_.qk_nope_head_dim == 0) {
            fail(Code::invalid_data, "qk_nope_head_dim is missing: it is where the window of a query begins");
        }
        rotation_.q_rotary_offset = width(nope, "qk_nope_head_dim", 0, model_.qk_nope_head_dim);
        rotation_.k_rotary_offset = width(find(top_, {"kv_lora_rank"}), "kv_lora_rank", 0, model_.kv_lora_rank);
        const Field other = find_first(top_, {"head_dim"});
        if (other && *other.value != rotation_.head_dim) {
            warn("ignored key " + other.name + ": qk_rope_head_dim is what turns");
        }
        return true;
    }

    /// A count that may be a default of the model's class.
    std::uint64_t count(std::initializer_list<const char*> names, std::uint32_t otherwise, std::uint64_t high, Field& field) {
        field = find(top_, names);
        if (field) {
            return whole_number(field, 1, high);
        }
        if (otherwise == 0) {
            fail(Code::invalid_data, "%s is missing: needed where there is no head_dim", *names.begin());
        }
        assumed(*names.begin(), otherwise);
        return otherwise;
    }

    std::uint32_t divided_head_dim() {
        Field hidden, heads;
        const std::uint64_t width =
            count({"hidden_size", "n_embd", "d_model", "model_dim"}, model_.hidden_size, max_hidden_size, hidden);
        const std::uint64_t number = count({"num_attention_heads", "n_head", "n_heads", "decoder_num_attention_heads"},
                                           model_.num_attention_heads, max_heads, heads);
        const std::uint64_t head_dim = width / number;
        if (width % number != 0 || head_dim < 2 || head_dim > max_head_dim) {
            fail(Code::invalid_data, "%s is %llu and %s is %llu: their quotient, head_dim, must be whole, 2 to 65534",
                 hidden ? hidden.name.c_str() : "hidden_size", static_cast<unsigned long long>(width),
                 heads ? heads.name.c_str() : "num_attention_heads", static_cast<unsigned long long>(number));
        }
        return std::uint32_t(head_dim);
    }

    void rotary_dim() {
        if (latent_ || rotation_.rope_type == "proportional") {
            rotation_.rotary_dim = rotation_.head_dim;
            require_valid_rotary_dim({});
            return;
        }
        const Field factor = find(
            both_, {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction", "rotary_percent", "rope_percent"});
        const Field given = find(top_, {"rotary_dim", "attn_rotary_emb"});
        if (given) {
            rotation_.rotary_dim = std::uint32_t(whole_number(given, 2, max_head_dim));
            require_valid_rotary_dim(given);
        }
        if (factor) {
            const std::uint32_t product = partial(positive_number(factor), factor);
            if (given && product != rotation_.rotary_dim) {
                fail(Code::invalid_data, "%s is %u but %s asks for %u: they must agree", given.name.c_str(), rotation_.rotary_dim,
                     factor.name.c_str(), product);
            }
            rotation_.rotary_dim = product;
            require_valid_rotary_dim(factor);
        }
        if (!given && !factor) {
            assume_rotary_dim();
        }
    }

    /// int(head_dim * factor), as transformers computes it.
    std::uint32_t partial(double factor, const Field& field) const {
        if (factor > 1) {
            fail(Code::invalid_data, "%s is %s: must be at most 1", field.name.c_str(), shown(*field.value).c_str());
        }
        return std::uint32_t(rotation_.head_dim * factor);
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
        const std::string reason = source ? source.name + " is " + shown(*source.value) + ": " : std::string();
        fail(Code::invalid_data, "%srotary_dim becomes %u: must be even, 2 to head_dim, which is %u", reason.c_str(), value,
             rotation_.head_dim);
    }

    double rope_theta() {
        if (by_type_) {  // the top level then speaks of one type only, or to older readers
            if (const Field own = find({section_.scope()}, {"rope_theta"})) {
                return positive_number(own);
            }
        }
        const bool local = !layer_.is_full() && (model_.layers == LayerRule::local_base || has_local_base());
        const Field field = local ? find(top_, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"})
                                  : find(both_, {"rope_theta", "global_rope_theta", "rotary_emb_base", "rotary_base",
                                                 "rope_embedding_base", "rope_freq_constant"});
        const double theta = field ? positive_number(field) : local ? model_.local_rope_theta : model_.rope_theta;
        if (theta == 0) {
            fail(Code::invalid_data, "rope_theta is missing: model_type %s has no default that holds for all versions",
                 model_.name);
        }
        if (!field) {
            assumed(local ? "rope_local_base_freq" : "rope_theta", theta);
        }
        const Field ratio = find(top_, {"rope_ratio"});  // ChatGLM
        return ratio ? theta * positive_number(ratio) : theta;
    }

    void inv_freq() {
        const double base = rope_theta();
        rotation_.base = base;
        std::vector<double>& frequencies = rotation_.inv_freq;
        frequencies.resize(rotation_.rotary_dim / 2);
        if (const Status status = default_inv_freq(base, rotation_.rotary_dim, frequencies.data()); !status) {
            fail(Code::invalid_data, "rope_theta: %s", status.what);
        }
        apply_scaling(section_, {config_, base, latent_, query_.seq_len}, rotation_);
        qwen_dynamic_ntk();
        rotation_.sections = position_sections(section_, config_, model_, rotation_.rotary_dim / 2, rotation_.warnings);
        for (const double frequency : frequencies) {
            if (!(frequency < 0x1p11)) {
                fail(Code::invalid_data, "rope_theta %.9g makes a frequency of %g radians per position: must be below 2048", base,
                     frequency);
            }
        }
    }

    /// Qwen, the first: NTK-aware scaling by the next power of two, less 1, of how much longer than trained the sequence is.
    void qwen_dynamic_ntk() {
        const Field field = find(top_, {"use_dynamic_ntk"});
        if (!field || !truth(field)) {
            return;
        }
        if (rotation_.max_position == 0) {
            fail(Code::invalid_data, "seq_length is missing: use_dynamic_ntk needs it");
        }
        if (query_.seq_len == 0) {
            warn("use_dynamic_ntk depends on the length, which is unknown: no longer than trained assumed");
        }
        const double longer = double(std::max(query_.seq_len, rotation_.max_position)) / double(rotation_.max_position);
        const double step = std::ceil(std::log2(longer));  // doublings of the trained length
        const double alpha = std::max(std::exp2(step + 1) - 1, 1.0);
        rotation_.longest_seq_len = rotation_.max_position << static_cast<unsigned>(step);
        if (const Status status = scale_ntk(rotation_.inv_freq, alpha); !status) {
            fail(Code::invalid_data, "use_dynamic_ntk: %s", status.what);
        }
    }

    void max_position() {
        // Qwen, the first, was trained with seq_length and says in max_position_embeddings what scaling reaches.
        const Field trained = find_first(top_, {"use_dynamic_ntk"});
        const Field field = trained ? find_first(top_, {"seq_length", "max_position_embeddings"})
                                    : find_first(top_, {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len",
                                                        "max_sequence_length", "model_max_length", "max_context_length"});
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
    const Scope config_;
    const Scopes top_;
    Scopes both_;
    ScalingSection section_;  // of the layers that are asked for
    LayerKind layer_;
    bool by_type_ = false;  // rope_parameters has one section a layer type
    bool latent_ = false;   // multi-head latent attention
    ModelType model_;       // llama's, until the table says otherwise; its name stays null then
    std::string model_name_ = "llama";
    Rotation rotation_;
};

void check_query(const ModelQuery& query) {
    if (query.tower != "text" && query.tower != "vision") {
        fail(Code::invalid_argument, "tower is '%.*s': must be text or vision", int(query.tower.size()), query.tower.data());
    }
    if (query.layer >= 0 && !query.layer_type.empty()) {
        fail(Code::invalid_argument, "layer is %d and layer_type is '%.*s': only one of them can be asked for", query.layer,
             int(query.layer_type.size()), query.layer_type.data());
    }
    if (query.seq_len > max_positions) {
        fail(Code::invalid_argument, "seq_len is %llu: must be at most %llu", static_cast<unsigned long long>(query.seq_len),
             static_cast<unsigned long long>(max_positions));
    }
    if (query.tower == "vision" && (query.layer >= 0 || !query.layer_type.empty())) {
        fail(Code::invalid_argument, "tower is 'vision': its layers all have the same RoPE");
    }
}

}  // namespace

Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query) {
    try {
        const json config = parse_json(json_text);
        if (!config.is_object()) {
            return {error(Code::invalid_data, "the document is %s: must be an object", shown(config).c_str()), {}};
        }
        check_query(query);
        if (query.tower == "vision") {
            Rotation rotation = vision_rotation(config);
            rotation.pairing = query.pairing.value_or(rotation.pairing);
            return {{}, std::move(rotation)};
        }
        return {{}, Import(config, query).run()};
    } catch (const ImportError& failure) {
        return {failure.status, {}};
    } catch (const std::bad_alloc&) {
        return {error(Code::out_of_host_memory, "out of memory while reading the configuration"), {}};
    } catch (const std::exception& exception) {
        return {error(Code::invalid_data, "cannot read the configuration: %s", exception.what()), {}};
    }
}

}  // namespace vkrope
