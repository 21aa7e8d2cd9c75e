// SPDX-License-Identifier: MIT
// Kinds of option that the command line library lacks: decimal integers with a range, and words of
// a fixed set.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>

#include "words.hpp"

namespace vkrope::tools {

/// `text` as a decimal integer from `lowest` to `highest`, or CLI::ValidationError. (CLI11 would
/// read 010 as octal.)
template <std::integral T>
T parse_integer(const std::string& option, const std::string& text, T lowest, T highest) {
    T value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stop != end || value < lowest || value > highest) {
        throw CLI::ValidationError(
            option,
            fmt::format("'{}' must be a decimal integer from {} to {}", text, lowest, highest));
    }
    return value;
}

/// Target: an integer or a std::optional of one, which outlives the parsing.
template <class Target, std::integral T>
CLI::Option* add_integer(CLI::App& command, const std::string& option, Target& target, T lowest,
                         T highest, const std::string& help) {
    const auto parse = [option, &target, lowest, highest](const std::string& text) {
        target = parse_integer<T>(option, text, lowest, highest);
    };
    return command.add_option_function<std::string>(option, parse, help)->type_name("N");
}

/// Target: a T or a std::optional<T>, which outlives the parsing.
template <class Target, class T, std::size_t count>
CLI::Option* add_choice(CLI::App& command, const std::string& option, Target& target,
                        const Choice<T> (&choices)[count], const std::string& help) {
    std::string words;
    for (const Choice<T>& choice : choices) {
        words += (words.empty() ? "" : "|") + std::string(choice.word);
    }
    const auto parse = [option, &target, &choices, words](const std::string& text) {
        for (const Choice<T>& choice : choices) {
            if (text == choice.word) {
                target = choice.value;
                return;
            }
        }
        throw CLI::ValidationError(option, fmt::format("'{}' must be one of {}", text, words));
    };
    return command.add_option_function<std::string>(option, parse, help)->type_name(words);
}

}  // namespace vkrope::tools
