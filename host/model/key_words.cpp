// SPDX-License-Identifier: MIT
#include "model/key_words.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/names.hpp"

namespace vkrope {
namespace {

// Parts of keys with one meaning.
struct KeyPattern {
    KeyClass key_class;
    bool begins_a_word;
    std::initializer_list<std::string_view> parts;
};

// The first matching row applies.
const KeyPattern key_patterns[] = {
    {KeyClass::scaled_layers, false, {"_only_types"}},
    {KeyClass::nothing, false, {"nope_head", "qk_nope"}},
    {KeyClass::layers,
     false,
     {"no_rope", "rope_layout", "rope_layers", "rope_pattern", "no_pos_emb", "irope"}},
    {KeyClass::layers, true, {"nope"}},
    {KeyClass::angles, false, {"rope", "rotary", "condense_ratio", "yarn", "ntk"}},
    {KeyClass::norm,
     false,
     {"qk_norm", "qknorm", "qk_layernorm", "qk_layer_norm", "qk_rms", "qk_l2", "qk_ln", "qk_gn",
      "ln_qk", "gn_qk", "qkv_norm", "normalize_q", "normalise_q", "norm_qk"}},
    {KeyClass::norm,
     true,
     {"q_ln", "k_ln", "query_norm", "key_norm", "q_norm", "k_norm", "q_layernorm", "k_layernorm",
      "q_layer_norm", "k_layer_norm", "query_layernorm", "key_layernorm", "query_layer_norm",
      "key_layer_norm"}},
    {KeyClass::layers,
     false,
     {"layer_group", "attention_types", "attention_layers", "attn_layer", "sliding_layers",
      "swa_layers", "window_layers", "window_layout", "window_pattern", "layer_pattern",
      "layers_pattern", "attn_pattern", "attention_pattern", "override_pattern", "global_attn",
      "full_attn", "full_attention", "linear_attn"}},
    {KeyClass::layers, true, {"local_layer", "global_layer", "full_layer"}},
    {KeyClass::scores,
     false,
     {"query_pre_attn", "max_attn_value", "temperature_", "llama_4_scal", "llama4_scal"}},
    {KeyClass::scores, true, {"logn", "mscale"}},
    {KeyClass::scaling, false, {"dual_chunk"}},
    {KeyClass::scaling,
     false,
     {"beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor", "long_factor",
      "short_factor", "attn_factor", "extrapolation_factor", "scaling"}},
};

// Parts of keys that scale something else, and Qwen 2's windows, which do not affect RoPE.
constexpr auto others = names("embed", "expert", "final_", "layer_scaling", "logits_scal", "lora",
                              "loss", "moe", "max_window_layers", "quant", "residual", "rout",
                              "weight");

// Words for the speed, the memory and the arithmetic of RoPE, which this library chooses itself.
constexpr auto arithmetic_words = names("backend", "bf16", "cache", "compile", "double", "dtype",
                                        "flash", "float32", "fp32", "fuse", "fused", "impl",
                                        "implementation", "kernel", "precision");

// Words for the scores of attention, and for what changes their scale.
constexpr auto score_words = names("attention", "attn", "dot", "k", "key", "q", "qk", "query",
                                   "score", "scores", "sm", "softmax");
constexpr auto scale_words = names("cap", "capping", "clamp", "multiplier", "scalar", "scale",
                                   "scaling", "softcap", "softcapping", "temp", "temperature");

// Words beside these that refer to something before or after the scores.
constexpr auto other_scores = names("final", "in", "out", "output", "value", "weights");

// Words that concern angles if the value is a number or names a scaling.
constexpr auto number_words = names("base", "compress", "compressed", "compression", "frac",
                                    "fraction", "posinterp", "rot", "theta", "theta1", "theta2",
                                    "wavelength");
constexpr auto interpolation_words = names("interp", "interpolate", "interpolated",
                                           "interpolation");

// Words beside these that show that a key is about something else.
constexpr auto other_numbers = names(
    "audio", "batch", "bins", "block", "capacity", "channels", "dim", "drop", "dropout", "embed",
    "embedding", "expert", "experts", "image", "kv", "lambda", "layer", "layers", "length", "loss",
    "lr", "mask", "mel", "mlp", "model", "moe", "num", "patch", "rank", "sample", "seqlen", "size",
    "step", "steps", "sparsity", "spatial", "stride", "temporal", "token", "tokens", "video",
    "vocab", "width");

constexpr auto position_words = names("pos", "position", "positional", "positions");
constexpr auto embedding_words = names("emb", "embed", "embedding", "embeddings", "encoding");

bool contains_any(const std::vector<std::string>& words, const auto& names) {
    return std::any_of(
        words.begin(), words.end(), [&](const std::string& word) { return contains(names, word); });
}

bool changes_scores(const std::vector<std::string>& words) {
    const bool of_scores = contains_any(words, score_words);
    // Without a word of attention, "logits" are those of the vocabulary.
    const bool soft = contains_any(words, names("soft", "logit")) &&
                      contains_any(words, names("cap", "capping", "clamp"));
    const bool caps = (soft || contains_any(words, names("softcap", "softcapping"))) &&
                      !contains_any(words, names("logits"));
    return ((of_scores && contains_any(words, scale_words)) || caps) &&
           !contains_any(words, other_scores);
}

// Returns whether a name is that of a scale or a base, whatever it scales.
bool scales(const std::vector<std::string>& words) {
    return std::any_of(
        words.begin(), words.end(),
        [](const std::string& word) {
            return word.rfind("scal", 0) == 0 || word == "base" || word == "factor" ||
                   word == "theta";
        });
}

}  // namespace

std::vector<std::string> words_of(const std::string& name) {
    std::vector<std::string> words(1);
    for (const char letter : name) {
        const bool upper = letter >= 'A' && letter <= 'Z';
        const bool part = upper || (letter >= 'a' && letter <= 'z') ||
                          (letter >= '0' && letter <= '9');
        if (part)
            words.back() += upper ? char(letter - 'A' + 'a') : letter;
        else if (!words.back().empty())
            words.emplace_back();
    }
    return words;
}

bool in_key(const std::string& key, std::string_view part, bool begins_a_word) {
    for (std::size_t at = key.find(part); at != key.npos; at = key.find(part, at + 1))
        if (!begins_a_word || at == 0 || key[at - 1] == '_' || key[at - 1] == '.') return true;
    return false;
}

bool is_switch_of_rope(const std::string& name) {
    const std::vector<std::string> words = words_of(name);
    const auto of_a_switch = [](const std::string& word) {
        return contains(
                   names("", "add", "all", "apply", "default", "enable", "enabled", "has", "layers",
                         "original", "rope", "rotary", "standard", "to", "use", "with"),
                   word) ||
               contains(position_words, word) || contains(embedding_words, word);
    };
    return contains_any(words, names("rope", "rotary")) &&
           std::all_of(words.begin(), words.end(), of_a_switch);
}

bool is_switch_of_no_rope(const std::string& name) {
    const std::vector<std::string> words = words_of(name);
    return (contains_any(words, names("nope")) || contains(words, std::string("no"))) &&
           std::all_of(words.begin(), words.end(), [](const std::string& word) {
               return contains(names("", "enable", "is", "no", "nope", "rope", "rotary", "use"),
                               word);
           });
}

bool is_position_embedding(const std::string& name) {
    const std::vector<std::string> words = words_of(name);
    const auto of_kind = [](const std::string& word) {
        return contains(position_words, word) || contains(embedding_words, word) ||
               contains(names("", "enc", "kind", "method", "mode", "pe", "style", "type"), word);
    };
    return ((contains_any(words, position_words) &&
             (contains_any(words, embedding_words) || contains_any(words, names("enc")))) ||
            contains_any(words, names("pe"))) &&
           std::all_of(words.begin(), words.end(), of_kind);
}

bool is_switch_of_others(const std::string& name) {
    const std::vector<std::string> words = words_of(name);
    return contains_any(words, names("alibi", "rpe")) ||
           (contains_any(words, names("rel", "relative")) &&
            (contains_any(words, position_words) || contains_any(words, names("attention"))));
}

bool is_interpolation(const std::string& name) {
    const std::vector<std::string> words = words_of(name);
    return (contains_any(words, interpolation_words) || contains_any(words, names("theta"))) &&
           !contains_any(words, embedding_words);
}

KeyClass classify_key(const std::string& name, bool states) {
    std::string key = name;  // names in mixed case: YaRN, QKNorm
    for (char& letter : key)
        if (letter >= 'A' && letter <= 'Z') letter = char(letter - 'A' + 'a');
    const auto row = std::find_if(
        std::begin(key_patterns), std::end(key_patterns), [&](const KeyPattern& each) {
            return std::any_of(each.parts.begin(), each.parts.end(), [&](std::string_view part) {
                return in_key(key, part, each.begins_a_word);
            });
        });
    const bool weak = row == std::end(key_patterns) || row->key_class == KeyClass::scaling;
    const std::vector<std::string> words = words_of(key);
    const bool of_table = contains_any(words, names("max")) &&
                          contains_any(words, names("len", "length", "seqlen"));
    if (row != std::end(key_patterns) && row->key_class == KeyClass::angles && !scales(words) &&
        (of_table || contains_any(words, arithmetic_words)))
        return KeyClass::nothing;
    const bool of_position = contains_any(words, position_words) &&
                             (scales(words) || contains_any(words, interpolation_words));
    const bool of_number = contains_any(words, number_words) ||
                           contains_any(words, interpolation_words) ||
                           (contains_any(words, names("freq", "frequency")) && scales(words));
    if (weak && states && (of_position || (of_number && !contains_any(words, other_numbers))))
        return KeyClass::angles;
    const bool other = std::any_of(
        std::begin(others), std::end(others),
        [&](std::string_view part) { return key.find(part) != key.npos; });
    if (weak && (!other || contains_any(words, names("mla"))) && changes_scores(words))
        return KeyClass::scores;
    if (row == std::end(key_patterns)) return KeyClass::nothing;
    const bool may_be_other = row->key_class == KeyClass::scaling ||
                              row->key_class == KeyClass::scores ||
                              row->key_class == KeyClass::layers;
    return may_be_other && other ? KeyClass::nothing : row->key_class;
}

}  // namespace vkrope
