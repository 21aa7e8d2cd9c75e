// SPDX-License-Identifier: MIT
// Checks errors and warnings by their code and by what they name: a field, its value, a limit. The
// rest of the sentence is free.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>

#include "vkrope/vkrope.h"

namespace vkrope::test {

// Returns the first of `words`, separated by blanks, that `message` does not name after the words
// before it; empty if none. A word is whole: 2 is not in 20 or 2.5.
inline std::string lacking(const std::string& message, const std::string& words) {
    const auto in_name = [&](std::size_t at) {
        return at < message.size() &&
               (std::isalnum(static_cast<unsigned char>(message[at])) || message[at] == '_');
    };
    const auto continues = [&](std::size_t begin, std::size_t end) {
        const char before = begin == 0 ? ' ' : message[begin - 1];
        const bool number = std::isdigit(static_cast<unsigned char>(message[begin]));
        const std::string after = message.substr(end, 2);
        return (in_name(begin) && (in_name(begin - 1) || before == '.' || before == '>' ||
                                   (number && before == '-'))) ||
               (in_name(end - 1) && in_name(end)) || after.starts_with("[") || after == "->" ||
               (after.starts_with(".") && in_name(end + 1));
    };
    std::istringstream each(words);
    std::size_t from = 0;
    for (std::string word; each >> word; from += word.size()) {
        do {
            from = message.find(word, from);
            if (from == message.npos) return word;
        } while (continues(from, from + word.size()) && ++from);
    }
    return "";
}

// Returns whether `message` names all of `words`, in this order.
inline bool names(const std::string& message, const std::string& words) {
    return lacking(message, words).empty();
}

inline void check_names(const std::string& message, const std::string& words) {
    const std::string word = lacking(message, words);
    CHECK_MESSAGE(word.empty(), "\"", message, "\" does not name ", word);
    CHECK(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; }));
}

// Checks a Status or a vkrope_error.
template <class Error, class Code>
void check_error(const Error& error, Code code, const std::string& words) {
    CHECK_MESSAGE(error.code == code, error.what);
    check_names(error.what, words);
}

// Checks the error of an argument that breaks a rule.
template <class Error>
void check_invalid(const Error& error, const std::string& words) {
    check_error(error, VKROPE_ERROR_INVALID_ARGUMENT, words);
}

// Returns whether one of the warnings names all of `words`.
template <class RopeParams>
bool warns(const RopeParams& rotation, const std::string& words) {
    return std::any_of(
        rotation.warnings.begin(), rotation.warnings.end(),
        [&](const std::string& warning) { return names(warning, words); });
}

}  // namespace vkrope::test
