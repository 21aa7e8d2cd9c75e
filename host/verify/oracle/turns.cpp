// SPDX-License-Identifier: MIT
#include "verify/oracle/turns.hpp"

#include <cfloat>
#include <cmath>

#include "verify/oracle/rows.hpp"

static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double that is wider than double");

namespace vkrope::oracle {
namespace {

std::vector<Window> windows_of(const Operation& operation) {
    if (!operation.windows.empty()) {
        return operation.windows;
    }
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
    return 0x1p-148 + 0x1p-123 * std::max(1.0, static_cast<double>(factor_of(operation)));
}

bool is_covered(const Operation& operation, std::int64_t position) {
    const std::uint64_t distance = position < 0 ? 0 - std::uint64_t(position)
                                                : std::uint64_t(position);
    return distance < operation.covered;
}

void turn_to(const Operation& operation, std::int64_t position, std::vector<CosSin>& turns) {
    const long double factor = factor_of(operation);
    turns.resize(operation.inv_freq.size());
    for (std::size_t j = 0; j < turns.size(); ++j) {
        CosSin turn = operation.cos_sin ? operation.cos_sin(position, j)
                                        : exact_cos_sin(position, operation.inv_freq[j]);
        if (!operation.cos_sin && !operation.phase.empty())
            turn = sum_of(turn, exact_cos_sin(1, operation.phase[j]));
        turns[j] = {factor * turn.cos, factor * (operation.inverse ? -turn.sin : turn.sin)};
    }
}

void check_operation(const Operation& operation, const Tensor& in) {
    require(operation.positions.size() == in.batch * in.tokens,
            "oracle: positions must have batch * tokens elements");
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
