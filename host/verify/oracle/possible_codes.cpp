// SPDX-License-Identifier: MIT
// All functions here are monotonic: roundings, products with factors of one sign, and codes in the
// order of their values. The ends of a channel's interval therefore give the ends of its result.
#include "verify/oracle/possible_codes.hpp"

#include <algorithm>
#include <optional>

#include "verify/oracle/rounded.hpp"

namespace vkrope::oracle {
namespace {

Interval scaled(const QuantisedStore& store, const Interval& channel, float given, float scale) {
    if (!store.made) {
        const Interval factors = given < 0 ? channel.negated() : channel;
        return {product(factors.low, std::fabs(given)), product(factors.high, std::fabs(given))};
    }
    if (scale == 0 && !channel.is_nan()) return {0, 0};
    return {quotient(channel.low, scale), quotient(channel.high, scale)};
}

int max_code(Store store) {
    return store == Store::q8_0 ? 127 : store == Store::q5_0 || store == Store::q5_1 ? 31 : 15;
}

// Returns the magnitude of d, or of d0, of a block with this |x*|.
float magnitude_of_d(Store store, float most) {
    if (store == Store::iq4_nl) return most < iq4_least ? 0 : quotient(most, 127.f);
    return quotient(most, store == Store::q4_0 ? 8.f : 16.f);
}

// Returns the magnitudes of d with this sign. None: no row has such a d.
//
// x* is the first channel of largest magnitude: its magnitude must be able to exceed the
// magnitudes of all channels before it, and to reach those of all channels after it.
std::optional<Interval> magnitudes_of_d(Store store, std::span<const Interval> block,
                                        bool negative) {
    float max_low = 0;
    for (const Interval& channel : block)
        max_low = channel.is_nan() ? max_low : std::max(max_low, channel.least_magnitude());
    std::optional<Interval> all;
    const auto add = [&all](float low, float high) {
        all = all ? Interval{std::min(all->low, low), std::max(all->high, high)}
                  : Interval{low, high};
    };
    // The d of a block of zeros is -0, but that of an iq4_nl block is 0.
    if (store == Store::iq4_nl ? !negative && max_low < iq4_least : negative && max_low == 0)
        add(0, 0);
    if (store == Store::iq4_nl) max_low = std::max(max_low, iq4_least);
    for (std::size_t c = 0; c < block.size(); ++c) {
        const Interval x = negative ? block[c] : block[c].negated();  // x* becomes positive
        bool may_be_it = !x.is_nan() && x.high > 0 && x.high >= max_low;
        for (std::size_t j = 0; j < c && may_be_it; ++j)
            may_be_it = block[j].is_nan() || x.high > block[j].least_magnitude();
        if (may_be_it)
            add(magnitude_of_d(store, std::max(x.low, max_low)), magnitude_of_d(store, x.high));
    }
    return all;
}

BlockScales scales_with_minimum(Store store, std::span<const Interval> block) {
    Interval min, max;
    bool any = false;
    for (const Interval& x : block) {
        if (x.is_nan()) continue;
        // The first of equal zeros wins, so that an earlier channel that may be +0 keeps a zero +0.
        const bool after_zero = x.high == 0 && min.low <= 0 && min.high > 0;
        const float high = after_zero ? 0.f : x.high;
        min = {!any || x.low < min.low ? x.low : min.low,
               !any || high < min.high ? high : min.high};
        max = {!any || x.low > max.low ? x.low : max.low,
               !any || x.high > max.high ? x.high : max.high};
        any = true;
    }
    const auto d = [store](float largest_channel, float smallest_channel) {
        const bool infinite = std::isinf(largest_channel) || std::isinf(smallest_channel);
        const float range = infinite ? HUGE_VALF : sum(largest_channel, -smallest_channel);
        return quotient(std::max(range, 0.f), float(max_code(store)));
    };
    return {{d(max.low, min.high), d(max.high, min.low)}, min};
}

// Returns whether 1 / d is 0 or not a number, in which case all codes are the middle.
bool is_singular(float d) {
    return d == 0 || std::isinf(d) || std::isinf(quotient(1.f, d));
}

// Returns the code of x / d.
int code_at(Store store, float x, float d) {
    const float from_middle = product(x, quotient(1.f, d));
    const auto most = float(max_code(store));
    if (store == Store::iq4_nl) return iq4_index(from_middle);
    if (store == Store::q8_0) return int(std::clamp(std::round(from_middle), -most - 1, most + 1));
    const float code = sum(from_middle, float(middle(store)) + 0.5f);
    return int(std::clamp(code, 0.f, most));
}

// Returns the possible codes of x, which is a channel or its distance from m. `d` is a magnitude:
// for a negative d the caller negates x.
Codes codes_of(Store store, const Interval& x, const Interval& d) {
    const bool no_codes = store == Store::iq4_nl && d.low == 0;  // a block of zero bytes
    const int zero = no_codes && d.high == 0 ? 0 : middle(store);
    if ((x.is_nan() && !no_codes) || (is_singular(d.low) && is_singular(d.high)))
        return {zero, zero};
    if (is_singular(d.low) || is_singular(d.high)) {  // 1 / d is unknown
        const int most = max_code(store);
        return {store == Store::q8_0 ? -most : 0, most};
    }
    return {code_at(store, x.low, x.low < 0 ? d.low : d.high),
            code_at(store, x.high, x.high < 0 ? d.high : d.low)};
}

// Returns amax / divisor.
Interval d_of_largest(std::span<const Interval> row, float divisor) {
    Interval most;
    for (const Interval& channel : row) {
        if (!channel.is_nan()) {
            most = {std::max(most.low, channel.least_magnitude()),
                    std::max(most.high, channel.max_magnitude())};
        }
    }
    return {quotient(most.low, divisor), quotient(most.high, divisor)};
}

}  // namespace

Interval interval_of(const Approximate& channel) {
    const auto rounded = [](long double value) {
        return widen(Type::f32, narrow(Type::f32, value));
    };
    // A sum would lose the sign of a zero, and an infinity has no neighbours.
    if (channel.error == 0 || std::isinf(channel.value))
        return {rounded(channel.value), rounded(channel.value)};
    return {rounded(channel.value - channel.error), rounded(channel.value + channel.error)};
}

int rank(std::uint32_t bits, std::uint32_t sign) {
    return bits < sign ? int(bits) : -1 - int(bits - sign);
}

int rank_of_code(Store store, std::uint8_t code) {
    return store == Store::int8   ? std::int8_t(code)
           : store == Store::int4 ? (code < 8 ? code : code - 16)
                                  : rank(code, 0x80);
}

Interval possible_scale(const QuantisedStore& store, std::span<const Interval> row) {
    const Interval scale = d_of_largest(row, largest(store.type));
    const auto made = [&store](float quotient) {
        const float least = std::max(quotient, store.floor);
        return store.power_of_two ? power_of_two_from(least) : least;
    };
    return {made(scale.low), made(scale.high)};
}

Codes possible_codes(const QuantisedStore& store, const Interval& channel, float given,
                     float scale) {
    const Interval number = scaled(store, channel, given, scale);
    return {rank_of_code(store.type, code_of(store.type, number.low)),
            rank_of_code(store.type, code_of(store.type, number.high))};
}

BlockScales possible_scales(const QuantisedStore& store, std::span<const Interval> block,
                            bool stored_negative) {
    if (has_minimum(store.type)) return scales_with_minimum(store.type, block);
    if (store.type == Store::q8_0) return {.d = d_of_largest(block, 127.f), .m = {}};
    for (const bool negative : {stored_negative, !stored_negative}) {
        const std::optional<Interval> d = magnitudes_of_d(store.type, block, negative);
        if (d) return {.d = *d, .m = {}, .negative_d = negative};
    }
    return {.d = {}, .m = {}, .negative_d = !stored_negative};
}

Codes possible_codes(const QuantisedStore& store, const Interval& channel,
                     const BlockScales& scales) {
    Interval x = scales.negative_d ? channel.negated() : channel;
    if (has_minimum(store.type) && !channel.is_nan())
        x = {std::max(sum(x.low, -scales.m.high), 0.f), sum(x.high, -scales.m.low)};
    return codes_of(store.type, x, scales.d);
}

std::optional<Interval> possible_d(const QuantisedStore& store, std::span<const Interval> block,
                                   std::span<const int> codes, const BlockScales& scales) {
    const Interval d = scales.negative_d ? scales.d.negated() : scales.d;
    const bool is_exact = scales.d.low == scales.d.high;
    if (store.type != Store::iq4_nl || (is_exact && (d.low == 0 || std::isinf(d.low)))) return d;
    if (std::isinf(scales.d.high)) return std::nullopt;
    // Both sums are monotonic: of x in each x^2 v x, of v in each |x|.
    std::vector<float> lowest, highest, least, most;
    for (std::size_t c = 0; c < block.size(); ++c) {
        const Interval x = block[c].is_nan() ? Interval() : block[c];
        const bool falls = iq4_values[std::size_t(codes[c])] < 0;
        lowest.push_back(falls ? x.high : x.low);
        highest.push_back(falls ? x.low : x.high);
        least.push_back(x.least_magnitude());
        most.push_back(x.max_magnitude());
    }
    const Interval of_x = {iq4_sums(lowest, codes).of_x, iq4_sums(highest, codes).of_x},
                   of_v = {iq4_sums(least, codes).of_v, iq4_sums(most, codes).of_v};
    const auto d_of = [](float x, float v) { return Iq4Sums{x, v}.d(); };
    if (of_x.low == of_x.high && of_v.low == of_v.high)
        return Interval{d_of(of_x.low, of_v.low), d_of(of_x.low, of_v.low)};
    if (scales.d.low == 0 || !std::isfinite(of_x.low + of_x.high + of_v.high)) return std::nullopt;
    const auto [low, high] = std::minmax({d_of(of_x.low, of_v.low), d_of(of_x.low, of_v.high),
                                          d_of(of_x.high, of_v.low), d_of(of_x.high, of_v.high)});
    return Interval{low, high};
}

}  // namespace vkrope::oracle
