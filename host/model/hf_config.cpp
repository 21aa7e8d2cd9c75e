// SPDX-License-Identifier: MIT
// Hugging Face config.json -> Rotation. What each field means: modeling_rope_utils.py of transformers.
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "model/config_field.hpp"
#include "model/hf_model_types.hpp"
#include "model/hf_scaling.hpp"
#include "model/hf_unsupported.hpp"
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

/// Reads one configuration; each function sets the fields of the Rotation that it is named after.
class Import {
   public:
    explicit Import(const json& config)
        : config_(config), section_(scaling_section(config)), top_{{&config, ""}}, both_{{&config, ""}, section_.scope()} {}

    Rotation run() {
        rotation_.rope_type = scaling_type(section_);  // first: an unknown type is what a user should hear of
        refuse_unsupported_keys(config_, section_);
        model_type();
        pairing();
        head_dim();
        rotary_dim();
        inv_freq();
        max_position();
        for (const std::string& key : ignored_keys(config_)) {
            warn("ignored key " + key);
        }
        return std::move(rotation_);
    }

   private:
    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    void assumed(const char* field, double value) {
        warn(std::string(field) + " is missing: " + printed(value) + " assumed, the default of " + model_name_);
    }

    void model_type() {
        const Field field = find(top_, {"model_type"});
        if (!field) {
            warn("model_type is missing: defaults and pairing of llama assumed");
            return;
        }
        const std::string name = text(field);
        if (const char* reason = unsupported_model_type(name)) {
            fail(Code::not_supported, "model_type is %s: %s", shown(*field.value).c_str(), reason);
        }
        if (const ModelType* row = find_model_type(name)) {
            model_ = *row;
            model_name_ = name;
            return;
        }
        warn("model_type " + shown(*field.value) + " is unknown: defaults and pairing of llama assumed");
    }

    void pairing() {
        rotation_.pairing = model_.pairing;
        const Field field = find(top_, {"rope_interleaved", "rope_interleave"});
        if (!field) {
            return;
        }
        const Pairing wanted = truth(field) ? Pairing::interleaved : Pairing::half_split;
        if (model_.name != nullptr && wanted != model_.pairing) {
            fail(Code::invalid_data, "%s is %s: contradicts the pairing of model_type %s", field.name.c_str(),
                 shown(*field.value).c_str(), model_.name);
        }
        rotation_.pairing = wanted;
    }

    void head_dim() {
        if (const Field field = find(top_, {"head_dim", "kv_channels"})) {
            rotation_.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
        } else if (model_.head_dim != 0 && !config_.contains("head_dim")) {
            rotation_.head_dim = model_.head_dim;
            assumed("head_dim", model_.head_dim);
        } else {
            rotation_.head_dim = divided_head_dim();
        }
    }

    std::uint32_t divided_head_dim() const {
        const Field hidden = find(top_, {"hidden_size", "n_embd", "d_model"});
        const Field heads = find(top_, {"num_attention_heads", "n_head", "n_heads"});
        if (!hidden || !heads) {
            fail(Code::invalid_data, "%s is missing: needed where there is no head_dim",
                 hidden ? "num_attention_heads" : "hidden_size");
        }
        const std::uint64_t width = whole_number(hidden, 1, max_hidden_size);
        const std::uint64_t count = whole_number(heads, 1, max_heads);
        const std::uint64_t head_dim = width / count;
        if (width % count != 0 || head_dim < 2 || head_dim > max_head_dim) {
            fail(Code::invalid_data, "%s is %s and %s is %s: their quotient, head_dim, must be whole, 2 to 65534",
                 hidden.name.c_str(), shown(*hidden.value).c_str(), heads.name.c_str(), shown(*heads.value).c_str());
        }
        return std::uint32_t(head_dim);
    }

    void rotary_dim() {
        const Field factor = find(both_, {"partial_rotary_factor", "rotary_pct", "rope_pct"});
        const Field given = find(top_, {"rotary_dim"});
        if (given) {
            rotation_.rotary_dim = std::uint32_t(whole_number(given, 2, max_head_dim));
            require_valid_rotary_dim(given);
        }
        if (factor) {
            const std::uint32_t product = partial(positive_number(factor), factor);
            if (given && product != rotation_.rotary_dim) {
                fail(Code::invalid_data, "rotary_dim is %u but %s asks for %u: they must agree", rotation_.rotary_dim,
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
        if (const Field field = find(both_, {"rope_theta", "rotary_emb_base"})) {
            return positive_number(field);
        }
        if (model_.rope_theta == 0) {
            fail(Code::invalid_data, "rope_theta is missing: model_type %s has no default that holds for all versions",
                 model_.name);
        }
        assumed("rope_theta", model_.rope_theta);
        return model_.rope_theta;
    }

    void inv_freq() {
        const double base = rope_theta();
        std::vector<double>& frequencies = rotation_.inv_freq;
        frequencies.resize(rotation_.rotary_dim / 2);
        if (const Status status = default_inv_freq(base, rotation_.rotary_dim, frequencies.data()); !status) {
            fail(Code::invalid_data, "rope_theta: %s", status.what);
        }
        apply_scaling(rotation_.rope_type, config_, section_, frequencies, rotation_.warnings);
        for (const double frequency : frequencies) {
            if (!(frequency < 0x1p11)) {
                fail(Code::invalid_data, "rope_theta %.9g makes a frequency of %g radians per position: must be below 2048", base,
                     frequency);
            }
        }
    }

    void max_position() {
        if (const Field field = find_first(top_, {"max_position_embeddings", "n_positions", "seq_length"})) {
            rotation_.max_position = whole_number(field, 1, max_whole);
        }
    }

    const json& config_;
    const ScalingSection section_;
    const Scopes top_, both_;
    ModelType model_;  // llama's, until the table says otherwise; its name stays null then
    std::string model_name_ = "llama";
    Rotation rotation_;
};

// Every layer of the models that are read so far has the same RoPE.
void check_query(const json& config, const ModelQuery& query) {
    if (query.tower != "text" && query.tower != "vision") {
        fail(Code::invalid_argument, "tower is '%.*s': must be text or vision", int(query.tower.size()), query.tower.data());
    }
    if (query.tower == "vision") {
        fail(Code::not_supported, "tower is 'vision': vision towers are not supported yet");
    }
    if (!query.layer_type.empty()) {
        fail(Code::invalid_argument, "layer_type is '%.*s': the model has no layer types", int(query.layer_type.size()),
             query.layer_type.data());
    }
    const Field layers = find_first({{&config, ""}}, {"num_hidden_layers", "n_layer"});
    if (layers && query.layer >= 0 && std::uint64_t(query.layer) >= whole_number(layers, 1, max_whole)) {
        fail(Code::invalid_argument, "layer is %d: the model has %s", query.layer, shown(*layers.value).c_str());
    }
}

}  // namespace

Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query) {
    try {
        const json config = parse_json(json_text);
        if (!config.is_object()) {
            return {error(Code::invalid_data, "the document is %s: must be an object", shown(config).c_str()), {}};
        }
        Rotation rotation = Import(config).run();  // first: a model that differs between layers says so
        check_query(config, query);
        return {{}, std::move(rotation)};
    } catch (const ImportError& failure) {
        return {failure.status, {}};
    } catch (const std::bad_alloc&) {
        return {error(Code::out_of_host_memory, "out of memory while reading the configuration"), {}};
    } catch (const std::exception& exception) {
        return {error(Code::invalid_data, "cannot read the configuration: %s", exception.what()), {}};
    }
}

}  // namespace vkrope
