// SPDX-License-Identifier: MIT
#include "verify/oracle/quantise_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "verify/oracle/rows.hpp"

namespace vkrope::oracle {
namespace {

// Returns the code of a rank as text: a number, or the byte of an fp8.
std::string text_of_code(Store store, int code) {
    char text[20];
    const bool is_float = store == Store::e4m3fn || store == Store::e5m2;
    std::snprintf(text, sizeof text, is_float ? "0x%02x" : "%d",
                  is_float && code < 0 ? 0x7f - code : code);
    return text;
}

double relative_error(double got, const Interval& possible) {
    if (possible.is_nan()) return std::numeric_limits<double>::infinity();
    const double nearest = std::clamp(got, double{possible.low}, double{possible.high});
    if (got == nearest)  // a zero of the other sign
        return 0;
    const double error = std::fabs(got - nearest) / std::fabs(nearest);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// Adds to a verdict, and describes the first error.
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

    // what  "scale", "d of block 3"
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
        if (verdict_.first_wrong.empty()) verdict_.first_wrong = place_ + text;
    }

    CodesVerdict& verdict_;
    Store store_;
    const std::string& place_;
};

// Returns whether a number of the interval rounds to a stored f16.
bool rounds_to(const Interval& possible, std::uint32_t half) {
    const auto rank_of = [](float value) { return rank(narrow(Type::f16, value), 0x8000); };
    const int stored = rank(half, 0x8000);
    return stored >= rank_of(possible.low) && stored <= rank_of(possible.high);
}

// Returns whether the d that gave the codes of a block was negative, as the stored d. If the sums
// of an iq4_nl block overflow, that is a NaN; then a channel of the first code has the sign of x*.
bool is_negative(const QuantisedStore& store, std::span<const Interval> block,
                 const BlockFields& fields) {
    if (store.type == Store::iq4_nl && (fields.d & 0x7fffu) > 0x7c00)
        for (std::size_t c = 0; c < block.size(); ++c)
            if (fields.codes[c] == 0) return block[c].low > 0;
    return fields.d >= 0x8000;
}

void compare_block(const QuantisedStore& store, std::span<const Interval> block,
                   std::span<const std::uint8_t> bytes, std::size_t index, Counter& counter) {
    const BlockFields fields = fields_of(store.type, bytes);
    const BlockScales scales = possible_scales(store, block, is_negative(store, block, fields));
    if (has_minimum(store.type)) {
        counter.scale(rounds_to(scales.m, fields.m), "m of block " + std::to_string(index),
                      widen(Type::f16, fields.m), scales.m);
    }
    const std::optional<Interval> d = possible_d(store, block, fields.codes, scales);
    counter.scale(!d || rounds_to(*d, fields.d), "d of block " + std::to_string(index),
                  widen(Type::f16, fields.d), d.value_or(Interval()));
    for (std::size_t c = 0; c < block.size(); ++c) {
        counter.code(index * block.size() + c, fields.codes[c],
                     possible_codes(store, block[c], scales));
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

void CodesVerdict::add(const CodesVerdict& later) {
    codes += later.codes;
    scales += later.scales;
    decided += later.decided;
    wrong_codes += later.wrong_codes;
    wrong_scales += later.wrong_scales;
    code_distance = std::max(code_distance, later.code_distance);
    scale_error = std::max(scale_error, later.scale_error);
    first_wrong = first_wrong.empty() ? later.first_wrong : first_wrong;
}

void compare_row(const QuantisedStore& store, float given, std::span<const Approximate> row,
                 std::span<const std::uint8_t> bytes, std::span<const float> scales,
                 const std::string& place, CodesVerdict& verdict) {
    const std::uint64_t channels = block_channels(store.type), size = block_bytes(store.type);
    require(row.size() % channels == 0 && bytes.size() == row.size() / channels * size,
            "oracle: a row must have its bytes, whole blocks");
    Counter counter(verdict, store.type, place);
    std::vector<Interval> intervals;
    for (const Approximate& channel : row) intervals.push_back(interval_of(channel));
    if (has_blocks(store.type)) {
        for (std::size_t i = 0; i * channels < row.size(); ++i) {
            compare_block(store, std::span(intervals).subspan(i * channels, channels),
                          bytes.subspan(i * size, size), i, counter);
        }
        return;
    }
    require(!store.made || scales.size() == store.groups(row.size()),
            "oracle: a row must have its scales");
    const std::size_t group = store.made ? row.size() / scales.size() : 0;
    for (std::size_t i = 0; store.made && i < scales.size(); ++i) {
        const Interval possible = possible_scale(store,
                                                 std::span(intervals).subspan(i * group, group));
        const float scale = scales[i];
        counter.scale(scale >= possible.low && scale <= possible.high && !std::signbit(scale),
                      scales.size() == 1 ? "scale" : "scale " + std::to_string(i), scale, possible);
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
        const Codes possible = possible_codes(store, intervals[c], given,
                                              store.made ? scales[c / group] : 0);
        counter.code(c, rank_of_code(store.type, code_at(store.type, bytes, c)), possible);
    }
}

CodesVerdict compare_codes(const Definition& definition, const void* input, const void* codes,
                           std::span<const float> scales,
                           const std::function<void(double)>& progress) {
    const Tensor &in = definition.in, &out = definition.out;
    const QuantisedStore& store = *definition.store;
    require(in.head_dim % block_channels(store.type) == 0, "oracle: a row must be whole blocks");
    const std::uint64_t groups = store.groups(in.head_dim);
    require(!store.made || scales.size() == in.batch * in.tokens * in.heads * groups,
            "oracle: scales must be [batch, tokens, heads, groups]");
    require(store.given.size() <= 1 || store.given.size() == in.heads,
            "oracle: given scales must be one, or one for each head");
    // Where a device flushes subnormals, it also flushes inputs that no op changes.
    const long double flushed = definition.operation.absolute_allowance > 0x1p-148 ? 0x1p-123L : 0;
    const std::uint64_t channels = block_channels(store.type), size = block_bytes(store.type);
    const std::uint64_t row_bytes = in.head_dim / channels * size;
    CodesVerdict verdict;
    std::vector<Approximate> row;
    apply_ops(
        definition, input,
        [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> all) {
            const std::uint64_t index = batch * in.tokens + token;
            for (std::uint64_t head = 0; head < in.heads; ++head) {
                const Place place = {batch, token, head, 0};
                const std::uint64_t first = row_of(out, place);
                if (first == nowhere) continue;
                const auto exact = all.subspan(head * in.head_dim, in.head_dim);
                row.assign(exact.begin(), exact.end());
                for (Approximate& channel : row) {
                    const long double magnitude = std::fabs(channel.value);
                    if (channel.error == 0 && magnitude > 0 && magnitude < 0x1p-126L)
                        channel.error = flushed;
                }
                const bool second = !store.given_second.empty() && token >= store.second_from;
                const std::vector<float>& factors = second ? store.given_second : store.given;
                const float given = factors.empty()       ? 1.f
                                    : factors.size() == 1 ? factors.front()
                                                          : factors[std::size_t(head)];
                const auto* bytes = static_cast<const std::uint8_t*>(codes) +
                                    first / channels * size;
                const std::span<const float> of_row =
                    store.made ? scales.subspan((index * in.heads + head) * groups, groups)
                               : std::span<const float>();
                compare_row(store, given, row, {bytes, row_bytes}, of_row, text_of(place), verdict);
            }
            if (progress) progress(double(index + 1) / double(in.batch * in.tokens));
        });
    return verdict;
}

}  // namespace vkrope::oracle
