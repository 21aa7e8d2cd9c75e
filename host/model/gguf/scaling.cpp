// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "model/gguf/import.hpp"
#include "model/unread.hpp"

namespace vkrope {
namespace {

constexpr const char* of_llama3 = "rope_freqs.weight";
constexpr const char* of_longrope_near = "rope_factors_short.weight";
constexpr const char* of_longrope_far = "rope_factors_long.weight";

// Keys of a scaling, after "rope.scaling.".
constexpr auto scaling_keys = names("alpha", "attn_factor", "factor", "original_context_length",
                                    "type", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow",
                                    "yarn_ext_factor", "yarn_log_multiplier");

// Returns YaRN's magnitude for a factor, as computed by llama_context's constructor
// (src/llama-context.cpp).
double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double number_or(const Field& field, double otherwise) {
    return field ? positive_number(field) : otherwise;
}

}  // namespace

// Returns a key of the scaling of the chosen layers. Sliding layers have the keys for them, if
// there are any; otherwise the scaling of the model, or none, according to the architecture.
Field GgufImport::scaling(const std::string& name) {
    const Field all = find("rope.scaling." + name),
                sliding = find_of(of_sliding, "rope.scaling." + name);
    return sliding && slides_ ? sliding : unscaled_ ? Field{all.name} : all;
}

void GgufImport::scale() {
    const LayerRule rule = row_.layers.rule;
    unscaled_ = slides_ &&
                (rule == LayerRule::scaled_on_full || rule == LayerRule::compressed ||
                 rule == LayerRule::local_base || find_of(of_sliding, "rope.scaling.type") ||
                 find_of(of_sliding, "rope.scaling.factor"));
    if (const Field alpha = scaling("alpha"); alpha && finite_number(alpha) > 0)  // HunYuan
        require(scale_ntk(rotation_.inv_freq, positive_number(alpha)), "rope.scaling.alpha");
    const std::string type = scaling_type();
    const double factor = this->factor(type);
    std::vector<double> divisors = this->divisors(type);
    if (row_.half_on_full && divisors.size() > rotation_.inv_freq.size())
        divisors.resize(rotation_.inv_freq.size());  // the list fits the widest layers
    if (divisors.size() > rotation_.inv_freq.size()) {
        // scale_ggml() accepts this, but llama.cpp rejects it in a file.
        invalid_data("rope.scaling: freq_factors has {} elements: it must have rotary_dim / 2 = {}",
                     divisors.size(), rotation_.inv_freq.size());
    }
    GgmlScaling scaling;
    scaling.freq_factors = divisors.data();
    scaling.freq_factor_count = divisors.size();
    scaling.freq_scale = 1 / factor;
    yarn(type, factor, scaling);
    require(scale_ggml(rotation_.inv_freq, rotation_.base, scaling, rotation_.attention_factor),
            "rope.scaling");
    if (rule == LayerRule::compressed)
        rotation_.attention_factor = 1;  // dsv4_rope_attn_factor of src/models/deepseek4.cpp
    if (divisors.empty() && type == "yarn" && scaling.ext_factor != 0)
        rotation_.rope_type = "yarn";
    else if (divisors.empty() && scaling.freq_scale != 1)
        rotation_.rope_type = "linear";
    name_unused_scaling();
}

// Returns "none", "linear", "yarn" or "longrope". Linear, llama.cpp's default, does not scale
// without a factor.
std::string GgufImport::scaling_type() {
    const Field field = scaling("type");
    std::string type = field ? text(field) : "linear";
    if (type.empty() || (field && is_plain(*field.value)))
        return "none";  // any format's word for it
    if (type != "linear" && type != "yarn" && type != "longrope") {
        not_supported("{} is \"{}\": it must be none, linear, yarn or longrope", field.name,
                      shown_key(type));
    }
    return type;
}

// Returns the divisor of positions. rope.scale_linear is the older key. llama.cpp reads 0 and a
// missing factor as 1. Warns if the factor is 0, or is missing although the type needs it.
double GgufImport::factor(const std::string& type) {
    const Field field = scaling("factor"), older = find("rope.scale_linear");
    if (unscaled_ && !field) return 1;
    if (field && older && finite_number(field) != finite_number(older)) {
        warn(rotation_, "{} but {}: the first applies, as in llama.cpp", stated(field),
             stated(older));
    }
    const Field& any = field ? field : older;
    if (type == "none") {
        if (is_on(any) && *any.value != 1)
            warn(rotation_, "{}{}", ignored(any), stated(scaling("type")));
        return 1;
    }
    if (any && finite_number(any) != 0) return positive_number(any);
    if (any)
        warn(rotation_, "{} is 0: assuming 1, as llama.cpp does", any.name);
    else if (scaling("type") && type != "longrope")
        assume(field, 1, "as llama.cpp does: rope.scaling.type " + type + " changes nothing");
    return 1;
}

// Returns divisors, and sets the rope_type if there are any, like get_rope_factors() of
// src/llama-model.cpp. Llama 3's divisors take precedence over LongRoPE's, whose long list is for
// contexts longer than the original one.
std::vector<double> GgufImport::divisors(const std::string& type) {
    if (unscaled_) return {};
    std::vector<double> divisors = file_.factors(of_llama3);
    std::vector<double> near = file_.factors(of_longrope_near),
                        far = file_.factors(of_longrope_far);
    if (!divisors.empty()) {
        for (const auto& [list, name] :
             {std::pair(&near, of_longrope_near), std::pair(&far, of_longrope_far)}) {
            if (list->empty()) continue;
            warn(rotation_, "ignored tensor {}: there is {}, which llama.cpp takes first", name,
                 of_llama3);
        }
        rotation_.rope_type = "rope_freqs";
        return divisors;
    }
    if (near.empty() && far.empty() && type == "longrope") {
        invalid_data("the tensors {} and {} are missing: the rope.scaling.type longrope needs them",
                     of_longrope_far, of_longrope_near);
    }
    if (near.empty() != far.empty()) {
        invalid_data("the tensor {} is missing: the file has only the other one",
                     near.empty() ? of_longrope_near : of_longrope_far);
    }
    if (near.empty()) return {};
    rotation_.rope_type = "longrope";
    if (query_.seq_len == 0) {
        warn(rotation_,
             "longrope depends on the length, which is unknown: assuming the short list");
    }
    const double original = original_length();
    if (double(query_.seq_len) > original) return far;
    rotation_.longest_seq_len = std::uint64_t(original);
    return near;
}

double GgufImport::original_length() {
    const Field original = scaling("original_context_length");
    if (original) return double(whole_number(original, 1, max_whole));
    if (rotation_.max_position == 0) {
        required("context_length",
                 "it is needed because rope.scaling.original_context_length is missing too");
    }
    assume(original, double(rotation_.max_position), "which is context_length");
    return double(rotation_.max_position);
}

// Sets YaRN's attention factor like llama_context's constructor in src/llama-context.cpp:
// m(factor), or a ratio of two magnitudes if the file has yarn_log_multiplier, divided by the
// factor of ggml, by which rope_yarn() multiplies.
void GgufImport::yarn(const std::string& type, double factor, GgmlScaling& scaling) {
    const Field ext = this->scaling("yarn_ext_factor");
    const double given = ext ? finite_number(ext) : -1;
    scaling.ext_factor = given >= 0 ? given : type == "yarn" ? 1 : 0;
    const double from_file = number_or(this->scaling("attn_factor"), 1);
    if (scaling.ext_factor == 0) {
        scaling.attn_factor = number_or(this->scaling("yarn_attn_factor"), 1) * from_file;
        return;
    }
    scaling.beta_fast = number_or(this->scaling("yarn_beta_fast"), row_.yarn_beta_fast);
    scaling.beta_slow = number_or(this->scaling("yarn_beta_slow"), 1);
    scaling.n_ctx_orig = original_length();
    const Field multiplier = this->scaling("yarn_log_multiplier");
    const double unit = row_.deepseek_yarn ? 0.1 : 1;
    const double all_dims = multiplier ? finite_number(multiplier) / unit : 0;
    if (all_dims < 0) refuse(multiplier, "a finite number, at least 0");
    // DeepSeek's two magnitudes are equal in every model, and the file has only one. For other
    // models they are assumed to be 1 and the value in the file.
    const double mscale = row_.deepseek_yarn ? all_dims : 1;
    const double both = from_file * (all_dims != 0
                                         ? magnitude(factor, mscale) / magnitude(factor, all_dims)
                                         : magnitude(factor, 1));
    scaling.attn_factor = both / (1 + 0.1 * std::log(factor));
    if (!(std::isfinite(scaling.attn_factor) &&
          scaling.attn_factor > 0)) {  // a negative value does not mean "not set" here
        invalid_data(
            "rope.scaling: attn_factor is {} with the factor {}: it must be finite and above 0",
            scaling.attn_factor, shown_number(factor));
    }
    if (row_.deepseek_yarn) {  // kq_scale of src/models/deepseek2.cpp
        const double in_softmax = both * (1 + 0.1 * all_dims * std::log(factor));
        rotation_.softmax_scale *= in_softmax * in_softmax;
    }
}

// Warns of keys that this type of scaling does not use, unless they scale other layers.
void GgufImport::name_unused_scaling() {
    const Field type = find("rope.scaling.type");
    for (const std::string_view name : scaling_keys) {
        const std::string key = "rope.scaling." + std::string(name);
        if (asked_for_.count(prefix_ + key) != 0) continue;
        const Field field = scaling(std::string(name));
        if (!is_on(field) || *field.value == 1) continue;
        warn(rotation_, "{}{}", ignored(field),
             type ? stated(type) : type.name + " is missing, so that it is linear");
    }
}

// Source: ggml_mrope_cache_init() of ggml's ggml-cpu/ops.cpp. The key lists four sections, in
// pairs; most models do not use the last section.
void GgufImport::sections() {
    const bool needed = row_.sections == GgufSections::required;
    const Field field = needed ? required("rope.dimension_sections", "this architecture needs it")
                               : find("rope.dimension_sections");
    if (!field) return;
    if (row_.sections == GgufSections::none) {
        warn(rotation_, "ignored key {}: {}", field.name,
             row_.known() ? "tokens of this architecture have one position"
                          : "its meaning in an unknown architecture is not known: assuming one "
                            "position per token");
        return;
    }
    const std::vector<std::uint64_t> widths = whole_numbers(field, 0, max_head_dim);
    if (widths.size() != 3 && widths.size() != 4)
        invalid_data("{} has {} elements: it must have 3 or 4", field.name, widths.size());
    const std::uint64_t sum = std::accumulate(widths.begin(), widths.end(), std::uint64_t{0});
    if (row_.sections == GgufSections::if_given &&
        (widths[0] == 0 || widths[1] == 0)) {  // use_mrope() of llama.cpp
        if (sum != 0) {
            warn(rotation_,
                 "ignored key {}: one of the first two is 0, which llama.cpp treats as missing",
                 field.name);
        }
        return;
    }
    // ggml would repeat the first section or ignore the last one, which no model intends.
    const std::uint32_t pairs = rotation_.rotary_dim / 2;
    if (sum != pairs) {
        invalid_data("{} adds up to {}: it must be half of the rotated channels, {}", field.name,
                     sum, pairs);
    }
    Sections& sections = rotation_.sections;
    std::copy(widths.begin(), widths.end(), sections.pairs);
    sections.axes = sections.pairs[3] == 0 ? 3 : 4;
    if (!query_.pairing)
        rotation_.pairing = VKROPE_HALF_SPLIT;  // the pairing without sections does not matter
    if (!row_.sections_interleaved) return;
    // A pair beyond the section of its axis uses the fourth position, which llama.cpp sets to 0 for
    // text.
    sections.order = VKROPE_SECTIONS_INTERLEAVED;
    std::uint32_t beyond = 0;
    for (std::uint32_t j = 0; j < pairs; ++j) beyond += j >= 3 * sections.pairs[j % 3];
    if (beyond != 0) {
        sections.axes = 4;
        sections.leftover_axis = 3;
        warn(rotation_,
             "pairs beyond the sections: {}, which the fourth axis turns, as in ggml; in the "
             "model's own code the first one does",
             beyond);
    }
}

}  // namespace vkrope
