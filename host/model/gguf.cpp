// SPDX-License-Identifier: MIT
// GGUF -> Rotation. The keys: docs/gguf.md of ggml; what they mean: load_hparams() and load_arch_hparams() of llama.cpp.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/gguf_architectures.hpp"
#include "model/gguf_field.hpp"
#include "model/gguf_file.hpp"
#include "model/hf_layers.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "status.hpp"
#include "vkrope/model.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;

constexpr std::uint64_t max_head_dim = 65534;  // the widest head row that the kernel takes
constexpr std::uint64_t max_heads = 65536;
constexpr std::uint64_t max_layers = 4096;  // llama.cpp takes 512
constexpr std::uint64_t max_whole = std::uint64_t{1} << 53;
constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 62;
constexpr double base_without_key = 10000;

std::string printed(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string architecture_of(const GgufFile& file) {
    const GgufValue* value = file.find("general.architecture");
    if (value == nullptr) {
        fail(Code::invalid_data, "general.architecture is missing: it says what every other key is called");
    }
    return text({"general.architecture", value});
}

/// YaRN's magnitude for a factor, as llama_context's constructor has it (src/llama-context.cpp).
double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

/// Reads one file; each function sets the fields of the Rotation that it is named after.
class GgufImport {
   public:
    GgufImport(const GgufFile& file, const ModelQuery& query)
        : file_(file), query_(query), name_(architecture_of(file)), keys_(file, name_) {}

    Rotation run() {
        refuse_split();
        architecture();
        layer();
        pairing();
        max_position();
        rotary_dim();
        if (layer_.rotates) {
            inv_freq();
            for (const std::string& key : keys_.ignored()) {
                warn("ignored key " + key);
            }
        } else {
            rotation_.rotates = false;
            rotation_.rotary_dim = 0;
        }
        return std::move(rotation_);
    }

   private:
    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    void assumed(const GgufField& field, double value, const char* because) {
        warn(field.name + " is missing: " + printed(value) + " assumed, " + because);
    }

    void refuse_split() const {
        const GgufValue* parts = file_.find("split.count");
        if (parts == nullptr) {
            return;
        }
        const std::uint64_t count = whole_number({"split.count", parts}, 0, 65535);
        if (count > 1) {
            fail(Code::not_supported,
                 "split.count is %llu: a split file is not read, nor its first part alone, as the others may hold rope tensors; "
                 "merge the parts",
                 ull{count});
        }
    }

    void architecture() {
        if (const char* reason = unsupported_gguf_architecture(name_)) {
            fail(Code::not_supported, "general.architecture is \"%s\": %s", shown_key(name_).c_str(), reason);
        }
        if (const GgufArchitecture* row = find_gguf_architecture(name_)) {
            row_ = *row;
        } else if (query_.pairing) {
            warn("general.architecture \"" + shown_key(name_) +
                 "\" is unknown: layers that are alike are assumed, and the pairing that was asked for");
        } else {
            fail(Code::not_supported, "general.architecture is \"%s\", which is unknown: ask for a pairing to read it nevertheless",
                 shown_key(name_).c_str());
        }
        const GgufField finetuned = keys_.find("rope.scaling.finetuned");  // whether weights were trained with the scaling
        if (finetuned && !truth(finetuned) && row_.finetuned_is_rope) {    // but of Granite
            fail(Code::not_supported, "%s is false: the model does not use RoPE", finetuned.name.c_str());
        }
        if (const GgufField count = keys_.find("block_count")) {
            layer_count_ = whole_number(count, 1, max_layers);
        }
        if (row_.alibi_layer_count != 0 && layer_count_ == row_.alibi_layer_count) {
            fail(Code::not_supported, "%s.block_count is %llu: %s models of so many layers have ALiBi, no rotary embedding",
                 shown_key(name_).c_str(), ull{layer_count_}, shown_key(name_).c_str());
        }
    }

    /// Whether some layers attend to a window only.
    bool some_layers_slide() {
        const GgufField window = keys_.find("attention.sliding_window");
        const std::uint64_t width = window ? whole_number(window, 0, max_whole) : 0;
        if (!row_.window_decides) {
            return row_.period != 0 || row_.layers != GgufLayers::same || keys_.find("attention.sliding_window_pattern");
        }
        const bool by_default =
            row_.window_by_default || (row_.sliding_layer_count != 0 && layer_count_ == row_.sliding_layer_count);
        return window ? width > 0 : by_default;
    }

    /// The kind of each layer.
    std::vector<std::string> layer_types(bool some_slide) {
        std::vector<std::string> types(std::size_t(layer_count_), "full_attention");
        if (some_slide) {
            std::uint64_t period = row_.period;
            std::vector<std::uint64_t> slides;  // of each layer
            if (const GgufField pattern = keys_.find("attention.sliding_window_pattern")) {
                if (pattern.value->is_list()) {
                    slides = whole_numbers(pattern, 0, 1);
                    require_one_a_layer(pattern, slides.size());
                } else {
                    period = whole_number(pattern, 0, max_layers);  // 0: all of them
                }
            } else if (period == 0) {
                fail(Code::invalid_data, "%s is missing: which layers slide is unknown", pattern.name.c_str());
            }
            for (std::uint64_t layer = 0; layer < layer_count_; ++layer) {
                const std::uint64_t full = row_.full_first ? 0 : period - 1;
                if (!slides.empty() ? slides[layer] != 0 : period == 0 || layer % period != full) {
                    types[layer] = row_.sliding;
                }
            }
        }
        if (row_.linear_period != 0) {
            const GgufField interval = keys_.find("full_attention_interval");
            const std::uint64_t period = interval ? whole_number(interval, 1, max_layers) : row_.linear_period;
            for (std::uint64_t layer = 0; layer < layer_count_; ++layer) {
                if ((layer + 1) % period != 0) {
                    types[layer] = "linear_attention";
                }
            }
        }
        for (const char* name : {"attention.head_count", "attention.head_count_kv"}) {
            const GgufField field = keys_.find(name);
            if (!field || !field.value->is_list()) {
                continue;
            }
            const std::vector<std::uint64_t> heads = whole_numbers(field, 0, max_heads);
            require_one_a_layer(field, heads.size());
            for (std::uint64_t layer = 0; layer < layer_count_; ++layer) {
                if (heads[layer] == 0) {
                    types[layer] = "recurrent";  // or a convolution, or nothing: no attention
                }
            }
        }
        return types;
    }

    void require_one_a_layer(const GgufField& field, std::size_t length) const {
        if (length != layer_count_) {
            fail(Code::invalid_data, "%s has %llu elements: must have one a layer, %llu", field.name.c_str(), ull{length},
                 ull{layer_count_});
        }
    }

    /// By way of what a config.json says of layers.
    void layer() {
        const bool slide = some_layers_slide();
        nlohmann::json config = nlohmann::json::object();
        if (layer_count_ != 0) {
            config["num_hidden_layers"] = layer_count_;
            std::vector<std::string> types = layer_types(slide);
            if (slide || std::count(types.begin(), types.end(), "full_attention") != std::ptrdiff_t(types.size())) {
                config["layer_types"] = std::move(types);
            }
        } else if (slide || row_.linear_period != 0) {
            keys_.required("block_count", "layers of this architecture differ");
        }
        ModelType model;
        model.no_rope_layer_interval = row_.no_rope_interval;
        if (slide) {
            model.layers = row_.layers == GgufLayers::local_base         ? LayerRule::local_base
                           : row_.layers == GgufLayers::unscaled_sliding ? LayerRule::scaled_on_full
                           : row_.layers == GgufLayers::none_on_full     ? LayerRule::none_on_full
                                                                         : LayerRule::same;
        }
        layer_ = Layers({&config, ""}, model, {}).choose(query_, rotation_.warnings);
        sliding_ = layer_.type == row_.sliding;
        if (slide && !sliding_) {
            keys_.pass_over("rope.freq_base_swa");
            keys_.pass_over("rope.dimension_count_swa");
        }
    }

    void pairing() { rotation_.pairing = query_.pairing.value_or(row_.pairing); }

    void max_position() {
        if (const GgufField field = keys_.find("context_length")) {
            rotation_.max_position = whole_number(field, 1, max_whole);
            if (query_.seq_len > rotation_.max_position) {
                warn("seq_len is " + std::to_string(query_.seq_len) + ": the model was made for " +
                     std::to_string(rotation_.max_position));
            }
        }
    }

    /// The key of sliding layers, which have one of their own in some files, or else that of all layers.
    GgufField of_layer(const char* name, const char* sliding_name) {
        const GgufField own = sliding_ ? keys_.find(sliding_name) : GgufField();
        const GgufField all = keys_.find(name);
        return own ? own : all;
    }

    /// And with it head_dim and the offsets.
    void rotary_dim() {
        const GgufField count = of_layer("rope.dimension_count", "rope.dimension_count_swa");
        const GgufField all_rows = of_layer("attention.key_length", "attention.key_length_swa");
        if (row_.latent) {
            latent_rotary_dim(count);
            return;
        }
        rotation_.head_dim = all_rows ? std::uint32_t(whole_number(all_rows, 2, max_head_dim)) : divided_head_dim();
        if (count) {
            rotation_.rotary_dim = std::uint32_t(whole_number(count, 2, max_head_dim));
        } else {
            rotation_.rotary_dim = rotation_.head_dim;
            assumed(count, rotation_.head_dim, "which is head_dim");
        }
        if (rotation_.rotary_dim % 2 != 0 || rotation_.rotary_dim > rotation_.head_dim) {
            fail(Code::invalid_data, "%s is %u: must be even, 2 to head_dim, which is %u", count.name.c_str(), rotation_.rotary_dim,
                 rotation_.head_dim);
        }
    }

    /// Multi-head latent attention: what turns is the tail of a query row, and that of the one row of latent channels
    /// (src/models/deepseek2.cpp). Newer files say in key_length_mla how wide a query row is, and in key_length something else.
    void latent_rotary_dim(const GgufField& count) {
        if (!count) {
            keys_.required("rope.dimension_count", "latent attention needs it");
        }
        GgufField row = keys_.find("attention.key_length_mla");
        if (!row || whole_number(row, 0, max_head_dim) == 0) {
            row = keys_.required("attention.key_length", "it is where the window of a query begins");
        }
        const GgufField rank = keys_.required("attention.kv_lora_rank", "it is where the window of a key begins");
        const std::uint64_t width = whole_number(row, 2, max_head_dim);
        const std::uint64_t turns = whole_number(count, 2, max_head_dim);
        if (turns % 2 != 0 || turns > width) {
            fail(Code::invalid_data, "%s is %llu: must be even, 2 to %s, which is %llu", count.name.c_str(), ull{turns},
                 row.name.c_str(), ull{width});
        }
        rotation_.head_dim = rotation_.rotary_dim = std::uint32_t(turns);
        rotation_.q_rotary_offset = std::uint32_t(width - turns);
        rotation_.k_rotary_offset = std::uint32_t(whole_number(rank, 0, max_head_dim));
    }

    std::uint32_t divided_head_dim() {
        const GgufField embedding = keys_.required("embedding_length", "needed where there is no attention.key_length");
        const GgufField count = keys_.required("attention.head_count", "needed where there is no attention.key_length");
        const std::uint64_t width = whole_number(embedding, 1, max_head_dim * max_heads);
        const std::uint64_t heads = whole_numbers(count, 0, max_heads)[0];
        const std::uint64_t head_dim = heads == 0 ? 0 : width / heads;
        if (head_dim < 2 || head_dim > max_head_dim) {
            fail(Code::invalid_data, "%s is %llu and %s is %llu: their quotient, head_dim, must be 2 to 65534",
                 embedding.name.c_str(), ull{width}, count.name.c_str(), ull{heads});
        }
        return std::uint32_t(head_dim);
    }

    double base() {
        const GgufField all = keys_.find("rope.freq_base");
        const bool local = sliding_ && row_.layers == GgufLayers::local_base;
        if (sliding_ && row_.layers != GgufLayers::unscaled_sliding) {
            const GgufField own = keys_.find("rope.freq_base_swa");
            if (own || local) {
                return of(own);
            }
        }
        return of(all);
    }

    double of(const GgufField& base) {
        if (!base) {
            assumed(base, base_without_key, "as llama.cpp does");
        }
        return base ? positive_number(base) : base_without_key;
    }

    void inv_freq() {
        const double base = this->base();
        rotation_.base = base;
        rotation_.inv_freq.resize(rotation_.rotary_dim / 2);
        check(default_inv_freq(base, rotation_.rotary_dim, rotation_.inv_freq.data()), "rope.freq_base");
        if (const GgufField alpha = keys_.find("rope.scaling.alpha"); alpha && finite_number(alpha) > 0) {  // HunYuan
            check(scale_ntk(rotation_.inv_freq, positive_number(alpha)), "rope.scaling.alpha");
        }
        scaling(base);
        sections();
        for (const double frequency : rotation_.inv_freq) {
            if (!(frequency < 0x1p11)) {
                fail(Code::invalid_data, "rope.freq_base %.9g makes a frequency of %g radians per position: must be below 2048",
                     base, frequency);
            }
        }
    }

    static void check(const Status& status, const char* name) {
        if (!status) {
            fail(Code::invalid_data, "%s: %s", name, status.what);
        }
    }

    std::string scaling_type() {
        const GgufField field = keys_.find("rope.scaling.type");
        if (!field) {
            return "linear";  // what llama.cpp assumes; without a factor it is none
        }
        const std::string type = text(field);
        if (type != "none" && type != "linear" && type != "yarn" && type != "longrope") {
            fail(Code::not_supported, "%s is \"%s\": must be none, linear, yarn or longrope", field.name.c_str(),
                 shown_key(type).c_str());
        }
        return type;
    }

    /// By which positions are divided. rope.scale_linear is the older key; 0 is how files say that there is none.
    double factor() {
        const GgufField field = keys_.find("rope.scaling.factor");
        const GgufField older = keys_.find("rope.scale_linear");
        if (field && older && finite_number(field) != finite_number(older)) {
            fail(Code::invalid_data, "%s is %.9g but %s is %.9g: they must agree", field.name.c_str(), finite_number(field),
                 older.name.c_str(), finite_number(older));
        }
        const GgufField any = field ? field : older;
        return !any || finite_number(any) == 0 ? 1 : positive_number(any);
    }

    /// As the graphs of llama.cpp call ggml_rope_ext.
    void scaling(double base) {
        const std::string type = scaling_type();
        const bool sliding_unscaled = sliding_ && row_.layers == GgufLayers::unscaled_sliding;
        const bool sliding_local = sliding_ && row_.layers == GgufLayers::local_base;
        const double factor = type == "none" ? 1 : this->factor();
        const std::vector<double> divisors = sliding_local ? std::vector<double>() : divide(type);
        GgmlScaling scaling;
        scaling.freq_factors = divisors.data();
        scaling.freq_factor_count = divisors.size();
        if (sliding_unscaled) {
            keys_.pass_over("rope.scaling.");
        } else {
            yarn(type, factor, scaling);
        }
        scaling.freq_scale = sliding_unscaled || sliding_local ? 1 : 1 / factor;
        check(scale_ggml(rotation_.inv_freq, base, scaling, rotation_.attention_factor), "rope.scaling");
        if (!divisors.empty()) {
            rotation_.rope_type = from_lists_ ? "longrope" : "rope_freqs";
        } else if (type == "yarn" && scaling.ext_factor != 0) {
            rotation_.rope_type = "yarn";
        } else if (scaling.freq_scale != 1) {
            rotation_.rope_type = "linear";
        }
    }

    /// get_rope_factors() of src/llama-model.cpp: Llama 3's numbers before LongRoPE's, whose long list is for contexts longer than
    /// the original one.
    std::vector<double> divide(const std::string& type) {
        std::vector<double> divisors = file_.factors("rope_freqs.weight");
        if (!divisors.empty()) {
            return divisors;
        }
        std::vector<double> near = file_.factors("rope_factors_short.weight");
        std::vector<double> far = file_.factors("rope_factors_long.weight");
        if (near.empty() && far.empty()) {
            if (type == "longrope") {
                fail(Code::invalid_data,
                     "the tensors rope_factors_long.weight and rope_factors_short.weight are missing: the rope.scaling."
                     "type longrope needs them");
            }
            return {};
        }
        if (near.empty() || far.empty()) {
            fail(Code::invalid_data, "the tensor rope_factors_%s.weight is missing: there is one of the two",
                 near.empty() ? "short" : "long");
        }
        from_lists_ = true;
        if (query_.seq_len == 0) {
            warn("longrope depends on the length, which is unknown: the short list assumed");
        }
        const double original = original_length();
        if (double(query_.seq_len) > original) return far;
        rotation_.longest_seq_len = std::uint64_t(original);
        return near;
    }

    double original_length() {
        const GgufField original = keys_.find("rope.scaling.original_context_length");
        if (original) {
            return double(whole_number(original, 1, max_whole));
        }
        if (rotation_.max_position == 0) {
            keys_.required("context_length", "needed where there is no rope.scaling.original_context_length");
        }
        assumed(original, double(rotation_.max_position), "which is context_length");
        return double(rotation_.max_position);
    }

    double number(const char* name, double otherwise) {
        const GgufField field = keys_.find(name);
        return field ? positive_number(field) : otherwise;
    }

    /// llama_context's constructor, src/llama-context.cpp: with YaRN the attention factor is m(factor), or a ratio of two where the
    /// file has yarn_log_multiplier, and ggml's own factor is divided out, which rope_yarn() multiplies by.
    void yarn(const std::string& type, double factor, GgmlScaling& scaling) {
        const GgufField ext = keys_.find("rope.scaling.yarn_ext_factor");
        const double given = ext ? finite_number(ext) : -1;
        scaling.ext_factor = given >= 0 ? given : type == "yarn" ? 1 : 0;
        const double from_file = number("rope.scaling.attn_factor", 1);
        if (scaling.ext_factor == 0) {
            scaling.attn_factor = number("rope.scaling.yarn_attn_factor", 1) * from_file;
            return;
        }
        scaling.beta_fast = number("rope.scaling.yarn_beta_fast", row_.yarn_beta_fast);
        scaling.beta_slow = number("rope.scaling.yarn_beta_slow", 1);
        scaling.n_ctx_orig = original_length();
        const GgufField multiplier = keys_.find("rope.scaling.yarn_log_multiplier");
        const double all_dims = multiplier ? finite_number(multiplier) / row_.yarn_log_unit : 0;
        if (all_dims < 0) {
            fail(Code::invalid_data, "%s is %.9g: must be a finite number, at least 0", multiplier.name.c_str(),
                 finite_number(multiplier));
        }
        // DeepSeek's two are the same in every model, and only one is in the file; those of others are taken to be 1 and this one.
        const double mscale = row_.yarn_in_softmax ? all_dims : 1;
        const double of_ggml = 1 + 0.1 * std::log(factor);
        const double both =
            from_file * (all_dims != 0 ? magnitude(factor, mscale) / magnitude(factor, all_dims) : magnitude(factor, 1));
        scaling.attn_factor = both / of_ggml;
        if (row_.yarn_in_softmax) {  // kq_scale of src/models/deepseek2.cpp
            const double in_softmax = both * (1 + 0.1 * all_dims * std::log(factor));
            rotation_.softmax_scale = in_softmax * in_softmax;
        }
    }

    /// ggml_rope_multi of ggml: four sections, of which the last is idle in every model.
    void sections() {
        const GgufField field = keys_.find("rope.dimension_sections");
        if (row_.sections == GgufSections::none) {
            if (field) {
                warn("ignored key " + field.name + ": tokens of this architecture have one position");
            }
            return;
        }
        if (!field) {
            if (row_.sections == GgufSections::required) {
                keys_.required("rope.dimension_sections", "this architecture needs it");
            }
            return;
        }
        const std::vector<std::uint64_t> widths = whole_numbers(field, 0, max_head_dim);
        if (widths.size() != 3 && widths.size() != 4) {
            fail(Code::invalid_data, "%s has %llu elements: must have 3 or 4", field.name.c_str(), ull{widths.size()});
        }
        if (row_.sections == GgufSections::if_given && (widths[0] == 0 || widths[1] == 0)) {
            return;  // use_mrope() of src/llama-hparams.cpp
        }
        Sections& sections = rotation_.sections;
        std::copy(widths.begin(), widths.end(), sections.pairs);
        if (std::count(widths.begin(), widths.end(), 0u) == std::ptrdiff_t(widths.size())) {
            fail(Code::invalid_data, "%s has no pair: must have one", field.name.c_str());
        }
        sections.axes = sections.pairs[3] == 0 ? 3 : 4;
        if (!query_.pairing) {
            rotation_.pairing = Pairing::half_split;  // whatever it is without sections
        }
        if (row_.sections_interleaved) {
            interleave(sections);
        }
    }

    /// A pair beyond its axis' section is turned by the fourth position, which llama.cpp leaves 0 for text.
    void interleave(Sections& sections) {
        sections.order = SectionOrder::interleaved;
        std::uint32_t sum = 0, beyond = 0;
        for (const std::uint32_t width : sections.pairs) {
            sum += width;
        }
        for (std::uint32_t j = 0; j < rotation_.rotary_dim / 2; ++j) {
            const std::uint32_t m = j % sum;
            beyond += m >= 3 * sections.pairs[m % 3];
        }
        if (beyond != 0) {
            sections.axes = 4;
            sections.leftover_axis = 3;
            warn("pairs beyond the sections: " + std::to_string(beyond) +
                 ", which the fourth axis turns, as in ggml; in the model's own code the first one does");
        }
    }

    const GgufFile& file_;
    const ModelQuery& query_;
    const std::string name_;
    GgufFields keys_;
    GgufArchitecture row_;           // Llama's, until the table says otherwise
    std::uint64_t layer_count_ = 0;  // 0: unknown
    LayerKind layer_;
    bool sliding_ = false;     // the layer attends to a window
    bool from_lists_ = false;  // divisors are LongRoPE's
    Rotation rotation_;
};

void check_query(const ModelQuery& query) {
    if (query.tower != "text") {
        fail(Code::invalid_argument, "tower is '%s': a GGUF file holds a language model, and must be asked for text",
             shown_key(std::string(query.tower)).c_str());
    }
    if (query.layer >= 0 && !query.layer_type.empty()) {
        fail(Code::invalid_argument, "layer is %d and layer_type is '%s': only one of them can be asked for", query.layer,
             shown_key(std::string(query.layer_type)).c_str());
    }
    if (query.seq_len > max_positions) {
        fail(Code::invalid_argument, "seq_len is %llu: must be at most %llu", ull{query.seq_len}, ull{max_positions});
    }
}

}  // namespace

Result<Rotation> from_gguf(std::uint64_t file_bytes, const GgufRead& read, const ModelQuery& query) {
    try {
        if (!read) {
            fail(Code::invalid_argument, "read is empty: it must be a function");
        }
        if (file_bytes > max_file_bytes) {
            fail(Code::invalid_argument, "file_bytes is %llu: must be at most %llu", ull{file_bytes}, ull{max_file_bytes});
        }
        check_query(query);
        const GgufFile file(file_bytes, read);
        return {{}, GgufImport(file, query).run()};
    } catch (const ImportError& failure) {
        return {failure.status, {}};
    } catch (const std::bad_alloc&) {
        return {error(Code::out_of_host_memory, "out of memory while reading the file"), {}};
    } catch (const std::exception& exception) {
        return {error(Code::invalid_data, "cannot read the file: %s", exception.what()), {}};
    }
}

Result<Rotation> from_gguf(const void* data, std::size_t bytes, const ModelQuery& query) {
    if (data == nullptr) {
        return {error(Code::invalid_argument, "data is null"), {}};
    }
    const auto read = [=](std::uint64_t offset, void* to, std::size_t count) {
        std::memcpy(to, static_cast<const unsigned char*>(data) + offset, count);
        return count;
    };
    return from_gguf(bytes, read, query);
}

Result<Rotation> from_gguf_file(const std::string& path, const ModelQuery& query) {
    try {
        std::error_code problem;
        const std::filesystem::file_type kind = std::filesystem::status(path, problem).type();
        if (kind != std::filesystem::file_type::regular) {  // opening a pipe would wait for its other end
            const bool missing = kind == std::filesystem::file_type::not_found;
            return {error(Code::invalid_data, "%s %s", path.c_str(), missing ? "does not exist" : "is no regular file"), {}};
        }
        std::ifstream file(path, std::ios::binary);
        const std::uint64_t bytes = std::filesystem::file_size(path, problem);
        if (!file || problem) {
            return {error(Code::invalid_data, "%s cannot be opened", path.c_str()), {}};
        }
        const auto read = [&](std::uint64_t offset, void* to, std::size_t count) {
            file.clear();
            file.seekg(std::streamoff(offset));
            file.read(static_cast<char*>(to), std::streamsize(count));
            return std::size_t(file.gcount());
        };
        return from_gguf(bytes, read, query);
    } catch (const std::bad_alloc&) {
        return {error(Code::out_of_host_memory, "out of memory while opening the file"), {}};
    } catch (const std::exception& exception) {
        return {error(Code::invalid_data, "cannot open the file: %s", exception.what()), {}};
    }
}

}  // namespace vkrope
