// SPDX-License-Identifier: MIT
#include "conformance/builtin/shader_bits.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/meaning.hpp"
#include "conformance/builtin/symptoms.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::conformance {
namespace {

bool is_subnormal(float x) {
    return x != 0 && std::fabs(x) < std::numeric_limits<float>::min();
}

// The value of a b + c d, one component of a rotated pair; `flushed` is true if a subnormal took
// part. The products are volatile, so that no compiler fuses the operations.
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

// Returns the distance between neighbours of `type` around `exact`.
long double spacing(oracle::Type type, long double exact) {
    const int lowest = type == oracle::Type::f16 ? -14 : -126;
    const int fraction_bits = type == oracle::Type::f32 ? 23 : type == oracle::Type::f16 ? 10 : 7;
    return std::ldexp(1.0L,
                      std::max(exact == 0 ? lowest : std::ilogb(exact), lowest) - fraction_bits);
}

}  // namespace

ShaderBits::ShaderBits(const verify::Operation& operation, bool flushes)
    : operation_(operation), flushes_(flushes), positions_(verify::positions_of(operation)),
      angles_(operation.inv_freq, operation.attention_factor,
              {.phase = operation.phase,
               .head_groups = head_groups_of(operation.info),
               .axes = summed_axes(operation.info.sections)}) {
    for (std::uint32_t j = 0; j < operation.info.rotary_dim / 2; ++j)
        axis_.push_back(verify::axis_of(operation.info.sections, j));
}

std::int64_t ShaderBits::position(const Turn& turn) const {
    return positions_[axis_[turn.pair % axis_.size()] * verify::tokens_of(operation_) +
                      turn.token] +
           turn.further;
}

CosSin ShaderBits::cos_sin(const Turn& turn) const {
    const KernelInfo& info = operation_.info;
    const double attention_factor = operation_.attention_factor;
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        const auto member = std::size_t(turn.member);
        const std::size_t column = !info.channel_angles ? turn.pair
                                   : info.pairing == VKROPE_HALF_SPLIT
                                       ? turn.pair + member * axis_.size()
                                       : 2 * turn.pair + member;
        const std::size_t at = std::size_t(position(turn)) * operation_.row_stride + column;
        const oracle::Type type = verify::type_of(info.table);
        const auto in_table = [&](const VkDescriptorBufferInfo& table) {
            return oracle::widen(
                type, oracle::load(&operation_.memory[table.offset], oracle::bytes_of(type), at));
        };
        return {in_table(operation_.call.angles.buffer), in_table(operation_.call.angles.sin)};
    }
    if (operation_.precision == VKROPE_ANGLE_PRECISION_FLOAT32) {
        const oracle::CosSin exact = oracle::float32_cos_sin(position(turn),
                                                             operation_.inv_freq[turn.pair]);
        const auto factor = float(attention_factor);
        return {float(exact.cos) * factor, float(exact.sin) * factor};
    }
    if (info.sections.order != VKROPE_SECTIONS_SUM)
        return angles_.at(info.angles, position(turn), turn.pair);
    std::array<std::int64_t, max_axes> positions = {};
    for (std::uint32_t axis = 0; axis < info.sections.axes; ++axis) {
        positions[axis] = positions_[axis * verify::tokens_of(operation_) + turn.token] +
                          turn.further;
    }
    return angles_.sum_at(positions, turn.pair);
}

CosSin ShaderBits::directed(const Turn& turn) const {
    const CosSin forward = cos_sin(turn);
    if (operation_.call.direction != VKROPE_INVERSE) return forward;
    // The inverse rotation is the transposed matrix of the pair.
    Turn other = turn;
    other.member = 1 - turn.member;
    return {forward.cos, operation_.info.channel_angles ? -cos_sin(other).sin : -forward.sin};
}

void ShaderBits::compare(TensorIndex which, const verify::Bytes& after, Test& test) const {
    if (!verify::has(operation_, which)) return;
    compare_rows(verify::definition_of(operation_, which, flushes_), which,
                 operation_.call.out[which].where.offset, after, "", test);
    if (verify::has_second(operation_, which))
        compare_rows(verify::second_definition_of(operation_, which, flushes_), which,
                     operation_.call.second[which].offset, after, "second destination of ", test);
}

void ShaderBits::compare_rows(const oracle::Definition& definition, TensorIndex which,
                              std::size_t out_byte, const verify::Bytes& after,
                              const char* destination, Test& test) const {
    if (definition.store || oracle::has_steps(definition.ops)) return;
    const oracle::Tensor &in = definition.in, &out = definition.out;
    const oracle::Operation& operation = definition.operation;
    const KernelInfo& info = operation_.info;
    const std::byte* input = &operation_.memory[operation_.call.in[which].where.offset];
    const std::byte *before = &operation_.memory[out_byte], *output = &after[out_byte];
    const auto load = [](oracle::Type type, const std::byte* start, std::uint64_t index) {
        return oracle::load(start, oracle::bytes_of(type), index);
    };
    const std::vector<oracle::Pair> pairs = oracle::pairs_of(operation);
    const bool callers = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    // The contract does not fix the bits if the call omits or divides out the attention factor; the
    // oracle checks the error bound.
    const bool bits_known = operation_.call.gain == VKROPE_GAIN_APPLY ||
                            operation_.attention_factor == 1;
    std::vector<std::uint64_t> from(in.batch * in.tokens * in.heads);
    oracle::each_row(in, [&](std::uint64_t row, std::uint64_t first) { from[row] = first; });
    std::vector<bool> rotated(in.head_dim);
    for (const oracle::Pair& pair : pairs) rotated[pair.in[0]] = rotated[pair.in[1]] = true;

    struct Angle {
        CosSin rounded[2];  // for each member
        oracle::CosSin exact;
    };
    std::vector<Angle> angles(pairs.size() * operation.head_groups);
    std::uint64_t token = ~std::uint64_t{0};
    bool covered = true;
    const auto turn_to = [&](std::uint64_t next) {
        token = next;
        covered = oracle::is_covered(operation, token);
        for (std::size_t j = 0; covered && j < angles.size(); ++j) {
            const CosSin rounded = directed({.token = token, .pair = j});
            const CosSin second = info.channel_angles
                                      ? directed({.token = token, .pair = j, .member = 1})
                                      : rounded;
            angles[j] = {{rounded, second}, {}};
            if (!callers) {
                const oracle::CosSin exact = oracle::cos_sin_of(operation, token, j);
                const long double factor = operation_.attention_factor;
                const float sign = operation.inverse ? -1 : 1;
                angles[j].exact = {factor * exact.cos, sign * factor * exact.sin};
            }
        }
    };

    std::string wrong;
    double error = 0, ulp = 0;
    const auto look = [&](std::uint64_t row, std::uint64_t channel, std::uint64_t at,
                          float expected, bool any_nan, std::optional<std::uint32_t> bits,
                          const auto&... of_rotation) {
        const std::uint32_t got = load(out.type, output, at);
        const std::uint32_t want = bits ? *bits
                                   : out.type == oracle::Type::f32
                                       ? std::bit_cast<std::uint32_t>(expected)
                                       : oracle::narrow(out.type,
                                                        static_cast<long double>(expected));
        const bool right = any_nan && std::isnan(expected)
                               ? std::isnan(oracle::widen(out.type, got))
                               : got == want;
        if (!right && wrong.empty()) {
            wrong = fmt::format("row {} channel {} has the bits {:#x}, not {:#x}", row, channel,
                                got, want);
            test.explain(symptom_of({out.type, got, load(out.type, before, at), expected},
                                    of_rotation()...));
        }
    };
    oracle::each_row(out, [&](std::uint64_t row, std::uint64_t to) {
        if (row / in.heads != token) {
            turn_to(row / in.heads);
        }
        std::vector<oracle::Approximate> read(definition.read ? in.head_dim : 0);
        if (definition.read) {
            oracle::read_row(
                definition, input,
                {row / in.heads / in.tokens, row / in.heads % in.tokens, row % in.heads, 0}, read);
            for (const oracle::Approximate& channel : read)
                if (channel.error != 0) return;  // a subnormal number may be flushed
        }
        const auto x = [&](std::uint64_t channel) {
            return definition.read
                       ? float(read[channel].value)
                       : oracle::widen(in.type, load(in.type, input, from[row] + channel));
        };
        const std::size_t group = row % in.heads / (in.heads / operation.head_groups);
        for (std::size_t j = 0; j < pairs.size(); ++j) {
            const oracle::Pair& pair = pairs[j];
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
                                                 const std::int64_t there = position(turn);
                                                 return there < operation.covered.first ||
                                                                there > operation.covered.last
                                                            ? std::nullopt
                                                            : std::optional(directed(turn));
                                             }};
                    });
                }
                const float got = oracle::widen(out.type, load(out.type, output, at));
                const long double exact = member == 0 ? x0 * angle.exact.cos - x1 * angle.exact.sin
                                                      : x0 * angle.exact.sin + x1 * angle.exact.cos;
                if (callers || !bits_known || !std::isfinite(got) || !std::isfinite(exact)) {
                    continue;
                }
                const long double away = std::fabs(static_cast<long double>(got) - exact);
                error = std::max(error, double(away));
                if (away > operation.absolute_allowance) {
                    ulp = std::max(ulp, double(away / spacing(out.type, exact)));
                }
            }
        }
        for (std::uint64_t channel = 0; channel < in.head_dim; ++channel) {
            if (rotated[channel]) continue;
            std::optional<std::uint32_t> bits;
            if (in.type == out.type && !definition.read)
                bits = load(in.type, input, from[row] + channel);
            look(row, channel, to + channel, x(channel), !bits, bits);
        }
    });
    test.expect(wrong.empty(), "{}{}: {}", destination, "QKV"[which], wrong);
    if (!callers && bits_known) {
        test.measure_error(error);
        test.measure_ulp(ulp);
    }
}

}  // namespace vkrope::conformance
