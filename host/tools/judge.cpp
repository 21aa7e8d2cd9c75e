// SPDX-License-Identifier: MIT
#include "judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "mistakes.hpp"

namespace vkrope::tools {
namespace {

constexpr double unit = 0x1p-24;

/// Every so many-th of `count`, the last one among them: a first token, at position 0, shows no mistake.
struct Every {
    std::uint64_t step = 1, first = 0, count = 0;
};

Every at_most(std::uint64_t most, std::uint64_t count) {
    const std::uint64_t step = std::max<std::uint64_t>(1, (count + most - 1) / most);
    return {step, (count - 1) % step, (count + step - 1) / step};
}

void keep(reference::Tensor& tensor, std::uint64_t& first, const Every& batch, const Every& tokens, const Every& heads) {
    first += batch.first * tensor.batch_stride + tokens.first * tensor.token_stride + heads.first * tensor.head_stride;
    tensor.batch = batch.count;
    tensor.tokens = tokens.count;
    tensor.heads = heads.count;
    tensor.batch_stride *= batch.step;
    tensor.token_stride *= tokens.step;
    tensor.head_stride *= heads.step;
}

/// A part of the rows, evenly spread: some heads, of them tokens, of them sequences.
Trial sampled(Trial trial, std::uint64_t elements) {
    const reference::Tensor in = trial.in;
    const std::uint64_t rows = std::max<std::uint64_t>(1, elements / in.head_dim);
    if (in.batch * in.tokens * in.heads <= rows) {
        return trial;
    }
    constexpr std::uint64_t most_heads = 16;  // positions show more than heads do
    const Every heads = at_most(std::min(rows, most_heads), in.heads);
    const Every tokens = at_most(std::max<std::uint64_t>(1, rows / heads.count), in.tokens);
    const Every batch = at_most(std::max<std::uint64_t>(1, rows / heads.count / tokens.count), in.batch);
    keep(trial.in, trial.first_in, batch, tokens, heads);
    keep(trial.out, trial.first_out, batch, tokens, heads);
    each_axis(trial, [&](std::vector<std::int64_t>& positions) {
        const std::vector<std::int64_t> all = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < batch.count * tokens.count; ++row) {
            positions.push_back(
                all[(batch.first + row / tokens.count * batch.step) * in.tokens + tokens.first + row % tokens.count * tokens.step]);
        }
    });
    return trial;
}

const void* from(const void* elements, std::uint64_t first, reference::Type type) {
    return static_cast<const char*>(elements) + first * (type == reference::Type::f32 ? 4 : 2);
}

class Judge {
   public:
    Judge(const Evidence& evidence, const Limits& limits) : evidence_(evidence), limits_(limits) {}

    reference::Verdict compare(Trial trial, const std::function<void(double)>& progress = {}) const {
        reference::Operation operation = by_axis(std::move(trial.operation), trial.further);
        operation.limits_u = {limits_.bound_u, limits_.tolerance / unit};
        return reference::compare(trial.in, trial.out, operation, from(evidence_.input, trial.first_in, trial.in.type),
                                  from(evidence_.output, trial.first_out, trial.out.type), progress);
    }

    Match match(const Mistake& mistake) const {
        Match match = measured(compare(sampled(mistake.trial, limits_.sampled_elements)));
        if (match.explains || match.nearly) {
            match = measured(compare(mistake.trial));  // of all, before it is accused
        }
        match.mistake = mistake.name;
        match.meaning = mistake.meaning;
        match.precision = mistake.precision;
        return match;
    }

    Match measured(const reference::Verdict& verdict) const {
        const auto share = [&verdict](std::size_t limit) {
            return verdict.elements == 0 ? 1 : double(verdict.within[limit]) / double(verdict.elements);
        };
        Match match;
        match.max_error_u = verdict.nan_mismatch ? std::numeric_limits<double>::infinity() : verdict.largest_error_u;
        match.changes_rest = verdict.bits_changed;
        match.share_within = share(0);
        match.share_close = share(1);
        // The oracle's own words rather than the shares, which count nothing that is not a number.
        const bool whole = !verdict.nan_mismatch && !verdict.bits_changed;
        match.explains = whole && verdict.largest_error_u <= limits_.bound_u;
        match.nearly = whole && verdict.largest_error_u * unit <= limits_.tolerance;
        return match;
    }

    std::string breach(const reference::Verdict& verdict) const {
        const char* what = breach_of(verdict, limits_.bound_u);
        return what == nullptr ? "" : fmt::format("{}: {}", what, verdict.worst);
    }

   private:
    const Evidence& evidence_;
    const Limits& limits_;
};

/// Nothing where nothing is wrong, where it is in no one place, or where the tensor has no other place than this.
std::optional<Lone> lone_of(const reference::Tensor& tensor, const reference::Verdict& verdict) {
    const reference::Place &first = verdict.first_beyond, &last = verdict.last_beyond;
    const bool one_batch = first.batch == last.batch, one_token = first.token == last.token, one_head = first.head == last.head;
    Lone lone = {.worst = verdict.worst_place,
                 .expected = verdict.worst_exact,
                 .actual = verdict.worst_got,
                 .error_u = {},
                 .wrong = verdict.beyond};
    if (!verdict.nan_mismatch && !verdict.bits_changed) {
        lone.error_u = verdict.largest_error_u;
    }
    const bool several_rows = tensor.batch * tensor.tokens * tensor.heads > 1;
    if (verdict.beyond == 1) {
        lone.region = Region::element;
    } else if (one_batch && one_token && one_head && several_rows) {
        lone.region = Region::row;
    } else if (one_batch && one_token && tensor.batch * tensor.tokens > 1) {
        lone.region = Region::token;
    } else if (one_head && tensor.heads > 1) {
        lone.region = Region::head;
    } else if (one_batch && tensor.batch > 1) {
        lone.region = Region::sequence;
    } else {
        return std::nullopt;
    }
    return verdict.beyond == 0 ? std::nullopt : std::optional(lone);
}

Outcome outcome_of(const Match& right, const std::vector<Match>& matches, const Limits& limits) {
    if (right.explains) {
        return Outcome::pass;
    }
    const Match* best = matches.empty() ? nullptr : &matches.front();
    if (best != nullptr && best->explains) {
        return limits.accepts_close && best->precision && right.nearly ? Outcome::close : Outcome::mistake;
    }
    // Two operations that differ little both come close; only a much better match is worth an accusation.
    const bool much_better = best != nullptr && best->nearly && 4 * best->max_error_u <= right.max_error_u;
    if (right.nearly && !much_better) {
        return Outcome::close;
    }
    return best != nullptr && best->nearly ? Outcome::mistake : Outcome::unexplained;
}

}  // namespace

Judgement judge(const Evidence& evidence, const Limits& limits, const std::function<void(double)>& progress) {
    const Judge judge(evidence, limits);
    const auto report = [&progress](double fraction) {
        if (progress) {
            progress(fraction);
        }
    };
    const Trial right = {.in = evidence.in, .out = evidence.out, .operation = evidence.operation, .further = evidence.further};
    const reference::Verdict verdict = judge.compare(right, [&](double fraction) { report(fraction / 2); });
    const Match of_right = judge.measured(verdict);
    Judgement judgement;
    judgement.max_error_u = of_right.max_error_u;
    judgement.share_within = of_right.share_within;
    judgement.elements = verdict.elements;
    judgement.breach = judge.breach(verdict);
    const Trial sample = sampled(right, limits.sampled_elements);
    judgement.sampled = sample.in.batch * sample.in.tokens * sample.in.heads * sample.in.head_dim;
    const std::vector<Mistake> mistakes = mistakes_of(evidence);
    for (std::size_t m = 0; m < mistakes.size(); ++m) {
        judgement.matches.push_back(judge.match(mistakes[m]));
        report(0.5 + 0.5 * double(m + 1) / double(mistakes.size()));
    }
    std::stable_sort(judgement.matches.begin(), judgement.matches.end(), [](const Match& a, const Match& b) {
        const auto quality = [](const Match& match) {
            return std::tuple(match.explains, match.nearly, match.share_close, match.share_within, -match.max_error_u);
        };
        return quality(a) > quality(b);
    });
    judgement.outcome = outcome_of(of_right, judgement.matches, limits);
    if (judgement.outcome == Outcome::close || judgement.outcome == Outcome::unexplained) {
        judgement.lone = lone_of(evidence.in, verdict);
    }
    return judgement;
}

}  // namespace vkrope::tools
