// SPDX-License-Identifier: MIT
#include "check/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "divide_up.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using oracle::Approximate, oracle::CodesVerdict, oracle::Place;

constexpr long double infinity = std::numeric_limits<long double>::infinity();
constexpr long double unit_roundoff = 0x1p-24L;
constexpr std::uint64_t tokens_at_once = 16;  // between two questions whether to go on

/// Sets `part`, a copy of `whole` or of a part of it, to the given tokens of `whole`.
void take(const Hypothesis& whole, const Tokens& tokens, Hypothesis& part) {
    const auto keep = [&](const auto& all, auto& kept, std::uint64_t of_each = 1) {
        kept.clear();
        if (!all.empty()) {
            const std::uint64_t first = tokens.batch * whole.in.tokens + tokens.first;
            const auto from = all.begin() + static_cast<std::ptrdiff_t>(first * of_each);
            kept.assign(from, from + static_cast<std::ptrdiff_t>(tokens.count * of_each));
        }
    };
    const auto move_to = [&tokens](const oracle::Tensor& tensor) {
        return tokens.batch * tensor.batch_stride + tokens.first * tensor.token_stride;
    };
    part.first_in = whole.first_in + move_to(whole.in);
    part.first_out = whole.first_out + move_to(whole.out);
    part.in.batch = part.out.batch = 1;
    part.in.tokens = part.out.tokens = tokens.count;
    keep(whole.operation.positions, part.operation.positions);
    for (std::size_t axis = 0; axis < whole.further.positions.size(); ++axis) {
        keep(whole.further.positions[axis], part.further.positions[axis]);
    }
    keep(whole.ops.scale_tokens, part.ops.scale_tokens);
    if (whole.ops.second) {
        part.ops.second->from_token = whole.ops.second->from_token;
        part.ops.second->leave_out(tokens.first);
    }
    if (whole.store) {
        keep(whole.store->scales, part.store->scales, whole.in.heads);
        std::uint64_t& from = part.store->quantised.second_from;
        from = whole.store->quantised.second_from;
        from -= std::min(from, tokens.first);
    }
}

const void* input_of(const Observation& observation, const Hypothesis& part) {
    const void* input = part.input != nullptr ? part.input : observation.input;
    return static_cast<const char*>(input) + part.first_in * oracle::bytes_of(part.in.type);
}

/// Compares numbers, element by element.
class Numbers {
   public:
    Numbers(const Observation& observation, const Hypothesis& hypothesis, const Limits& limits,
            const std::vector<bool>& rows)
        : observation_(observation), hypothesis_(hypothesis), limits_(limits), rows_(rows),
          elements_(oracle::table_of(hypothesis.out.type)),
          computed_(hypothesis.in.head_dim, oracle::has_steps(hypothesis.ops)) {
        for (const oracle::Pair& pair : oracle::pairs_of(hypothesis.operation)) {
            computed_[pair.out[0]] = computed_[pair.out[1]] = true;
        }
        const oracle::Tensor& in = hypothesis.in;
        result_.rows_beyond.resize(in.batch * in.tokens * in.heads);
        result_.rows_far.resize(result_.rows_beyond.size());
        result_.beyond_in.resize(in.head_dim);
    }

    void token(std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
        const oracle::Tensor& in = hypothesis_.in;
        for (std::uint64_t head = 0; head < in.heads; ++head) {
            const std::uint64_t row = (batch * in.tokens + token) * in.heads + head;
            if (rows_.empty() || rows_[row]) {
                compare_row({batch, token, head, 0}, row,
                            channels.subspan(head * in.head_dim, in.head_dim));
            }
        }
    }

    /// Returns whether nothing has happened that `until` names.
    bool goes_on(Until until) const {
        // A tolerance may be less than the bound.
        const bool wrong = result_.beyond != 0 && (result_.largest_error > limits_.tolerance ||
                                                   result_.bits_changed || result_.nan_mismatch);
        return until == Until::end || !(until == Until::wrong ? wrong : result_.beyond != 0);
    }

    /// Adds the elements of a comparison with later tokens.
    void add(const Numbers& later) {
        const Comparison& other = later.result_;
        const auto add_each = [](auto& counts, const auto& others, const auto& sum) {
            std::transform(counts.begin(), counts.end(), others.begin(), counts.begin(), sum);
        };
        if (other.beyond != 0) {
            extend(other.first_beyond);
            result_.beyond += other.beyond;
            extend(other.last_beyond);
        }
        result_.elements += other.elements;
        result_.within += other.within;
        result_.largest_error = std::max(result_.largest_error, other.largest_error);
        result_.nan_mismatch = result_.nan_mismatch || other.nan_mismatch;
        result_.bits_changed = result_.bits_changed || other.bits_changed;
        add_each(result_.rows_beyond, other.rows_beyond, std::logical_or());
        add_each(result_.rows_far, other.rows_far, std::logical_or());
        add_each(result_.beyond_in, other.beyond_in, std::plus());
        if (other.beyond != 0 && !(later.worst_share_ <= worst_share_)) {
            worst_share_ = later.worst_share_;
            worst_ = later.worst_;
            worst_bits_ = later.worst_bits_;
            result_.worst_place = other.worst_place;
        }
    }

    Comparison finish() {
        if (result_.beyond != 0) {
            const Place& at = result_.worst_place;
            result_.worst_got = elements_.widen(worst_bits_);
            result_.worst_exact = double(worst_.value);
            result_.worst = fmt::format(
                "batch {} token {} head {} channel {}: got {:.9g} (0x{:0{}x}), exact {:.12g}",
                at.batch, at.token, at.head, at.channel, result_.worst_got, worst_bits_,
                2 * oracle::bytes_of(hypothesis_.out.type), result_.worst_exact);
        }
        return std::move(result_);
    }

   private:
    void compare_row(Place place, std::uint64_t row, std::span<const Approximate> channels) {
        const std::uint64_t from = hypothesis_.first_in + oracle::row_of(hypothesis_.in, place),
                            to = hypothesis_.first_out + oracle::row_of(hypothesis_.out, place);
        long double largest = 0;
        for (std::size_t c = 0; observation_.with_ops && c < channels.size(); ++c) {
            const long double size = std::fabs(channels[c].value);
            largest = std::isfinite(size) ? std::max(largest, size) : largest;
        }
        const std::size_t bytes = oracle::bytes_of(hypothesis_.out.type);
        result_.elements += channels.size();
        for (std::uint64_t& c = place.channel; c < channels.size(); ++c) {
            const std::uint32_t got = oracle::load(observation_.output, bytes, to + c);
            if (computed_[c] && elements_.holds(got, channels[c].value)) {
                ++result_.within;
                continue;
            }
            element(place, row, from + c, got, channels[c], largest);
        }
    }

    void element(const Place& place, std::uint64_t row, std::uint64_t from, std::uint32_t got,
                 const Approximate& exact, long double largest_of_row) {
        const oracle::Type in = hypothesis_.in.type, out = hypothesis_.out.type;
        const bool got_nan = std::isnan(elements_.widen(got)), nan = std::isnan(exact.value);
        const long double distance = nan && got_nan   ? 0
                                     : nan || got_nan ? infinity
                                                      : elements_.distance(got, exact.value);
        long double share = 0;  // of the error that the contract allows
        if (!computed_[place.channel]) {
            const void* input = hypothesis_.input != nullptr ? hypothesis_.input
                                                             : observation_.input;
            const bool same = in == out ? got == oracle::load(input, oracle::bytes_of(in), from)
                              : nan     ? got_nan
                                        : got == oracle::narrow(out, exact.value);
            share = same ? 0 : infinity;
            result_.bits_changed = result_.bits_changed || !same;
        } else if (distance > 0) {
            // No other value is close to an infinity.
            share = std::isinf(exact.value) || exact.error == 0 ? infinity : distance / exact.error;
            result_.nan_mismatch = result_.nan_mismatch || nan || got_nan;
        }
        const double error = error_of(distance, exact, largest_of_row, computed_[place.channel]);
        if (!(error <= limits_.tolerance) || (share > 1 && !computed_[place.channel])) {
            result_.rows_far[row] = true;
        }
        result_.largest_error = std::max(result_.largest_error, error);
        if (share <= 1) {
            ++result_.within;
            return;
        }
        beyond(place, row);
        if (!(share <= worst_share_)) {
            worst_share_ = share;
            worst_ = exact;
            worst_bits_ = got;
            result_.worst_place = place;
        }
    }

    /// Returns an error as a share of |x0| + |x1| times the attention factor, or of the largest
    /// value of the row. Channels outside the windows have no pair to compare with.
    double error_of(long double distance, const Approximate& exact, long double largest_of_row,
                    bool computed) const {
        const long double allowance = hypothesis_.operation.absolute_allowance;
        if (!(distance > allowance) || (!computed && !observation_.with_ops)) {
            return 0;
        }
        const long double unit = observation_.with_ops ? largest_of_row
                                                       : (exact.error - allowance) /
                                                             (limits_.bound_u * unit_roundoff),
                          error = (distance - allowance) / unit;
        return std::isnan(error) ? double(infinity) : double(error);
    }

    void beyond(const Place& place, std::uint64_t row) {
        result_.rows_beyond[row] = true;
        ++result_.beyond_in[place.channel];
        extend(place);
        ++result_.beyond;
    }

    /// Extends the box of the elements beyond the bound.
    void extend(const Place& place) {
        Place &first = result_.first_beyond, &last = result_.last_beyond;
        if (result_.beyond == 0) {
            first = last = place;
        }
        for (const auto axis : {&Place::batch, &Place::token, &Place::head, &Place::channel}) {
            first.*axis = std::min(first.*axis, place.*axis);
            last.*axis = std::max(last.*axis, place.*axis);
        }
    }

    const Observation& observation_;
    const Hypothesis& hypothesis_;
    const Limits& limits_;
    const std::vector<bool>& rows_;
    const oracle::ElementTable& elements_;
    std::vector<bool> computed_;  // channels that an op or the rotation computes
    Comparison result_;
    long double worst_share_ = 0;
    Approximate worst_;
    std::uint32_t worst_bits_ = 0;
};

void add(const CodesVerdict& part, CodesVerdict& all) {
    all.codes += part.codes;
    all.scales += part.scales;
    all.decided += part.decided;
    all.wrong_codes += part.wrong_codes;
    all.wrong_scales += part.wrong_scales;
    all.code_distance = std::max(all.code_distance, part.code_distance);
    all.scale_error = std::max(all.scale_error, part.scale_error);
    all.first_wrong = all.first_wrong.empty() ? part.first_wrong : all.first_wrong;
}

/// Compares blocks that extend along tokens or heads, 32 tokens at a time.
CodesVerdict compare_across(const Observation& observation, const Hypothesis& whole,
                            double bound_u) {
    const oracle::Tensor& in = whole.in;
    const oracle::QuantisedStore& store = whole.store->quantised;
    const bool along_tokens = whole.store->along == BlockAxis::tokens;
    const std::uint64_t channels = oracle::block_channels(store.type),
                        size = oracle::block_bytes(store.type), of_token = in.heads * in.head_dim,
                        step = along_tokens ? of_token : in.head_dim,
                        length = along_tokens ? channels : in.heads,
                        row_bytes = (along_tokens ? in.tokens : in.heads) / channels * size;
    CodesVerdict verdict;
    std::vector<Approximate> values, row(length);
    const std::uint64_t parts = divide_up(in.tokens, channels);
    for (std::uint64_t i_part = 0; i_part < in.batch * parts; ++i_part) {
        const std::uint64_t batch = i_part / parts, first = i_part % parts * channels,
                            tokens = std::min(channels, in.tokens - first);
        values.clear();  // [tokens, heads, head_dim]
        each_token(observation, whole, {{batch, first, tokens}}, bound_u,
                   [&](std::uint64_t, std::uint64_t, const auto& of_one) {
                       values.insert(values.end(), of_one.begin(), of_one.end());
                   });
        for (std::uint64_t i = 0; i < values.size() / length; ++i) {
            const std::uint64_t at = along_tokens ? i
                                                  : i / in.head_dim * of_token + i % in.head_dim;
            for (std::uint64_t j = 0; j < length; ++j) {
                row[j] = values[at + j * step];
            }
            const std::uint64_t byte =
                along_tokens ? (batch * of_token + i) * row_bytes + first / channels * size
                             : ((batch * in.tokens + first) * in.head_dim + i) * row_bytes;
            oracle::compare_row(store, 1, row,
                                observation.codes.subspan(byte, length / channels * size), 0, "",
                                verdict);
        }
    }
    return verdict;
}

CodesVerdict compare_codes(const Observation& observation, const Hypothesis& whole, double bound_u,
                           const Sample& sample, const std::function<void(double)>& progress) {
    const StoreForm& form = *whole.store;
    if (form.along != BlockAxis::channels) {
        return compare_across(observation, whole, bound_u);
    }
    const std::uint64_t size = oracle::block_bytes(form.quantised.type);
    std::span<const std::uint8_t> codes = observation.codes;
    std::vector<std::uint8_t> reordered;
    if (form.reorder) {
        reordered.assign(codes.begin(), codes.end());
        for (std::uint64_t at = 0; at < reordered.size(); at += size) {
            form.reorder(std::span(reordered).subspan(at, size));
        }
        codes = reordered;
    }
    CodesVerdict verdict;
    Hypothesis part = whole;
    for (const Tokens& tokens : sample) {
        take(whole, tokens, part);
        const std::uint64_t first = part.first_out / oracle::block_channels(form.quantised.type);
        add(oracle::compare_codes(part.in, part.out, by_axis(part.operation, part.further),
                                  part.ops, bound_u, input_of(observation, part),
                                  part.store->quantised, codes.subspan(first * size),
                                  part.store->scales, progress),
            verdict);
    }
    return verdict;
}

}  // namespace

Every at_most(std::uint64_t most, std::uint64_t count) {
    const std::uint64_t step = std::max<std::uint64_t>(1, divide_up(count, most));
    return {step, (count - 1) % step, divide_up(count, step)};
}

Sample all_tokens(const Hypothesis& hypothesis) {
    Sample sample;
    for (std::uint64_t batch = 0; batch < hypothesis.in.batch; ++batch) {
        sample.push_back({batch, 0, hypothesis.in.tokens});
    }
    return sample;
}

Sample sample_of(const Hypothesis& hypothesis, std::uint64_t wanted) {
    const oracle::Tensor& in = hypothesis.in;
    const std::uint64_t of_token = std::max<std::uint64_t>(1, in.heads * in.head_dim),
                        most = std::max<std::uint64_t>(1, wanted / of_token);
    if (in.batch * in.tokens <= most ||
        (hypothesis.store && hypothesis.store->along != BlockAxis::channels)) {
        return all_tokens(hypothesis);
    }
    const Every batch = at_most(most, in.batch),
                tokens = at_most(std::max<std::uint64_t>(1, most / batch.count), in.tokens);
    Sample sample;
    for (std::uint64_t i = 0; i < batch.count * tokens.count; ++i) {
        sample.push_back({batch.first + i / tokens.count * batch.step,
                          tokens.first + i % tokens.count * tokens.step, 1});
    }
    return sample;
}

Sample tokens_of(const Hypothesis& hypothesis, const std::vector<bool>& rows) {
    const oracle::Tensor& in = hypothesis.in;
    Sample sample;
    for (std::uint64_t token = 0; token < in.batch * in.tokens; ++token) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(token * in.heads),
                   end = first + static_cast<std::ptrdiff_t>(in.heads);
        if (std::find(first, end, true) != end) {
            sample.push_back({token / in.tokens, token % in.tokens, 1});
        }
    }
    return sample;
}

Sample sample_for(const Hypothesis& hypothesis, const std::vector<bool>& rows,
                  std::uint64_t wanted) {
    if (rows.empty()) {
        return sample_of(hypothesis, wanted);
    }
    const Sample all = tokens_of(hypothesis, rows);
    const std::uint64_t of_token = hypothesis.in.heads * hypothesis.in.head_dim;
    const Every some = at_most(std::max<std::uint64_t>(1, wanted / of_token), all.size());
    Sample sample;
    for (std::uint64_t i = 0; i < some.count; ++i) {
        sample.push_back(all[some.first + i * some.step]);
    }
    return sample;
}

std::uint64_t elements_of(const Hypothesis& hypothesis, const Sample& sample) {
    std::uint64_t count = 0;
    for (const Tokens& tokens : sample) {
        count += tokens.count;
    }
    return count * hypothesis.in.heads * hypothesis.in.head_dim;
}

/// Computes [tokens, heads, head_dim] with the hypothesis of other channels; empty without one.
static std::vector<Approximate> channels_of_other(const Observation& observation,
                                                  const Hypothesis& hypothesis,
                                                  const Tokens& tokens, double bound_u) {
    std::vector<Approximate> all;
    if (hypothesis.of_other_channels) {
        each_token(observation, *hypothesis.of_other_channels, {tokens}, bound_u,
                   [&all](std::uint64_t, std::uint64_t, std::span<const Approximate> channels) {
                       all.insert(all.end(), channels.begin(), channels.end());
                   });
    }
    return all;
}

void each_token(const Observation& observation, const Hypothesis& hypothesis, const Sample& sample,
                double bound_u, const VisitToken& visit, const std::function<bool()>& go_on) {
    Hypothesis part = hypothesis;
    for (const Tokens& tokens : sample) {
        for (std::uint64_t from = 0; from < tokens.count; from += tokens_at_once) {
            const Tokens some = {tokens.batch, tokens.first + from,
                                 std::min(tokens_at_once, tokens.count - from)};
            take(hypothesis, some, part);
            const auto of_other = channels_of_other(observation, hypothesis, some, bound_u);
            oracle::apply_ops(
                part.in, by_axis(part.operation, part.further), part.ops, bound_u,
                input_of(observation, part),
                [&](std::uint64_t, std::uint64_t token, std::span<const Approximate> channels) {
                    if (of_other.empty()) {
                        visit(some.batch, some.first + token, channels);
                        return;
                    }
                    std::vector<Approximate> both(channels.begin(), channels.end());
                    for (std::size_t i = 0; i < both.size(); ++i) {
                        both[i] = hypothesis.other_channels[i % hypothesis.in.head_dim]
                                      ? of_other[token * both.size() + i]
                                      : both[i];
                    }
                    visit(some.batch, some.first + token, both);
                });
            if (go_on && !go_on()) {
                return;
            }
        }
    }
}

/// Splits a sample into consecutive tokens for each thread.
static std::vector<Sample> shares_of(const Hypothesis& hypothesis, const Sample& sample) {
    constexpr std::uint64_t least = std::uint64_t{1} << 17, most = 8;  // elements, threads
    const std::uint64_t all = elements_of(hypothesis, sample),
                        cores = std::min<std::uint64_t>(most, std::thread::hardware_concurrency()),
                        each = divide_up(all,
                                         std::max<std::uint64_t>(1, std::min(cores, all / least)));
    std::vector<Sample> shares;
    std::uint64_t room = 0;  // for elements in the last share
    for (const Tokens& tokens : sample) {
        for (std::uint64_t from = 0; from < tokens.count; from += tokens_at_once) {
            if (room == 0) {
                shares.emplace_back();
                room = each;
            }
            const Tokens some = {tokens.batch, tokens.first + from,
                                 std::min(tokens_at_once, tokens.count - from)};
            shares.back().push_back(some);
            room -= std::min(room, elements_of(hypothesis, {some}));
        }
    }
    return shares;
}

Comparison compare(const Observation& observation, const Hypothesis& hypothesis,
                   const Limits& limits, const Sample& sample, const std::vector<bool>& rows,
                   Until until, const std::function<void(double)>& progress) {
    if (hypothesis.store) {
        Comparison comparison;
        comparison.codes = compare_codes(observation, hypothesis, limits.bound_u, sample, progress);
        return comparison;
    }
    const std::vector<Sample> shares = shares_of(hypothesis, sample);
    std::vector<Numbers> numbers(std::max<std::size_t>(1, shares.size()),
                                 Numbers(observation, hypothesis, limits, rows));
    const double all = double(elements_of(hypothesis, sample)),
                 of_token = double(hypothesis.in.heads * hypothesis.in.head_dim);
    std::atomic<std::uint64_t> done = 0;
    std::atomic<std::size_t> last = shares.size();  // the first share that ended early
    const auto compare_share = [&](std::size_t i) {
        each_token(
            observation, hypothesis, shares[i], limits.bound_u,
            [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
                numbers[i].token(batch, token, channels);
                ++done;
            },
            [&] {
                if (progress && i == 0) {
                    progress(double(done) * of_token / all);
                }
                std::size_t before = last;
                while (!numbers[i].goes_on(until) && i < before &&
                       !last.compare_exchange_weak(before, i)) {
                }
                return i < last;
            });
    };
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < shares.size(); ++i) {
        others.push_back(std::async(std::launch::async, compare_share, i));
    }
    if (!shares.empty()) {
        compare_share(0);
    }
    for (std::size_t i = 1; i < shares.size(); ++i) {
        others[i - 1].get();
        if (i <= last) {  // as if one thread had compared all
            numbers[0].add(numbers[i]);
        }
    }
    return numbers[0].finish();
}

}  // namespace vkrope::tools
