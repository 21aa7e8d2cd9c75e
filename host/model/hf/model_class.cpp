// SPDX-License-Identifier: MIT
#include "model/hf/model_class.hpp"

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

/// Handles models that share a model_type with others but differ from them.
void tell_variants_apart(ModelClass& found, const Scope& config, const Scopes& top) {
    // The smallest DeepSeek models have Llama's attention.
    if (found.type.qk_rope_head_dim != 0 && without_latent_attention(top)) {
        found.type = *find_model_type("deepseek");
    }
    if (found.name == "baichuan") {
        const Field hidden = find({config}, {"hidden_size"});
        if (hidden && *hidden.value == 5120) {
            fail(VKROPE_ERROR_NOT_SUPPORTED,
                 "hidden_size is 5120: Baichuan's 13B models use ALiBi, not RoPE");
        }
    }
}

}  // namespace

std::string ModelClass::shown_type() const {
    return type.name != nullptr ? type.name : unknown ? shown(*unknown.value) : "(missing)";
}

std::string ModelClass::assumed(const char* field, double value) const {
    return std::string(field) + " is missing: assuming " + shown_number(value) +
           ", the default of " + name;
}

bool without_latent_attention(const Scopes& top) {
    const Field latent = find(top, {"use_mla"});
    return latent && !truth(latent);
}

ModelClass model_class(const nlohmann::json& whole, const Scope& config, const Scopes& top,
                       std::vector<std::string>& warnings) {
    ModelClass found;
    Field field = find({config}, {"model_type"});
    if (!field || (text(field).empty() && config.object != &whole)) {
        field = find({{&whole, ""}}, {"model_type"});  // the text model has this class
    }
    if (!field) {
        warnings.push_back(
            "model_type is missing: assuming the defaults and pairing of llama; "
            "whether Q and K have norms is not known");
        return found;
    }
    const std::string name = text(field);
    if (const char* reason = unsupported_model_type(name)) {
        fail(VKROPE_ERROR_NOT_SUPPORTED, "%s is %s: %s", field.name.c_str(), shown(*field.value).c_str(),
             reason);
    }
    if (const ModelType* row = find_model_type(name)) {
        found.type = *row;
        found.name = row->name;
        tell_variants_apart(found, config, top);
        return found;
    }
    found.unknown = field;
    warnings.push_back(
        "model_type " + shown(*field.value) +
        " is unknown: assuming the defaults and pairing of llama; whether Q and K have "
        "norms is not known");
    return found;
}

}  // namespace vkrope
