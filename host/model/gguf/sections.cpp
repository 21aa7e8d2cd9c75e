// SPDX-License-Identifier: MIT
// ggml_mrope_cache_init() of ggml's ggml-cpu/ops.cpp: four sections, in pairs; most models do not
// use the last one.
#include "model/gguf/sections.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "model/limits.hpp"

namespace vkrope {
namespace {

/// A pair beyond the section of its axis has the fourth position, which llama.cpp leaves 0 for
/// text.
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

void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, RopeParams& rotation) {
    const Field field = keys.find("rope.dimension_sections");
    if (architecture.sections == GgufSections::none) {
        if (field) {
            warn(rotation, "ignored key {}: {}", field.name,
                 architecture.known()
                     ? "tokens of this architecture have one position"
                     : "how an architecture that is unknown uses it is not known: one position a "
                       "token is read");
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
    // ggml would start again with the first section, or leave the last one unused: no model means
    // that.
    if (sum != rotation.rotary_dim / 2) {
        invalid_data("{} adds up to {}: it must be half of the rotated channels, {}", field.name,
                     sum, rotation.rotary_dim / 2);
    }
    Sections& sections = rotation.sections;
    std::copy(widths.begin(), widths.end(), sections.pairs);
    sections.axes = sections.pairs[3] == 0 ? 3 : 4;
    if (!pairing_is_asked_for) {
        rotation.pairing = VKROPE_HALF_SPLIT;  // whatever the pairing is without sections
    }
    if (architecture.sections_interleaved) {
        interleave(rotation);
    }
}

}  // namespace vkrope
