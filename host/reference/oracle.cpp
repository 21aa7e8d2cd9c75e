// SPDX-License-Identifier: MIT
#include "reference/oracle.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "reference/element.hpp"

static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double that is wider than double");

namespace vkrope::reference {
namespace {

constexpr double unit = 0x1p-24;  // u: half an ulp of 1 in f32

std::uint32_t load(const void* elements, std::size_t bytes, std::uint64_t index) {
    if (bytes == 4) {
        std::uint32_t bits;
        std::memcpy(&bits, static_cast<const char*>(elements) + index * 4, 4);
        return bits;
    }
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(elements) + index * 2, 2);
    return bits;
}

constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

bool has_row(const Cache& cache, std::int64_t slot) {
    return slot >= 0 && std::uint64_t(slot) < cache.pages * cache.page_size;
}

/// First element of a row, or nowhere.
std::uint64_t row_of(const Tensor& tensor, const Place& place) {
    const std::uint64_t group = tensor.heads_per_group == 0 ? tensor.heads : tensor.heads_per_group;
    const std::uint64_t head = place.head / group * tensor.group_stride +
                               place.head % group * tensor.head_stride;
    if (!tensor.cache) {
        return place.batch * tensor.batch_stride + place.token * tensor.token_stride + head;
    }
    const Cache& cache = *tensor.cache;
    const std::int64_t slot = cache.slot_mapping[place.batch * tensor.tokens + place.token];
    if (!has_row(cache, slot)) {
        return nowhere;
    }
    return std::uint64_t(slot) / cache.page_size * cache.page_stride +
           std::uint64_t(slot) % cache.page_size * cache.row_stride + head;
}

/// The channels of one pair in the input and in the output.
struct Pair {
    std::array<std::uint64_t, 2> in, out;
};

std::vector<Window> windows_of(const Operation& operation) {
    if (!operation.windows.empty()) {
        return operation.windows;
    }
    return {{0, operation.inv_freq.size()}};
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

/// Element tables are made when first needed.
const ElementTable& table_of(Type type) {
    if (type == Type::f32) {
        static const ElementTable f32(Type::f32);
        return f32;
    }
    if (type == Type::f16) {
        static const ElementTable f16(Type::f16);
        return f16;
    }
    static const ElementTable bf16(Type::bf16);
    return bf16;
}

std::size_t bytes_of(Type type) {
    return type == Type::f32 ? 4 : 2;
}

/// A product of 31 and 53 bits does not fit in a long double. `rest` is its exact rounding error;
/// cos and sin are rotated by this tiny angle.
CosSin exact_cos_sin(long double position, long double inv_freq) {
    const long double angle = position * inv_freq;
    const long double rest = std::fma(position, inv_freq, -angle);
    const long double c = std::cos(angle), s = std::sin(angle);
    return {c - rest * s, s + rest * c};
}

class Comparison {
   public:
    Comparison(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
               const void* output)
        : in_(in), out_(out), operation_(operation), input_(input), output_(output),
          in_element_(table_of(in.type)), out_element_(table_of(out.type)),
          pairs_(pairs_of(operation)), angles_(operation.inv_freq.size()) {
        switch (operation.gain) {
            case Gain::apply: factor_ = operation.attention_factor; break;
            case Gain::omit: factor_ = 1; break;
            case Gain::divide_out:
                factor_ = 1 / static_cast<long double>(operation.attention_factor);
                break;
        }
        verdict_.within.resize(operation.limits_u.size());
        verdict_.rows_beyond.resize(in.batch * in.tokens * in.heads);
        verdict_.beyond_in.resize(in.head_dim);
        std::vector<bool> paired(in.head_dim);
        for (const Pair& pair : pairs_) {
            paired[pair.in[0]] = paired[pair.in[1]] = true;
        }
        for (std::uint64_t channel = 0; channel < in.head_dim; ++channel) {
            if (!paired[channel]) {
                unpaired_.push_back(channel);
            }
        }
    }

    void token(std::uint64_t batch, std::uint64_t token) {
        const std::uint64_t first_row = row_index({batch, token, 0, 0});
        bool any = false;
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            any = any || is_compared(first_row + head);
        }
        if (!any) {
            return;
        }
        const std::int64_t position = operation_.positions[batch * in_.tokens + token];
        const std::uint64_t distance = position < 0 ? 0 - std::uint64_t(position)
                                                    : std::uint64_t(position);
        const bool covered = distance < operation_.covered;
        const std::int64_t slot = out_.cache ? out_.cache->slot_mapping[batch * in_.tokens + token]
                                             : 0;
        const bool slot_outside = out_.cache && slot != -1 && !has_row(*out_.cache, slot);
        verdict_.out_of_range += !covered || slot_outside ? 1 : 0;
        if (covered) {
            turn_to(position);
        }
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            const Place place = {batch, token, head, 0};
            if (is_compared(row_index(place))) {
                row(place, covered);
            }
        }
    }

    Verdict finish() {
        if (found_wrong_ || verdict_.largest_error_u > 0) {
            verdict_.worst = describe(verdict_.worst_place, worst_got_, worst_exact_);
            verdict_.worst_got = out_element_.widen(worst_got_);
            verdict_.worst_exact = double(worst_exact_);
        }
        return verdict_;
    }

   private:
    std::uint64_t row_index(const Place& place) const {
        return (place.batch * in_.tokens + place.token) * in_.heads + place.head;
    }

    bool is_compared(std::uint64_t row) const {
        return operation_.rows.empty() || operation_.rows[row];
    }

    void turn_to(std::int64_t position) {
        for (std::size_t j = 0; j < angles_.size(); ++j) {
            const CosSin turn = operation_.cos_sin
                                    ? operation_.cos_sin(position, j)
                                    : exact_cos_sin(position, operation_.inv_freq[j]);
            angles_[j] = {factor_ * turn.cos,
                          factor_ * (operation_.inverse ? -turn.sin : turn.sin)};
        }
    }

    void row(Place place, bool covered) {
        const std::uint64_t from = row_of(in_, place), to = row_of(out_, place);
        if (to == nowhere) {
            return;
        }
        const auto input = [&](std::uint64_t channel) -> long double {
            return in_element_.widen(load(input_, bytes_of(in_.type), from + channel));
        };
        for (std::size_t j = 0; j < pairs_.size(); ++j) {
            const Pair& pair = pairs_[j];
            if (!covered) {
                for (std::size_t member = 0; member < 2; ++member) {
                    place.channel = pair.out[member];
                    passed_through(place, from + pair.in[member], to + pair.out[member],
                                   pair.in[member] == pair.out[member]);
                }
                continue;
            }
            const long double x0 = input(pair.in[0]), x1 = input(pair.in[1]);
            const CosSin& a = angles_[j];
            const double scale = unit * double(factor_) * double(std::fabs(x0) + std::fabs(x1));
            place.channel = pair.out[0];
            rotated(place, to + pair.out[0], x0 * a.cos - x1 * a.sin, scale);
            place.channel = pair.out[1];
            rotated(place, to + pair.out[1], x0 * a.sin + x1 * a.cos, scale);
        }
        for (const std::uint64_t channel : unpaired_) {
            place.channel = channel;
            passed_through(place, from + channel, to + channel, true);
        }
    }

    void rotated(const Place& place, std::uint64_t index, long double exact, double scale) {
        ++verdict_.elements;
        const std::uint32_t got = load(output_, bytes_of(out_.type), index);
        const bool got_nan = std::isnan(out_element_.widen(got));
        if (std::isnan(exact) || got_nan) {
            if (!std::isnan(exact) || !got_nan) {
                verdict_.nan_mismatch = true;
                wrong(place, got, exact);
                return;
            }
            count_within(place, 0, 0);
            return;
        }
        const double error = double(out_element_.distance(got, exact)) -
                             operation_.absolute_allowance;
        count_within(place, error, scale);
        // Divides only for a new maximum. The scale is infinite if the input is; 0 * infinity
        // compares false.
        const bool infinite = std::isinf(error) && !std::isinf(verdict_.largest_error_u);
        if (infinite || (error > 0 && error > verdict_.largest_error_u * scale)) {
            verdict_.largest_error_u = infinite ? error : error / scale;
            if (!found_wrong_) {
                worst(place, got, exact);
            }
        }
    }

    /// A NaN that changes type or channel must stay a NaN; its payload may change.
    void passed_through(const Place& place, std::uint64_t from, std::uint64_t to,
                        bool same_channel) {
        ++verdict_.elements;
        ++verdict_.passed_through;
        const std::uint32_t given = load(input_, bytes_of(in_.type), from);
        const std::uint32_t got = load(output_, bytes_of(out_.type), to);
        const float exact = in_element_.widen(given);
        const bool same_type = in_.type == out_.type;
        const bool right = std::isnan(exact) && !(same_type && same_channel)
                               ? std::isnan(out_element_.widen(got))
                               : got == (same_type ? given : narrow(out_.type, exact));
        if (!right) {
            verdict_.bits_changed = true;
            wrong(place, got, exact);
            return;
        }
        count_within(place, 0, 0);
    }

    void count_within(const Place& place, double error, double scale) {
        for (std::size_t limit = 0; limit < verdict_.within.size(); ++limit) {
            const bool within = error <= 0 || error <= operation_.limits_u[limit] * scale;
            verdict_.within[limit] += within ? 1 : 0;
            if (limit == 0 && !within) {
                beyond(place);
            }
        }
    }

    /// For an element that is wrong whatever the limits. The first one is the worst of all.
    void wrong(const Place& place, std::uint32_t got, long double exact) {
        beyond(place);
        if (!found_wrong_) {
            found_wrong_ = true;
            worst(place, got, exact);
        }
    }

    void beyond(const Place& place) {
        verdict_.rows_beyond[row_index(place)] = true;
        ++verdict_.beyond_in[place.channel];
        Place &first = verdict_.first_beyond, &last = verdict_.last_beyond;
        if (verdict_.beyond++ == 0) {
            first = last = place;
        }
        for (const auto axis : {&Place::batch, &Place::token, &Place::head, &Place::channel}) {
            first.*axis = std::min(first.*axis, place.*axis);
            last.*axis = std::max(last.*axis, place.*axis);
        }
    }

    void worst(const Place& place, std::uint32_t got, long double exact) {
        verdict_.worst_place = place;
        worst_got_ = got;
        worst_exact_ = exact;
    }

    std::string describe(const Place& place, std::uint32_t got, long double exact) const {
        using ull = unsigned long long;
        char text[200];
        std::snprintf(
            text, sizeof text,
            "batch %llu token %llu head %llu channel %llu: got %.9g (0x%0*x), exact %.12Lg",
            ull{place.batch}, ull{place.token}, ull{place.head}, ull{place.channel},
            double(out_element_.widen(got)), int(2 * bytes_of(out_.type)), got, exact);
        return text;
    }

    const Tensor& in_;
    const Tensor& out_;
    const Operation& operation_;
    const void* input_;
    const void* output_;
    const ElementTable& in_element_;
    const ElementTable& out_element_;
    const std::vector<Pair> pairs_;
    std::vector<std::uint64_t> unpaired_;  // channels
    long double factor_ = 1;               // multiplies cos and sin
    std::vector<CosSin> angles_;           // of the current token, with factor and direction
    Verdict verdict_;
    bool found_wrong_ = false;
    std::uint32_t worst_got_ = 0;
    long double worst_exact_ = 0;
};

void require(bool holds, const char* rule) {
    if (!holds) {
        throw std::invalid_argument(rule);
    }
}

void check_cache(const Tensor& out) {
    if (!out.cache) {
        return;
    }
    std::vector<std::int64_t> slots = out.cache->slot_mapping;
    require(slots.size() == out.batch * out.tokens,
            "oracle: slots must have batch * tokens elements");
    slots.erase(std::remove_if(slots.begin(), slots.end(),
                               [&](std::int64_t slot) { return !has_row(*out.cache, slot); }),
                slots.end());
    std::sort(slots.begin(), slots.end());
    require(std::adjacent_find(slots.begin(), slots.end()) == slots.end(),
            "oracle: no two tokens may name one row");
}

void check_windows(const Operation& operation, std::uint64_t head_dim) {
    std::uint64_t end = 0, pairs = 0;
    for (const Window& window : windows_of(operation)) {
        require(window.offset >= end, "oracle: windows must ascend and not overlap");
        end = window.offset + 2 * window.pairs;
        pairs += window.pairs;
    }
    require(pairs == operation.inv_freq.size(),
            "oracle: inv_freq must have an element for each pair of the windows");
    require(operation.rotary_offset + end <= head_dim,
            "oracle: the window must lie inside head_dim");
}

}  // namespace

// A product of 31 and 53 bits does not fit in a long double. `rest` is its exact rounding error;
// cos and sin are rotated by this tiny angle.
CosSin exact_cos_sin(std::int64_t position, double inv_freq) {
    const auto p = static_cast<long double>(position), f = static_cast<long double>(inv_freq);
    const long double angle = p * f;
    const long double rest = std::fma(p, f, -angle);
    const long double c = std::cos(angle), s = std::sin(angle);
    return {c - rest * s, s + rest * c};
}

void each_row(const Tensor& tensor,
              const std::function<void(std::uint64_t row, std::uint64_t first)>& visit) {
    for (std::uint64_t row = 0; row < tensor.batch * tensor.tokens * tensor.heads; ++row) {
        const std::uint64_t token = row / tensor.heads;
        const std::uint64_t first = row_of(
            tensor, {token / tensor.tokens, token % tensor.tokens, row % tensor.heads, 0});
        if (first != nowhere) {
            visit(row, first);
        }
    }
}

Verdict compare(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
                const void* output, const std::function<void(double)>& progress) {
    require(in.batch == out.batch && in.tokens == out.tokens && in.heads == out.heads &&
                in.head_dim == out.head_dim,
            "oracle: input and output must have one shape");
    require(operation.positions.size() == in.batch * in.tokens,
            "oracle: positions must have batch * tokens elements");
    require(operation.rows.empty() || operation.rows.size() == in.batch * in.tokens * in.heads,
            "oracle: rows must have batch * tokens * heads elements");
    require(!in.cache, "oracle: only an output has slots");
    check_cache(out);
    check_windows(operation, in.head_dim);
    Comparison comparison(in, out, operation, input, output);
    const std::uint64_t total = in.batch * in.tokens;
    for (std::uint64_t i = 0; i < total; ++i) {
        comparison.token(i / in.tokens, i % in.tokens);
        if (progress) {
            progress(double(i + 1) / double(total));
        }
    }
    return comparison.finish();
}

}  // namespace vkrope::reference
