// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "model/hf/readers.hpp"
#include "model/unread.hpp"

namespace vkrope {
namespace {

Sections sections_of(const Field& field) {
    Sections sections;
    for (const Field& one : elements(field, 2, max_axes))
        sections.pairs[sections.axes++] = std::uint32_t(whole_number(one, 0, max_head_dim));
    return sections;
}

// Reads ERNIE 4.5 VL's original files, where freq_allocation is the number of time pairs
// (modeling_ernie4_5_vl.py). Files of transformers have mrope_section.
Sections allocated(const Field& time, std::uint32_t pairs) {
    Sections sections = {.axes = 3};
    sections.pairs[2] = std::uint32_t(whole_number(time, 0, max_head_dim));
    if (sections.pairs[2] > pairs || (pairs - sections.pairs[2]) % 2 != 0) {
        invalid_data(
            "{} is {}: rows and columns must have the same number of the other pairs of {}",
            time.name, sections.pairs[2], pairs);
    }
    sections.pairs[0] = sections.pairs[1] = (pairs - sections.pairs[2]) / 2;
    return sections;
}

// Fails for settings that the classes with alternating axes do not support in transformers.
void require_alternating(const ScalingSection& section, const Scope& config,
                         const Sections& sections) {
    if (const std::string type = scaling_type(section); type != "default") {
        not_supported(
            "{}.rope_type is {}: the axes of this class alternate, which only default does",
            section.name, type);
    }
    const Field ratio = find_first({config}, {"compression_ratio"});
    if (ratio && positive_number(ratio) != 1)
        not_supported("{}: it divides positions, which is not supported", stated(ratio));
    if (sections.axes != 3 || sections.pairs[0] != sections.pairs[1]) {
        invalid_data(
            "mrope_section has {} elements, of which the first two are {} and {}: it must have 3, "
            "and the first two must be equal, since rows and columns alternate",
            sections.axes, sections.pairs[0], sections.pairs[1]);
    }
}

// Returns sections of two axes that alternate over all pairs.
Sections by_turns(std::uint32_t pairs) {
    if (pairs % 2 != 0) {
        invalid_data("head_dim is {}: it must be a multiple of 4, since rows and columns alternate",
                     2 * pairs);
    }
    return {.axes = 2, .pairs = {1, 1}};
}

}  // namespace

Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs, Warnings& warnings) {
    const Scopes scopes = {section.scope(), config};
    const bool then_time = model.alternating == Alternating::then_time;
    know(scopes, {"mrope_section", "mrope_interleaved", "xdrope_section"});
    if (then_time) know({config}, {"rope_3d", "freq_allocation", "compression_ratio"});
    const Field in_space = then_time ? find_first({config}, {"rope_3d"}) : Field();
    if (in_space && !truth(in_space)) return {};  // one position per token
    if (model.alternating == Alternating::two) {
        const Field kind = find_first({config}, {"rope_type"});
        if (kind && *kind.value != "2d" && !is_plain(*kind.value)) {
            not_supported("{}: the axes of {} alternate, which it calls 2d", stated(kind),
                          model.name);
        }
        return by_turns(pairs);
    }
    const Field time = then_time ? find_first({config}, {"freq_allocation"}) : Field();
    const Field field = find(scopes, {"mrope_section", "xdrope_section"});
    const bool by_class = model.mrope_section[0] != 0;
    Sections sections;
    if (field && !(field.value->is_array() && field.value->empty())) {
        sections = sections_of(field);
    } else if (time) {
        sections = allocated(time, pairs);
    } else if (by_class) {
        sections.axes = 3;
        std::copy(std::begin(model.mrope_section), std::end(model.mrope_section), sections.pairs);
        warn(warnings, "mrope_section is missing: assuming {}, {}, {}, the default of {}",
             sections.pairs[0], sections.pairs[1], sections.pairs[2], model.name);
    } else {
        const Field alone = find(scopes, {"mrope_interleaved"});
        const Field type = find_first({section.scope()}, {"rope_type", "type"});
        if ((alone && truth(alone)) ||
            (type && (*type.value == "mrope" || *type.value == "xdrope"))) {
            invalid_data("mrope_section is missing: {} needs it",
                         alone ? alone.name.c_str() : type.name);
        }
        return sections;
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t width : sections.pairs) sum += width;
    if (sum != pairs) {
        invalid_data("{} adds up to {}: it must be rotary_dim / 2 = {}",
                     field ? field.name.c_str() : "mrope_section", sum, pairs);
    }
    if (then_time) {
        require_alternating(section, config, sections);
        return sections;
    }
    // Qwen3-TTS and -ASR state the order of the sections with a key "interleaved" beside them.
    const Field interleaved = field ? find_first(scopes, {"interleaved"}) : Field(),
                order = find(scopes, {"mrope_interleaved"});
    if (order && interleaved && *order.value != *interleaved.value) disagree(order, interleaved);
    const Field& chosen = order ? order : interleaved;
    if (chosen ? truth(chosen) : model.mrope_interleaved) {
        if (sections.axes != 3) {
            invalid_data("{} has {} elements: interleaved sections have 3", field.name,
                         sections.axes);
        }
        sections.order = VKROPE_SECTIONS_INTERLEAVED;
    }
    return sections;
}

void alternate_axes(const ModelType& model, RopeParams& rotation) {
    if (model.alternating == Alternating::two) {
        rotation.warnings.push_back(
            "positions of the axes: row, column, by turns; of an image that begins at token L, "
            "L + (rows * columns - rows) / 2 + row and L + (rows * columns - columns) / 2 + "
            "column, rounded down; a text token has its index on both");
    }
    if (model.alternating != Alternating::then_time || rotation.sections.axes == 0) return;
    const std::vector<double> turns = std::move(rotation.inv_freq);
    const std::uint32_t in_space = rotation.sections.pairs[0] + rotation.sections.pairs[1];
    rotation.inv_freq.assign(3 * turns.size(), 0);
    for (std::uint32_t pair = 0; pair < turns.size(); ++pair) {
        const std::uint32_t axis = pair < in_space ? 1 + pair % 2 : 0;
        rotation.inv_freq[axis * turns.size() + pair] = turns[pair];
    }
    rotation.base = 0;  // each axis has its own frequencies
    rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 3};
    rotation.warnings.push_back(
        "positions of the axes: time, row, column; a text token has one position on all axes");
}

}  // namespace vkrope
