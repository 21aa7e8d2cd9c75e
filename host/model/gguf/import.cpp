// SPDX-License-Identifier: MIT
// Keys are described in docs/gguf.md of ggml, their meaning in load_hparams() and
// load_arch_hparams() of llama.cpp.
#include "model/gguf/import.hpp"

#include <algorithm>
#include <utility>

#include "base/defaults.hpp"
#include "model/rotation_rules.hpp"
#include "model/unread.hpp"

namespace vkrope {
namespace {

constexpr double base_without_key = 10000;

std::string architecture_of(const GgufFile& file) {
    const Field name = file.find("general.architecture");
    if (!name) invalid_data("general.architecture is missing: it is the prefix of every other key");
    return text(name);
}

// Words that do not distinguish keys of RoPE.
constexpr auto fillers = names("attention", "attn", "freq", "layer", "layers", "rope", "window");

// Returns what a key is about: its words without fillers, sorted.
std::vector<std::string> meaning_of(const std::string& key) {
    std::vector<std::string> words = words_of(key);
    std::erase_if(words, [](const std::string& word) { return contains(fillers, word); });
    std::replace(words.begin(), words.end(), std::string("theta"), std::string("base"));
    std::sort(words.begin(), words.end());
    return words;
}

// First words of keys that are not about the model, and words of keys about another tower.
constexpr auto of_no_model = names("adapter", "clip", "general", "quantize", "split", "tokenizer");
constexpr auto of_tower = names("audio", "image", "mm", "projector", "speech", "vision");

bool has_any(const std::vector<std::string>& words, const auto& names) {
    return std::any_of(
        words.begin(), words.end(), [&](const std::string& word) { return contains(names, word); });
}

// Returns whether a key describes the rows of latent attention, under any name.
bool says_latent(const std::vector<std::string>& words) {
    const auto has = [&](const char* word) { return contains(words, word); };
    const bool of_rows = has("mla") || (has("kv") && (has("lora") || has("latent"))) ||
                         (has("qk") && (has("rope") || has("nope")));
    return of_rows && !has("moe") && !has("expert");
}

// Returns the number of rotated channels.
std::uint32_t rotated(const Field& count) {
    const auto channels = std::uint32_t(whole_number(count, 0, max_head_dim));
    if (channels == 0) not_supported("{} is 0: this layer has no RoPE", count.name);
    if (channels % 2 != 0) refuse(count, "even");
    return channels;
}

}  // namespace

GgufImport::GgufImport(const GgufFile& file, const Query& query)
    : file_(file), query_(query), name_(architecture_of(file)), prefix_(name_ + ".") {}

Field GgufImport::find(const std::string& name) {
    asked_for_.insert(prefix_ + name);
    return file_.find(prefix_ + name);
}

Field GgufImport::find_of(std::span<const std::string_view> marks, const std::string& name) {
    const std::vector<std::string> wanted = meaning_of(name);
    Field found = file_.find(prefix_ + name + "_swa");
    found.value = nullptr;
    for (const auto& value : file_.values()) {
        const std::string& key = value.first;
        if (!key.starts_with(prefix_)) continue;
        if (std::none_of(marks.begin(), marks.end(),
                         [&](std::string_view mark) { return key.find(mark) != key.npos; }))
            continue;
        std::vector<std::string> meaning = meaning_of(key.substr(prefix_.size()));
        const auto marked = std::erase_if(
            meaning, [&](const std::string& word) { return contains(marks, word); });
        if (marked == 0 || meaning != wanted) continue;
        asked_for_.insert(key);
        const Field field = file_.find(key);
        if (found && *found.value != *field.value) disagree(found, field);
        found = field;
    }
    return found;
}

Field GgufImport::required(const std::string& name, const char* because) {
    Field field = find(name);
    if (!field) invalid_data("{} is missing: {}", field.name, because);
    return field;
}

RopeParams GgufImport::run() {
    split();
    architecture();
    choose_layer();
    rotation_.pairing = value_or(query_.pairing, row_.pairing);
    if (const Field trained = find("context_length")) {
        rotation_.max_position = whole_number(trained, 1, max_whole);
        warn_of_length(rotation_, query_.seq_len);
    }
    rotation_.no_rope = !kind_.rotates;
    rotation_.softmax_scale = 1;
    widths();
    ops();
    if (kind_.rotates) {
        inv_freq();
        readers_differ();
    } else {
        rotation_.rotary_dim = 0;
    }
    scores();
    judge_unread();
    return std::move(rotation_);
}

void GgufImport::assume(const Field& field, double value, const std::string& because) {
    warn(rotation_, "{} is missing: assuming {}, {}", field.name, shown_number(value), because);
}

// The first part of a split file has all metadata; each part has some of the tensors.
void GgufImport::split() {
    const std::uint64_t count = file_.split("split.count"), number = file_.split("split.no");
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
             "split.count is missing although split.no is 0: assuming a whole file, as llama.cpp "
             "does");
    }
}

void GgufImport::architecture() {
    if (const char* reason = unsupported_gguf_architecture(name_))
        not_supported("general.architecture is \"{}\": {}", shown_key(name_), reason);
    row_ = find_gguf_architecture(name_);
    if (!row_.known() && !query_.pairing) {
        not_supported(
            "general.architecture is \"{}\", which is unknown, and so is its pairing: give a "
            "pairing to read the file anyway",
            shown_key(name_));
    }
    if (!row_.known()) {
        row_.latent = is_on(find("attention.kv_lora_rank")) ||
                      is_on(find("attention.key_length_mla"));
        warn(rotation_,
             "general.architecture \"{}\" is unknown: assuming the requested pairing, and that "
             "layers differ only as in its keys; whether Q and K have norms is not known",
             shown_key(name_));
    }
    const Field finetuned = find("rope.scaling.finetuned");
    if (finetuned && !truth(finetuned) && row_.finetuned_is_rope)  // Granite
        not_supported("{} is false: the model does not use RoPE", finetuned.name);
    const Field count = find("block_count");
    layers_.count = count ? whole_number(count, 1, max_gguf_layers) : 0;
    if (const Field alibi = find("attention.max_alibi_bias"); is_on(alibi))
        not_supported("{}: the model has ALiBi, not RoPE", stated(alibi));
    if (row_.alibi_layer_count != 0 && layers_.count == row_.alibi_layer_count) {
        not_supported("{} is {}: {} models with this many layers use ALiBi, not RoPE", count.name,
                      layers_.count, shown_key(name_));
    }
}

void GgufImport::widths() {
    const Field count = of_layer("rope.dimension_count"), row = of_layer("attention.key_length");
    if (row_.latent) {
        latent_widths(count);
        return;
    }
    rotation_.head_dim = row ? std::uint32_t(whole_number(row, 2, max_head_dim))
                             : divided_head_dim();
    rotation_.rotary_dim = rotation_.head_dim;
    if (!kind_.rotates) return;
    if (count)
        rotation_.rotary_dim = rotated(count);
    else
        assume(count, rotation_.head_dim, "which is head_dim");
    const std::string width = row ? stated(row) : "head_dim is " + shown_number(rotation_.head_dim);
    if (rotation_.rotary_dim > rotation_.head_dim ||
        (row_.rotates_whole && rotation_.rotary_dim != rotation_.head_dim)) {
        invalid_data("{} but {}: it must be {}", stated(count), width,
                     row_.rotates_whole ? "the same in this architecture" : "at most that");
    }
    if (rotation_.rotary_dim % 2 != 0)
        invalid_data("{} is missing, and {}: it must be even", count.name, width);
    if (row_.half_on_full && !slides_ && !are_listed("rope.dimension_count")) {
        rotation_.rotary_dim /= 2;
        if (rotation_.rotary_dim % 2 != 0)
            invalid_data("{} is {}: its half must be even", count.name, 2 * rotation_.rotary_dim);
    }
    if (row_.layers.rule == LayerRule::compressed) {  // the last channels rotate
        rotation_.q_rotary_offset = rotation_.k_rotary_offset = rotation_.head_dim -
                                                                rotation_.rotary_dim;
        warn(rotation_, "the norms of Q and K are not read: they differ from each other");
    }
}

// Multi-head latent attention rotates the last channels of each query row and of the single row of
// latent channels (src/models/deepseek2.cpp). In newer files key_length_mla, not key_length, is
// the width of a query row.
void GgufImport::latent_widths(const Field& count) {
    if (!count) required("rope.dimension_count", "latent attention needs it");
    const std::uint32_t turns = rotated(count);
    Field row = picked(find("attention.key_length_mla"));
    if (!row || whole_number(row, 0, max_head_dim) == 0)
        row = picked(required("attention.key_length", "it is the offset of the window of a query"));
    const Field rank = picked(
        required("attention.kv_lora_rank", "it is the offset of the window of a key"));
    const auto width = std::uint32_t(whole_number(row, 2, max_head_dim));
    if (turns > width)
        invalid_data("{} but {}: it must be at most that", stated(count), stated(row));
    rotation_.head_dim = rotation_.rotary_dim = turns;
    rotation_.q_rotary_offset = width - turns;
    rotation_.k_rotary_offset = std::uint32_t(whole_number(rank, 0, max_head_dim));
}

// Returns the width of a head: the width of an embedding divided by the number of heads.
std::uint32_t GgufImport::divided_head_dim() {
    constexpr const char* because = "it is needed because attention.key_length is missing too";
    const Field embedding = required("embedding_length", because),
                count = picked(required("attention.head_count", because));
    const std::uint64_t width = whole_number(embedding, 1, max_hidden_size);
    const std::uint64_t heads = whole_number(count, 0, max_heads);
    const std::uint64_t head_dim = heads == 0 ? 0 : width / heads;
    if (head_dim < 2 || head_dim > max_head_dim) {
        invalid_data("{} is {} and {} is {}: their quotient, head_dim, must be 2 to 65534",
                     embedding.name, width, count.name, heads);
    }
    return std::uint32_t(head_dim);
}

void GgufImport::inv_freq() {
    const double base = this->base();
    set_base(rotation_, base, "rope.freq_base");
    scale();
    sections();
    require_usable(rotation_, rotation_.inv_freq.size(), base, "rope.freq_base");
}

double GgufImport::base() {
    const LayerRule rule = row_.layers.rule;
    Field base = of_layer("rope.freq_base");
    const bool listed = are_listed("rope.freq_base");
    if (rule == LayerRule::compressed) {
        const Field compressed = required("attention.compress_rope_freq_base",
                                          "it is the base of compressed layers");
        if (!slides_ && !listed) base = compressed;
    } else if (rule == LayerRule::local_base && slides_ && !listed) {
        base = picked(find_of(of_sliding, "rope.freq_base"));
    }
    if (base) return positive_number(base);
    assume(base, base_without_key, "as llama.cpp does");
    return base_without_key;
}

// Judges the keys that no rule has looked for, without those of other parts of the file.
void GgufImport::judge_unread() {
    UnreadKeys rule({.name = "general.architecture " + shown_key(name_),
                     .known = row_.known(),
                     .rotates = kind_.rotates,
                     .layer_asked = query_.layer >= 0 || !query_.layer_type.empty(),
                     .scaled = rotation_.rope_type != "default",
                     .has_norms = rotation_.ops.tensor[Q].norm.kind != VKROPE_NORM_NONE,
                     .instead = ""},
                    rotation_.warnings);
    for (const auto& [key, value] : file_.values()) {
        const Field field = file_.find(key);
        const std::vector<std::string> words = words_of(key);
        if (asked_for_.count(key) != 0 || contains(of_no_model, words[0]) ||
            has_any(words, of_tower))
            continue;
        if (!row_.latent && is_on(field) && says_latent(words)) {
            not_supported(
                "{}: it means latent attention, whose rows rotate in their tails, but the "
                "architecture is not known to have it, nor this key for it",
                stated(field));
        }
        std::string name = key.starts_with(prefix_) ? key.substr(prefix_.size()) : key;
        const bool in_rope = name.starts_with("rope.");
        std::replace(name.begin(), name.end(), '.', '_');
        rule.judge(field, name, in_rope);
    }
    if (rule.says_norms()) rotation_.ops.norms_known = false;
}

// Warns if readers of the same model's config.json may scale differently.
void GgufImport::readers_differ() {
    if (rotation_.rope_type != "yarn") return;
    if (row_.yarn_differs != nullptr) rotation_.warnings.push_back(row_.yarn_differs);
    if (!row_.known() && row_.latent) {
        warn(rotation_,
             "general.architecture \"{}\" is unknown: whether YaRN also scales its softmax is not "
             "known: that is left out",
             shown_key(name_));
    }
}

}  // namespace vkrope
