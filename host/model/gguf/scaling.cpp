// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "model/gguf/readers.hpp"

namespace vkrope {
namespace {

constexpr const char* of_llama3 = "rope_freqs.weight";
constexpr const char* of_longrope_near = "rope_factors_short.weight";
constexpr const char* of_longrope_far = "rope_factors_long.weight";

/// Returns YaRN's magnitude for a factor, as computed by llama_context's constructor
/// (src/llama-context.cpp).
double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

class GgufScaling {
   public:
    GgufScaling(GgufFields& keys, const GgufScalingInput& input, RopeParams& rotation)
        : keys_(keys), input_(input), rotation_(rotation) {}

    void apply() {
        if (const Field alpha = keys_.find("rope.scaling.alpha");
            alpha && finite_number(alpha) > 0) {  // HunYuan
            require(scale_ntk(rotation_.inv_freq, positive_number(alpha)), "rope.scaling.alpha");
        }
        const std::string type = scaling_type();
        const LayerRule layers = input_.architecture.layers.rule;
        const bool sliding_unscaled = input_.sliding && (layers == LayerRule::scaled_on_full ||
                                                         layers == LayerRule::compressed);
        const bool sliding_local = input_.sliding && layers == LayerRule::local_base;
        const double factor = type == "none" ? 1 : this->factor(type);
        std::vector<double> divisors = sliding_local ? std::vector<double>() : divide(type);
        if (input_.architecture.half_on_full && divisors.size() > rotation_.inv_freq.size()) {
            divisors.resize(rotation_.inv_freq.size());  // the list fits the widest layers
        }
        if (divisors.size() >
            rotation_.inv_freq
                .size()) {  // scale_ggml() accepts this, but llama.cpp rejects it in a file
            invalid_data(
                "rope.scaling: freq_factors has {} elements: it must have rotary_dim / 2 = {}",
                divisors.size(), rotation_.inv_freq.size());
        }
        GgmlScaling scaling;
        scaling.freq_factors = divisors.data();
        scaling.freq_factor_count = divisors.size();
        if (sliding_unscaled) {
            keys_.pass_over("rope.scaling.");
        } else {
            yarn(type, factor, scaling);
        }
        scaling.freq_scale = sliding_unscaled || sliding_local ? 1 : 1 / factor;
        require(scale_ggml(rotation_.inv_freq, rotation_.base, scaling, rotation_.attention_factor),
                "rope.scaling");
        if (layers == LayerRule::compressed) {
            rotation_.attention_factor = 1;  // dsv4_rope_attn_factor of src/models/deepseek4.cpp
        }
        if (!divisors.empty()) {
            rotation_.rope_type = from_lists_ ? "longrope" : "rope_freqs";
        } else if (type == "yarn" && scaling.ext_factor != 0) {
            rotation_.rope_type = "yarn";
        } else if (scaling.freq_scale != 1) {
            rotation_.rope_type = "linear";
        }
    }

   private:
    std::string scaling_type() {
        const Field field = keys_.find("rope.scaling.type");
        if (!field) {
            return "linear";  // llama.cpp's default, which does not scale without a factor
        }
        std::string type = text(field);
        if (type != "none" && type != "linear" && type != "yarn" && type != "longrope") {
            not_supported("{} is \"{}\": it must be none, linear, yarn or longrope", field.name,
                          shown_key(type));
        }
        return type;
    }

    /// Returns the divisor of positions. rope.scale_linear is the older key. llama.cpp reads 0 and
    /// a missing factor as 1. Warns if the factor is 0, or is missing although the type needs it.
    double factor(const std::string& type) {
        const Field field = keys_.find("rope.scaling.factor");
        const Field older = keys_.find("rope.scale_linear");
        if (field && older && finite_number(field) != finite_number(older)) {
            disagree(field, older);
        }
        const Field& any = field ? field : older;
        if (any && finite_number(any) != 0) {
            return positive_number(any);
        }
        if (any) {
            warn(rotation_, "{} is 0: assuming 1, as llama.cpp does", any.name);
        } else if (keys_.find("rope.scaling.type") && type != "longrope") {
            warn_of_assumed(field, 1,
                            "as llama.cpp does: rope.scaling.type " + type + " changes nothing",
                            rotation_.warnings);
        }
        return 1;
    }

    /// Applies divisors like get_rope_factors() of src/llama-model.cpp. Llama 3's divisors take
    /// precedence over LongRoPE's, whose long list is for contexts longer than the original one.
    std::vector<double> divide(const std::string& type) {
        std::vector<double> divisors = input_.file.factors(of_llama3);
        std::vector<double> near = input_.file.factors(of_longrope_near);
        std::vector<double> far = input_.file.factors(of_longrope_far);
        if (!divisors.empty()) {
            for (const auto& [list, name] :
                 {std::pair(&near, of_longrope_near), std::pair(&far, of_longrope_far)}) {
                if (!list->empty()) {
                    warn(rotation_, "ignored tensor {}: there is {}, which llama.cpp takes first",
                         name, of_llama3);
                }
            }
            return divisors;
        }
        if (near.empty() && far.empty()) {
            if (type == "longrope") {
                invalid_data(
                    "the tensors rope_factors_long.weight and rope_factors_short.weight are "
                    "missing: the rope.scaling.type longrope needs them");
            }
            return {};
        }
        if (near.empty() || far.empty()) {
            invalid_data("the tensor {} is missing: the file has only the other one",
                         near.empty() ? of_longrope_near : of_longrope_far);
        }
        from_lists_ = true;
        if (input_.seq_len == 0) {
            warn(rotation_,
                 "longrope depends on the length, which is unknown: assuming the short list");
        }
        const double original = original_length();
        if (double(input_.seq_len) > original) return far;
        rotation_.longest_seq_len = std::uint64_t(original);
        return near;
    }

    double original_length() {
        const Field original = keys_.find("rope.scaling.original_context_length");
        if (original) {
            return double(whole_number(original, 1, max_whole));
        }
        if (rotation_.max_position == 0) {
            keys_.required(
                "context_length",
                "it is needed because rope.scaling.original_context_length is missing too");
        }
        warn_of_assumed(original, double(rotation_.max_position), "which is context_length",
                        rotation_.warnings);
        return double(rotation_.max_position);
    }

    double number(const char* name, double otherwise) {
        const Field field = keys_.find(name);
        return field ? positive_number(field) : otherwise;
    }

    /// Sets YaRN's attention factor like llama_context's constructor in src/llama-context.cpp:
    /// m(factor), or a ratio of two magnitudes if the file has yarn_log_multiplier, divided by the
    /// factor of ggml, by which rope_yarn() multiplies.
    void yarn(const std::string& type, double factor, GgmlScaling& scaling) {
        const GgufArchitecture& architecture = input_.architecture;
        const Field ext = keys_.find("rope.scaling.yarn_ext_factor");
        const double given = ext ? finite_number(ext) : -1;
        scaling.ext_factor = given >= 0 ? given : type == "yarn" ? 1 : 0;
        const double from_file = number("rope.scaling.attn_factor", 1);
        if (scaling.ext_factor == 0) {
            scaling.attn_factor = number("rope.scaling.yarn_attn_factor", 1) * from_file;
            return;
        }
        scaling.beta_fast = number("rope.scaling.yarn_beta_fast", architecture.yarn_beta_fast);
        scaling.beta_slow = number("rope.scaling.yarn_beta_slow", 1);
        scaling.n_ctx_orig = original_length();
        const Field multiplier = keys_.find("rope.scaling.yarn_log_multiplier");
        const double all_dims = multiplier ? finite_number(multiplier) / architecture.yarn_log_unit
                                           : 0;
        if (all_dims < 0) {
            refuse(multiplier, "a finite number, at least 0");
        }
        // DeepSeek's two magnitudes are equal in every model, and the file has only one. For other
        // models they are assumed to be 1 and the value in the file.
        const double mscale = architecture.yarn_in_softmax ? all_dims : 1;
        const double of_ggml = 1 + 0.1 * std::log(factor);
        const double both = from_file *
                            (all_dims != 0 ? magnitude(factor, mscale) / magnitude(factor, all_dims)
                                           : magnitude(factor, 1));
        scaling.attn_factor = both / of_ggml;
        if (!(std::isfinite(scaling.attn_factor) &&
              scaling.attn_factor > 0)) {  // a negative value does not mean "not set" here
            invalid_data(
                "rope.scaling: attn_factor is {} with the factor {}: it must be finite and above 0",
                scaling.attn_factor, shown_number(factor));
        }
        if (architecture.yarn_in_softmax) {  // kq_scale of src/models/deepseek2.cpp
            const double in_softmax = both * (1 + 0.1 * all_dims * std::log(factor));
            rotation_.softmax_scale = in_softmax * in_softmax;
        }
    }

    GgufFields& keys_;
    const GgufScalingInput& input_;
    RopeParams& rotation_;
    bool from_lists_ = false;  // the divisors are LongRoPE's lists
};

/// Sets interleaved sections. A pair beyond the section of its axis uses the fourth position, which
/// llama.cpp sets to 0 for text.
void interleave(RopeParams& rotation) {
    Sections& sections = rotation.sections;
    sections.order = VKROPE_SECTIONS_INTERLEAVED;
    std::uint32_t beyond = 0;
    for (std::uint32_t j = 0; j < rotation.rotary_dim / 2; ++j) {
        beyond += j >= 3 * sections.pairs[j % 3];
    }
    if (beyond != 0) {
        sections.axes = 4;
        sections.leftover_axis = 3;
        warn(rotation,
             "pairs beyond the sections: {}, which the fourth axis turns, as in ggml; in the "
             "model's own code the first one does",
             beyond);
    }
}

}  // namespace

void apply_gguf_scaling(GgufFields& keys, const GgufScalingInput& input, RopeParams& rotation) {
    GgufScaling(keys, input, rotation).apply();
}

// Source: ggml_mrope_cache_init() of ggml's ggml-cpu/ops.cpp. The key lists four sections, in
// pairs; most models do not use the last section.
void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, RopeParams& rotation) {
    const Field field = keys.find("rope.dimension_sections");
    if (architecture.sections == GgufSections::none) {
        if (field) {
            warn(
                rotation, "ignored key {}: {}", field.name,
                architecture.known()
                    ? "tokens of this architecture have one position"
                    : "its meaning in an unknown architecture is not known: one position per token "
                      "is assumed");
        }
        return;
    }
    if (!field) {
        if (architecture.sections == GgufSections::required) {
            keys.required("rope.dimension_sections", "this architecture needs it");
        }
        return;
    }
    const std::vector<std::uint64_t> widths = whole_numbers(field, 0, max_head_dim);
    if (widths.size() != 3 && widths.size() != 4) {
        invalid_data("{} has {} elements: it must have 3 or 4", field.name, widths.size());
    }
    const std::uint64_t sum = std::accumulate(widths.begin(), widths.end(), std::uint64_t{0});
    if (architecture.sections == GgufSections::if_given &&
        (widths[0] == 0 || widths[1] == 0)) {  // use_mrope() of llama.cpp
        if (sum != 0) {
            warn(rotation,
                 "ignored key {}: one of the first two is 0, which llama.cpp treats as missing",
                 field.name);
        }
        return;
    }
    // ggml would repeat the first section or ignore the last one, which no model intends.
    if (sum != rotation.rotary_dim / 2) {
        invalid_data("{} adds up to {}: it must be half of the rotated channels, {}", field.name,
                     sum, rotation.rotary_dim / 2);
    }
    Sections& sections = rotation.sections;
    std::copy(widths.begin(), widths.end(), sections.pairs);
    sections.axes = sections.pairs[3] == 0 ? 3 : 4;
    if (!pairing_is_asked_for) {
        rotation.pairing = VKROPE_HALF_SPLIT;  // the pairing without sections does not matter
    }
    if (architecture.sections_interleaved) {
        interleave(rotation);
    }
}

}  // namespace vkrope
