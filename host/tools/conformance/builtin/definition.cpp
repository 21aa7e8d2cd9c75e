// SPDX-License-Identifier: MIT
#include "conformance/builtin/definition.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/builtin/symptoms.hpp"
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

std::uint32_t load(reference::Type type, const std::byte* elements, std::uint64_t index) {
    const std::size_t bytes = reference::bytes_of(type);
    std::uint32_t bits = 0;
    std::memcpy(&bits, elements + index * bytes, bytes);
    return bits;
}

bool is_subnormal(float x) {
    return x != 0 && std::fabs(x) < std::numeric_limits<float>::min();
}

/// One component of a pair: a b + c d; `flushed` is true if a subnormal took part. Volatile, so
/// that no compiler fuses the operations.
struct Rounded {
    float value = 0;
    bool flushed = false;
};
Rounded product_sum(float a, float b, float c, float d) {
    const volatile float first = a * b, second = c * d;
    const volatile float sum = first + second;
    const float given[] = {a, b, c, d, first, second, sum};
    return {sum, std::any_of(std::begin(given), std::end(given), is_subnormal)};
}

/// Returns the distance between neighbours of `type` around `exact`.
long double spacing(reference::Type type, long double exact) {
    const int lowest = type == reference::Type::f16 ? -14 : -126;
    const int fraction_bits = type == reference::Type::f32   ? 23
                              : type == reference::Type::f16 ? 10
                                                             : 7;
    return std::ldexp(1.0L,
                      std::max(exact == 0 ? lowest : std::ilogb(exact), lowest) - fraction_bits);
}

struct Pair {
    std::uint64_t in[2], out[2];
};

std::vector<Pair> pairs_of(const reference::Operation& operation) {
    std::vector<reference::Window> windows = operation.windows;
    if (windows.empty()) {
        windows.push_back({0, operation.inv_freq.size() / operation.head_groups});
    }
    std::vector<Pair> pairs;
    for (const reference::Window& window : windows) {
        const std::uint64_t start = operation.rotary_offset + window.offset;
        for (std::uint64_t j = 0; j < window.pairs; ++j) {
            Pair pair;
            for (const std::uint64_t member : {0, 1}) {
                const auto channel = [&](bool interleaved) {
                    return start + (interleaved ? 2 * j + member : j + member * window.pairs);
                };
                pair.in[member] = channel(operation.interleaved);
                pair.out[member] = channel(
                    operation.interleaved_out.value_or(operation.interleaved));
            }
            pairs.push_back(pair);
        }
    }
    return pairs;
}

}  // namespace

Definition::Definition(const Trial& trial, const std::vector<std::int64_t>& positions, bool flushes)
    : trial_(trial), positions_(positions), flushes_(flushes), inv_freq_(inv_freq_of(trial)),
      angles_(inv_freq_, trial.attention_factor,
              {.phase = trial.phase,
               .head_groups = head_groups_of(trial.info),
               .axes = summed_axes(trial.info.sections)}),
      exact_(trial, positions) {
    for (std::uint32_t j = 0; j < trial.info.rotary_dim / 2; ++j) {
        axis_.push_back(axis_turning(trial.info.sections, j));
    }
}

std::int64_t Definition::position(const Turn& turn) const {
    return positions_[axis_[turn.pair % axis_.size()] * trial_.shape.rows() + turn.token] +
           turn.further;
}

CosSin Definition::cos_sin(const Turn& turn) const {
    const KernelInfo& info = trial_.info;
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        const auto member = static_cast<std::size_t>(turn.member);
        const std::size_t column = !info.channel_angles ? turn.pair
                                   : info.pairing == VKROPE_HALF_SPLIT
                                       ? turn.pair + member * axis_.size()
                                       : 2 * turn.pair + member;
        const std::size_t at = static_cast<std::size_t>(position(turn)) * trial_.row_stride +
                               column;
        return {value(info.table, trial_.cos, at), value(info.table, trial_.sin, at)};
    }
    if (trial_.precision == VKROPE_ANGLE_PRECISION_FLOAT32) {
        const reference::CosSin exact = float32_cos_sin(position(turn), inv_freq_[turn.pair]);
        const auto factor = static_cast<float>(trial_.attention_factor);
        return {static_cast<float>(exact.cos) * factor, static_cast<float>(exact.sin) * factor};
    }
    if (info.sections.order != VKROPE_SECTIONS_SUM) {
        return angles_.at(info.angles, position(turn), turn.pair);
    }
    std::array<std::int64_t, max_axes> positions = {};
    for (std::uint32_t axis = 0; axis < info.sections.axes; ++axis) {
        positions[axis] = positions_[axis * trial_.shape.rows() + turn.token] + turn.further;
    }
    return angles_.sum_at(positions, turn.pair);
}

CosSin Definition::directed(const reference::Operation& operation, const Turn& turn) const {
    const CosSin forward = cos_sin(turn);
    if (!operation.inverse) {
        return forward;
    }
    // The matrix of the pair is transposed.
    Turn other = turn;
    other.member = 1 - turn.member;
    return {forward.cos, trial_.info.channel_angles ? -cos_sin(other).sin : -forward.sin};
}

std::uint64_t Definition::hold(const reference::Operation& operation, const reference::Tensor& in,
                               const reference::Tensor& out, const std::byte* input,
                               const std::byte* before, const std::byte* output, char name,
                               Findings& findings) const {
    const std::vector<Pair> pairs = pairs_of(operation);
    const bool callers = trial_.info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    // The contract does not fix the bits of a factor that is not in the table; the reference checks
    // its error bound.
    const bool bits_known = trial_.gain == VKROPE_GAIN_APPLY || trial_.attention_factor == 1;
    const std::uint64_t rows = in.batch * in.tokens;
    std::vector<std::uint64_t> from(rows * in.heads);
    reference::each_row(in, [&](std::uint64_t row, std::uint64_t first) { from[row] = first; });
    std::vector<bool> rotated(in.head_dim);
    for (const Pair& pair : pairs) {
        rotated[pair.in[0]] = rotated[pair.in[1]] = true;
    }

    std::uint64_t uncovered = 0;
    struct Angle {
        CosSin rounded[2];  // for each member
        reference::CosSin exact;
    };
    std::vector<Angle> angles(pairs.size() * operation.head_groups);
    std::uint64_t token = ~std::uint64_t{0};
    bool covered = true;
    const auto turn_to = [&](std::uint64_t next) {
        token = next;
        covered = true;
        for (std::uint32_t a = 0; a < std::max(trial_.info.sections.axes, 1u); ++a) {
            covered = covered && covers(trial_, positions_[a * rows + token]);
        }
        uncovered += covered ? 0 : 1;
        for (std::size_t j = 0; covered && j < angles.size(); ++j) {
            const CosSin rounded = directed(operation, {.token = token, .pair = j});
            const CosSin second = trial_.info.channel_angles
                                      ? directed(operation,
                                                 {.token = token, .pair = j, .member = 1})
                                      : rounded;
            const reference::CosSin exact = exact_.at(token, j);
            const long double factor = trial_.attention_factor;
            const float sign = operation.inverse ? -1 : 1;
            angles[j] = {{rounded, second}, {factor * exact.cos, sign * factor * exact.sin}};
        }
    };

    std::string wrong;
    double error = 0, ulp = 0;
    const auto look = [&](std::uint64_t row, std::uint64_t channel, std::uint64_t at,
                          float expected, bool any_nan, std::optional<std::uint32_t> bits,
                          const auto&... of_rotation) {
        const std::uint32_t got = load(out.type, output, at);
        const std::uint32_t want = bits ? *bits
                                   : out.type == reference::Type::f32
                                       ? std::bit_cast<std::uint32_t>(expected)
                                       : reference::narrow(out.type,
                                                           static_cast<long double>(expected));
        const bool right = any_nan && std::isnan(expected)
                               ? std::isnan(reference::widen(out.type, got))
                               : got == want;
        if (!right && wrong.empty()) {
            wrong = fmt::format("row {} channel {} has the bits {:#x}, not {:#x}", row, channel,
                                got, want);
            findings.explain(symptom_of({out.type, got, load(out.type, before, at), expected},
                                        of_rotation()...));
        }
    };
    reference::each_row(out, [&](std::uint64_t row, std::uint64_t to) {
        if (row / in.heads != token) {
            turn_to(row / in.heads);
        }
        const auto x = [&](std::uint64_t channel) {
            return reference::widen(in.type, load(in.type, input, from[row] + channel));
        };
        const std::size_t group = row % in.heads / (in.heads / operation.head_groups);
        for (std::size_t j = 0; j < pairs.size(); ++j) {
            const Pair& pair = pairs[j];
            const float x0 = x(pair.in[0]), x1 = x(pair.in[1]);
            const Angle& angle = angles[group * pairs.size() + j];
            for (const std::size_t member : {0, 1}) {
                const std::uint64_t at = to + pair.out[member];
                if (!covered) {
                    look(row, pair.out[member], at, member == 0 ? x0 : x1, true, std::nullopt);
                    continue;
                }
                const CosSin& rounded = angle.rounded[member];
                const Rounded y = member == 0 ? product_sum(x0, rounded.cos, -x1, rounded.sin)
                                              : product_sum(x0, rounded.sin, x1, rounded.cos);
                if (bits_known && !(flushes_ && y.flushed)) {
                    look(row, pair.out[member], at, y.value, true, std::nullopt, [&] {
                        return WrongRotation{x0, x1, int(member), rounded,
                                             [&](std::int64_t further) -> std::optional<CosSin> {
                                                 const Turn turn = {token, group * pairs.size() + j,
                                                                    int(member), further};
                                                 if (!covers(trial_, position(turn)))
                                                     return std::nullopt;
                                                 return directed(operation, turn);
                                             }};
                    });
                }
                const float got = reference::widen(out.type, load(out.type, output, at));
                const long double exact = member == 0 ? x0 * angle.exact.cos - x1 * angle.exact.sin
                                                      : x0 * angle.exact.sin + x1 * angle.exact.cos;
                if (callers || !bits_known || !std::isfinite(got) || !std::isfinite(exact)) {
                    continue;
                }
                const long double away = std::fabs(static_cast<long double>(got) - exact);
                error = std::max(error, static_cast<double>(away));
                if (away > operation.absolute_allowance) {
                    ulp = std::max(ulp, static_cast<double>(away / spacing(out.type, exact)));
                }
            }
        }
        for (std::uint64_t channel = 0; channel < in.head_dim; ++channel) {
            if (!rotated[channel]) {
                const std::uint32_t bits = load(in.type, input, from[row] + channel);
                look(row, channel, to + channel, x(channel), in.type != out.type,
                     in.type == out.type ? std::optional(bits) : std::nullopt);
            }
        }
    });
    findings.hold(wrong.empty(), "{}: {}", name, wrong);
    if (!callers && bits_known) {
        findings.measure_error(error);
        findings.measure_ulp(ulp);
    }
    return uncovered;
}

}  // namespace vkrope::conformance
