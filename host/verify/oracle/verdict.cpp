// SPDX-License-Identifier: MIT
#include "verify/oracle/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "verify/oracle/turns.hpp"

namespace vkrope::oracle {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

void compare_elements(const Definition& definition, const void* input, const void* output,
                      const std::function<void(double)>& progress, Verdict& verdict) {
    const ElementJudge judge(definition, input, output);
    const bool is_in_u = !has_steps(definition.ops);
    const long double allowance = definition.operation.absolute_allowance;
    const auto total = double(definition.in.batch * definition.in.tokens);
    const auto element = [&](const Compared& one) {
        verdict.add(one);
        // Divides only for a new maximum.
        if (is_in_u && one.computed &&
            !((one.distance - allowance) * definition.bound_u <=
              verdict.largest_error_u * (one.exact.error - allowance)))
            verdict.largest_error_u = std::max(verdict.largest_error_u, judge.error_u(one));
    };
    apply_ops(definition, input,
              [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
                  judge.token(batch, token, channels, element);
                  if (progress) {
                      progress(double(batch * definition.in.tokens + token + 1) / total);
                  }
              });
}

}  // namespace

ElementJudge::ElementJudge(const Definition& definition, const void* input, const void* output)
    : definition_(definition), in_(definition.in), out_(definition.out), input_(input),
      output_(output), elements_(table_of(definition.out.type)),
      passed_(definition.in.head_dim, nowhere), moved_(definition.in.head_dim, nowhere) {
    if (has_steps(definition.ops)) return;
    for (std::uint64_t c = 0; c < passed_.size(); ++c) passed_[c] = moved_[c] = c;
    for (const Pair& pair : pairs_of(definition.operation)) {
        for (std::size_t member = 0; member < 2; ++member) {
            passed_[pair.out[member]] = nowhere;
            moved_[pair.out[member]] = pair.in[member];
        }
    }
}

bool ElementJudge::is_rotated(const Place& place) const {
    return is_covered(definition_.operation, place.batch * in_.tokens + place.token);
}

void ElementJudge::compare(std::uint64_t source, Compared& one) const {
    const Type in = definition_.in.type, out = definition_.out.type;
    const bool is_nan = std::isnan(one.exact.value), got_nan = std::isnan(elements_.widen(one.got));
    if (one.computed && definition_.any_angles) return;
    one.distance = is_nan && got_nan   ? 0
                   : is_nan || got_nan ? infinity
                                       : elements_.distance(one.got, one.exact.value);
    if (!one.computed) {
        // A NaN that changes its type must stay a NaN; its payload may change.
        const bool keeps = in == out && !definition_.read;
        const std::uint64_t at = keeps ? row_of(definition_.in, one.place) + source : 0;
        const bool is_same = keeps                 ? one.got == load(input_, bytes_of(in), at)
                             : is_nan              ? got_nan
                             : one.exact.error > 0 ? one.distance <= one.exact.error
                                                   : one.got == narrow(out, one.exact.value);
        one.share = is_same ? 0 : infinity;
    } else if (is_nan || got_nan) {
        one.nan_mismatch = is_nan != got_nan;
        one.share = one.nan_mismatch ? infinity : 0;
    } else if (one.distance > 0) {
        // An infinity has no neighbours, so the output must be equal.
        one.share = one.distance / one.exact.error;
        if (std::isinf(one.exact.value) || std::isnan(one.share)) one.share = infinity;
    }
}

double ElementJudge::error_u(const Compared& one) const {
    const long double allowance = definition_.operation.absolute_allowance;
    if (!(one.distance > allowance)) return 0;
    const long double error = (one.distance - allowance) * definition_.bound_u /
                              (one.exact.error - allowance);
    return std::isnan(error) ? double(infinity) : double(error);
}

void Verdict::add(const Compared& one) {
    ++elements;
    within += one.is_right() ? 1 : 0;
    nan_mismatch = nan_mismatch || one.nan_mismatch;
    bits_changed = bits_changed || (!one.computed && !one.is_right());
    if (one.share > worst.share) worst = one;
}

void Verdict::add(const Verdict& later) {
    elements += later.elements;
    within += later.within;
    largest_error_u = std::max(largest_error_u, later.largest_error_u);
    nan_mismatch = nan_mismatch || later.nan_mismatch;
    bits_changed = bits_changed || later.bits_changed;
    if (later.worst.share > worst.share) worst = later.worst;
    codes.add(later.codes);
}

void Verdict::set(const CodesVerdict& of_all) {
    codes = of_all;
    elements = codes.codes + codes.scales;
    within = elements - codes.wrong_codes - codes.wrong_scales;
}

std::string text_of(const Definition& definition, const Compared& one) {
    using ull = unsigned long long;
    const Type type = definition.out.type;
    char text[240];
    int length = std::snprintf(
        text, sizeof text,
        "batch %llu token %llu head %llu channel %llu: got %.9g (0x%0*x), exact %.12Lg",
        ull{one.place.batch}, ull{one.place.token}, ull{one.place.head}, ull{one.place.channel},
        double(table_of(type).widen(one.got)), int(2 * bytes_of(type)), one.got, one.exact.value);
    if (one.exact.error > 0 && std::isfinite(one.exact.error)) {
        std::snprintf(text + length, sizeof text - std::size_t(length), ", which may be %.3Lg off",
                      one.exact.error);
    }
    return text;
}

Verdict compare(const Definition& definition, const void* input, const void* output,
                std::span<const float> scales, const std::function<void(double)>& progress) {
    check_tensors(definition.in, definition.out);
    check_operation(definition.operation, definition.in);
    Verdict verdict;
    if (!definition.store) {
        compare_elements(definition, input, output, progress, verdict);
        return verdict;
    }
    verdict.set(compare_codes(definition, input, output, scales, progress));
    return verdict;
}

std::string problem_of(const Definition& definition, const Verdict& verdict) {
    if (verdict.right()) return {};
    char text[200];
    if (const CodesVerdict& codes = verdict.codes; definition.store) {
        using ull = unsigned long long;
        std::snprintf(text, sizeof text,
                      "%llu of %llu codes and %llu of %llu scales do not belong to any row within "
                      "the error bound: ",
                      ull{codes.wrong_codes}, ull{codes.codes}, ull{codes.wrong_scales},
                      ull{codes.scales});
    } else if (verdict.worst.nan_mismatch) {
        std::snprintf(text, sizeof text,
                      "a value is NaN but the exact one is not, or the reverse: ");
    } else if (!verdict.worst.computed) {
        std::snprintf(text, sizeof text, "a channel that no op changes %s: ",
                      definition.in.type == definition.out.type
                          ? "differs from its input"
                          : "is not its input rounded to nearest even");
    } else if (has_steps(definition.ops)) {
        std::snprintf(
            text, sizeof text,
            "a value is too far from the exact one (%.3g times what the contract allows): ",
            double(verdict.worst.share));
    } else {
        std::snprintf(text, sizeof text,
                      "a value is too far from the exact one (%.3g u, allowed %g u): ",
                      verdict.largest_error_u, definition.bound_u);
    }
    return text +
           (definition.store ? verdict.codes.first_wrong : text_of(definition, verdict.worst));
}

}  // namespace vkrope::oracle
