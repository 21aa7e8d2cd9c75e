// SPDX-License-Identifier: MIT
// vkrope explain, as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cli/ops_text.hpp"
#include "explain/explain.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {
namespace {

constexpr std::size_t columns = 120, key_width = 18;
constexpr std::size_t shown_pairs = 64;

// Returns "key   text", with the lines of the text aligned below one another.
std::string row(std::string_view key, std::string_view text) {
    std::string rows = fmt::format("{:<{}}", key, key_width);
    std::size_t used = key_width;
    bool first = true;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        std::string_view word = text.substr(at, end - at);
        if (!first && used + 1 + word.size() > columns) {
            rows += '\n' + std::string(key_width, ' ');
            used = key_width;
            first = true;
        }
        for (const std::size_t room = columns - key_width; word.size() > room;
             word.remove_prefix(room))
            rows += std::string(word.substr(0, room)) + '\n' + std::string(key_width, ' ');
        rows += first ? "" : " ";
        rows += word;
        used += (first ? 0 : 1) + word.size();
        first = false;
        at = end + 1;
    }
    return rows + '\n';
}

std::string plural(std::size_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string range_of(std::size_t first, std::size_t last) {
    return first == last ? fmt::format("pair {}", first)
                         : fmt::format("pairs {} to {}", first, last);
}

// Prints few enough digits to read; the JSON has all of them.
std::string short_number(double value) {
    return fmt::format("{:.6g}", value);
}

std::string channels_text(const RopeParams& rotation) {
    const std::vector<Window> windows = windows_of(rotation);
    const auto window = [&windows](std::uint32_t offset) {
        std::string text = "channels";
        for (const Window& each : windows) {
            const std::uint32_t first = offset + each.offset;
            text += fmt::format("{} {} to {}", &each == windows.data() ? "" : " and", first,
                                first + each.rotary_dim - 1);
        }
        return text;
    };
    if (rotation.q_rotary_offset != rotation.k_rotary_offset) {
        return fmt::format(
            "{} of a query row, {} of a key row (latent attention: the row of the cache); the "
            "others pass through; "
            "a tensor that holds these {} alone turns whole",
            window(rotation.q_rotary_offset), window(rotation.k_rotary_offset),
            rotation.rotary_dim);
    }
    const bool all = rotation.rotary_dim == rotation.head_dim;
    if (all && windows.size() == 1)
        return fmt::format("all {} channels of a head", rotation.head_dim);
    return fmt::format("{} of {}{}", window(rotation.q_rotary_offset), rotation.head_dim,
                       all ? "" : "; the others pass through");
}

std::string pairing_text(const RopeParams& rotation) {
    const std::vector<Window> windows = windows_of(rotation);
    const std::uint32_t count = windows.front().rotary_dim / 2;
    const bool half_split = rotation.pairing == VKROPE_HALF_SPLIT;
    const bool alike = std::all_of(windows.begin(), windows.end(), [&](const Window& window) {
        return window.rotary_dim == windows.front().rotary_dim;
    });
    std::string text = !half_split
                           ? std::string("interleaved: channel 2j pairs with channel 2j + 1")
                       : alike
                           ? fmt::format("half_split: channel j pairs with channel j + {}", count)
                           : std::string(
                                 "half_split: a channel pairs with the one half a "
                                 "window further");
    text += windows.size() == 1
                ? ", counted from the first that turns:"
                : fmt::format(", in each of {} windows; in the first:", windows.size());
    const auto channels = [&](std::uint32_t j) {
        return half_split ? fmt::format("({}, {})", j, j + count)
                          : fmt::format("({}, {})", 2 * j, 2 * j + 1);
    };
    for (std::uint32_t j = 0; j < std::min(count, 3u); ++j) text += ' ' + channels(j);
    return count > 3 ? text + " ... " + channels(count - 1) : text;
}

std::string frequencies_text(const Explanation& explanation) {
    const std::vector<ExplainedPair>& pairs = explanation.pairs;
    const auto slower = [](const ExplainedPair& a, const ExplainedPair& b) {
        return a.wavelength < b.wavelength;
    };
    const auto [fastest, slowest] = std::minmax_element(pairs.begin(), pairs.end(), slower);
    std::string text = explanation.rotation.base > 0
                           ? fmt::format("base {}; ", short_number(explanation.rotation.base))
                           : "";
    text += fmt::format("{}; the fastest turns once in {} positions, the slowest ",
                        plural(explanation.rotation.rotary_dim / 2, "pair"),
                        short_number(fastest->wavelength));
    return text + (std::isinf(slowest->wavelength)
                       ? "never"
                       : fmt::format("once in {}", short_number(slowest->wavelength)));
}

bool same_slowdown(double a, double b) {
    return a == b || std::fabs(a - b) < 1e-9 * std::fabs(a);
}

// Describes the effect of scaling on a run of pairs; the run has at least one.
std::string slowdown_text(const std::vector<ExplainedPair>& pairs, std::size_t first,
                          std::size_t last) {
    const double a = pairs[first].slower, b = pairs[last].slower;
    if (std::isinf(a)) return "stopped";
    if (same_slowdown(a, 1) && same_slowdown(a, b)) return "unchanged";
    double least = a, most = a;
    for (std::size_t j = first; j <= last; ++j) {
        least = std::min(least, pairs[j].slower);
        most = std::max(most, pairs[j].slower);
    }
    return same_slowdown(least, most) ? fmt::format("{} times slower", short_number(a))
                                      : fmt::format("{:.3f} to {:.3f} times slower", least, most);
}

std::string scaling_text(const Explanation& explanation) {
    if (!explanation.knows_unscaled)
        return "unknown: the unscaled frequencies of this model are not known";
    const std::vector<ExplainedPair>& pairs = explanation.pairs;
    // A run of equal slowdown is described separately if it has at least three pairs, or if it is
    // unscaled and touches either end; the pairs between runs are a blend.
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    bool blend = false;  // the last run is a blend
    for (std::size_t j = 0; j < pairs.size();) {
        std::size_t last = j;
        while (last + 1 < pairs.size() && same_slowdown(pairs[last + 1].slower, pairs[j].slower))
            ++last;
        const bool of_its_own = last - j >= 2 || (same_slowdown(pairs[j].slower, 1) &&
                                                  (j == 0 || last + 1 == pairs.size()));
        if (blend && !of_its_own)
            runs.back().second = last;
        else
            runs.emplace_back(j, last);
        blend = !of_its_own;
        j = last + 1;
    }
    if (runs.size() == 1 && same_slowdown(pairs.front().slower, 1) &&
        same_slowdown(pairs.back().slower, 1))
        return "none: every frequency is base^(-2j / rotary_dim)";
    std::string text = "against base^(-2j / rotary_dim): ";
    for (std::size_t run = 0; run < runs.size(); ++run) {
        text += fmt::format("{}{} {}", run == 0 ? "" : "; ",
                            range_of(runs[run].first, runs[run].second),
                            slowdown_text(pairs, runs[run].first, runs[run].second));
    }
    return text;
}

std::string turns_text(const Explanation& explanation) {
    std::string text = explanation.rotation.longest_seq_len != 0
                           ? fmt::format(
                                 "{} positions, the longest sequence for these frequencies (longer "
                                 "ones: --seq-len): ",
                                 explanation.length)
                       : explanation.knows_length
                           ? fmt::format("{} positions: ", explanation.length)
                           : fmt::format("unknown; within {} positions: ", explanation.length);
    std::string never;
    std::size_t count = 0;
    const std::vector<ExplainedPair>& pairs = explanation.pairs;
    for (std::size_t j = 0; j < pairs.size();) {
        std::size_t last = j;
        while (last + 1 < pairs.size() && (pairs[last + 1].turns < 1) == (pairs[j].turns < 1))
            ++last;
        if (pairs[j].turns < 1) {
            never += (never.empty() ? "" : ", ") + range_of(j, last);
            count += last - j + 1;
        }
        j = last + 1;
    }
    if (!one_each(explanation)) {
        return text + fmt::format("{} of {} frequencies complete a turn in them",
                                  pairs.size() - count, pairs.size());
    }
    text += count == 0 ? "every pair completes a turn in them"
            : count == pairs.size()
                ? "no pair completes a turn in them"
                : fmt::format("{} complete a turn in them, {} never ({})",
                              plural(pairs.size() - count, "pair"), count, never);
    return text;
}

std::string factor_text(double factor) {
    return factor == 1 ? std::string("1: cos and sin are used as they are")
                       : fmt::format(
                             "{}: multiplies cos and sin once, in the angle table. q turns by them "
                             "and k too, so their "
                             "dot product gets the square, {}",
                             short_number(factor), short_number(factor * factor));
}

// Returns the cost of each source of angles on a device, for tables that cover
// Explanation::length.
std::string tables_text(const Explanation& explanation) {
    constexpr std::uint32_t side = 16384;  // maximum image side on most devices
    const auto length = std::uint64_t(std::clamp(explanation.length, 1.0, double(max_positions)));
    std::string text;
    for (const Choice<AngleSource>& source : angle_sources) {
        const Result<AngleTableLayout> plan = plan_angles(explanation.rotation, source.value,
                                                          length, side);
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", source.word,
                            plan ? bytes_text(plan->bytes)
                            : plan.status.code == VKROPE_ERROR_LIMIT_EXCEEDED
                                ? "covers fewer positions"
                                : "is not for this rotation");
    }
    return text;
}

std::string softmax_text(double scale) {
    return scale == 1 ? std::string("1: the scale of your softmax is 1 / sqrt(d)")
                      : fmt::format(
                            "{}: multiply the scale of your softmax, 1 / sqrt(d), by it; the "
                            "rotation never applies it",
                            short_number(scale));
}

std::string positions_text(const Explanation& explanation) {
    const Sections& sections = explanation.rotation.sections;
    if (sections.axes == 0) return "one for each token";
    if (sections.order == VKROPE_SECTIONS_SUM) {
        return fmt::format(
            "{} for each token: each pair turns by the sum over the axes of position times "
            "frequency",
            sections.axes);
    }
    std::string text = fmt::format(
        "{} for each token ({} sections)", sections.axes,
        sections.order == VKROPE_SECTIONS_INTERLEAVED ? "interleaved" : "sequential");
    for (std::uint32_t axis = 0; axis < sections.axes; ++axis) {
        const auto turned = std::count_if(
            explanation.pairs.begin(), explanation.pairs.end(),
            [axis](const ExplainedPair& pair) { return pair.axis == axis; });
        text += fmt::format("{} axis {} turns {}", axis == 0 ? ":" : ",", axis,
                            plural(std::size_t(turned), "pair"));
    }
    return text + "; text has one position on all of them";
}

std::string groups_text(std::uint32_t groups) {
    return fmt::format(
        "{}: the heads of Q, and those of K, are divided into as many groups of "
        "consecutive heads, each with frequencies of its own",
        groups);
}

std::string phases_text(const RopeParams& rotation) {
    const auto [least, most] = std::minmax_element(rotation.phase.begin(), rotation.phase.end());
    const auto without = std::count(rotation.phase.begin(), rotation.phase.end(), 0.0);
    return fmt::format("position 0 is turned by {} to {} radians, {} of {} by none",
                       short_number(*least), short_number(*most), without, rotation.phase.size());
}

std::string cell(double value) {
    return std::isinf(value) ? "never" : value == 0 ? "?" : fmt::format("{:.8g}", value);
}

std::string line_of(const Explanation& explanation, std::size_t j) {
    const ExplainedPair& pair = explanation.pairs[j];
    const double unscaled = pair.unscaled == 0 ? 0 : 2 * std::numbers::pi / pair.unscaled;
    std::string line = fmt::format("{:>5}  {:<15}{:>14}{:>14}{:>14}{:>11}{:>13.6g}", pair.pair,
                                   fmt::format("{}, {}", pair.first, pair.second),
                                   pair.inv_freq == 0 ? "0" : fmt::format("{:.7g}", pair.inv_freq),
                                   cell(pair.wavelength), cell(unscaled),
                                   std::isinf(pair.slower) ? "stopped"
                                   : pair.slower == 0      ? "?"
                                                           : fmt::format("{:.5g}", pair.slower),
                                   pair.turns);
    if (explanation.rotation.sections.axes > 0) line += fmt::format("{:>6}", pair.axis);
    if (explanation.rotation.head_groups > 1) line += fmt::format("{:>7}", pair.group);
    if (!explanation.rotation.phase.empty()) line += fmt::format("{:>10.4f}", pair.phase);
    return line + '\n';
}

// Returns a line for every pair, or for evenly spaced pairs that include the first and the last.
std::string table_of(const Explanation& explanation, bool all) {
    const std::size_t count = explanation.pairs.size();
    const std::size_t step = all || count <= shown_pairs
                                 ? 1
                                 : (count + shown_pairs / 2 - 1) / (shown_pairs / 2);
    const RopeParams& rotation = explanation.rotation;
    std::string table = fmt::format(
        "\n{:>5}  {:<15}{:>14}{:>14}{:>14}{:>11}{:>13}{}{}{}\n", "pair", "channels", "inv_freq",
        "wavelength", "unscaled", "slower by", "turns", rotation.sections.axes > 0 ? "  axis" : "",
        rotation.head_groups > 1 ? "  group" : "", rotation.phase.empty() ? "" : "     phase");
    for (std::size_t j = 0; j < count; j += step) table += line_of(explanation, j);
    if ((count - 1) % step != 0) table += line_of(explanation, count - 1);
    table += "inv_freq in radians per position; wavelengths in positions a turn\n";
    if (!rotation.phase.empty()) table += "phase in radians\n";
    return step == 1
               ? table
               : table + fmt::format("one {} in {} is shown; --all shows every one of the {}\n",
                                     one_each(explanation) ? "pair" : "line", step, count);
}

}  // namespace

std::string text_of(const Explanation& explanation, bool all) {
    const RopeParams& rotation = explanation.rotation;
    std::string text = row("rope type", rotation.rope_type);
    if (rotation.no_rope) {
        text += row("rotates", "nothing: this layer has no rotary position embedding");
    } else {
        text += row("rotates", channels_text(rotation));
        text += row("pairing", pairing_text(rotation));
        text += row("frequencies", frequencies_text(explanation));
        text += row("scaling", scaling_text(explanation));
        text += row("length", turns_text(explanation));
        text += row("angle tables", tables_text(explanation));
        text += row("attention factor", factor_text(rotation.attention_factor));
        text += row("softmax scale", softmax_text(rotation.softmax_scale));
        text += row("positions", positions_text(explanation));
        if (rotation.head_groups > 1) text += row("head groups", groups_text(rotation.head_groups));
        if (!rotation.phase.empty()) text += row("phases", phases_text(rotation));
    }
    if (const std::string ops = model_ops_text(rotation); !ops.empty()) text += row("ops", ops);
    if (rotation.warnings.empty()) text += row("warnings", "none");
    for (std::size_t w = 0; w < rotation.warnings.size(); ++w)
        text += row(w == 0 ? "warnings" : "", rotation.warnings[w]);
    return !rotation.no_rope ? text + table_of(explanation, all) : text;
}

}  // namespace vkrope::tools
