// SPDX-License-Identifier: MIT
#include "rotate/definition.hpp"

#include <numeric>
#include <utility>

namespace vkrope::tools {

FurtherAxes further_axes(const Sections& sections, const TokenPositions& positions,
                         std::uint64_t batch, std::uint64_t tokens) {
    FurtherAxes further = {.sections = sections, .positions = {}};
    for (std::uint32_t axis = 1; axis < sections.axes; ++axis) {
        further.positions.push_back(expanded(positions, batch, tokens, axis));
    }
    return further;
}

reference::Operation by_axis(reference::Operation operation, const FurtherAxes& further) {
    if (further.positions.empty()) {
        return operation;
    }
    auto turn = operation.cos_sin;
    if (!turn) {
        turn = [inv_freq = operation.inv_freq](std::int64_t position, std::size_t pair) {
            return reference::exact_cos_sin(position, inv_freq[pair]);
        };
    }
    std::vector<std::vector<std::int64_t>> axes = {std::move(operation.positions)};
    axes.insert(axes.end(), further.positions.begin(), further.positions.end());
    // Here the positions passed to the oracle only number the tokens; the axis to use depends on
    // the pair.
    operation.positions.resize(axes.front().size());
    std::iota(operation.positions.begin(), operation.positions.end(), 0);
    operation.cos_sin = [turn = std::move(turn), axes = std::move(axes),
                         sections = further.sections](std::int64_t token, std::size_t pair) {
        return turn(axes[axis_of(sections, static_cast<std::uint32_t>(pair))]
                        [static_cast<std::size_t>(token)],
                    pair);
    };
    return operation;
}

const char* breach_of(const reference::Verdict& verdict, double bound_u) noexcept {
    return verdict.nan_mismatch   ? "a value is NaN but the exact one is not, or the reverse"
           : verdict.bits_changed ? "a channel outside the rotated window changed"
           // Written so that a NaN error is a breach.
           : !(verdict.largest_error_u <= bound_u) ? "a value is too far from the exact one"
                                                   : nullptr;
}

}  // namespace vkrope::tools
