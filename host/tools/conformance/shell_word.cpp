// SPDX-License-Identifier: MIT
#include "conformance/shell_word.hpp"

namespace vkrope::conformance {

std::string shell_word(const std::string& text) {
    constexpr const char* plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
#ifdef _WIN32
    std::string word = "\"";
    for (const char c : text) word += c == '"' ? std::string("\\\"") : std::string(1, c);
    return word + '"';
#else
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + "'";
#endif
}

}  // namespace vkrope::conformance
