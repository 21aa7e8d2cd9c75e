// SPDX-License-Identifier: MIT
#include "model/hf/scaling.hpp"

#include <algorithm>
#include <cmath>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

/// Fields that are valid for every type.
constexpr const char* common_fields[] = {
    "rope_type",         "type",          "rope_theta", "partial_rotary_factor", "mrope_section",
    "mrope_interleaved", "xdrope_section"};

/// A supported scaling, and the fields that it reads.
struct ScalingType {
    const char* name;
    std::initializer_list<const char*> fields;
};

const ScalingType scaling_types[] = {
    {"default", {}},
    {"dynamic", {"factor", "alpha", "original_max_position_embeddings"}},
    {"linear", {"factor"}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"longrope",
     {"factor", "short_factor", "long_factor", "attention_factor", "short_mscale", "long_mscale",
      "original_max_position_embeddings"}},
    {"ntk", {"factor", "mixed_b"}},
    {"proportional", {"factor"}},
    {"xdrope", {"alpha"}},
    {"yarn",
     {"factor", "beta_fast", "beta_slow", "truncate", "attention_factor", "mscale",
      "mscale_all_dim", "original_max_position_embeddings"}},
};

const ScalingType* known(const std::string& name) {
    const auto* found = std::find_if(std::begin(scaling_types), std::end(scaling_types),
                                     [&](const ScalingType& type) { return name == type.name; });
    return found == std::end(scaling_types) ? nullptr : found;
}

template <class Names>
bool contains(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string present_name(const std::string& type) {
    return type == "su" ? "longrope" : type == "mrope" ? "default" : type;
}

json object_or_empty(const Scope& config, const char* name) {
    const Field field = find({config}, {name});
    if (!field) {
        return json::object();
    }
    if (!field.value->is_object()) {
        fail(Code::invalid_data, "%s is %s: must be an object or null", field.name.c_str(),
             shown(*field.value).c_str());
    }
    return *field.value;
}

/// The section without fields that need no comparison: nulls, and those that share() compares.
json comparable(const json& section) {
    json result = json::object();
    for (const auto& [key, value] : section.items()) {
        if (value.is_object()) {
            result[key] = comparable(value);
        } else if ((key == "type" || key == "rope_type") && value.is_string()) {
            result["rope_type"] = present_name(value.get<std::string>());
        } else if (!value.is_null() && key != "rope_theta" && key != "partial_rotary_factor") {
            result[key] = value;
        }
    }
    return result;
}

/// The section of rope_parameters that a rope_scaling without layer types describes: that for full
/// attention. Null if there are no layer types.
const json* scaled_type(const json& parameters) {
    const auto full = parameters.find("full_attention");
    return full != parameters.end() && full->is_object() ? &*full : nullptr;
}

void require_agreement(const json& parameters, const json& scaling) {
    // Before layer types had sections, a model scaled its full-attention layers.
    const json* full = scaled_type(parameters);
    const json a = comparable(full != nullptr && scaled_type(scaling) == nullptr ? *full
                                                                                 : parameters);
    const json b = comparable(scaling);
    if (a == b) {
        return;
    }
    for (const json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (!a.contains(key) || !b.contains(key) || a[key] != b[key]) {
                fail(Code::invalid_data,
                     "rope_parameters and rope_scaling differ in %s: they must agree",
                     shown_key(key).c_str());
            }
        }
    }
}

/// The layer type whose section has this value of `key`; empty if none has.
std::string type_that_says(const ScalingSections& sections, const std::string& key,
                           const json& value) {
    for (const auto& [type, section] : sections.by_type) {
        const auto own = section.object.find(key);
        if (own != section.object.end() && *own == value) {
            return type;
        }
    }
    return {};
}

ScalingSections divided(const std::string& name, const json& object,
                        std::vector<std::string>& warnings) {
    ScalingSections sections;
    for (const auto& [key, value] : object.items()) {
        if (value.is_object()) {
            sections.by_type.push_back({key, {name + "." + shown_key(key), value}});
        }
    }
    if (sections.by_type.empty()) {
        sections.all = {name, object};
        return sections;
    }
    if (sections.by_type.size() > max_layer_types) {
        fail(Code::invalid_data, "%s has %zu layer types: must have at most %zu", name.c_str(),
             sections.by_type.size(), max_layer_types);
    }
    for (const auto& [key, value] : object.items()) {
        if (value.is_object() || value.is_null()) {
            continue;
        }
        const std::string type = type_that_says(sections, key, value);
        if (type.empty()) {
            fail(Code::invalid_data,
                 "%s has both %s and parameters per layer type: which of them holds is unknown",
                 name.c_str(), shown_key(key).c_str());
        }
        warnings.push_back("ignored key " + name + "." + shown_key(key) + ", which is " +
                           shown(value) + ": each layer type's own " + "is read, and " +
                           shown_key(type) + " has the same");
    }
    return sections;
}

/// Copies a field that only rope_scaling has; if both have it, they must agree. With sections per
/// layer type, one of them must agree.
void share(json& parameters, const json& scaling, const char* key) {
    const auto old = scaling.find(key);
    if (old == scaling.end() || old->is_null()) {
        return;
    }
    bool said = false, agrees = false;
    const auto compare = [&](const json& section) {
        const auto own = section.find(key);
        said = said || (own != section.end() && !own->is_null());
        agrees = agrees || (own != section.end() && *own == *old);
    };
    compare(parameters);
    bool by_type = false;
    for (const json& section : parameters) {
        if (section.is_object()) {
            by_type = true;
            compare(section);
        }
    }
    if (!said && !by_type) {
        parameters[key] = *old;
    } else if (!agrees) {
        fail(Code::invalid_data, "rope_parameters and rope_scaling differ in %s: they must agree",
             key);
    }
}

/// Converts InternLM's {"base", "type", "scaling_factor"} to the fields of rope_scaling:
/// InternLMAttention of its modeling_internlm.py.
ScalingSection of_rotary(const Scope& config, const Field& rotary,
                         std::vector<std::string>& warnings) {
    const Scope scope = {rotary.value, rotary.name + "."};
    ScalingSection section = {rotary.name, json::object()};
    if (const Field base = find({scope}, {"base"})) {
        section.object["rope_theta"] = positive_number(base);
        const Field other = find({config}, {"rope_theta"});
        if (other && *other.value != *base.value) {
            fail(Code::invalid_data, "%s is %s but %s is %s: they must agree", base.name.c_str(),
                 shown(*base.value).c_str(), other.name.c_str(), shown(*other.value).c_str());
        }
    }
    const Field type = find({scope}, {"type"});
    if (!type || (*type.value != "origin" && *type.value != "dynamic")) {
        fail(type ? Code::not_supported : Code::invalid_data,
             "%s.type is %s: must be origin or dynamic", rotary.name.c_str(),
             type ? shown(*type.value).c_str() : "missing");
    }
    const bool grows = *type.value == "dynamic";
    section.object["rope_type"] = grows ? "dynamic" : "default";
    const Field factor = find({scope}, {"scaling_factor"});
    if (grows) {
        section.object["factor"] = factor ? positive_number(factor) : 1;
    }
    for (const auto& [key, value] : rotary.value->items()) {
        const bool read = key == "base" || key == "type" || (grows && key == "scaling_factor");
        if (!read && !value.is_null()) {
            warnings.push_back("ignored key " + scope.prefix + shown_key(key));
        }
    }
    return section;
}

/// The parameters of one scaling.
class Parameters {
   public:
    Parameters(const ScalingSection& section, const ScalingInput& input, Rotation& rotation)
        : section_(section), input_(input),
          rotation_(rotation), own_{section.scope()}, everywhere_{section.scope(), input.config} {}

    void apply() {
        warn_of_unused();
        const std::string& type = rotation_.rope_type;
        if (type == "linear") {
            check(scale_linear(rotation_.inv_freq, number("factor")));
        } else if (type == "dynamic") {
            dynamic();
        } else if (type == "ntk") {
            ntk();
        } else if (type == "xdrope") {
            if (const Field alpha = find(own_, {"alpha"})) {
                check(scale_ntk(rotation_.inv_freq, positive_number(alpha)));
            }
        } else if (type == "yarn") {
            input_.deepseek_yarn ? deepseek_yarn() : yarn();
        } else if (type == "longrope") {
            longrope();
        } else if (type == "llama3") {
            check(scale_llama3(
                rotation_.inv_freq,
                {number("factor"), number("low_freq_factor"), number("high_freq_factor"),
                 positive_number(required(everywhere_, "original_max_position_embeddings"))}));
        } else if (type == "proportional") {
            proportional();
        }
    }

   private:
    void check(const Status& status) const {
        if (!status) {
            fail(Code::invalid_data, "%s: %s", section_.name.c_str(), status.what);
        }
    }

    void warn(std::string warning) { rotation_.warnings.push_back(std::move(warning)); }

    void warn_of_unused() {
        const ScalingType& type = *known(rotation_.rope_type);
        for (const auto& [key, value] : section_.object.items()) {
            if (!value.is_null() && !contains(common_fields, key) && !contains(type.fields, key)) {
                warn("ignored key " + section_.name + "." + shown_key(key) + ": rope_type " +
                     type.name + " does not use it");
            }
        }
    }

    Field required(const Scopes& scopes, const char* name) const {
        Field field = find(scopes, {name});
        if (!field) {
            fail(Code::invalid_data, "%s.%s is missing: rope_type %s needs it",
                 section_.name.c_str(), name, rotation_.rope_type.c_str());
        }
        return field;
    }

    double number(const char* name) const { return positive_number(required(own_, name)); }

    /// The field, or `otherwise` if it is missing.
    double number(const char* name, double otherwise) const {
        const Field field = find(own_, {name});
        return field ? positive_number(field) : otherwise;
    }

    /// mscale and similar fields, for which 0 is valid.
    double magnitude(const char* name, double otherwise) const {
        const Field field = find(own_, {name});
        return !field || *field.value == 0 ? (field ? 0 : otherwise) : positive_number(field);
    }

    double max_position() const {
        if (rotation_.max_position == 0) {
            fail(Code::invalid_data, "max_position_embeddings is missing: rope_type %s needs it",
                 rotation_.rope_type.c_str());
        }
        return double(rotation_.max_position);
    }

    double original_max_position() {
        if (const Field field = find(everywhere_, {"original_max_position_embeddings"})) {
            return positive_number(field);
        }
        const double assumed = max_position();
        warn("original_max_position_embeddings is missing: " +
             std::to_string(rotation_.max_position) + " assumed, which is max_position_embeddings");
        return assumed;
    }

    /// The given factor, or else the ratio of the extended to the trained length.
    double factor_beyond(double original) {
        const Field field = find(own_, {"factor"});
        const Field length = find(everywhere_, {"original_max_position_embeddings"});
        if (!field && !length) {
            required(own_, "factor");
        }
        if (!field) {
            return max_position() / original;
        }
        const double factor = positive_number(field);
        if (length && rotation_.max_position != 0 &&
            std::fabs(factor * original - double(rotation_.max_position)) >= 1) {
            warn(field.name + " is " + shown(*field.value) + " but max_position_embeddings, " +
                 std::to_string(rotation_.max_position) + ", is " +
                 shown_number(double(rotation_.max_position) / original) +
                 " times original_max_position_embeddings: the factor is taken");
        }
        return factor;
    }

    /// Pair j of n is divided by factor^(((j + 1) / n)^b): Su Jianlin, kexue.fm/archives/9706,
    /// equations 10 to 13, and for b = 1 the fixed form, equation 6. NTKScalingRotaryEmbedding of
    /// GTE's modeling.py and of vLLM.
    void ntk() {
        const double factor = number("factor");
        if (factor < 1) {
            fail(Code::invalid_data, "%s.factor is %s: rope_type ntk needs at least 1",
                 section_.name.c_str(), shown_number(factor).c_str());
        }
        const double mixed_b = number("mixed_b", 1);
        const double pairs = double(rotation_.inv_freq.size());
        std::vector<double> divisors;
        for (std::size_t j = 0; j < rotation_.inv_freq.size(); ++j) {
            divisors.push_back(std::pow(factor, std::pow(double(j + 1) / pairs, mixed_b)));
        }
        check(scale_divisors(rotation_.inv_freq, divisors.data(), divisors.size()));
    }

    void dynamic() {
        if (const Field alpha = find(own_, {"alpha"})) {  // HunYuan: the same for every length
            fixed_ntk(alpha);
            return;
        }
        const Field original = find(own_, {"original_max_position_embeddings"});
        warn_without_length(
            "dynamic scaling depends on the length, which is unknown: no longer than trained "
            "assumed");
        const double given = original ? positive_number(original) : 0;
        const bool alone = original && rotation_.max_position == 0;
        const DynamicNtkScaling scaling = {number("factor"), alone ? given : max_position()};
        if (original && given != scaling.max_position_embeddings) {
            warn(original.name + " is " + shown(*original.value) +
                 " and max_position_embeddings is " + std::to_string(rotation_.max_position) +
                 ": the latter is taken for the trained length, as transformers' code does; it "
                 "documents the former");
        }
        check(scale_dynamic_ntk(rotation_.inv_freq, scaling, input_.seq_len));
        rotation_.longest_seq_len = std::max(input_.seq_len,
                                             length(scaling.max_position_embeddings));
    }

    /// Fields of dynamic scaling may be present beside alpha, as in HunYuan's files, if they ask
    /// for nothing else.
    void fixed_ntk(const Field& alpha) {
        if (const Field factor = find(own_, {"factor"})) {
            if (positive_number(factor) != 1) {
                fail(Code::invalid_data, "%s is %s and %s is %s: which of them scales is unknown",
                     alpha.name.c_str(), shown(*alpha.value).c_str(), factor.name.c_str(),
                     shown(*factor.value).c_str());
            }
            warn("ignored key " + factor.name + ": alpha is what scales");
        }
        if (const Field original = find(own_, {"original_max_position_embeddings"})) {
            warn("ignored key " + original.name + ": alpha scales the same for every length");
        }
        check(scale_ntk(rotation_.inv_freq, positive_number(alpha)));
    }

    static std::uint64_t length(double number) {
        return static_cast<std::uint64_t>(std::min(number, 0x1p53));
    }

    void warn_without_length(const char* warning) {
        if (input_.seq_len == 0) {
            warn(warning);
        }
    }

    void yarn() {
        YarnScaling scaling;
        scaling.original_max_position_embeddings = original_max_position();
        scaling.factor = factor_beyond(scaling.original_max_position_embeddings);
        scaling.beta_fast = number("beta_fast", scaling.beta_fast);
        scaling.beta_slow = number("beta_slow", scaling.beta_slow);
        scaling.attention_factor = number("attention_factor", 0);
        scaling.mscale = magnitude("mscale", 0);
        scaling.mscale_all_dim = magnitude("mscale_all_dim", 0);
        if (scaling.attention_factor != 0) {
            warn_of_mscale("attention_factor is given, and taken");
        } else if ((scaling.mscale != 0) != (scaling.mscale_all_dim != 0)) {
            warn_of_mscale(
                "mscale and mscale_all_dim count only together, as in transformers; the attention "
                "factor is YaRN's");
        }
        if (const Field truncate = find(own_, {"truncate"})) {
            scaling.truncate = truth(truncate);
        }
        check(scale_yarn(rotation_.inv_freq, input_.base, scaling, rotation_.attention_factor));
    }

    void deepseek_yarn() {
        DeepseekYarnScaling scaling;
        scaling.original_max_position_embeddings = original_max_position();
        scaling.factor = factor_beyond(scaling.original_max_position_embeddings);
        scaling.beta_fast = number("beta_fast", scaling.beta_fast);
        scaling.beta_slow = number("beta_slow", scaling.beta_slow);
        scaling.mscale = magnitude("mscale", scaling.mscale);
        scaling.mscale_all_dim = magnitude("mscale_all_dim", scaling.mscale_all_dim);
        if (const Field truncate = find(own_, {"truncate"}); truncate && !truth(truncate)) {
            fail(Code::not_supported, "%s is false: DeepSeek's YaRN truncates",
                 truncate.name.c_str());
        }
        const bool mscale = is_number("mscale"), all_dim = is_number("mscale_all_dim");
        if (mscale != all_dim) {
            warn(section_.name + "." + (mscale ? "mscale_all_dim" : "mscale") +
                 " is missing: " + (mscale ? "0" : "1") +
                 " assumed, the default of DeepSeek's code; in transformers the two count for the "
                 "attention factor only together");
        }
        check(scale_deepseek_yarn(rotation_.inv_freq, input_.base, scaling,
                                  rotation_.attention_factor, rotation_.softmax_scale));
        if (const Field given = find(own_, {"attention_factor"})) {
            rotation_.attention_factor = positive_number(given);
            if (mscale || all_dim) {
                warn(given.name + " is " + shown(*given.value) +
                     ": taken for cos and sin; mscale and mscale_all_dim for the softmax alone");
            }
        }
    }

    /// 0 in a file turns a magnitude off.
    bool is_number(const char* name) const { return magnitude(name, 0) != 0; }

    /// Warns of magnitudes that are present but not used, and why.
    void warn_of_mscale(const char* because) {
        for (const char* name : {"mscale", "mscale_all_dim"}) {
            if (is_number(name)) {
                const Field field = find(own_, {name});
                warn("ignored key " + field.name + ", which is " + shown(*field.value) + ": " +
                     because);
            }
        }
    }

    std::vector<double> divisors(const char* name) const {
        const Field field = required(own_, name);
        if (!field.value->is_array()) {
            fail(Code::invalid_data, "%s is %s: must be a list of numbers", field.name.c_str(),
                 shown(*field.value).c_str());
        }
        std::vector<double> numbers;
        for (const json& entry : *field.value) {
            numbers.push_back(
                positive_number({field.name + "[" + std::to_string(numbers.size()) + "]", &entry}));
        }
        if (numbers.size() != rotation_.inv_freq.size()) {
            fail(Code::invalid_data, "%s has %llu elements: must have rotary_dim / 2 = %llu",
                 field.name.c_str(), ull{numbers.size()}, ull{rotation_.inv_freq.size()});
        }
        return numbers;
    }

    void longrope() {
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
        if (const Field given = find(own_, {"attention_factor"});
            given && (scaling.short_mscale != 0 || scaling.long_mscale != 0)) {
            warn("ignored key " + given.name + ", which is " + shown(*given.value) +
                 ": short_mscale and long_mscale are taken for their lists");
        }
        // A given attention factor needs no factor.
        const bool needed = scaling.attention_factor == 0 &&
                            (scaling.short_mscale == 0 || scaling.long_mscale == 0);
        scaling.factor = needed || find(own_, {"factor"})
                             ? factor_beyond(scaling.original_max_position_embeddings)
                             : 1;
        warn_without_length(
            "longrope depends on the length, which is unknown: the short list assumed");
        check(scale_longrope(rotation_.inv_freq, scaling, input_.seq_len,
                             rotation_.attention_factor));
        const std::uint64_t original = length(scaling.original_max_position_embeddings);
        if (input_.seq_len <= original) rotation_.longest_seq_len = original;
    }

    void proportional() {
        ProportionalScaling scaling;
        scaling.factor = number("factor", scaling.factor);
        scaling.partial_rotary_factor = input_.partial_rotary_factor;
        check(proportional_inv_freq(input_.base, rotation_.head_dim, scaling,
                                    rotation_.inv_freq.data()));
    }

    const ScalingSection& section_;
    const ScalingInput& input_;
    Rotation& rotation_;
    const Scopes own_, everywhere_;
};

}  // namespace

ScalingSection ScalingSection::without_scaling() const {
    ScalingSection rest = {name, json::object()};
    for (const auto& [key, value] : object.items()) {
        if (contains(common_fields, key) && key != "rope_type" && key != "type") {
            rest.object[key] = value;
        }
    }
    return rest;
}

std::vector<std::string> ScalingSections::types() const {
    std::vector<std::string> names;
    for (const auto& [type, section] : by_type) {
        names.push_back(type);
    }
    return names;
}

const ScalingSection* ScalingSections::of(const std::string& type) const {
    if (by_type.empty()) {
        return &all;
    }
    for (const auto& [name, section] : by_type) {
        if (name == type) {
            return &section;
        }
    }
    return nullptr;
}

ScalingSections scaling_sections(const Scope& config, const ModelType& model,
                                 std::vector<std::string>& warnings) {
    json parameters = object_or_empty(config, "rope_parameters");
    const json scaling = object_or_empty(config, "rope_scaling");
    if (const Field rotary = model.rotary_object ? find({config}, {"rotary"}) : Field();
        rotary && rotary.value->is_object()) {
        if (!parameters.empty() || !scaling.empty()) {
            fail(Code::invalid_data, "%s and %s are both there: which of them holds is unknown",
                 rotary.name.c_str(), parameters.empty() ? "rope_scaling" : "rope_parameters");
        }
        return {of_rotary(config, rotary, warnings), {}};
    }
    if (!parameters.empty() && !scaling.empty()) {
        require_agreement(parameters, scaling);
        for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
            share(parameters, scaling, key);
        }
    }
    if (!parameters.empty()) {
        return divided(config.prefix + "rope_parameters", parameters, warnings);
    }
    // An explicit null in a file turns scaling off.
    if (scaling.empty() && model.scaling != nullptr &&
        !config.object->contains("rope_parameters") && !config.object->contains("rope_scaling")) {
        warnings.push_back(std::string("rope_scaling is missing: the default of ") + model.name +
                           " assumed");
        return divided("rope_parameters", json::parse(model.scaling), warnings);
    }
    return scaling.empty() ? ScalingSections()
                           : divided(config.prefix + "rope_scaling", scaling, warnings);
}

Field partial_rotary_factor(const Scopes& scopes) {
    return find(scopes, {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction",
                         "rotary_percent", "rope_percent"});
}

std::string scaling_type(const ScalingSection& section) {
    std::string type;
    Field found;
    for (const char* key : {"rope_type", "type"}) {
        const Field field = find({section.scope()}, {key});
        if (!field) {
            continue;
        }
        const std::string named = present_name(text(field));
        if (found && named != type) {
            fail(Code::invalid_data, "%s is %s but %s is %s: they must agree", found.name.c_str(),
                 shown(*found.value).c_str(), field.name.c_str(), shown(*field.value).c_str());
        }
        found = field;
        type = named;
    }
    if (found) {
        if (known(type) == nullptr) {
            fail(Code::not_supported,
                 "%s is %s: must be default, linear, dynamic, yarn, longrope, llama3, "
                 "proportional, mrope or xdrope",
                 found.name.c_str(), shown(*found.value).c_str());
        }
        return type;
    }
    for (const auto& [key, value] : section.object.items()) {
        if (!value.is_null() && !contains(common_fields, key)) {
            fail(Code::invalid_data,
                 "%s.rope_type is missing although %s is there: which scaling it belongs to is "
                 "unknown",
                 section.name.c_str(), shown_key(key).c_str());
        }
    }
    return "default";
}

void apply_scaling(const ScalingSection& section, const ScalingInput& input, Rotation& rotation) {
    Parameters(section, input, rotation).apply();
}

}  // namespace vkrope
