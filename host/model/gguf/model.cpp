// SPDX-License-Identifier: MIT
// Imports the RopeParams of a GGUF file. The import is one sequence of steps, which makes this file
// longer than others. Keys are described in docs/gguf.md of ggml, their meaning in load_hparams()
// and load_arch_hparams() of llama.cpp.
#include "model/gguf/model.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "defaults.hpp"
#include "model/gguf/readers.hpp"
#include "model/rotation_rules.hpp"
#include "status.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 62;
constexpr double base_without_key = 10000;

/// Maximum number of parts; models of a terabyte have about a hundred.
constexpr std::uint64_t max_parts = 1024;

/// Reads a regular file and opens it only during each read, because a split model has many files.
GgufRead reader_of(const std::string& path) {
    return [path](std::uint64_t offset, void* to, std::size_t count) {
        std::ifstream file(path, std::ios::binary);
        file.seekg(std::streamoff(offset));
        file.read(static_cast<char*>(to), std::streamsize(count));
        return std::size_t(file.gcount());
    };
}

/// Returns "-00001-of-00003.gguf", the format of llama_split_path() in llama.cpp.
std::string end_of_part(std::uint64_t number, std::uint64_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05llu-of-%05llu.gguf",
                  static_cast<unsigned long long>(number + 1),
                  static_cast<unsigned long long>(count));
    return text;
}

std::string architecture_of(const GgufFile& file) {
    const Field name = file.find("general.architecture");
    if (!name) {
        invalid_data("general.architecture is missing: it is the prefix of every other key");
    }
    return text(name);
}

/// Reads one file; each function sets the fields of the RopeParams that its name mentions.
class GgufImport {
   public:
    GgufImport(const GgufFile& file, const Query& query)
        : file_(file), query_(query), name_(architecture_of(file)), keys_(file, name_) {}

    RopeParams run() {
        split();
        architecture();
        layer_ = choose_gguf_layer(keys_, row_, layer_count_, query_, rotation_.warnings);
        pairing();
        max_position();
        rotary_dim();
        rotation_.no_rope = !layer_.kind.rotates;
        rotation_.ops = gguf_ops(keys_, file_, row_, query_, rotation_);
        if (layer_.kind.rotates) {
            inv_freq();
            readers_differ();
        } else {
            rotation_.rotary_dim = 0;
        }
        name_unread();
        return std::move(rotation_);
    }

   private:
    void assumed(const Field& field, double value, const char* because) {
        warn_of_assumed(field, value, because, rotation_.warnings);
    }

    /// The first part of a split file has all metadata; each part has some of the tensors.
    void split() {
        const std::uint64_t count = file_.split_count(), number = file_.split_number();
        if (number != 0) {
            not_supported(
                "split.no is {} and split.count is {}: the first part of a split file has the "
                "metadata; open that part, and from_gguf_file() reads the others beside it",
                number, count);
        }
        if (count > file_.parts_read()) {
            if (!file_.has_tensors()) {
                not_supported(
                    "split.count is {} and the first part has no tensors, which may scale the "
                    "frequencies: open it by its name, with the other parts beside it",
                    count);
            }
            warn(rotation_,
                 "split.count is {} and {} of the parts are read: assuming that no other part has "
                 "rope_freqs or rope_factors, nor the first norms of Q and K",
                 count, file_.parts_read());
        }
        if (file_.find("split.no") && !file_.find("split.count")) {
            warn(rotation_,
                 "split.count is missing although split.no is 0: assuming a whole file, as "
                 "llama.cpp does");
        }
    }

    void architecture() {
        if (const char* reason = unsupported_gguf_architecture(name_)) {
            not_supported("general.architecture is \"{}\": {}", shown_key(name_), reason);
        }
        if (const GgufArchitecture* row = find_gguf_architecture(name_)) {
            row_ = *row;
        } else if (query_.pairing) {
            row_.latent = says_latent();
            warn(rotation_,
                 "general.architecture \"{}\" is unknown: assuming the requested pairing, and that "
                 "layers differ only as in its keys; whether Q and K have norms is not known",
                 shown_key(name_));
        } else {
            not_supported(
                "general.architecture is \"{}\", which is unknown, and so is its pairing: "
                "give a pairing to read the file anyway",
                shown_key(name_));
        }
        const Field finetuned = keys_.find(
            "rope.scaling.finetuned");  // true: the weights were trained with the scaling
        if (finetuned && !truth(finetuned) && row_.finetuned_is_rope) {  // Granite
            not_supported("{} is false: the model does not use RoPE", finetuned.name);
        }
        layer_count_ = gguf_layer_count(keys_);
        if (row_.alibi_layer_count != 0 && layer_count_ == row_.alibi_layer_count) {
            not_supported(
                "{}.block_count is {}: {} models with this many layers use ALiBi, not RoPE",
                shown_key(name_), layer_count_, shown_key(name_));
        }
    }

    /// Returns whether the keys describe latent attention, whose rows have a different layout.
    bool says_latent() {
        const Field rank = keys_.find("attention.kv_lora_rank"),
                    row = keys_.find("attention.key_length_mla");
        return (rank && is_set(*rank.value)) || (row && is_set(*row.value));
    }

    void pairing() { rotation_.pairing = value_or(query_.pairing, row_.pairing); }

    void max_position() {
        if (const Field field = keys_.find("context_length")) {
            rotation_.max_position = whole_number(field, 1, max_whole);
            warn_of_length(rotation_, query_.seq_len);
        }
    }

    /// Also sets head_dim and the offsets.
    void rotary_dim() {
        const bool listed = numbers_.are_listed("rope.dimension_count");
        Field count = numbers_.of_layer("rope.dimension_count", "rope.dimension_count_swa");
        const Field all_rows = numbers_.of_layer("attention.key_length",
                                                 "attention.key_length_swa");
        if (listed && !layer_.kind.rotates && !row_.latent) count.value = nullptr;
        if (row_.latent) {
            latent_rotary_dim(count);
            return;
        }
        rotation_.head_dim = all_rows ? std::uint32_t(whole_number(all_rows, 2, max_head_dim))
                                      : divided_head_dim();
        if (count) {
            rotation_.rotary_dim = std::uint32_t(whole_number(count, 2, max_head_dim));
        } else {
            rotation_.rotary_dim = rotation_.head_dim;
            if (!listed) assumed(count, rotation_.head_dim, "which is head_dim");
        }
        if (rotation_.rotary_dim % 2 != 0 || rotation_.rotary_dim > rotation_.head_dim) {
            invalid_data("{} is {}: it must be even, 2 to head_dim, which is {}", count.name,
                         rotation_.rotary_dim, rotation_.head_dim);
        }
        if (row_.half_on_full && !layer_.sliding && !listed) {
            rotation_.rotary_dim /= 2;
            if (rotation_.rotary_dim % 2 != 0) {
                invalid_data("{} is {}: its half must be even", count.name,
                             2 * rotation_.rotary_dim);
            }
        }
        if (row_.layers.rule == LayerRule::compressed) {  // the last channels rotate
            rotation_.q_rotary_offset = rotation_.k_rotary_offset = rotation_.head_dim -
                                                                    rotation_.rotary_dim;
            warn(rotation_, "the norms of Q and K are not read: they differ from each other");
        }
    }

    /// Multi-head latent attention rotates the last channels of each query row and of the single
    /// row of latent channels (src/models/deepseek2.cpp). In newer files key_length_mla, not
    /// key_length, is the width of a query row.
    void latent_rotary_dim(const Field& count) {
        if (!count) {
            keys_.required("rope.dimension_count", "latent attention needs it");
        }
        Field row = numbers_.of_asked(keys_.find("attention.key_length_mla"));
        if (!row || whole_number(row, 0, max_head_dim) == 0) {
            row = numbers_.of_asked(keys_.required("attention.key_length",
                                                   "it is the offset of the window of a query"));
        }
        const Field rank = numbers_.of_asked(
            keys_.required("attention.kv_lora_rank", "it is the offset of the window of a key"));
        const std::uint64_t width = whole_number(row, 2, max_head_dim);
        const std::uint64_t turns = whole_number(count, 2, max_head_dim);
        if (turns % 2 != 0 || turns > width) {
            invalid_data("{} is {}: it must be even, 2 to {}, which is {}", count.name, turns,
                         row.name, width);
        }
        rotation_.head_dim = rotation_.rotary_dim = std::uint32_t(turns);
        rotation_.q_rotary_offset = std::uint32_t(width - turns);
        rotation_.k_rotary_offset = std::uint32_t(whole_number(rank, 0, max_head_dim));
    }

    /// Returns the head count of the selected layer, or of all layers with heads if they agree.
    std::uint64_t heads_of_layer(const Field& count) {
        const std::vector<std::uint64_t> each = whole_numbers(count, 0, max_heads);
        if (!count.is_list()) return each[0];
        if (query_.layer >= 0) {
            return std::size_t(query_.layer) < each.size() ? each[std::size_t(query_.layer)] : 0;
        }
        std::uint64_t found = 0;
        for (const std::uint64_t heads : each) {
            if (heads != 0 && found != 0 && heads != found) {
                invalid_argument(
                    "{} has {} and {}, and attention.key_length is missing: ask for a single layer",
                    count.name, found, heads);
            }
            found = heads != 0 ? heads : found;
        }
        return found;
    }

    std::uint32_t divided_head_dim() {
        const Field embedding = keys_.required(
            "embedding_length", "it is needed because attention.key_length is missing too");
        const Field count = keys_.required(
            "attention.head_count", "it is needed because attention.key_length is missing too");
        const std::uint64_t width = whole_number(embedding, 1, max_hidden_size);
        const std::uint64_t heads = heads_of_layer(count);
        const std::uint64_t head_dim = heads == 0 ? 0 : width / heads;
        if (head_dim < 2 || head_dim > max_head_dim) {
            invalid_data("{} is {} and {} is {}: their quotient, head_dim, must be 2 to 65534",
                         embedding.name, width, count.name, heads);
        }
        return std::uint32_t(head_dim);
    }

    double base() {
        const Field all = keys_.find("rope.freq_base");
        if (numbers_.are_listed("rope.freq_base")) {
            return positive_number(numbers_.of_layer("rope.freq_base", "rope.freq_base_swa"));
        }
        if (row_.layers.rule == LayerRule::compressed && !layer_.sliding) {
            return positive_number(keys_.required("attention.compress_rope_freq_base",
                                                  "it is the base of compressed layers"));
        }
        const bool local = layer_.sliding && row_.layers.rule == LayerRule::local_base;
        if (layer_.sliding && row_.layers.rule != LayerRule::scaled_on_full) {
            const Field own = keys_.find("rope.freq_base_swa");
            if (own || local) {
                return of(numbers_.of_asked(own));
            }
        }
        return of(all);
    }

    double of(const Field& base) {
        if (!base) {
            assumed(base, base_without_key, "as llama.cpp does");
        }
        return base ? positive_number(base) : base_without_key;
    }

    void inv_freq() {
        const double base = this->base();
        set_base(rotation_, base, "rope.freq_base");
        apply_gguf_scaling(keys_, {file_, row_, layer_.sliding, query_.seq_len}, rotation_);
        read_gguf_sections(keys_, row_, query_.pairing != VKROPE_PAIRING_NONE, rotation_);
        require_usable(rotation_, rotation_.inv_freq.size(), base, "rope.freq_base");
    }

    /// Warns of unread keys. For layers without RoPE, keys of RoPE are not reported.
    void name_unread() {
        const bool norms = rotation_.ops.tensor[Q].norm.kind != VKROPE_NORM_NONE;
        for (const auto& [field, says] : keys_.unread()) {
            const bool of_rotation = says == Says::angles,
                       asks = is_set(*field.value) || of_rotation || (says == Says::norm && norms);
            if (!asks || (of_rotation && !layer_.kind.rotates)) continue;
            std::string because;
            if (says == Says::norm && norms) {
                because = ", which is " + shown(field) +
                          ": the norms of Q and K are those of the tensors";
            } else if (says == Says::norm) {
                rotation_.ops.norms_known = false;
                because = ", which is " + shown(field) +
                          ": no norm of Q and K is read, so whether they have any is not known";
            }
            warn(rotation_, "ignored key {}{}", field.name, because);
        }
    }

    /// Warns of differences from readers of the config.json of the same model.
    void readers_differ() {
        if (row_.rounds_yarn && rotation_.rope_type == "yarn") {
            warn(rotation_,
                 "llama.cpp rounds the range of YaRN, which is read here; {}'s config.json has "
                 "truncate false, and its own code does not round",
                 shown_key(name_));
        }
        if (row_.softmax_differs && rotation_.softmax_scale != 1) {
            rotation_.warnings.push_back(of_readers_that_differ);
        }
        if (!row_.known() && row_.latent && rotation_.rope_type == "yarn") {
            warn(rotation_,
                 "general.architecture \"{}\" is unknown: whether YaRN also scales its softmax is "
                 "not known: that is left out",
                 shown_key(name_));
        }
    }

    const GgufFile& file_;
    const Query& query_;
    const std::string name_;
    GgufFields keys_;
    GgufArchitecture row_;           // Llama's row if the table has no row
    std::uint64_t layer_count_ = 0;  // 0: unknown
    GgufLayer layer_;
    GgufLayerNumbers numbers_{keys_, layer_, query_};
    RopeParams rotation_;
};

}  // namespace

GgufModel::GgufModel(std::uint64_t file_bytes, const GgufRead& read) {
    problem_ = status_of("the file", [&] { parse(file_bytes, read); });
}

GgufModel::GgufModel(const std::string& path) {
    problem_ = status_of("the file", [&] {
        std::error_code problem;
        const std::filesystem::file_type kind = std::filesystem::status(path, problem).type();
        if (kind !=
            std::filesystem::file_type::regular) {  // opening a pipe would wait for its other end
            const bool missing = kind == std::filesystem::file_type::not_found;
            invalid_data("{} {}", path, missing ? "does not exist" : "is not a regular file");
        }
        const std::uint64_t bytes = std::filesystem::file_size(path, problem);
        if (!std::ifstream(path, std::ios::binary) || problem) {
            invalid_data("{} cannot be opened", path);
        }
        parse(bytes, reader_of(path));
        add_parts(path);
    });
}

void GgufModel::add_parts(const std::string& path) {
    const std::uint64_t count = file_->split_count();
    const std::string first = end_of_part(0, count);
    if (count < 2 || file_->split_number() != 0 || !path.ends_with(first)) {
        return;
    }
    if (count > max_parts) {
        invalid_data("split.count is {}: it must be at most {}", count, max_parts);
    }
    for (std::uint64_t number = 1; number < count; ++number) {
        const std::string other = path.substr(0, path.size() - first.size()) +
                                  end_of_part(number, count);
        std::error_code problem;
        const bool regular = std::filesystem::is_regular_file(other, problem);
        const std::uint64_t bytes = regular ? std::filesystem::file_size(other, problem) : 0;
        if (regular && !problem) file_->add_part(number, bytes, reader_of(other));
    }
}

void GgufModel::parse(std::uint64_t file_bytes, const GgufRead& read) {
    if (!read) {
        invalid_argument("read is empty: it must be a function");
    }
    if (file_bytes > max_file_bytes) {
        invalid_argument("file_bytes is {}: it must be at most {}", file_bytes, max_file_bytes);
    }
    file_ = std::make_shared<GgufFile>(file_bytes, read);
}

Result<RopeParams> GgufModel::rotation(const ModelQuery& asked) const {
    RopeParams rotation;
    const Status status = status_of("the file", [&] {
        const Query query = checked(asked);
        if (query.tower != "text") {
            invalid_argument(
                "query.tower is '{}': a GGUF file holds a language model, so it must be text",
                shown_key(std::string(query.tower)));
        }
        if (!problem_) {
            throw ImportError{problem_};
        }
        rotation = GgufImport(*file_, query).run();
        shorten(rotation.warnings);
    });
    return {status, std::move(rotation)};
}

}  // namespace vkrope
