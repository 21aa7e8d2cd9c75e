// SPDX-License-Identifier: MIT
#include "model/hf/sections.hpp"

#include <algorithm>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

Sections sections_of(const Field& field) {
    if (!field.value->is_array() || field.value->size() < 2 || field.value->size() > max_axes) {
        fail(Code::invalid_data, "%s is %s of %llu: it must be a list of 2 to %u numbers",
             field.name.c_str(), shown(*field.value).c_str(), ull{field.value->size()}, max_axes);
    }
    Sections sections;
    for (const json& entry : *field.value) {
        const std::string name = field.name + "[" + std::to_string(sections.axes) + "]";
        sections.pairs[sections.axes++] = std::uint32_t(
            whole_number({name, &entry}, 0, max_head_dim));
    }
    return sections;
}

}  // namespace

Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs,
                           std::vector<std::string>& warnings) {
    const Scopes scopes = {section.scope(), config};
    const Field field = find(scopes, {"mrope_section", "xdrope_section"});
    const bool by_class = model.mrope_section[0] != 0;
    Sections sections;
    if (field && !(field.value->is_array() && field.value->empty())) {
        sections = sections_of(field);
    } else if (by_class) {
        sections.axes = 3;
        std::copy(std::begin(model.mrope_section), std::end(model.mrope_section), sections.pairs);
        warnings.push_back("mrope_section is missing: assuming " +
                           std::to_string(sections.pairs[0]) + ", " +
                           std::to_string(sections.pairs[1]) + ", " +
                           std::to_string(sections.pairs[2]) + ", the default of " + model.name);
    } else {
        const Field alone = find(scopes, {"mrope_interleaved"});
        const Field type = find_first({section.scope()}, {"rope_type", "type"});
        if ((alone && truth(alone)) ||
            (type && (*type.value == "mrope" || *type.value == "xdrope"))) {
            fail(Code::invalid_data, "mrope_section is missing: %s needs it",
                 alone ? alone.name.c_str() : type.name.c_str());
        }
        return sections;
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t width : sections.pairs) {
        sum += width;
    }
    if (sum != pairs) {
        fail(Code::invalid_data, "%s adds up to %llu: it must be rotary_dim / 2 = %u",
             field ? field.name.c_str() : "mrope_section", ull{sum}, pairs);
    }
    const Field order = find(scopes, {"mrope_interleaved"});
    if (order ? truth(order) : model.mrope_interleaved) {
        if (sections.axes != 3) {
            fail(Code::invalid_data, "%s has %u elements: interleaved sections have 3",
                 field.name.c_str(), sections.axes);
        }
        sections.order = SectionOrder::interleaved;
    }
    return sections;
}

}  // namespace vkrope
