// SPDX-License-Identifier: MIT
#include "model/hf/base.hpp"

#include <algorithm>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

constexpr double compress_rope_theta = 160000;  // of DeepseekV4Config in transformers

/// ModernBERT says in this way that local layers have the base of the others.
bool local_base_is_global(const Source& source) {
    const auto entry = source.config.object->find("local_rope_theta");
    return entry != source.config.object->end() && entry->is_null() && !has_local_base(source.top);
}

}  // namespace

double rope_theta(const Source& source, std::vector<std::string>& warnings) {
    if (source.base) {
        const Field of_layers = find_first(source.top, {"layer_rope_theta"}),
                    list = of_layers ? of_layers : find_first(source.top, {"rope_theta"});
        for (const Scope& scope : source.both()) {
            const Field single = find_first({scope}, {"rope_theta"});
            if (single && list && !single.value->is_array() &&
                std::find(list.value->begin(), list.value->end(), *single.value) ==
                    list.value->end()) {
                warnings.push_back("ignored key " + stated(single) + ": " + list.name +
                                   " is read, which has no such base");
            }
        }
        return *source.base;
    }
    if (const Field own = source.by_type() ? find({source.section.scope()}, {"rope_theta"})
                                           : Field()) {
        warn_unless_of_a_type(source, own,
                              {"rope_theta", "global_rope_theta", "rope_local_base_freq",
                               "local_rope_theta", "swa_rope_theta"},
                              "rope_theta", warnings);
        return positive_number(own);
    }
    if (source.model.type.layers == LayerRule::compressed && !source.by_type() &&
        source.layer.type != sliding_attention) {
        if (const Field own = find(source.top, {"compress_rope_theta"})) {
            return positive_number(own);
        }
        warnings.push_back(source.model.assumed("compress_rope_theta", compress_rope_theta));
        return compress_rope_theta;
    }
    const bool local = !source.layer.is_full() &&
                       (source.model.type.layers == LayerRule::local_base ||
                        has_local_base(source.top)) &&
                       !local_base_is_global(source);
    const std::initializer_list<const char*> of_local = {"rope_local_base_freq", "local_rope_theta",
                                                         "swa_rope_theta"};
    const Field field = local ? find(source.top, of_local)
                              : find_unless_of(source.top, of_local, source.both(),
                                               {"rope_theta", "global_rope_theta",
                                                "rotary_emb_base", "rotary_base", "rope_base",
                                                "rope_embedding_base", "rope_freq_constant"});
    const double theta = field   ? positive_number(field)
                         : local ? source.model.type.local_rope_theta
                                 : source.model.type.rope_theta;
    if (theta == 0) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "rope_theta is missing: model_type %s has no default that holds for all versions",
             source.model.type.name);
    }
    if (!field) {
        warnings.push_back(
            source.model.assumed(local ? "rope_local_base_freq" : "rope_theta", theta));
        if (!local && source.model.type.rope_theta_since_5 != 0) {
            warnings.back() += ", whose default in transformers 5 is " +
                               shown_number(source.model.type.rope_theta_since_5);
        }
    }
    const Field ratio = find(source.top, {"rope_ratio"});  // ChatGLM
    return ratio ? theta * positive_number(ratio) : theta;
}

}  // namespace vkrope
