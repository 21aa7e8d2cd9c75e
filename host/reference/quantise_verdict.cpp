// SPDX-License-Identifier: MIT
// Everything here is monotonic: roundings, products with a factor of one sign, and codes in the
// order of their values. So the ends of a channel's interval give the ends of what it may become.
#include "reference/quantise_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "reference/rounded.hpp"
#include "reference/rows.hpp"

namespace vkrope::reference {
namespace {

/// The numbers of f32 from `low` to `high`; for a channel that is a NaN, both are.
struct Interval {
    float low = 0, high = 0;

    bool is_nan() const { return std::isnan(low) || std::isnan(high); }
    float least_magnitude() const {
        return low <= 0 && high >= 0 ? 0 : std::min(std::fabs(low), std::fabs(high));
    }
    float most_magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
    Interval negated() const { return {-high, -low}; }
};

Interval interval_of(const Approximate& channel) {
    const auto rounded = [](long double value) {
        return widen(Type::f32, narrow(Type::f32, value));
    };
    if (channel.error == 0) {  // a sum would lose the sign of a zero
        return {rounded(channel.value), rounded(channel.value)};
    }
    return {rounded(channel.value - channel.error), rounded(channel.value + channel.error)};
}

/// Bits of a float of which `sign` is the highest, as integers in the order of the values; -0 is
/// below 0.
int rank(std::uint32_t bits, std::uint32_t sign) {
    return bits < sign ? static_cast<int>(bits) : -1 - static_cast<int>(bits - sign);
}

int rank_of_half(float value) {
    return rank(narrow(Type::f16, value), 0x8000);
}

/// The code of a rank, as text: a number, or the byte of an fp8.
std::string text_of_code(Store store, int code) {
    char text[20];
    const bool is_float = store == Store::e4m3fn || store == Store::e5m2;
    std::snprintf(text, sizeof text, is_float ? "0x%02x" : "%d",
                  is_float && code < 0 ? 0x7f - code : code);
    return text;
}

int rank_of_code(Store store, std::uint8_t code) {
    return store == Store::int8 ? static_cast<std::int8_t>(code) : rank(code, 0x80);
}

/// The nearest integer, or the one that the rounding takes instead. `defined` is that of the type
/// for Rounding::as_defined.
float rounded(float number, Rounding rounding, Rounding defined) {
    switch (rounding == Rounding::as_defined ? defined : rounding) {
        case Rounding::ties_to_even: return std::nearbyint(number);
        case Rounding::toward_zero: return std::trunc(number);
        default: return std::round(number);
    }
}

/// The code of a number that is scaled already, with the changes that the store has.
std::uint8_t code_of(const QuantisedStore& store, float number) {
    if (store.type == Store::int8 && !std::isnan(number)) {
        const float nearest = rounded(number, store.rounding, Rounding::ties_away);
        return static_cast<std::uint8_t>(static_cast<int>(std::clamp(nearest, -127.f, 127.f)));
    }
    const std::uint8_t code = code_of(store.type, number);
    if (std::isnan(number) || store.type == Store::int8) {
        return code;
    }
    const double magnitude = std::fabs(double{number});
    const auto value = [&store](unsigned of) {
        const auto byte = static_cast<std::uint8_t>(of);
        return double{dequantise(store.type, {&byte, 1}).front()};
    };
    unsigned nearest = code & 0x7fu;
    const unsigned last = store.type == Store::e4m3fn ? 0x7e : 0x7b;
    const double last_step = value(last) - value(last - 1);
    if (!store.saturates && magnitude >= value(last) + last_step / 2) {
        // Halfway beyond the last value is even for e5m2.
        const bool tie = magnitude == value(last) + last_step / 2;
        nearest = tie && store.type == Store::e4m3fn ? last : last + 1;
    } else if (store.rounding == Rounding::toward_zero && value(nearest) > magnitude) {
        --nearest;
    } else if (store.rounding == Rounding::ties_away && nearest < last &&
               magnitude == (value(nearest) + value(nearest + 1)) / 2) {
        ++nearest;
    }
    return static_cast<std::uint8_t>(nearest | (code & 0x80u));
}

/// What a code may be.
struct Codes {
    int low = 0, high = 0;
};

double relative_error(double got, const Interval& possible) {
    if (possible.is_nan()) {
        return std::numeric_limits<double>::infinity();
    }
    const double nearest = std::clamp(got, double{possible.low}, double{possible.high});
    if (got == nearest) {  // a zero of the other sign
        return 0;
    }
    const double error = std::fabs(got - nearest) / std::fabs(nearest);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// Counts in a verdict, and describes what is wrong first.
class Counter {
   public:
    Counter(CodesVerdict& verdict, Store store, const std::string& place)
        : verdict_(verdict), store_(store), place_(place) {}

    void code(std::size_t channel, int got, const Codes& possible) {
        ++verdict_.codes;
        verdict_.decided += possible.low == possible.high ? 1 : 0;
        if (got < possible.low || got > possible.high) {
            ++verdict_.wrong_codes;
            verdict_.code_distance = std::max(verdict_.code_distance,
                                              std::max(possible.low - got, got - possible.high));
            describe("channel " + std::to_string(channel) + ": code " + text_of_code(store_, got) +
                     ", must be " + text_of_code(store_, possible.low) + " to " +
                     text_of_code(store_, possible.high));
        }
    }

    /// what  "scale", "d of block 3"
    void scale(bool right, const std::string& what, float got, const Interval& possible) {
        ++verdict_.scales;
        if (!right) {
            ++verdict_.wrong_scales;
            verdict_.scale_error = std::max(verdict_.scale_error, relative_error(got, possible));
            char text[120];
            std::snprintf(text, sizeof text, "%s: %.9g, must be %.9g to %.9g", what.c_str(),
                          double{got}, double{possible.low}, double{possible.high});
            describe(text);
        }
    }

   private:
    void describe(const std::string& text) {
        if (verdict_.first_wrong.empty()) {
            verdict_.first_wrong = place_ + text;
        }
    }

    CodesVerdict& verdict_;
    Store store_;
    const std::string& place_;
};

// ---- Elements that stand alone ----

void compare_made_scale(const QuantisedStore& store, std::span<const Interval> row, float scale,
                        Counter& counter) {
    Interval most = {0, 0};
    for (const Interval& channel : row) {
        if (!channel.is_nan()) {
            most = {std::max(most.low, channel.least_magnitude()),
                    std::max(most.high, channel.most_magnitude())};
        }
    }
    const float divisor = largest(store.type);
    const Interval possible = {std::max(quotient(most.low, divisor), store.floor),
                               std::max(quotient(most.high, divisor), store.floor)};
    counter.scale(scale >= possible.low && scale <= possible.high && !std::signbit(scale), "scale",
                  scale, possible);
}

Interval scaled(const QuantisedStore& store, const Interval& channel, float given, float scale) {
    if (!store.made) {
        const Interval factors = given < 0 ? channel.negated() : channel;
        return {product(factors.low, std::fabs(given)), product(factors.high, std::fabs(given))};
    }
    if (scale == 0 && !channel.is_nan()) {
        return {0, 0};
    }
    if (store.other_division) {
        const float reciprocal = quotient(1.f, scale);
        return {product(channel.low, reciprocal), product(channel.high, reciprocal)};
    }
    return {quotient(channel.low, scale), quotient(channel.high, scale)};
}

// ---- Blocks ----

int most_code(Store store) {
    return store == Store::q8_0 ? 127 : store == Store::q4_0 || store == Store::q4_1 ? 15 : 31;
}

/// d before it is rounded to f16, without its sign, and m.
struct BlockScales {
    Interval d, m;
};

/// The magnitudes of d = x* / divisor that have this sign; none if no row has such a d.
///
/// The first channel of largest magnitude is one whose magnitude may exceed those of the channels
/// before it, and equal those of the channels after it.
std::optional<Interval> magnitudes_of_d(std::span<const Interval> block, float divisor,
                                        bool negative) {
    float most_low = 0;
    for (const Interval& channel : block) {
        most_low = channel.is_nan() ? most_low : std::max(most_low, channel.least_magnitude());
    }
    std::optional<Interval> all;
    const auto add = [&all](float low, float high) {
        all = all ? Interval{std::min(all->low, low), std::max(all->high, high)}
                  : Interval{low, high};
    };
    if (negative && most_low == 0) {
        add(0, 0);  // -0, for zeros
    }
    for (std::size_t c = 0; c < block.size(); ++c) {
        const Interval x = negative ? block[c] : block[c].negated();  // where x* has a sign too
        bool may_be_it = !x.is_nan() && x.high > 0 && x.high >= most_low;
        for (std::size_t j = 0; j < c && may_be_it; ++j) {
            may_be_it = block[j].is_nan() || x.high > block[j].least_magnitude();
        }
        if (may_be_it) {
            add(quotient(std::max(x.low, most_low), divisor), quotient(x.high, divisor));
        }
    }
    return all;
}

BlockScales scales_with_minimum(Store store, std::span<const Interval> block) {
    Interval min, max;
    bool any = false;
    for (const Interval& x : block) {
        if (x.is_nan()) {
            continue;
        }
        // Of equal zeros the first.
        min = {!any || x.low < min.low ? x.low : min.low,
               !any || x.high < min.high ? x.high : min.high};
        max = {!any || x.low > max.low ? x.low : max.low,
               !any || x.high > max.high ? x.high : max.high};
        any = true;
    }
    const auto d = [store](float largest_channel, float smallest_channel) {
        const bool infinite = std::isinf(largest_channel) || std::isinf(smallest_channel);
        const float range = infinite ? HUGE_VALF : sum(largest_channel, -smallest_channel);
        return quotient(std::max(range, 0.f), static_cast<float>(most_code(store)));
    };
    return {{d(max.low, min.high), d(max.high, min.low)}, min};
}

/// Whether 1 / d is 0 or no number, so that all codes are the middle.
bool is_singular(float d) {
    return d == 0 || std::isinf(d) || std::isinf(quotient(1.f, d));
}

int code_at(const QuantisedStore& store, float from_middle) {
    const auto most = static_cast<float>(most_code(store.type));
    if (store.type == Store::q8_0) {
        const float nearest = rounded(from_middle, store.rounding, Rounding::ties_away);
        return static_cast<int>(std::clamp(nearest, -most - 1, most + 1));
    }
    const auto from_zero = static_cast<float>(middle(store.type));
    float code = 0;
    switch (store.rounding) {
        case Rounding::as_defined: code = sum(from_middle, from_zero + 0.5f); break;
        case Rounding::ties_to_even: code = std::nearbyint(sum(from_middle, from_zero)); break;
        case Rounding::ties_away: code = std::round(from_middle) + from_zero; break;
        case Rounding::toward_zero: code = sum(from_middle, from_zero); break;
    }
    return static_cast<int>(std::clamp(code, 0.f, most));
}

/// x / d, in f32.
float over(const QuantisedStore& store, float x, float d) {
    return store.other_division ? quotient(x, d) : product(x, quotient(1.f, d));
}

/// Codes of a channel, or of its distance from m, with the sign that a positive d gives it.
Codes codes_of(const QuantisedStore& store, const Interval& x, const Interval& d) {
    const int zero = middle(store.type);
    if (x.is_nan() || (is_singular(d.low) && is_singular(d.high))) {
        return {zero, zero};
    }
    if (is_singular(d.low) || is_singular(d.high)) {  // 1 / d may be anything
        const int most = most_code(store.type);
        return {store.type == Store::q8_0 ? -most : 0, most};
    }
    return {code_at(store, over(store, x.low, x.low < 0 ? d.low : d.high)),
            code_at(store, over(store, x.high, x.high < 0 ? d.high : d.low))};
}

/// amax / divisor.
Interval d_of_largest(std::span<const Interval> block, float divisor) {
    Interval most;
    for (const Interval& channel : block) {
        if (!channel.is_nan()) {
            most = {std::max(most.low, channel.least_magnitude()),
                    std::max(most.high, channel.most_magnitude())};
        }
    }
    return {quotient(most.low, divisor), quotient(most.high, divisor)};
}

Interval as_stored(const Interval& d) {
    return {widen(Type::f16, narrow(Type::f16, d.low)),
            widen(Type::f16, narrow(Type::f16, d.high))};
}

void compare_block(const QuantisedStore& store, std::span<const Interval> block,
                   std::span<const std::uint8_t> bytes, std::size_t index, Counter& counter) {
    const BlockFields fields = fields_of(store.type, bytes);
    const std::string d_of = "d of block " + std::to_string(index);
    const float d = widen(Type::f16, fields.d);
    BlockScales scales;
    bool turned = false;  // whether d is negative
    const auto from_zero = static_cast<float>(middle(store.type));
    if (has_minimum(store.type)) {
        scales = scales_with_minimum(store.type, block);
        const int m = rank(fields.m, 0x8000);
        counter.scale(m >= rank_of_half(scales.m.low) && m <= rank_of_half(scales.m.high),
                      "m of block " + std::to_string(index), widen(Type::f16, fields.m), scales.m);
    } else if (store.type == Store::q8_0) {
        scales.d = d_of_largest(block, 127.f);
    } else if (store.symmetric) {
        scales.d = d_of_largest(block, from_zero - 1);
    } else {
        // The sign that was stored, if a row has a d of that sign.
        turned = fields.d >= 0x8000;
        std::optional<Interval> magnitudes = magnitudes_of_d(block, from_zero, turned);
        if (!magnitudes) {
            turned = !turned;
            magnitudes = magnitudes_of_d(block, from_zero, turned);
        }
        scales.d = magnitudes.value_or(Interval{0, 0});
    }
    const Interval signed_d = turned ? scales.d.negated() : scales.d;
    const int stored = rank(fields.d, 0x8000);
    counter.scale(stored >= rank_of_half(signed_d.low) && stored <= rank_of_half(signed_d.high),
                  d_of, d, signed_d);
    const Interval divisor = store.d_as_stored ? as_stored(scales.d) : scales.d;
    for (std::size_t c = 0; c < block.size(); ++c) {
        Interval x = turned ? block[c].negated() : block[c];
        if (has_minimum(store.type)) {
            x = {std::max(sum(x.low, -scales.m.high), 0.f), sum(x.high, -scales.m.low)};
            x = block[c].is_nan() ? block[c] : x;
        }
        counter.code(index * block.size() + c, fields.codes[c], codes_of(store, x, divisor));
    }
}

std::string text_of(const Place& place) {
    using ull = unsigned long long;
    char text[100];
    std::snprintf(text, sizeof text, "batch %llu token %llu head %llu ", ull{place.batch},
                  ull{place.token}, ull{place.head});
    return text;
}

}  // namespace

void compare_row(const QuantisedStore& store, float given, std::span<const Approximate> row,
                 std::span<const std::uint8_t> bytes, float scale, const std::string& place,
                 CodesVerdict& verdict) {
    const std::uint64_t channels = block_channels(store.type), size = block_bytes(store.type);
    require(row.size() % channels == 0 && bytes.size() == row.size() / channels * size,
            "oracle: a row must have its bytes, whole blocks");
    Counter counter(verdict, store.type, place);
    std::vector<Interval> intervals;
    for (const Approximate& channel : row) {
        intervals.push_back(interval_of(channel));
    }
    if (channels != 1) {
        for (std::size_t i = 0; i * channels < row.size(); ++i) {
            compare_block(store, std::span(intervals).subspan(i * channels, channels),
                          bytes.subspan(i * size, size), i, counter);
        }
        return;
    }
    if (store.made) {
        compare_made_scale(store, intervals, scale, counter);
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
        const Interval number = scaled(store, intervals[c], given, scale);
        const Codes possible = {rank_of_code(store.type, code_of(store, number.low)),
                                rank_of_code(store.type, code_of(store, number.high))};
        std::uint8_t code = bytes[c];
        if (!store.saturates && store.type == Store::e4m3fn && (code & 0x7f) == 0x7f) {
            code = possible.high < 0 ? 0xff : 0x7f;  // a NaN of any sign
        }
        counter.code(c, rank_of_code(store.type, code), possible);
    }
}

CodesVerdict compare_codes(const Tensor& in, const Tensor& out, const Operation& operation,
                           const Finish& steps, double bound_u, const void* input,
                           const QuantisedStore& store, std::span<const std::uint8_t> codes,
                           std::span<const float> scales,
                           const std::function<void(double)>& progress) {
    check_tensors(in, out);
    require(in.head_dim % block_channels(store.type) == 0, "oracle: a row must be whole blocks");
    require(!store.made || scales.size() == in.batch * in.tokens * in.heads,
            "oracle: scales must be [batch, tokens, heads]");
    require(store.given.size() <= 1 || store.given.size() == in.heads,
            "oracle: given scales must be one, or one for each head");
    // A device that flushes subnormal numbers does so to inputs that no step changes, too.
    const long double flushed = std::max(operation.absolute_allowance - 0x1p-148, 0.0);
    const std::uint64_t channels = block_channels(store.type), size = block_bytes(store.type);
    const std::uint64_t row_bytes = in.head_dim / channels * size;
    CodesVerdict verdict;
    std::vector<Approximate> row;
    std::vector<std::uint8_t> bytes;
    finish(in, operation, steps, bound_u, input,
           [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> all) {
               const std::uint64_t index = batch * in.tokens + token;
               // With one scale for a token, its heads are one row.
               const std::uint64_t heads = store.one_of_token ? in.heads : 1;
               for (std::uint64_t head = 0; head < in.heads; head += heads) {
                   const Place place = {batch, token, head, 0};
                   row.clear();
                   bytes.clear();
                   for (std::uint64_t h = head; h < head + heads; ++h) {
                       const std::uint64_t first = row_of(out, {batch, token, h, 0});
                       if (first == nowhere) {
                           break;
                       }
                       const auto exact = all.subspan(h * in.head_dim, in.head_dim);
                       row.insert(row.end(), exact.begin(), exact.end());
                       const std::uint64_t at = first / channels * size;
                       require(at + row_bytes <= codes.size(), "oracle: the codes end too early");
                       const auto stored = codes.subspan(at, row_bytes);
                       bytes.insert(bytes.end(), stored.begin(), stored.end());
                   }
                   for (Approximate& channel : row) {
                       const long double magnitude = std::fabs(channel.value);
                       if (channel.error == 0 && magnitude > 0 && magnitude < 0x1p-126L) {
                           channel.error = flushed;
                       }
                   }
                   const float given = store.given.empty() ? 1.f
                                       : store.given.size() == 1
                                           ? store.given.front()
                                           : store.given[static_cast<std::size_t>(head)];
                   if (row.empty()) {
                       continue;
                   }
                   const auto scale = store.made ? scales.subspan(index * in.heads + head, heads)
                                                 : std::span<const float>();
                   compare_row(store, given, row, bytes, store.made ? scale.front() : 0,
                               text_of(place), verdict);
                   for (std::size_t h = 1; h < scale.size(); ++h) {
                       const std::string at = text_of({batch, token, head + h, 0});
                       Counter(verdict, store.type, at)
                           .scale(scale[h] == scale.front(), "scale", scale[h],
                                  {scale.front(), scale.front()});
                   }
               }
               if (progress) {
                   progress(double(index + 1) / double(in.batch * in.tokens));
               }
           });
    return verdict;
}

}  // namespace vkrope::reference
