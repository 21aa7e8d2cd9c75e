// SPDX-License-Identifier: MIT
#include "model/hf/head.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "model/hf/nesting.hpp"
#include "model/hf/telling_keys.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

/// A count of the file, or the default of the model's class.
std::uint64_t count(const Source& source, std::vector<std::string>& warnings,
                    std::initializer_list<const char*> names, std::uint32_t otherwise,
                    std::uint64_t high, Field& field) {
    field = find(source.top, names);
    if (field) {
        return whole_number(field, 1, high);
    }
    if (otherwise == 0) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is missing: it is needed because head_dim is missing too",
             *names.begin());
    }
    warnings.push_back(source.model.assumed(*names.begin(), otherwise));
    return otherwise;
}

std::uint32_t divided_head_dim(const Source& source, std::vector<std::string>& warnings) {
    Field hidden, heads;
    const std::uint64_t width = count(source, warnings,
                                      {"hidden_size", "n_embd", "d_model", "model_dim"},
                                      source.model.type.hidden_size, max_hidden_size, hidden);
    const std::uint64_t number = count(
        source, warnings,
        {"num_attention_heads", "n_head", "n_heads", "decoder_num_attention_heads"},
        source.model.type.num_attention_heads, max_heads, heads);
    const std::uint64_t head_dim = width / number;
    if (width % number != 0 || head_dim < 2 || head_dim > max_head_dim) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "%s is %llu and %s is %llu: their quotient, head_dim, must be whole, 2 to 65534",
             hidden ? hidden.name.c_str() : "hidden_size", static_cast<unsigned long long>(width),
             heads ? heads.name.c_str() : "num_attention_heads",
             static_cast<unsigned long long>(number));
    }
    return std::uint32_t(head_dim);
}

std::uint32_t doubled_head_dim(const Source& source, std::vector<std::string>& warnings) {
    const Field field = find(source.top, {"head_dim", "attention_head_dim"});
    const std::uint32_t head_dim = field ? std::uint32_t(whole_number(field, 2, max_head_dim))
                                         : 2 * divided_head_dim(source, warnings);
    if (head_dim > max_head_dim) {
        fail(VKROPE_ERROR_INVALID_DATA, "head_dim becomes %u: it must be at most 65534", head_dim);
    }
    const Field other = find_first(source.top, {"kv_channels"});
    if (other && *other.value != head_dim) {
        warnings.push_back("ignored key " + other.name + ", which is " + shown(*other.value) +
                           ": heads are " + std::to_string(head_dim) +
                           " wide, as attention is twice as wide as hidden_size");
    }
    return head_dim;
}

/// Keys of latent attention, under the names of several frameworks.
constexpr const char* latent_keys[] = {
    "kv_lora_rank",      "nope_head_dim",       "qk_nope_dim", "qk_nope_head_dim",
    "qk_nope_head_size", "qk_pos_emb_head_dim", "qk_rope_dim", "qk_rope_head_dim",
    "qk_rope_head_size", "rope_head_dim"};

bool says_latent(const std::string& key, const nlohmann::json& value) {
    return is_set(value) &&
           std::find(std::begin(latent_keys), std::end(latent_keys), key) != std::end(latent_keys);
}

/// A class that nobody knows has latent attention only by the keys that are read; under other
/// names, in other objects or with some of them missing it would turn the wrong channels.
void refuse_other_latent(const Source& source) {
    if (source.model.type.name != nullptr) return;
    const auto refuse = [](const Scope& scope, const std::string& key,
                           const nlohmann::json& value) {
        if (!says_latent(key, value)) return;
        fail(VKROPE_ERROR_NOT_SUPPORTED,
             "%s is %s: it says latent attention, whose rows turn in their tails; say its widths "
             "in qk_rope_head_dim, qk_nope_head_dim and kv_lora_rank, and set it to null",
             (scope.prefix + shown_key(key)).c_str(), shown(value).c_str());
    };
    for (const Scope& scope : source.top) {
        for (const auto& [key, value] : scope.object->items()) {
            refuse(scope, key, value);
            if (value.is_structured() && !is_nested_config(key)) {
                visit_inside({scope.prefix + shown_key(key), &value}, refuse);
            }
        }
    }
}

/// Multi-head latent attention rotates the tail of each query row, and the tail of the one row
/// of latent channels.
std::optional<Head> latent_head(const Source& source, std::vector<std::string>& warnings) {
    const Field rope = find(source.top, {"qk_rope_head_dim"});
    if (without_latent_attention(source.top)) {
        if (rope && is_set(*rope.value)) {
            warnings.push_back("ignored key " + rope.name + ", which is " + shown(*rope.value) +
                               ": use_mla is false");
        }
        return std::nullopt;
    }
    if (rope ? *rope.value == 0 : source.model.type.qk_rope_head_dim == 0) {
        refuse_other_latent(source);
        return std::nullopt;
    }
    Head head;
    head.latent = true;
    const auto width = [&](const Field& field, const char* name, std::uint64_t low,
                           std::uint32_t otherwise) {
        if (!field) {
            warnings.push_back(source.model.assumed(name, otherwise));
        }
        return field ? std::uint32_t(whole_number(field, low, max_head_dim)) : otherwise;
    };
    head.head_dim = width(rope, "qk_rope_head_dim", 2, source.model.type.qk_rope_head_dim);
    const Field nope = find(source.top, {"qk_nope_head_dim"});
    if (!nope && source.model.type.qk_nope_head_dim == 0) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "qk_nope_head_dim is missing: it says where the window of a query begins");
    }
    head.q_rotary_offset = width(nope, "qk_nope_head_dim", 0, source.model.type.qk_nope_head_dim);
    head.k_rotary_offset = width(find(source.top, {"kv_lora_rank"}), "kv_lora_rank", 0,
                                 source.model.type.kv_lora_rank);
    const Field other = find_first(source.top, {"head_dim"});
    if (other && *other.value != head.head_dim) {
        warnings.push_back("ignored key " + other.name + ": qk_rope_head_dim is what turns");
    }
    return head;
}

}  // namespace

Head read_head(const Source& source, std::vector<std::string>& warnings) {
    if (!source.model.type.tail_window) {
        if (const std::optional<Head> latent = latent_head(source, warnings)) {
            return *latent;
        }
    }
    Head head;
    if (source.layer.type == "full_attention") {
        if (const Field field = find(source.top, {"global_head_dim"})) {
            head.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
            return head;
        }
        if (source.model.type.global_head_dim != 0) {
            head.head_dim = source.model.type.global_head_dim;
            warnings.push_back(
                source.model.assumed("global_head_dim", source.model.type.global_head_dim));
            return head;
        }
    }
    if (const Field field = find(source.top, {"swa_head_dim"});
        field && source.layer.type == "sliding_attention") {
        head.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
        return head;
    }
    if (source.model.type.doubled_heads) {
        head.head_dim = doubled_head_dim(source, warnings);
    } else if (const Field field = find_unless_of(
                   source.top, {"swa_head_dim", "global_head_dim"}, source.top,
                   {"head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head"})) {
        head.head_dim = std::uint32_t(whole_number(field, 2, max_head_dim));
    } else if (source.model.type.head_dim != 0 && !source.config.object->contains("head_dim")) {
        head.head_dim = source.model.type.head_dim;
        warnings.push_back(source.model.assumed("head_dim", source.model.type.head_dim));
    } else {
        head.head_dim = divided_head_dim(source, warnings);
    }
    return head;
}

}  // namespace vkrope
