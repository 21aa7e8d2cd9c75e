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

#include "base/divide_up.hpp"

namespace vkrope::tools {
namespace {

using oracle::Approximate, oracle::Compared, oracle::Place;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double unit_roundoff = 0x1p-24;
constexpr std::uint64_t tokens_at_once = 16;  // tokens between two calls of go_on

// Sets `part`, a copy of `whole` or of a part of it, to the given tokens of `whole`.
void take(const Hypothesis& whole, const Tokens& tokens, Hypothesis& part) {
    const auto keep = [&](const auto& all, auto& kept, std::uint64_t of_each = 1) {
        kept.clear();
        if (!all.empty()) {
            const std::uint64_t first = tokens.batch * whole.in.tokens + tokens.first;
            const auto from = all.begin() + std::ptrdiff_t(first * of_each);
            kept.assign(from, from + std::ptrdiff_t(tokens.count * of_each));
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
    for (std::size_t axis = 0; axis < whole.operation.further.positions.size(); ++axis)
        keep(whole.operation.further.positions[axis], part.operation.further.positions[axis]);
    keep(whole.ops.scale_tokens, part.ops.scale_tokens);
    if (whole.store)
        keep(whole.scales, part.scales, whole.in.heads * whole.store->groups(whole.in.head_dim));
}

// Compares numbers, element by element.
class Numbers {
   public:
    Numbers(const Observation& observation, const Hypothesis& hypothesis, const Limits& limits,
            const std::vector<bool>& rows)
        : observation_(observation), hypothesis_(hypothesis), limits_(limits), rows_(rows),
          judge_(hypothesis, input_of(observation, hypothesis),
                 output_of(observation, hypothesis)) {
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

    // Returns whether the comparison continues, because nothing that `until` names has occurred.
    bool goes_on(Until until) const {
        const oracle::Verdict& verdict = result_.verdict;
        // A tolerance may be less than the bound.
        const bool wrong = !verdict.right() && (result_.largest_error > limits_.tolerance ||
                                                verdict.bits_changed || verdict.nan_mismatch);
        return until == Until::end || !(until == Until::wrong ? wrong : !verdict.right());
    }

    // Adds the elements of a comparison with later tokens.
    void add(const Numbers& later) {
        const Comparison& other = later.result_;
        const auto add_each = [](auto& counts, const auto& others, const auto& sum) {
            std::transform(counts.begin(), counts.end(), others.begin(), counts.begin(), sum);
        };
        if (other.beyond() != 0) {
            extend(other.first_beyond, result_.beyond() == 0);
            extend(other.last_beyond, false);
        }
        result_.verdict.add(other.verdict);
        result_.largest_error = std::max(result_.largest_error, other.largest_error);
        add_each(result_.rows_beyond, other.rows_beyond, std::logical_or());
        add_each(result_.rows_far, other.rows_far, std::logical_or());
        add_each(result_.beyond_in, other.beyond_in, std::plus());
    }

    Comparison finish() { return std::move(result_); }

   private:
    void compare_row(const Place& place, std::uint64_t row, std::span<const Approximate> channels) {
        long double largest = 0;
        for (std::size_t c = 0; observation_.with_ops && c < channels.size(); ++c) {
            const long double size = std::fabs(channels[c].value);
            largest = std::isfinite(size) ? std::max(largest, size) : largest;
        }
        judge_.row(place, channels, [&](const Compared& one) { element(row, one, largest); });
    }

    void element(std::uint64_t row, const Compared& one, long double largest_of_row) {
        const bool is_first = result_.beyond() == 0;
        result_.verdict.add(one);
        if (one.share == 0 && one.distance == 0) return;
        const double error = error_of(one, largest_of_row);
        if (!(error <= limits_.tolerance) || (!one.is_right() && !one.computed))
            result_.rows_far[row] = true;
        result_.largest_error = std::max(result_.largest_error, error);
        if (!one.is_right()) {
            result_.rows_beyond[row] = true;
            ++result_.beyond_in[one.place.channel];
            extend(one.place, is_first);
        }
    }

    // Returns an error as a share of |x0| + |x1| times the attention factor, or of the largest
    // value of the row. Channels outside the windows have no pair to compare with.
    double error_of(const Compared& one, long double largest_of_row) {
        const double u = one.computed && !has_ops_ ? judge_.error_u(one) : 0;
        result_.verdict.largest_error_u = std::max(result_.verdict.largest_error_u, u);
        if (!observation_.with_ops) return u * unit_roundoff;
        const long double allowance = hypothesis_.operation.absolute_allowance,
                          error = (one.distance - allowance) / largest_of_row;
        return !(one.distance > allowance) ? 0 : std::isnan(error) ? infinity : double(error);
    }

    // Extends the box of the elements beyond the bound.
    void extend(const Place& place, bool is_first) {
        Place &first = result_.first_beyond, &last = result_.last_beyond;
        if (is_first) first = last = place;
        for (const auto axis : {&Place::batch, &Place::token, &Place::head, &Place::channel}) {
            first.*axis = std::min(first.*axis, place.*axis);
            last.*axis = std::max(last.*axis, place.*axis);
        }
    }

    const Observation& observation_;
    const Hypothesis& hypothesis_;
    const Limits& limits_;
    const std::vector<bool>& rows_;
    const bool has_ops_ = oracle::has_steps(hypothesis_.ops);
    oracle::ElementJudge judge_;
    Comparison result_;
};

oracle::Verdict compare_codes(const Observation& observation, const Hypothesis& whole,
                              const Sample& sample, const std::function<void(double)>& progress) {
    const std::uint64_t size = oracle::block_bytes(whole.store->type);
    oracle::Verdict verdict;
    Hypothesis part = whole;
    for (const Tokens& tokens : sample) {
        take(whole, tokens, part);
        const std::uint64_t first = part.first_out / oracle::block_channels(part.store->type);
        verdict.add(oracle::compare(part, input_of(observation, part),
                                    observation.codes.subspan(first * size).data(), part.scales,
                                    progress));
    }
    return verdict;
}

}  // namespace

const void* input_of(const Observation& observation, const Hypothesis& hypothesis) {
    const void* input = hypothesis.input != nullptr ? hypothesis.input : observation.input;
    return static_cast<const char*>(input) +
           hypothesis.first_in * oracle::bytes_of(hypothesis.in.type);
}

const void* output_of(const Observation& observation, const Hypothesis& hypothesis) {
    return static_cast<const char*>(observation.output) +
           hypothesis.first_out * oracle::bytes_of(hypothesis.out.type);
}

Every at_most(std::uint64_t most, std::uint64_t count) {
    const std::uint64_t step = std::max<std::uint64_t>(1, divide_up(count, most));
    return {step, (count - 1) % step, divide_up(count, step)};
}

Sample all_tokens(const Hypothesis& hypothesis) {
    Sample sample;
    for (std::uint64_t batch = 0; batch < hypothesis.in.batch; ++batch)
        sample.push_back({batch, 0, hypothesis.in.tokens});
    return sample;
}

Sample sample_of(const Hypothesis& hypothesis, std::uint64_t wanted) {
    const oracle::Tensor& in = hypothesis.in;
    const std::uint64_t of_token = std::max<std::uint64_t>(1, in.heads * in.head_dim),
                        most = std::max<std::uint64_t>(1, wanted / of_token);
    if (in.batch * in.tokens <= most) return all_tokens(hypothesis);
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
        const auto first = rows.begin() + std::ptrdiff_t(token * in.heads),
                   end = first + std::ptrdiff_t(in.heads);
        if (std::find(first, end, true) != end)
            sample.push_back({token / in.tokens, token % in.tokens, 1});
    }
    return sample;
}

Sample sample_for(const Hypothesis& hypothesis, const std::vector<bool>& rows,
                  std::uint64_t wanted) {
    if (rows.empty()) return sample_of(hypothesis, wanted);
    const Sample all = tokens_of(hypothesis, rows);
    const std::uint64_t of_token = hypothesis.in.heads * hypothesis.in.head_dim;
    const Every some = at_most(std::max<std::uint64_t>(1, wanted / of_token), all.size());
    Sample sample;
    for (std::uint64_t i = 0; i < some.count; ++i)
        sample.push_back(all[some.first + i * some.step]);
    return sample;
}

std::uint64_t elements_of(const Hypothesis& hypothesis, const Sample& sample) {
    std::uint64_t count = 0;
    for (const Tokens& tokens : sample) count += tokens.count;
    return count * hypothesis.in.heads * hypothesis.in.head_dim;
}

// Computes [tokens, heads, head_dim] of the hypothesis that computes other_channels, or nothing.
static std::vector<Approximate> channels_of_other(const Observation& observation,
                                                  const Hypothesis& hypothesis,
                                                  const Tokens& tokens) {
    std::vector<Approximate> all;
    if (hypothesis.of_other_channels) {
        each_token(
            observation, *hypothesis.of_other_channels, {tokens},
            [&all](std::uint64_t, std::uint64_t, std::span<const Approximate> channels) {
                all.insert(all.end(), channels.begin(), channels.end());
            });
    }
    return all;
}

void each_token(const Observation& observation, const Hypothesis& hypothesis, const Sample& sample,
                const VisitToken& visit, const std::function<bool()>& go_on) {
    Hypothesis part = hypothesis;
    for (const Tokens& tokens : sample) {
        for (std::uint64_t from = 0; from < tokens.count; from += tokens_at_once) {
            const Tokens some = {tokens.batch, tokens.first + from,
                                 std::min(tokens_at_once, tokens.count - from)};
            take(hypothesis, some, part);
            const auto of_other = channels_of_other(observation, hypothesis, some);
            oracle::apply_ops(
                part, input_of(observation, part),
                [&](std::uint64_t, std::uint64_t token, std::span<const Approximate> channels) {
                    if (of_other.empty()) {
                        visit(some.batch, some.first + token, channels);
                        return;
                    }
                    std::vector<Approximate> both(channels.begin(), channels.end());
                    for (std::size_t i = 0; i < both.size(); ++i)
                        both[i] = hypothesis.other_channels[i % hypothesis.in.head_dim]
                                      ? of_other[token * both.size() + i]
                                      : both[i];
                    visit(some.batch, some.first + token, both);
                });
            if (go_on && !go_on()) return;
        }
    }
}

// Splits a sample into consecutive tokens for each thread.
static std::vector<Sample> shares_of(const Hypothesis& hypothesis, const Sample& sample) {
    constexpr std::uint64_t least = std::uint64_t{1} << 17, most = 8;  // elements, threads
    const std::uint64_t all = elements_of(hypothesis, sample),
                        cores = std::min<std::uint64_t>(most, std::thread::hardware_concurrency()),
                        each = divide_up(all,
                                         std::max<std::uint64_t>(1, std::min(cores, all / least)));
    std::vector<Sample> shares;
    std::uint64_t room = 0;  // number of elements that still fit in the last share
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
        comparison.verdict = compare_codes(observation, hypothesis, sample, progress);
        return comparison;
    }
    const std::vector<Sample> shares = shares_of(hypothesis, sample);
    std::vector<Numbers> numbers(std::max<std::size_t>(1, shares.size()),
                                 Numbers(observation, hypothesis, limits, rows));
    const double all = double(elements_of(hypothesis, sample)),
                 of_token = double(hypothesis.in.heads * hypothesis.in.head_dim);
    std::atomic<std::uint64_t> done = 0;
    std::atomic<std::size_t> last = shares.size();  // index of the first share that ended early
    const auto compare_share = [&](std::size_t i) {
        each_token(
            observation, hypothesis, shares[i],
            [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
                numbers[i].token(batch, token, channels);
                ++done;
            },
            [&] {
                if (progress && i == 0) progress(double(done) * of_token / all);
                std::size_t before = last;
                while (!numbers[i].goes_on(until) && i < before &&
                       !last.compare_exchange_weak(before, i)) {
                }
                return i < last;
            });
    };
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < shares.size(); ++i)
        others.push_back(std::async(std::launch::async, compare_share, i));
    if (!shares.empty()) compare_share(0);
    for (std::size_t i = 1; i < shares.size(); ++i) {
        others[i - 1].get();
        if (i <= last)  // a single thread would not have compared later shares
            numbers[0].add(numbers[i]);
    }
    return numbers[0].finish();
}

}  // namespace vkrope::tools
