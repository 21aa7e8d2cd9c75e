// SPDX-License-Identifier: MIT
#include "verify/oracle/turns.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "verify/oracle/rows.hpp"

static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double that is wider than double");

namespace vkrope::oracle {
namespace {

std::vector<Window> windows_of(const Operation& operation) {
    if (!operation.windows.empty()) return operation.windows;
    return {{0, operation.inv_freq.size() / operation.head_groups}};
}

}  // namespace

// A product of 32 and 53 bits does not fit in a long double, so the frequency is split into 32 and
// 21 bits, whose products with a position are exact. `rest` is the exact rounding error of their
// sum; cos and sin are rotated by this tiny angle.
CosSin exact_cos_sin(std::int64_t position, double inv_freq) {
    const auto p = static_cast<long double>(position);
    int exponent = 0;
    const double fraction = std::frexp(inv_freq, &exponent);
    const double upper = std::ldexp(std::trunc(std::ldexp(fraction, 32)), exponent - 32);
    const long double high = p * upper, low = p * (inv_freq - upper), angle = high + low;
    const long double rest = low - (angle - high);
    const long double c = std::cos(angle), s = std::sin(angle);
    return {c - rest * s, s + rest * c};
}

CosSin float32_cos_sin(std::int64_t position, double inv_freq) {
    const float angle = float(position) * float(inv_freq);
    const auto wide = static_cast<long double>(angle);
    return {std::cos(wide), std::sin(wide)};
}

CosSin sum_of(const CosSin& a, const CosSin& b) {
    return {a.cos * b.cos - a.sin * b.sin, a.sin * b.cos + a.cos * b.sin};
}

std::vector<Pair> pairs_of(const Operation& operation) {
    std::vector<Pair> pairs;
    for (const Window& window : windows_of(operation)) {
        const auto channels = [&](bool interleaved,
                                  std::uint64_t j) -> std::array<std::uint64_t, 2> {
            const std::uint64_t first = operation.rotary_offset + window.offset +
                                        (interleaved ? 2 * j : j);
            return {first, first + (interleaved ? 1 : window.pairs)};
        };
        for (std::uint64_t j = 0; j < window.pairs; ++j) {
            pairs.push_back(
                {channels(operation.interleaved, j),
                 channels(operation.interleaved_out.value_or(operation.interleaved), j)});
        }
    }
    return pairs;
}

long double factor_of(const Operation& operation) {
    switch (operation.gain) {
        case Gain::omit: return 1;
        case Gain::divide_out: return 1 / static_cast<long double>(operation.attention_factor);
        default: return operation.attention_factor;
    }
}

double flushing_allowance(const Operation& operation) {
    return 0x1p-148 + 0x1p-123 * std::max(1.0, double(factor_of(operation)));
}

bool is_covered(const Operation& operation, std::size_t token) {
    const auto is_inside = [&](const std::vector<std::int64_t>& positions) {
        return positions[token] >= operation.covered.first &&
               positions[token] <= operation.covered.last;
    };
    const std::vector<std::vector<std::int64_t>>& further = operation.further.positions;
    return is_inside(operation.positions) && std::all_of(further.begin(), further.end(), is_inside);
}

CosSin cos_sin_of(const Operation& operation, std::size_t token, std::size_t pair) {
    const FurtherAxes& further = operation.further;
    const auto position = [&](std::size_t axis) {
        return (axis == 0 ? operation.positions : further.positions[axis - 1])[token];
    };
    const auto turn = [&](std::int64_t by, double inv_freq) {
        return operation.float32_angles ? float32_cos_sin(by, inv_freq)
                                        : exact_cos_sin(by, inv_freq);
    };
    const std::size_t pairs = operation.inv_freq.size() / operation.head_groups;
    CosSin sum;
    if (further.summed.empty()) {
        const std::int64_t by = position(further.axis(pair % pairs));
        if (operation.cos_sin) return operation.cos_sin(by, pair);
        sum = turn(by, operation.inv_freq[pair]);
    } else {
        const std::size_t axes = further.positions.size() + 1;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            const std::size_t at = (pair / pairs * axes + axis) * pairs + pair % pairs;
            sum = sum_of(sum, turn(position(axis), further.summed[at]));
        }
    }
    return operation.phase.empty() ? sum : sum_of(sum, exact_cos_sin(1, operation.phase[pair]));
}

void turn_to(const Operation& operation, std::size_t token, std::vector<CosSin>& turns) {
    const long double factor = factor_of(operation);
    turns.resize(operation.inv_freq.size());
    for (std::size_t j = 0; j < turns.size(); ++j) {
        const CosSin turn = cos_sin_of(operation, token, j);
        turns[j] = {factor * turn.cos, factor * (operation.inverse ? -turn.sin : turn.sin)};
    }
}

void check_operation(const Operation& operation, const Tensor& in) {
    const auto is_for_tokens = [&in](const std::vector<std::int64_t>& positions) {
        return positions.size() == in.batch * in.tokens;
    };
    const FurtherAxes& further = operation.further;
    require(is_for_tokens(operation.positions) &&
                std::all_of(further.positions.begin(), further.positions.end(), is_for_tokens),
            "oracle: positions must have batch * tokens elements on each axis");
    require(std::all_of(further.axes.begin(), further.axes.end(),
                        [&](std::uint32_t axis) { return axis <= further.positions.size(); }) ||
                further.positions.empty(),
            "oracle: every pair must turn by an axis with positions");
    require(further.summed.empty() ||
                further.summed.size() == operation.inv_freq.size() * (further.positions.size() + 1),
            "oracle: summed must have an element for each head group, axis and pair");
    std::uint64_t end = 0, pairs = 0;
    for (const Window& window : windows_of(operation)) {
        require(window.offset >= end, "oracle: windows must ascend and not overlap");
        end = window.offset + 2 * window.pairs;
        pairs += window.pairs;
    }
    require(pairs * operation.head_groups == operation.inv_freq.size(),
            "oracle: inv_freq must have an element for each head group and pair of the windows");
    require(operation.phase.empty() || operation.phase.size() == operation.inv_freq.size(),
            "oracle: phase must be empty or have as many elements as inv_freq");
    require(operation.head_groups != 0 && in.heads % operation.head_groups == 0,
            "oracle: heads must be a multiple of head_groups");
    require(operation.rotary_offset + end <= in.head_dim,
            "oracle: the window must lie inside head_dim");
}

}  // namespace vkrope::oracle
