// SPDX-License-Identifier: MIT
// The report of vkrope check on the steps around a rotation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "check/check.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// A number that JSON can hold.
nlohmann::ordered_json or_null(double number) {
    return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

/// What a report shows: nothing after a pass.
std::span<const StepsMatch> shown(const StepsJudgement& judgement) {
    const std::size_t most = judgement.outcome == Outcome::pass ? 0 : shown_matches;
    return std::span(judgement.matches).first(std::min(most, judgement.matches.size()));
}

nlohmann::ordered_json match_json(const StepsMatch& match) {
    return {{"mistake", match.mistake},
            {"meaning", match.meaning},
            {"explains", match.explains},
            {"share_within", match.share_within},
            {"largest_error", or_null(match.largest_error)}};
}

nlohmann::ordered_json tensor_json(const std::optional<JudgedSteps>& judged) {
    if (!judged) {
        return nullptr;
    }
    const StepsJudgement& judgement = judged->judgement;
    nlohmann::ordered_json matches = nlohmann::ordered_json::array();
    for (const StepsMatch& match : shown(judgement)) {
        matches.push_back(match_json(match));
    }
    return {{"verdict", word_of(judgement.outcome)},
            {"elements", judgement.elements},
            {"share_within", judgement.right.share_within},
            {"largest_error", or_null(judgement.right.largest_error)},
            {"wrong_pairs", pairs_json(judgement.odd_pairs)},
            {"matches", matches}};
}

std::string finding(const StepsJudgement& judgement) {
    switch (judgement.outcome) {
        case Outcome::pass:
            return judgement.quantised ? "all codes and scales belong to a row within the error "
                                         "of f32 arithmetic"
                                       : "all values are within the error of f32 arithmetic";
        case Outcome::close: return "the steps are right, but in other arithmetic";
        case Outcome::mistake: {
            const StepsMatch& best = judgement.matches.front();
            return fmt::format("{} ({}){}", best.mistake, best.meaning,
                               best.explains ? "" : ", in other arithmetic");
        }
        case Outcome::unexplained: break;
    }
    return "no known mistake explains the output";
}

std::string text_of(TensorIndex which, const StepsJudgement& judgement) {
    std::string text = fmt::format("{}  {}: {}\n", tensor_names[which].name,
                                   word_of(judgement.outcome), finding(judgement));
    const std::string share = percent(judgement.right.share_within);
    text += judgement.quantised
                ? fmt::format(
                      "   {} of the codes and scales of {} values are possible; the largest "
                      "distance is {:.2g} of the largest code or of a scale\n",
                      share, judgement.elements, judgement.right.largest_error)
                : fmt::format(
                      "   {} of {} values are within the error of f32 arithmetic; the "
                      "largest error is {:.2g} of its row\n",
                      share, judgement.elements, judgement.right.largest_error);
    if (judgement.outcome == Outcome::pass) {
        return text;
    }
    text += odd_text(judgement.odd_pairs, judgement.pairs);
    text += fmt::format("  {:<34}{:>14}{:>10}\n", "known mistakes, best match first",
                        "largest error", "within");
    for (const StepsMatch& match : shown(judgement)) {
        text += fmt::format("  {:<34}{:>14.2g}{:>10}  {}\n", match.mistake, match.largest_error,
                            percent(match.share_within), match.meaning);
    }
    return text;
}

}  // namespace

void report(const CheckOptions& options, const Limits& limits, const StepsResult& result) {
    if (options.json) {
        write_json({{"q", tensor_json(result[Q])},
                    {"k", tensor_json(result[K])},
                    {"v", tensor_json(result[V])},
                    {"tolerance", limits.tolerance}});
        return;
    }
    std::string text;
    for (const TensorIndex which : every_tensor) {
        text += result[which] ? text_of(which, result[which]->judgement) : "";
    }
    write_output(text);
}

}  // namespace vkrope::tools
