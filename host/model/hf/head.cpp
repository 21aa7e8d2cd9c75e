// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <optional>

#include "model/hf/nesting.hpp"
#include "model/hf/readers.hpp"
#include "model/key_words.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// Returns a count from the file, or the default of the model's class.
std::uint64_t count(const Source& source, Warnings& warnings,
                    std::initializer_list<const char*> names, std::uint32_t otherwise,
                    std::uint64_t high, Field& field) {
    field = find(source.top, names);
    if (field) return whole_number(field, 1, high);
    if (otherwise == 0)
        invalid_data("{} is missing: it is needed because head_dim is missing too", *names.begin());
    warnings.push_back(source.assumed(*names.begin(), otherwise));
    return otherwise;
}

std::uint32_t divided_head_dim(const Source& source, Warnings& warnings) {
    Field hidden, heads;
    const std::uint64_t width = count(source, warnings,
                                      {"hidden_size", "n_embd", "d_model", "model_dim"},
                                      source.type.size.hidden_size, max_hidden_size, hidden);
    const std::uint64_t number = count(
        source, warnings,
        {"num_attention_heads", "n_head", "n_heads", "decoder_num_attention_heads"},
        source.type.size.num_attention_heads, max_heads, heads);
    const std::uint64_t head_dim = width / number;
    if (width % number != 0 || head_dim < 2 || head_dim > max_head_dim) {
        invalid_data("{} is {} and {} is {}: their quotient, head_dim, must be whole, 2 to 65534",
                     hidden ? hidden.name.c_str() : "hidden_size", width,
                     heads ? heads.name.c_str() : "num_attention_heads", number);
    }
    return std::uint32_t(head_dim);
}

std::uint32_t doubled_head_dim(const Source& source, Warnings& warnings) {
    const Field field = find(source.top, {"head_dim", "attention_head_dim"});
    const std::uint32_t head_dim = field ? std::uint32_t(whole_number(field, 2, max_head_dim))
                                         : 2 * divided_head_dim(source, warnings);
    if (head_dim > max_head_dim)
        invalid_data("head_dim becomes {}: it must be at most 65534", head_dim);
    const Field other = find_first(source.top, {"kv_channels"});
    if (other && *other.value != head_dim) {
        warn(warnings, "{}heads are {} wide, as attention is twice as wide as hidden_size",
             ignored(other), head_dim);
    }
    return head_dim;
}

// Names under which the widths of latent attention are read.
const Keys latent_names = {"qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank"};

// Returns whether a key is a width of latent attention, by its words.
bool says_latent(const std::string& key) {
    const std::vector<std::string> words = words_of(key);
    const auto has = [&](std::string_view word) { return contains(words, word); };
    const bool width = has("dim") || has("size") || has("rank");
    const bool part = has("nope") || has("pe") || (has("rope") && (has("qk") || has("head"))) ||
                      (has("pos") && has("emb") && has("qk"));
    const bool row = has("lora") || has("latent") || has("compress") || has("compressed") ||
                     has("compression") || has("rank");
    return (width &&
            ((part && !has("index") && !has("indexer")) || ((has("kv") || has("q")) && row))) ||
           (has("kv") && has("compressed")) || key == "use_mla";
}

// Rejects latent attention of a class that is not known to have it, if its keys have other names,
// are in other objects, or are incomplete, because the wrong channels would rotate.
void refuse_other_latent(const Scope& scope) {
    for (const auto& [key, value] : scope.object->items()) {
        const Field field = {scope.prefix + shown_key(key), &value};
        if (says_latent(key) && is_set(value)) {
            not_supported(
                "{}: it means latent attention, whose rows rotate in their tails; state its widths "
                "in qk_rope_head_dim, qk_nope_head_dim and kv_lora_rank, and set it to null",
                stated(field));
        }
        if (is_other_part(key, value)) continue;
        if (value.is_object()) refuse_other_latent(inside(scope, field));
        if (!value.is_array()) continue;
        for (const json& entry : value)
            if (entry.is_object()) refuse_other_latent({&entry, field.name + "[].", scope.reads});
    }
}

// Returns whether a share of `row` channels, or of some head in the file, has this many channels.
bool gives(const Source& source, double share, std::uint32_t row, std::uint32_t channels) {
    if (std::lround(share * row) == long(channels)) return true;
    for (const auto& [key, value] : source.config.object->items())
        if (key.ends_with("head_dim") && key != "qk_nope_head_dim" && value.is_number() &&
            std::lround(share * value.get<double>()) == long(channels))
            return true;
    return false;
}

// Warns of a width or a share that is not read, since it may belong to another kind of layer or of
// row, or since the model's code reads `instead`. Fails if neither can be true.
void pass_over(const Field& field, bool may_differ, const std::string& instead,
               Warnings& warnings) {
    if (!may_differ) invalid_data("{} but {} is read: they must agree", stated(field), instead);
    warn(warnings, "{}{} is read", ignored(field), instead);
}

std::string of_latent(const Head& head) {
    return "qk_rope_head_dim, which is " + std::to_string(head.head_dim) + ",";
}

// Multi-head latent attention rotates the last channels of each query row and of the single row of
// latent channels.
std::optional<Head> latent_head(const Source& source, Warnings& warnings) {
    know(source.top, latent_names);
    const Field rope = find(source.top, {"qk_rope_head_dim"});
    if (without_latent_attention(source.top)) {
        if (rope && is_set(*rope.value)) warn(warnings, "{}use_mla is false", ignored(rope));
        return std::nullopt;
    }
    if (rope ? *rope.value == 0 : source.type.latent.qk_rope_head_dim == 0) {
        const Field rank = find(source.top, {"kv_lora_rank"});
        if (rope && (source.type.latent.qk_rope_head_dim != 0 || (rank && is_set(*rank.value))))
            not_supported("{}: this layer has no RoPE", stated(rope));
        if (source.type.name == nullptr) refuse_other_latent(source.config);
        return std::nullopt;
    }
    Head head;
    head.latent = true;
    const auto width = [&](const Field& field, const char* name, std::uint64_t low,
                           std::uint32_t otherwise) {
        if (!field) warnings.push_back(source.assumed(name, otherwise));
        return field ? std::uint32_t(whole_number(field, low, max_head_dim)) : otherwise;
    };
    head.head_dim = width(rope, "qk_rope_head_dim", 2, source.type.latent.qk_rope_head_dim);
    if (head.head_dim % 2 != 0) refuse(rope, "even, as channels rotate in pairs");
    const Field nope = find(source.top, {"qk_nope_head_dim"});
    if (!nope && source.type.latent.qk_nope_head_dim == 0)
        invalid_data("qk_nope_head_dim is missing: it is the offset of the window of a query");
    head.q_rotary_offset = width(nope, "qk_nope_head_dim", 0, source.type.latent.qk_nope_head_dim);
    head.k_rotary_offset = width(find(source.top, {"kv_lora_rank"}), "kv_lora_rank", 0,
                                 source.type.latent.kv_lora_rank);
    if (const Field row = find(source.top, {"qk_head_dim"});
        row && *row.value != head.head_dim + head.q_rotary_offset) {
        invalid_data(
            "{} but the channels of qk_nope_head_dim and qk_rope_head_dim are {}: they "
            "must agree",
            stated(row), head.head_dim + head.q_rotary_offset);
    }
    const Field other = find_first(source.top, {"head_dim"});
    if (other && *other.value != head.head_dim) pass_over(other, true, of_latent(head), warnings);
    return head;
}

Field share_of_head(const Source& source, Warnings& warnings) {
    if (Field share = source.by_type() ? find({source.section.scope()}, share_names) : Field()) {
        warn_unless_of_a_type(source, share, {"partial_rotary_factor"}, "partial_rotary_factor",
                              warnings);
        return share;
    }
    return find(source.both(), share_names);
}

double portion(const Field& factor) {
    const double value = positive_number(factor);
    if (value > 1) refuse(factor, "at most 1");
    return value;
}

// Returns int(head_dim * factor), as transformers computes it.
std::uint32_t partial(std::uint32_t head_dim, const Field& factor) {
    return std::uint32_t(head_dim * portion(factor));
}

void require_valid(const RotaryDim& window, const Head& head, const Field& field) {
    const std::uint32_t value = window.rotary_dim;
    if (value >= 2 && value <= head.head_dim && value % 2 == 0) return;
    const std::string reason = field ? field.name + " is " + shown(field) + ": " : std::string();
    invalid_data("{}rotary_dim becomes {}: it must be even, 2 to head_dim, which is {}", reason,
                 value, head.head_dim);
}

std::uint32_t assumed_rotary_dim(const Source& source, const Head& head, Warnings& warnings) {
    if (source.type.rotary_dim != 0) {
        warnings.push_back(source.assumed("rotary_dim", source.type.rotary_dim));
        return source.type.rotary_dim;
    }
    if (source.type.partial_rotary_factor != 1) {
        warnings.push_back(
            source.assumed("partial_rotary_factor", source.type.partial_rotary_factor));
    }
    return std::uint32_t(head.head_dim * source.type.partial_rotary_factor);
}

}  // namespace

Head read_head(const Source& source, Warnings& warnings) {
    if (!source.type.tail_window) {
        if (const std::optional<Head> latent = latent_head(source, warnings)) return *latent;
    }
    Head head;
    const auto read = [&](const Field& field) {
        head.field = field;
        head.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
        return head;
    };
    if (source.layer.type == "full_attention") {
        if (const Field field = find(source.top, {"global_head_dim"})) return read(field);
        if (source.type.global_head_dim != 0) {
            head.head_dim = source.type.global_head_dim;
            warnings.push_back(source.assumed("global_head_dim", source.type.global_head_dim));
            return head;
        }
    }
    if (const Field field = find(source.top, {"swa_head_dim"});
        field && source.layer.type == "sliding_attention")
        return read(field);
    if (source.type.doubled_heads) {
        head.head_dim = doubled_head_dim(source, warnings);
    } else if (const Field field = find_unless_of(
                   {"swa_head_dim", "global_head_dim"}, source.top,
                   {"head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head"})) {
        return read(field);
    } else if (source.type.head_dim != 0 && !source.config.object->contains("head_dim")) {
        head.head_dim = source.type.head_dim;
        warnings.push_back(source.assumed("head_dim", source.type.head_dim));
    } else {
        head.head_dim = divided_head_dim(source, warnings);
    }
    return head;
}

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          Warnings& warnings) {
    RotaryDim window;
    know(source.both(), share_names);
    know(source.top, {"rotary_dim", "attn_rotary_emb"});
    const json listed = source.share.value_or(0);
    const Field single = source.share ? find_first(source.both(), {"partial_rotary_factor"})
                                      : Field();
    if (single && std::find(source.shares.begin(), source.shares.end(), portion(single)) ==
                      source.shares.end()) {
        warn(warnings, "ignored key {}: partial_rotary_factors is read, which has no such share",
             stated(single));
    }
    const Field factor = source.share ? Field{"partial_rotary_factors[]", &listed}
                                      : share_of_head(source, warnings);
    const Field given = source.type.tail_window
                            ? find(source.top, {"qk_rope_head_dim"})
                            : find(source.top, {"rotary_dim", "attn_rotary_emb"});
    const std::uint32_t width = given ? std::uint32_t(whole_number(given, 2, max_head_dim)) : 0;
    if (head.latent) {
        window.rotary_dim = head.head_dim;
        window.turning_pairs = head.head_dim / 2;
        const std::uint32_t row = head.q_rotary_offset + head.head_dim;
        const std::string read = of_latent(head) + " in query rows of " + std::to_string(row) + ",";
        if (given && width != head.head_dim) pass_over(given, source.mixed, read, warnings);
        if (factor && portion(factor) != 1) {
            pass_over(factor, source.mixed || gives(source, portion(factor), row, head.head_dim),
                      read, warnings);
        }
        return window;
    }
    if (rope_type == "proportional") {
        window.rotary_dim = head.head_dim;
        window.share = factor ? portion(factor) : 1;
        window.turning_pairs = std::uint32_t(head.head_dim * window.share) / 2;
        require_valid(window, head, {});
        if (window.turning_pairs == 0) {
            invalid_data("{}: it rotates no pair of a head_dim of {}", stated(factor),
                         head.head_dim);
        }
        if (given) {
            pass_over(given, width == 2 * window.turning_pairs || width == head.head_dim,
                      "rope_type proportional, which rotates " +
                          std::to_string(2 * window.turning_pairs) + " channels in a window of " +
                          std::to_string(head.head_dim) + ",",
                      warnings);
        }
        return window;
    }
    if (given) {
        window.rotary_dim = width;
        if (!factor) require_valid(window, head, given);
    }
    if (factor) {
        const std::uint32_t product = partial(head.head_dim, factor);
        if (given && product != width) {
            pass_over(given, gives(source, portion(factor), head.head_dim, width),
                      factor.name + ", which requires " + std::to_string(product) + ",", warnings);
        }
        window.rotary_dim = product;
        require_valid(window, head, factor);
    }
    if (!given && !factor) {
        window.rotary_dim = assumed_rotary_dim(source, head, warnings);
        require_valid(window, head, head.field);
    }
    window.turning_pairs = window.rotary_dim / 2;
    return window;
}

}  // namespace vkrope
