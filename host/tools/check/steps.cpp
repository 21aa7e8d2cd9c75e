// SPDX-License-Identifier: MIT
#include "check/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <tuple>

#include "check/attempts.hpp"
#include "check/measure.hpp"
#include "check/mistakes.hpp"
#include "divide_up.hpp"
#include "verify/oracle/element.hpp"

namespace vkrope::tools {
namespace {

/// The definition, or a change of it.
struct Candidate {
    std::string name, meaning;
    Trial trial;
    oracle::Ops steps;
    StoreTrial store;                          // of a quantised output
    bool precision = false, measured = false;  // as Mistake
};

oracle::Type element_type(const Evidence& evidence) {
    return evidence.in.type == oracle::Type::f32 ? evidence.out.type : evidence.in.type;
}

/// The rotation with the steps around it, and its output if that is of numbers.
Evidence around(const StepsEvidence& evidence) {
    Evidence rotation = evidence.rotation;
    rotation.steps = &evidence.steps;
    rotation.output = evidence.stored ? nullptr : rotation.output;
    return rotation;
}

Candidate right_of(const StepsEvidence& evidence) {
    Candidate right = {.name = "",
                       .meaning = "",
                       .trial = {.in = evidence.rotation.in,
                                 .out = evidence.rotation.out,
                                 .operation = evidence.rotation.operation,
                                 .further = evidence.rotation.further},
                       .steps = evidence.steps,
                       .store = {}};
    if (evidence.stored) {
        right.store = right_store(*evidence.stored);
    }
    if (!evidence.rotates) {  // without windows, phases and head groups, too
        const oracle::Operation& turned = evidence.rotation.operation;
        oracle::Operation still;
        still.positions = turned.positions;
        still.absolute_allowance = turned.absolute_allowance;
        right.trial.operation = std::move(still);
        right.trial.further = {};
    }
    return right;
}

constexpr std::uint64_t max_hadamard = 512;

/// Other Hadamard transforms of a row, or the right one with another factor.
template <class Add>
void add_hadamard(const oracle::Ops& steps, std::uint64_t head_dim, const Add& add) {
    if (steps.hadamard != 0) {
        add("hadamard_missing", "there was no Hadamard transform",
            [](oracle::Ops& changed) { changed.hadamard = 0; });
        add("hadamard_unnormalised",
            fmt::format("the Hadamard transform was not divided by sqrt({})", steps.hadamard),
            [](oracle::Ops& changed) {
                changed.scale *= std::sqrt(static_cast<double>(changed.hadamard));
            });
    }
    for (std::uint64_t n = 2; n <= max_hadamard && head_dim % n == 0; n *= 2) {
        if (n != steps.hadamard) {
            add(fmt::format("hadamard_of_{}", n),
                fmt::format("a Hadamard transform of blocks of {} channels was taken", n),
                [n](oracle::Ops& changed) { changed.hadamard = n; });
        }
    }
}

/// Every mistake in the steps that suitable data could distinguish from the correct ones.
std::vector<Candidate> candidates_of(const StepsEvidence& evidence) {
    std::vector<Candidate> candidates;
    const Candidate right = right_of(evidence);
    const auto add = [&](std::string name, std::string meaning, const auto& change) {
        Candidate changed = right;
        changed.name = std::move(name);
        changed.meaning = std::move(meaning);
        change(changed.steps);
        candidates.push_back(std::move(changed));
    };
    using oracle::Ops, oracle::NormKind;
    const oracle::Norm& norm = evidence.steps.norm;
    const auto eps = static_cast<long double>(norm.eps);
    if (norm.kind != NormKind::none) {
        if (evidence.rotates && !evidence.rotation.operation.inv_freq.empty()) {
            add(norm.after ? "norm_before_rotation" : "norm_after_rotation",
                norm.after ? "the norm was taken before the rotation"
                           : "the norm was taken after the rotation",
                [](Ops& steps) { steps.norm.after = !steps.norm.after; });
        }
        add("norm_missing", "there was no norm", [](Ops& steps) { steps.norm = oracle::Norm{}; });
        add("eps_missing", "eps was not added", [](Ops& steps) { steps.norm.eps = 0; });
        add("eps_outside_root", "eps was added to the root, not under it", [eps](Ops& steps) {
            steps.norm.reciprocal_root = [eps](long double square, std::uint64_t) {
                return 1 / (std::sqrt(square) + eps);
            };
        });
        add("sum_instead_of_mean", "the sum of the squares was taken, not their mean",
            [eps](Ops& steps) {
                steps.norm.reciprocal_root = [eps](long double square, std::uint64_t n) {
                    return 1 / std::sqrt(square * static_cast<long double>(n) + eps);
                };
            });
        add(norm.over_token ? "norm_of_each_head" : "norm_of_all_heads",
            norm.over_token ? "each head was normed alone, not all heads of a token"
                            : "all heads of a token were normed together, not each alone",
            [](Ops& steps) { steps.norm.over_token = !steps.norm.over_token; });
        add(norm.kind == NormKind::rms ? "layer_norm_instead_of_rms" : "rms_instead_of_layer_norm",
            norm.kind == NormKind::rms ? "the mean was subtracted" : "the mean was not subtracted",
            [](Ops& steps) {
                steps.norm.kind = steps.norm.kind == NormKind::rms ? NormKind::layer
                                                                   : NormKind::rms;
            });
    }
    if (!norm.weight.empty()) {
        add("weight_missing", "the norm has no weight", [](Ops& steps) {
            steps.norm.weight.clear();
            steps.norm.weight_offset = 0;
        });
        add(norm.weight_offset == 1 ? "one_plus_weight_forgotten" : "one_plus_weight",
            norm.weight_offset == 1 ? "the norm was multiplied by w, not by 1 + w"
                                    : "the norm was multiplied by 1 + w, not by w",
            [](Ops& steps) { steps.norm.weight_offset = 1 - steps.norm.weight_offset; });
        if (element_type(evidence.rotation) != oracle::Type::f32) {
            add("rounded_before_weight",
                "values were rounded to the element type before the product with the weight, and "
                "after it",
                [type = element_type(evidence.rotation)](Ops& steps) {
                    steps.norm.round_between = type;
                });
        }
    }
    if (!norm.bias.empty()) {
        add("norm_bias_missing", "the norm has no bias",
            [](Ops& steps) { steps.norm.bias.clear(); });
    }
    if (!evidence.steps.bias.empty()) {
        add("bias_missing", "the bias was not added", [](Ops& steps) { steps.bias.clear(); });
    }
    if (evidence.steps.second) {
        add("second_set_missing", "all tokens took the first set of weights and biases",
            [](Ops& steps) { steps.second.reset(); });
        add("sets_exchanged", "the two sets of weights and biases were exchanged", [](Ops& steps) {
            std::swap(steps.bias, steps.second->bias);
            std::swap(steps.norm.weight, steps.second->weight);
            std::swap(steps.norm.bias, steps.second->norm_bias);
        });
    }
    if (evidence.steps.clip != 0) {
        add("clip_missing", "nothing was clipped", [](Ops& steps) { steps.clip = 0; });
    }
    if (evidence.steps.scale != 1 || !evidence.steps.scale_tokens.empty()) {
        add("scale_missing", "Q was not scaled", [](Ops& steps) {
            steps.scale = 1;
            steps.scale_tokens.clear();
        });
    }
    if (evidence.stored) {
        for (StoreMistake& mistake : store_mistakes(*evidence.stored, evidence.rotation.out)) {
            Candidate changed = right;
            changed.name = std::move(mistake.name);
            changed.meaning = std::move(mistake.meaning);
            changed.store = std::move(mistake.trial);
            candidates.push_back(std::move(changed));
        }
    }
    if (evidence.stored || evidence.steps.hadamard != 0) {
        add_hadamard(evidence.steps, evidence.rotation.in.head_dim, add);
    }
    if (!evidence.rotates) {
        Candidate rotated = right;
        rotated.name = "v_rotated";
        rotated.meaning = "V was rotated as K is";
        rotated.trial.operation = evidence.rotation.operation;
        rotated.trial.further = evidence.rotation.further;
        const oracle::Operation& operation = rotated.trial.operation;
        if (!operation.inv_freq.empty() &&
            operation.rotary_offset + channels_to_end(operation) <= evidence.rotation.in.head_dim) {
            candidates.push_back(std::move(rotated));
        }
        return candidates;
    }
    for (Mistake& mistake : mistakes_of(around(evidence))) {
        // The many forms of float32 angles are tried without other steps only.
        if (mistake.part != Part::layout &&
            (mistake.turns.empty() || mistake.part == Part::tables)) {
            candidates.push_back({std::move(mistake.name), std::move(mistake.meaning),
                                  std::move(mistake.trial), evidence.steps, right.store,
                                  mistake.precision, mistake.measured});
        }
    }
    return candidates;
}

/// Keeps evenly spread tokens, including the last, whole: a norm may need all of their heads. Keeps
/// all where blocks lie along another axis.
Candidate sampled(Candidate candidate, std::uint64_t wanted) {
    oracle::Tensor &in = candidate.trial.in, &out = candidate.trial.out;
    const std::uint64_t of_token = std::max<std::uint64_t>(1, in.batch * in.heads * in.head_dim),
                        most = std::max<std::uint64_t>(1, wanted / of_token), all = in.tokens,
                        step = divide_up(all, most);
    if (step <= 1 || candidate.store.along != BlockAxis::channels) {
        return candidate;
    }
    const std::uint64_t first = (all - 1) % step, count = (all - 1 - first) / step + 1;
    const auto keep = [&](auto& values, std::uint64_t of_each = 1) {
        auto kept = values;
        kept.clear();
        for (std::uint64_t i = 0; !values.empty() && i < in.batch * count; ++i) {
            const auto from = values.begin() +
                              static_cast<std::ptrdiff_t>(
                                  (i / count * all + first + i % count * step) * of_each);
            kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(of_each));
        }
        values = std::move(kept);
    };
    each_axis(candidate.trial, [&](auto& positions) { keep(positions); });
    keep(candidate.steps.scale_tokens);
    if (candidate.steps.second) {
        candidate.steps.second->leave_out(first);
        candidate.steps.second->from_token = divide_up(candidate.steps.second->from_token, step);
    }
    keep(candidate.store.scales, in.heads);
    for (oracle::Tensor* tensor : {&in, &out}) {
        tensor->tokens = count;
    }
    candidate.trial.first_in += first * in.token_stride;
    candidate.trial.first_out += first * out.token_stride;
    in.token_stride *= step;
    out.token_stride *= step;
    return candidate;
}

/// The largest error of a tensor as a share of the largest value of the same row.
double largest_error(const Evidence& evidence, const Trial& trial,
                     const oracle::Operation& operation, const oracle::Ops& steps, double bound_u) {
    const oracle::ElementTable elements(trial.out.type);
    double largest = 0;
    oracle::apply_ops(
        trial.in, operation, steps, bound_u,
        elements_from(evidence.input, trial.first_in, trial.in.type),
        [&](std::uint64_t batch, std::uint64_t token,
            std::span<const oracle::Approximate> channels) {
            for (std::uint64_t head = 0; head < trial.in.heads; ++head) {
                const auto row = channels.subspan(head * trial.in.head_dim, trial.in.head_dim);
                const std::uint64_t first = trial.first_out + batch * trial.out.batch_stride +
                                            token * trial.out.token_stride +
                                            head * trial.out.head_stride;
                double size = 0, error = 0;
                for (std::size_t c = 0; c < row.size(); ++c) {
                    const std::size_t bytes = oracle::bytes_of(trial.out.type);
                    std::uint32_t bits = 0;
                    std::memcpy(&bits,
                                static_cast<const char*>(evidence.output) + (first + c) * bytes,
                                bytes);
                    const double got = elements.widen(bits), exact = double(row[c].value);
                    if (std::isnan(got) && std::isnan(exact)) {
                        continue;
                    }
                    const double off = got == exact ? 0 : std::fabs(got - exact);
                    error = std::isnan(off) ? std::numeric_limits<double>::infinity()
                                            : std::max(error, off);
                    size = std::isfinite(exact) ? std::max(size, std::fabs(exact)) : size;
                }
                if (error > 0) {
                    largest = std::max(largest, error / size);
                }
            }
        });
    return largest;
}

/// The largest code of a type, counted from the one for 0.
int largest_code(oracle::Store type) {
    switch (type) {
        case oracle::Store::e4m3fn: return 0x7e;
        case oracle::Store::e5m2: return 0x7b;
        case oracle::Store::int8:
        case oracle::Store::q8_0: return 127;
        case oracle::Store::q4_0: return 8;
        case oracle::Store::q4_1: return 15;
        case oracle::Store::q5_0: return 16;
        case oracle::Store::q5_1: return 31;
    }
    return 1;
}

Match match_of_codes(const StepsEvidence& evidence, const Candidate& candidate,
                     const Limits& limits, const std::function<void(double)>& progress) {
    const oracle::CodesVerdict verdict = compare_stored(
        *evidence.stored, candidate.store, candidate.trial, candidate.steps, limits.bound_u,
        evidence.rotation.input, progress);
    const std::uint64_t all = verdict.codes + verdict.scales,
                        wrong = verdict.wrong_codes + verdict.wrong_scales;
    const int largest = largest_code(candidate.store.store.type);
    Match match;
    match.mistake = candidate.name;
    match.meaning = candidate.meaning;
    match.share_within = all == 0 ? 1 : 1 - double(wrong) / double(all);
    match.explains = verdict.right();
    match.worst = verdict.first_wrong;
    match.largest_error = std::max(double(verdict.code_distance) / largest, verdict.scale_error);
    // Values that are off by a share of the largest one move codes by that share of the largest
    // code, and so at most this share of them to the next one. Another rounding moves a half.
    const double may_differ = std::min(0.25, limits.tolerance * largest);
    match.nearly = verdict.code_distance <= 1 && verdict.scale_error <= limits.tolerance &&
                   double(verdict.wrong_codes) <= may_differ * double(verdict.codes);
    return match;
}

Match match_of(const StepsEvidence& evidence, const Candidate& candidate, const Limits& limits,
               const std::function<void(double)>& progress = {}) {
    if (evidence.stored) {
        return match_of_codes(evidence, candidate, limits, progress);
    }
    const Trial& trial = candidate.trial;
    const Evidence& given = evidence.rotation;
    const oracle::Operation operation = by_axis(trial.operation, trial.further);
    const oracle::OpsVerdict verdict = oracle::compare(
        trial.in, trial.out, operation, candidate.steps, limits.bound_u,
        elements_from(given.input, trial.first_in, trial.in.type),
        elements_from(given.output, trial.first_out, trial.out.type), progress);
    Match match;
    match.mistake = candidate.name;
    match.meaning = candidate.meaning;
    match.share_within = verdict.elements == 0 ? 1
                                               : double(verdict.within) / double(verdict.elements);
    match.explains = verdict.right();
    match.worst = match.explains ? "" : verdict.worst;
    match.largest_error = largest_error(given, trial, operation, candidate.steps, limits.bound_u);
    match.nearly = match.largest_error <= limits.tolerance;
    return match;
}

/// What a match has missed: of codes the share that is wrong, since most mistakes move some code by
/// one; else the largest error.
double missed(const Match& match, bool quantised) {
    return quantised ? 1 - match.share_within : match.largest_error;
}

Outcome outcome_of(const Match& right, const std::vector<Match>& matches, bool quantised,
                   bool no_rounding, bool accepts_close) {
    if (right.explains) {
        return Outcome::pass;
    }
    const Match* best = matches.empty() ? nullptr : &matches.front();
    if (best != nullptr && best->explains) {
        return accepts_close && best->precision && right.nearly ? Outcome::close : Outcome::mistake;
    }
    if (no_rounding && best != nullptr && best->precision) {
        return Outcome::unexplained;
    }
    // Two definitions that differ little both come close; only a much better match justifies
    // reporting a mistake.
    const bool much_better = best != nullptr && best->nearly &&
                             4 * missed(*best, quantised) <= missed(right, quantised);
    if (right.nearly && !much_better) {
        return no_rounding ? Outcome::unexplained : Outcome::close;
    }
    return best != nullptr && best->nearly ? Outcome::mistake : Outcome::unexplained;
}

}  // namespace

Judgement judge_steps(const StepsEvidence& evidence, const Limits& limits,
                      const std::function<void(double)>& progress) {
    Judgement judgement;
    const oracle::Tensor& in = evidence.rotation.in;
    judgement.elements = in.batch * in.tokens * in.heads * in.head_dim;
    judgement.with_steps = true;
    judgement.quantised = evidence.stored.has_value();
    const Candidate right = right_of(evidence);
    judgement.right = match_of(evidence, right, limits, progress);
    judgement.breach = judgement.right.worst;
    std::vector<Match>& matches = judgement.matches;
    const auto any = [&matches](bool Match::*good) {
        return std::any_of(matches.begin(), matches.end(), [good](const Match& match) {
            return match.*good && !match.precision && !match.measured;
        });
    };
    for (const Candidate& candidate : candidates_of(evidence)) {
        if (candidate.measured && (judgement.right.explains || any(&Match::explains))) {
            continue;
        }
        const Candidate part = sampled(candidate, limits.sampled_elements);
        Match match = match_of(evidence, part, limits);
        if ((match.explains || match.nearly) && part.trial.in.tokens != in.tokens) {
            match = match_of(evidence, candidate, limits);  // on all elements, before reporting it
        }
        match.precision = candidate.precision;
        match.measured = candidate.measured;
        if (!match.measured || match.explains || (match.nearly && !any(&Match::nearly))) {
            matches.push_back(std::move(match));
        }
    }
    if (evidence.rotates && judgement.right.nearly && !judgement.right.explains) {
        judgement.odd_pairs = odd_pairs(around(evidence), limits.bound_u, judgement.pairs);
    }
    const bool no_rounding = !judgement.odd_pairs.empty();
    std::stable_sort(matches.begin(), matches.end(), [&](const Match& a, const Match& b) {
        const auto rank = [&](const Match& match) {
            return std::tuple(match.explains, match.nearly && !(no_rounding && match.precision),
                              -missed(match, judgement.quantised), match.share_within,
                              -match.largest_error);
        };
        return rank(a) > rank(b);
    });
    judgement.outcome = outcome_of(judgement.right, matches, judgement.quantised, no_rounding,
                                   limits.accepts_close);
    return judgement;
}

}  // namespace vkrope::tools
