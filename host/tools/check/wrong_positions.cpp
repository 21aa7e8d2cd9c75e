// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <utility>

#include "check/attempts.hpp"
#include "meaning.hpp"

namespace vkrope::tools {
namespace {

bool same_axes(const Sections& a, const Sections& b, std::size_t pairs) {
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        if (axis_of(a, pair) != axis_of(b, pair)) {
            return false;
        }
    }
    return true;
}

/// Nothing for a position too large for the type.
Attempt positions_in(const Evidence& evidence, oracle::Type type) {
    bool finite = true;
    const Attempt attempt = with_positions(
        evidence, [&](std::uint64_t token, const Positions& right) {
            const double position = rounded_to(type, static_cast<long double>(right[token]));
            finite = finite && std::isfinite(position);
            return finite ? static_cast<std::int64_t>(position) : 0;
        });
    return if_any(finite, attempt);
}

}  // namespace

Attempt position_plus_one(const Evidence& evidence) {
    return with_positions(
        evidence, [](std::uint64_t token, const Positions& right) { return right[token] + 1; });
}

Attempt position_minus_one(const Evidence& evidence) {
    return with_positions(
        evidence, [](std::uint64_t token, const Positions& right) { return right[token] - 1; });
}

Attempt positions_zero(const Evidence& evidence) {
    return with_positions(evidence, [](std::uint64_t, const Positions&) { return 0; });
}

Attempt not_rotated(const Evidence& evidence) {
    Attempt attempt = positions_zero(evidence);
    if (attempt) {
        attempt->operation.gain = oracle::Gain::omit;
    }
    return if_any(evidence.operation.attention_factor != 1, attempt);
}

Attempt positions_from_zero(const Evidence& evidence) {
    return with_positions(evidence, [&evidence](std::uint64_t token, const Positions&) {
        return static_cast<std::int64_t>(token % evidence.in.tokens);
    });
}

Attempt positions_of_first_sequence(const Evidence& evidence) {
    return with_positions(evidence, [&evidence](std::uint64_t token, const Positions& right) {
        return right[token % evidence.in.tokens];
    });
}

Attempt positions_of_first_token(const Evidence& evidence) {
    return with_positions(evidence, [&evidence](std::uint64_t token, const Positions& right) {
        return right[token - token % evidence.in.tokens];
    });
}

Attempt positions_in_bf16(const Evidence& evidence) {
    return positions_in(evidence, oracle::Type::bf16);
}

Attempt positions_in_f16(const Evidence& evidence) {
    return positions_in(evidence, oracle::Type::f16);
}

Attempt sections_ignored(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    attempt->further = {};
    return if_any(!evidence.further.positions.empty(), attempt);
}

Attempt sections_in_the_other_order(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Sections& sections = attempt->further.sections;
    const bool interleaved = sections.order == VKROPE_SECTIONS_INTERLEAVED;
    sections.order = interleaved ? VKROPE_SECTIONS_SEQUENTIAL : VKROPE_SECTIONS_INTERLEAVED;
    const bool there_is_such = sections.axes == 3 || sections.axes == 4;
    return if_any(there_is_such && !same_axes(sections, evidence.further.sections,
                                              evidence.operation.inv_freq.size()),
                  attempt);
}

/// Three equal sections that hold all pairs have the axes 0, 1, 2, 0, 1, 2 to the last one.
Attempt sections_without_end(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Sections& sections = attempt->further.sections;
    const std::size_t pairs = evidence.operation.inv_freq.size() / evidence.operation.head_groups;
    const auto third = static_cast<std::uint32_t>((pairs + 2) / 3);
    sections.order = VKROPE_SECTIONS_INTERLEAVED;
    for (std::uint32_t axis = 0; axis < max_axes; ++axis) {
        sections.pairs[axis] = axis < 3 ? third : 0;
    }
    return if_any(evidence.further.sections.order == VKROPE_SECTIONS_INTERLEAVED &&
                      sections.axes == 3 && !same_axes(sections, evidence.further.sections, pairs),
                  attempt);
}

/// Height and width are the two axes of images, and the last two axes of text with images.
Attempt height_and_width_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    std::vector<Positions>& further = attempt->further.positions;
    if (further.size() == 1) {
        std::swap(attempt->operation.positions, further[0]);
    } else if (further.size() > 1) {
        std::swap(further[0], further[1]);
    }
    return if_any(!further.empty(), attempt);
}

}  // namespace vkrope::tools
