// SPDX-License-Identifier: MIT
#include "rotate/definition.hpp"

#include <numeric>
#include <utility>

#include "io/model_file.hpp"
#include "meaning.hpp"

namespace vkrope::tools {

FurtherAxes further_axes(const RopeParams& rotation, const TokenPositions& positions,
                         std::uint64_t batch, std::uint64_t tokens) {
    FurtherAxes further = {.sections = rotation.sections, .positions = {}};
    for (std::uint32_t axis = 1; axis < rotation.sections.axes; ++axis) {
        further.positions.push_back(expanded(positions, batch, tokens, axis));
    }
    if (rotation.sections.order == VKROPE_SECTIONS_SUM) {
        further.summed = rotation.inv_freq;
    }
    return further;
}

void set_angles(const RopeParams& rotation, oracle::Operation& operation) {
    operation.inv_freq = rotation.inv_freq;
    operation.inv_freq.resize(rotation.inv_freq.size() / summed_axes(rotation.sections));
    operation.phase = rotation.phase;
    operation.head_groups = rotation.head_groups;
    operation.attention_factor = rotation.attention_factor;
    operation.windows.clear();
    for (const Window& window : windows_of(rotation)) {
        operation.windows.push_back({window.offset, window.rotary_dim / 2});
    }
}

oracle::Operation by_axis(oracle::Operation operation, const FurtherAxes& further) {
    if (further.positions.empty()) {
        return operation;
    }
    const std::size_t pairs = operation.inv_freq.size() / operation.head_groups;
    auto turn = operation.cos_sin;
    if (!turn) {
        turn = [inv_freq = operation.inv_freq](std::int64_t position, std::size_t pair) {
            return oracle::exact_cos_sin(position, inv_freq[pair]);
        };
    }
    std::vector<std::vector<std::int64_t>> axes = {std::move(operation.positions)};
    axes.insert(axes.end(), further.positions.begin(), further.positions.end());
    // The positions passed to the oracle only number the tokens, because the axis depends on the
    // pair.
    operation.positions.resize(axes.front().size());
    std::iota(operation.positions.begin(), operation.positions.end(), 0);
    operation.cos_sin = [turn = std::move(turn), axes = std::move(axes), further, pairs,
                         phase = operation.phase, replaced = bool(operation.cos_sin)](
                            std::int64_t token, std::size_t index) {
        const auto row = static_cast<std::size_t>(token);
        const std::size_t group = index / pairs, pair = index % pairs;
        oracle::CosSin angle;
        if (further.summed.empty()) {
            angle = turn(axes[further.axis(pair)][row], index);
        } else {
            for (std::size_t axis = 0; axis < axes.size(); ++axis) {
                const double inv_freq = further.summed[(group * axes.size() + axis) * pairs + pair];
                angle = oracle::sum_of(angle, oracle::exact_cos_sin(axes[axis][row], inv_freq));
            }
        }
        return phase.empty() || replaced
                   ? angle
                   : oracle::sum_of(angle, oracle::exact_cos_sin(1, phase[index]));
    };
    return operation;
}

const char* breach_of(const oracle::Verdict& verdict, double bound_u) noexcept {
    return verdict.nan_mismatch   ? "a value is NaN but the exact one is not, or the reverse"
           : verdict.bits_changed ? "a channel outside the rotated window changed"
           // The negation makes a NaN error a breach.
           : !(verdict.largest_error_u <= bound_u) ? "a value is too far from the exact one"
                                                   : nullptr;
}

}  // namespace vkrope::tools
