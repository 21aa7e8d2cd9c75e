// SPDX-License-Identifier: MIT
// The last step of vkrope check: reports the error of an output and the mistake that explains it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "check/check.hpp"
#include "check/mistakes.hpp"
#include "check/where.hpp"
#include "cli/terminal.hpp"
#include "cli/words.hpp"

namespace vkrope::tools {
namespace {

// Returns the word of the report, such as "pass".
const char* word_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::pass: return "pass";
        case Outcome::close: return "close";
        case Outcome::mistake: return "mistake";
        case Outcome::unexplained: break;
    }
    return "unexplained";
}

// The report as JSON.

// Returns null if the number is not finite, because JSON has no infinity.
nlohmann::ordered_json number(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

// Returns null unless the only op is a rotation: errors of other ops have other units.
nlohmann::ordered_json error_u(const Judgement& judgement, const Match& match) {
    return judgement.with_ops ? nlohmann::ordered_json(nullptr) : number(match.error_u());
}

// Returns the matches that a report shows: none after a pass.
std::span<const Match> shown(const Judgement& judgement) {
    const std::size_t most = judgement.outcome == Outcome::pass ? 0 : shown_matches;
    return std::span(judgement.matches).first(std::min(most, judgement.matches.size()));
}

// Returns the mistakes that these files cannot show, because outputs with them would pass as well.
std::vector<std::string> blind_spots(const Judgement& judgement) {
    std::vector<std::string> names;
    for (const Match& match : judgement.matches)
        if (judgement.outcome == Outcome::pass && match.explains && !match.precision)
            names.push_back(match.mistake);
    return names;
}

nlohmann::ordered_json matches_json(const Judgement& judgement) {
    nlohmann::ordered_json matches = nlohmann::ordered_json::array();
    for (const Match& match : shown(judgement)) {
        nlohmann::ordered_json json = {{"mistake", match.mistake},
                                       {"meaning", match.meaning},
                                       {"share_within", match.share_within},
                                       {"explains", match.explains},
                                       {"where", text_or_null(match.where)},
                                       {"max_error_u", error_u(judgement, match)},
                                       {"largest_error", number(match.largest_error)}};
        matches.push_back(std::move(json));
    }
    return matches;
}

const char* word_of(Region region) {
    switch (region) {
        case Region::element: return "element";
        case Region::row: return "row";
        case Region::token: return "token";
        case Region::head: return "head";
        case Region::sequence: break;
    }
    return "sequence";
}

// Returns the index of the worst element, with its expected and actual value.
nlohmann::ordered_json lone_json(const std::optional<Lone>& lone) {
    if (!lone) return nullptr;
    const oracle::Place& at = lone->worst;
    return {{"region", word_of(lone->region)},
            {"wrong", lone->wrong},
            {"index", {at.batch, at.token, at.head, at.channel}},
            {"expected", number(lone->expected)},
            {"actual", number(lone->actual)},
            {"error_u", lone->error_u ? number(*lone->error_u) : nlohmann::ordered_json(nullptr)}};
}

// Returns the pairs whose errors rounding cannot explain; null if there are none.
nlohmann::ordered_json pairs_json(const std::vector<std::size_t>& odd_pairs) {
    return odd_pairs.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(odd_pairs);
}

nlohmann::ordered_json tensor_json(const std::optional<Judged>& judged) {
    if (!judged) return nullptr;
    const Judgement& judgement = judged->judgement;
    nlohmann::ordered_json json = {{"verdict", word_of(judgement.outcome)},
                                   {"share_within", judgement.right.share_within},
                                   {"dtype", word_for(stored_elements, judged->actual.element)},
                                   {"elements", judgement.elements},
                                   {"breach", judgement.breach},
                                   {"wrong_pairs", pairs_json(judgement.odd_pairs)},
                                   {"cannot_show", blind_spots(judgement)},
                                   {"matches", matches_json(judgement)},
                                   {"findings", judgement.findings},
                                   {"largest_error", number(judgement.right.largest_error)},
                                   {"max_error_u", error_u(judgement, judgement.right)},
                                   {"sampled", judgement.sampled}};
    if (!judgement.quantised) {
        json.update({{"rows", judgement.rows},
                     {"wrong_rows", judgement.wrong_rows},
                     {"wrong_in", text_or_null(judgement.wrong_in)},
                     {"only_wrong", lone_json(judgement.lone)}});
    }
    return json;
}

nlohmann::ordered_json json_of(const CheckResult& result) {
    constexpr OfEachTensor<const char*> keys = {"q", "k", "v"};
    const TensorIndex which = result.deciding();
    const Judgement& worst = result.tensors[which]->judgement;
    nlohmann::ordered_json json = {{"verdict", word_of(worst.outcome)},
                                   {"max_error_u", error_u(worst, worst.right)},
                                   {"bound_u", worst.bound_u},
                                   {"tolerance", result.limits.tolerance},
                                   {"tensor", keys[which]},
                                   {"matches", matches_json(worst)}};
    for (const TensorIndex each : every_tensor)
        json[keys[each]] = tensor_json(result.tensors[each]);
    return json;
}

// The report as text.

// Returns a share as text, rounded down: only 1 is "100.00 %".
std::string percent(double share) {
    return fmt::format("{:.2f} %", std::floor(share * 10000) / 100);
}

// Returns a line that names the pairs with all wrong elements; empty if there are none.
std::string odd_text(const std::vector<std::size_t>& odd_pairs, std::uint64_t pairs) {
    if (odd_pairs.empty()) return "";
    std::vector<bool> wrong(pairs);
    for (const std::size_t pair : odd_pairs) wrong[pair] = true;
    return fmt::format("   no rounding explains the errors in {} of {}\n",
                       ranges_text("pair", wrong), pairs);
}

std::string name_of(const Match& match) {
    return match.where.empty() ? match.mistake : match.mistake + ", in " + match.where;
}

std::string error_text(double error_u) {
    return std::isfinite(error_u) ? fmt::format("{:.4g} u", error_u) : "not a number";
}

// Returns the largest error of a match, in the unit of the judgement.
std::string error_of(const Judgement& judgement, const Match& match) {
    return judgement.with_ops   ? fmt::format("{:.2g}", match.largest_error)
           : match.changes_rest ? "outside window"
                                : error_text(match.error_u());
}

std::string finding(const Judgement& judgement) {
    const Match& right = judgement.right;
    switch (judgement.outcome) {
        case Outcome::pass:
            return judgement.quantised  ? "all codes and scales belong to a row within the error "
                                          "of f32 arithmetic"
                   : judgement.with_ops ? "all values are within the error of f32 arithmetic"
                                        : fmt::format("all {} values are within {} u",
                                                      judgement.elements, judgement.bound_u);
        case Outcome::close:
            return judgement.with_ops
                       ? "the ops are right, but in other arithmetic"
                       : fmt::format(
                             "the operation is right, but not exact: it is correct to "
                             "{:.2g} of |x0| + |x1|, {} where {} u are allowed",
                             right.largest_error, error_text(right.error_u()), judgement.bound_u);
        case Outcome::mistake: {
            const Match& match = judgement.matches.front();
            return fmt::format("{}: {} ({})", name_of(match), match.meaning,
                               match.explains ? "exactly" : "to within the rounding of 16 bits");
        }
        case Outcome::unexplained: break;
    }
    return fmt::format("no known mistake explains the output; {} of its values are right",
                       percent(right.share_within));
}

// Returns a line that says how much is wrong.
std::string error_line(const Judgement& judgement) {
    const Match& right = judgement.right;
    const std::string share = percent(right.share_within);
    if (judgement.quantised) {
        return fmt::format(
            "   {} of the codes and scales of {} values are possible; the largest distance is "
            "{:.2g} of the largest code or of a scale\n",
            share, judgement.elements, right.largest_error);
    }
    if (judgement.with_ops) {
        return fmt::format(
            "   {} of {} values are within the error of f32 arithmetic; the largest error is "
            "{:.2g} of its row\n",
            share, judgement.elements, right.largest_error);
    }
    return judgement.outcome == Outcome::pass
               ? fmt::format("   error {}\n", error_of(judgement, right))
               : fmt::format("   error {}, {} of {} values within {} u\n",
                             error_of(judgement, right), share, judgement.elements,
                             judgement.bound_u);
}

// Describes the region that contains all wrong elements.
std::string lone_text(const std::optional<Lone>& lone) {
    if (!lone) return "";
    const oracle::Place& at = lone->worst;
    const std::string worst = fmt::format(
        "[batch {}, token {}, head {}, channel {}]: expected {:.9g}, actual {:.9g}{}", at.batch,
        at.token, at.head, at.channel, lone->expected, lone->actual,
        lone->error_u ? ", off by " + error_text(*lone->error_u) : "");
    std::string region;
    switch (lone->region) {
        case Region::element: return fmt::format("   one value alone is wrong: {}\n", worst);
        case Region::row:
            region = fmt::format("row alone is wrong, [batch {}, token {}, head {}]", at.batch,
                                 at.token, at.head);
            break;
        case Region::token:
            region = fmt::format("token alone is wrong, [batch {}, token {}]", at.batch, at.token);
            break;
        case Region::head: region = fmt::format("head alone is wrong, [head {}]", at.head); break;
        case Region::sequence:
            region = fmt::format("sequence alone is wrong, [batch {}]", at.batch);
            break;
    }
    return fmt::format("   one {}, in {} values; the worst is {}\n", region, lone->wrong, worst);
}

// Lists the sequences, tokens and heads of the wrong rows if these rows share no region.
std::string wrong_text(const Judgement& judgement) {
    const bool explained = judgement.outcome == Outcome::mistake &&
                           judgement.matches.front().where.empty();
    if (explained || judgement.wrong_rows == judgement.rows) return "";
    return fmt::format("   {} of {} rows are wrong{}\n", judgement.wrong_rows, judgement.rows,
                       judgement.wrong_in.empty() ? "" : ", those of " + judgement.wrong_in);
}

std::string verdict_line(const char* name, const Judged& judged) {
    const Outcome outcome = judged.judgement.outcome;
    const char* colour = outcome == Outcome::pass ? "32" : outcome == Outcome::close ? "33" : "31";
    return fmt::format("{}  {}: {}\n", name, in_colour(colour, word_of(outcome)),
                       finding(judged.judgement));
}

// Says how many mistakes these files cannot show, and names the first.
std::string blind_text(const Judgement& judgement) {
    const std::vector<std::string> names = blind_spots(judgement);
    if (names.empty()) return "";
    const std::size_t named = std::min(shown_matches, names.size());
    const std::string more = named < names.size()
                                 ? fmt::format(", and {} more", names.size() - named)
                                 : "";
    return fmt::format("   these files cannot show: {}{}\n",
                       fmt::join(names.begin(), names.begin() + std::ptrdiff_t(named), ", "), more);
}

std::string text_of(const char* name, const Judged& judged) {
    const Judgement& judgement = judged.judgement;
    std::string text = verdict_line(name, judged) + error_line(judgement);
    if (judgement.outcome == Outcome::pass) return text + blind_text(judgement);
    text += judgement.lone ? lone_text(judgement.lone) : wrong_text(judgement);
    text += odd_text(judgement.odd_pairs, judgement.pairs);
    for (const std::string& finding : judgement.findings) text += fmt::format("   {}\n", finding);
    if (shown(judgement).size() > 1) text += "   these explain it as well:\n";
    for (const Match& match :
         shown(judgement).subspan(std::min<std::size_t>(1, shown(judgement).size())))
        text += fmt::format("   {}: {}\n", name_of(match), match.meaning);
    return text;
}

}  // namespace

void list_mistakes(bool as_json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::string text;
    for (const Row& row : all_rows()) {
        const std::string line = fmt::format(
            "{}: the engine {}{}{}\n", row.name, row.meaning,
            row.example.empty() ? "" : ", for instance: ", row.example);
        if (text.find(line) == std::string::npos) {  // several rows may have one name
            text += line;
            all.push_back({{"mistake", row.name},
                           {"meaning", "the engine " + row.meaning},
                           {"example", text_or_null(row.example)}});
        }
    }
    as_json ? write_json(all) : write_output(text);
}

void report(const CheckResult& result, bool as_json) {
    if (as_json) {
        write_json(json_of(result));
        return;
    }
    std::string text;
    bool in_u = false;
    for (const TensorIndex which : every_tensor) {
        if (const std::optional<Judged>& judged = result.tensors[which]) {
            text += text_of(tensor_names[which].name, *judged);
            in_u = in_u || !judged->judgement.with_ops;
        }
    }
    write_output(text + (!in_u ? ""
                               : "u = 2^-24 (|x0| + |x1|) times the attention factor; 16-bit "
                                 "outputs after rounding to nearest even\n"));
}

}  // namespace vkrope::tools
