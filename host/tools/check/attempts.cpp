// SPDX-License-Identifier: MIT
#include "check/attempts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vkrope::tools {
namespace {

using oracle::CosSin;
using oracle::Operation;

}  // namespace

Trial right(const Evidence& evidence) {
    return {.in = evidence.in,
            .out = evidence.out,
            .operation = evidence.operation,
            .further = evidence.further};
}

Attempt if_any(bool applicable, Attempt attempt) {
    return applicable ? std::move(attempt) : std::nullopt;
}

std::vector<double> powers(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    return base > 0 && default_inv_freq(base, rotary_dim, inv_freq.data()) ? inv_freq
                                                                           : std::vector<double>();
}

std::uint32_t rotary_dim(const Evidence& evidence) {
    return static_cast<std::uint32_t>(2 * evidence.operation.inv_freq.size());
}

std::uint64_t channels_to_end(const Operation& operation) {
    if (operation.windows.empty()) {
        return 2 * operation.inv_freq.size() / operation.head_groups;
    }
    return operation.windows.back().offset + 2 * operation.windows.back().pairs;
}

void set_frequencies(Operation& operation, const std::vector<double>& inv_freq) {
    if (inv_freq.size() != operation.inv_freq.size()) {
        operation.windows.clear();
    }
    operation.inv_freq = inv_freq;
}

double rounded_to(oracle::Type type, long double value) {
    return oracle::widen(type, oracle::narrow(type, value));
}

bool differ(const std::vector<double>& a, const std::vector<double>& b) {
    const auto far = [](double x, double y) { return std::fabs(x - y) > 1e-12 * std::fabs(y); };
    return a.size() != b.size() || !std::equal(a.begin(), a.end(), b.begin(),
                                               [&](double x, double y) { return !far(x, y); });
}

Attempt with_frequencies(const Evidence& evidence, const std::vector<double>& inv_freq) {
    Attempt attempt = with(evidence,
                           [&](Operation& operation) { set_frequencies(operation, inv_freq); });
    const bool fits = attempt->operation.rotary_offset + channels_to_end(attempt->operation) <=
                      evidence.in.head_dim;
    return if_any(!inv_freq.empty() && fits && differ(inv_freq, evidence.operation.inv_freq),
                  attempt);
}

Attempt with_positions(const Evidence& evidence,
                       const std::function<std::int64_t(std::uint64_t, const Positions&)>& change) {
    Attempt attempt = right(evidence);
    each_axis(*attempt, [&change](Positions& positions) {
        const Positions right = positions;
        for (std::uint64_t token = 0; token < positions.size(); ++token) {
            positions[token] = change(token, right);
        }
    });
    const bool changed = attempt->operation.positions != evidence.operation.positions ||
                         attempt->further.positions != evidence.further.positions;
    return if_any(changed, attempt);
}

Attempt swapped_pairing(const Evidence& evidence) {
    return if_any(evidence.operation.inv_freq.size() > 1, with(evidence, [](Operation& operation) {
                      operation.interleaved = !operation.interleaved;
                  }));
}

Attempt reordered_pairs(const Evidence& evidence) {
    return if_any(evidence.operation.inv_freq.size() > 1, with(evidence, [](Operation& operation) {
                      operation.interleaved_out = !operation.interleaved;
                  }));
}

Attempt inverse_direction(const Evidence& evidence) {
    return with(evidence, [](Operation& operation) { operation.inverse = !operation.inverse; });
}

Attempt rotated_twice(const Evidence& evidence) {
    Attempt attempt = with(evidence, [](Operation& operation) {
        operation.attention_factor *= operation.attention_factor;
    });
    each_axis(*attempt, [](Positions& positions) {
        for (std::int64_t& position : positions) {
            position *= 2;
        }
    });
    return attempt;
}

Attempt cos_and_sin_exchanged(const Evidence& evidence) {
    return with(evidence, [&evidence](Operation& operation) {
        operation.cos_sin = [inv_freq = evidence.operation.inv_freq](std::int64_t position,
                                                                     std::size_t pair) {
            const CosSin turn = oracle::exact_cos_sin(position, inv_freq[pair]);
            return CosSin{turn.sin, turn.cos};
        };
    });
}

}  // namespace vkrope::tools
