// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/hf/readers.hpp"

namespace vkrope {
namespace {

// Returns a length in a file as an integer.
std::uint64_t trained_length(double number) {
    return std::uint64_t(std::min(number, 0x1p53));
}

// Reads the parameters of one scaling and applies it.
class Scaling {
   public:
    Scaling(const ScalingSection& section, const ScalingInput& input, RopeParams& rotation)
        : section_(section), input_(input), rotation_(rotation),
          frequencies_(rotation.inv_freq), own_{section.scope()}, everywhere_{section.scope(),
                                                                              input.config} {}

    void apply() {
        const std::string& type = rotation_.rope_type;
        const Warnings unused = unused_fields(section_, type);
        rotation_.warnings.insert(rotation_.warnings.end(), unused.begin(), unused.end());
        if (type == "linear") {
            check(scale_linear(frequencies_, number("factor")));
        } else if (type == "dynamic") {
            dynamic();
        } else if (type == "ntk") {
            ntk();
        } else if (type == "xdrope") {
            if (const Field alpha = own("alpha"))
                check(scale_ntk(frequencies_, positive_number(alpha)));
        } else if (type == "yarn") {
            const Field stated = find_first(own_, {"rope_type", "type"});
            const bool by_name = stated && is_deepseek_yarn(text(stated));
            input_.deepseek_yarn || by_name ? deepseek_yarn() : yarn();
            // The class, not the name of the type, decides whether the softmax is scaled.
            if (!input_.deepseek_yarn) rotation_.softmax_scale = 1;
        } else if (type == "longrope") {
            longrope();
        } else if (type == "llama3") {
            check(scale_llama3(
                frequencies_,
                {number("factor"), number("low_freq_factor"), number("high_freq_factor"),
                 positive_number(required(everywhere_, "original_max_position_embeddings"))}));
        } else if (type == "proportional") {
            ProportionalScaling scaling;
            scaling.factor = number("factor", scaling.factor);
            scaling.partial_rotary_factor = input_.partial_rotary_factor;
            check(proportional_inv_freq(input_.base, rotation_.head_dim, scaling,
                                        frequencies_.data()));
        }
    }

   private:
    void check(const Status& status) const { require(status, section_.name); }

    void warn_without_length(const char* warning) const {
        if (input_.seq_len == 0) rotation_.warnings.push_back(warning);
    }

    Field own(const char* name) const { return find(own_, {name}); }

    Field required(const Scopes& scopes, const char* name) const {
        Field field = find(scopes, {name});
        if (!field) {
            invalid_data("{}.{} is missing: rope_type {} needs it", section_.name, name,
                         rotation_.rope_type);
        }
        return field;
    }

    double number(const char* name) const { return positive_number(required(own_, name)); }

    double number(const char* name, double otherwise) const {
        const Field field = own(name);
        return field ? positive_number(field) : otherwise;
    }

    // Returns mscale or a similar field; 0 turns the magnitude off.
    double magnitude(const char* name, double otherwise) const {
        const Field field = own(name);
        return field && *field.value == 0 ? 0 : number(name, otherwise);
    }

    double max_position() const {
        if (rotation_.max_position == 0) {
            invalid_data("max_position_embeddings is missing: rope_type {} needs it",
                         rotation_.rope_type);
        }
        return double(rotation_.max_position);
    }

    double original_max_position() const {
        if (const Field field = find(everywhere_, {"original_max_position_embeddings"}))
            return positive_number(field);
        const double assumed = max_position();
        warn(rotation_,
             "original_max_position_embeddings is missing: assuming {}, which is "
             "max_position_embeddings",
             rotation_.max_position);
        return assumed;
    }

    // Returns the factor in the file, or else the extended length divided by the trained length.
    double factor_beyond(double original) const {
        const Field field = own("factor");
        const Field length = find(everywhere_, {"original_max_position_embeddings"});
        if (!field && length) return max_position() / original;
        const double factor = number("factor");
        if (length && rotation_.max_position != 0 &&
            std::fabs(factor * original - double(rotation_.max_position)) >= 1) {
            warn(
                rotation_,
                "{} but max_position_embeddings, {}, is {} times original_max_position_embeddings: "
                "the factor is used",
                stated(field), rotation_.max_position,
                shown_number(double(rotation_.max_position) / original));
        }
        return factor;
    }

    // Applies ntk of GTE, which divides pair j of n by factor^(((j + 1) / n)^b). Source: Su
    // Jianlin, kexue.fm/archives/9706, equations 10 to 13, for b = 1 equation 6 (the fixed form);
    // NTKScalingRotaryEmbedding of GTE's modeling.py and of vLLM.
    void ntk() const {
        const double factor = number("factor");
        if (factor < 1) {
            invalid_data("{}.factor is {}: rope_type ntk needs at least 1", section_.name,
                         shown_number(factor));
        }
        const double mixed_b = number("mixed_b", 1);
        const double pairs = double(frequencies_.size());
        std::vector<double> divisors;
        for (std::size_t j = 0; j < frequencies_.size(); ++j)
            divisors.push_back(std::pow(factor, std::pow(double(j + 1) / pairs, mixed_b)));
        check(scale_divisors(frequencies_, divisors.data(), divisors.size()));
    }

    // Applies HunYuan's alpha, which does not depend on the length. Fields of dynamic scaling may
    // be present, as in HunYuan's files, if they do not change anything.
    void fixed_ntk(const Field& alpha) const {
        if (const Field factor = own("factor")) {
            if (positive_number(factor) != 1) {
                invalid_data("{} and {}: it is unknown which of them applies", stated(alpha),
                             stated(factor));
            }
            warn(rotation_, "ignored key {}: the scaling uses alpha instead", factor.name);
        }
        if (const Field original = own("original_max_position_embeddings")) {
            warn(rotation_, "ignored key {}: alpha scales the same for every length",
                 original.name);
        }
        check(scale_ntk(frequencies_, positive_number(alpha)));
    }

    void dynamic() const {
        if (const Field alpha = own("alpha")) {
            fixed_ntk(alpha);
            return;
        }
        const Field original = own("original_max_position_embeddings");
        warn_without_length(
            "dynamic scaling depends on the length, which is unknown: assuming it is no longer "
            "than trained");
        const double given = original ? positive_number(original) : 0;
        const bool alone = original && rotation_.max_position == 0;
        const DynamicNtkScaling scaling = {number("factor"), alone ? given : max_position()};
        if (original && given != scaling.max_position_embeddings) {
            warn(rotation_,
                 "{} and max_position_embeddings is {}: the latter is used as the trained length, "
                 "as in transformers' code; its documentation names the former",
                 stated(original), rotation_.max_position);
        }
        check(scale_dynamic_ntk(frequencies_, scaling, input_.seq_len));
        rotation_.longest_seq_len = std::max(input_.seq_len,
                                             trained_length(scaling.max_position_embeddings));
    }

    // Warns of unused magnitudes, with the reason.
    void warn_of_mscale(const char* because) const {
        for (const char* name : {"mscale", "mscale_all_dim"}) {
            if (magnitude(name, 0) != 0) {
                const Field field = own(name);
                warn(rotation_, "{}{}", ignored(field), because);
            }
        }
    }

    // Reads the parameters that both kinds of YaRN share.
    template <class Parameters>
    Parameters yarn_parameters() const {
        Parameters scaling;
        scaling.original_max_position_embeddings = original_max_position();
        scaling.factor = factor_beyond(scaling.original_max_position_embeddings);
        scaling.beta_fast = number("beta_fast", 0);
        scaling.beta_slow = number("beta_slow", 0);
        return scaling;
    }

    // Applies YaRN with the attention factor of transformers' code.
    void yarn() const {
        auto scaling = yarn_parameters<YarnScaling>();
        scaling.attention_factor = number("attention_factor", 0);
        scaling.mscale = magnitude("mscale", 0);
        scaling.mscale_all_dim = magnitude("mscale_all_dim", 0);
        if (scaling.attention_factor != 0) {
            warn_of_mscale("attention_factor is given and is used");
        } else if ((scaling.mscale != 0) != (scaling.mscale_all_dim != 0)) {
            warn_of_mscale(
                "mscale and mscale_all_dim count only together, as in transformers; the attention "
                "factor is YaRN's");
        }
        if (const Field truncate = own("truncate")) scaling.no_truncate = !truth(truncate);
        check(scale_yarn(frequencies_, input_.base, scaling, rotation_.attention_factor));
    }

    // Applies YaRN of DeepSeek's code, which also scales the softmax.
    void deepseek_yarn() const {
        auto scaling = yarn_parameters<DeepseekYarnScaling>();
        scaling.mscale = magnitude("mscale", 1);
        if (scaling.mscale == 0) scaling.mscale = -1;  // a 0 in the file means no magnitude
        scaling.mscale_all_dim = magnitude("mscale_all_dim", 0);
        if (const Field truncate = own("truncate"); truncate && !truth(truncate))
            not_supported("{}: DeepSeek's YaRN truncates", stated(truncate));
        const bool mscale = magnitude("mscale", 0) != 0,
                   all_dim = magnitude("mscale_all_dim", 0) != 0;
        if (mscale != all_dim) {
            warn(rotation_,
                 "{}.{} is missing: assuming {}, the default of DeepSeek's code; in transformers "
                 "the two count for the attention factor only together",
                 section_.name, (mscale ? "mscale_all_dim" : "mscale"), (mscale ? "0" : "1"));
        }
        check(scale_deepseek_yarn(frequencies_, input_.base, scaling, rotation_.attention_factor,
                                  rotation_.softmax_scale));
        if (const Field given = own("attention_factor")) {
            rotation_.attention_factor = positive_number(given);
            if (mscale || all_dim) {
                warn(rotation_,
                     "{}: used for cos and sin; mscale and mscale_all_dim only for the softmax",
                     stated(given));
            }
        }
    }

    std::vector<double> divisors(const char* name) const {
        const Field field = required(own_, name);
        if (!field.value->is_array()) refuse(field, "a list of numbers");
        std::vector<double> numbers;
        for (std::size_t i = 0; i < field.value->size(); ++i)
            numbers.push_back(positive_number(element(field, i)));
        if (numbers.size() != frequencies_.size()) {
            invalid_data("{} has {} elements: it must have rotary_dim / 2 = {}", field.name,
                         numbers.size(), frequencies_.size());
        }
        return numbers;
    }

    void longrope() const {
        const std::vector<double> near = divisors("short_factor");
        const std::vector<double> far = divisors("long_factor");
        LongRopeScaling scaling;
        scaling.short_factor = near.data();
        scaling.long_factor = far.data();
        scaling.count = near.size();
        scaling.original_max_position_embeddings = original_max_position();
        scaling.attention_factor = number("attention_factor", 0);
        scaling.short_mscale = number("short_mscale", 0);
        scaling.long_mscale = number("long_mscale", 0);
        if (const Field given = own("attention_factor");
            given && (scaling.short_mscale != 0 || scaling.long_mscale != 0)) {
            warn(rotation_, "{}short_mscale and long_mscale are used for their lists",
                 ignored(given));
        }
        // A file with an attention factor needs no factor.
        const bool needed = scaling.attention_factor == 0 &&
                            (scaling.short_mscale == 0 || scaling.long_mscale == 0);
        scaling.factor = needed || own("factor")
                             ? factor_beyond(scaling.original_max_position_embeddings)
                             : 1;
        warn_without_length(
            "longrope depends on the length, which is unknown: assuming the short list");
        check(scale_longrope(frequencies_, scaling, input_.seq_len, rotation_.attention_factor));
        const std::uint64_t original = trained_length(scaling.original_max_position_embeddings);
        if (input_.seq_len <= original) rotation_.longest_seq_len = original;
    }

    const ScalingSection& section_;
    const ScalingInput& input_;
    RopeParams& rotation_;
    std::vector<double>& frequencies_;
    const Scopes own_, everywhere_;
};

}  // namespace

void apply_scaling(const ScalingSection& section, const ScalingInput& input, RopeParams& rotation) {
    Scaling(section, input, rotation).apply();
}

}  // namespace vkrope
