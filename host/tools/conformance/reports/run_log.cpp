// SPDX-License-Identifier: MIT
#include "conformance/reports/run_log.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace vkrope::conformance {
namespace {

constexpr std::size_t max_bytes = 1 << 20;

bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

void RunLog::add(std::string_view printed) {
    if (printed_.size() + printed.size() > max_bytes) {
        cut_ = true;
        printed = printed.substr(0, max_bytes - printed_.size());
    }
    printed_ += printed;
}

void RunLog::add_line(std::string_view line) {
    add(line);
    add("\n");
}

void RunLog::hide(std::string name, std::string by) {
    hidden_.emplace_back(std::move(name), std::move(by));
}

std::string without(std::string_view name, std::string_view by, std::string text) {
    for (std::size_t at = 0; !name.empty() && (at = text.find(name, at)) != std::string::npos;) {
        const std::size_t end = at + name.size();
        const bool alone = (at == 0 || !in_word(text[at - 1]) || !in_word(name.front())) &&
                           (end == text.size() || !in_word(text[end]) || !in_word(name.back()));
        if (alone) {
            text.replace(at, name.size(), by);
        }
        at += alone ? by.size() : 1;
    }
    return text;
}

std::string RunLog::text() const {
    std::string text = printed_;
    for (const auto& [name, by] : hidden_) {
        text = without(name, by, std::move(text));
    }
    std::error_code problem;
    const std::string here = std::filesystem::current_path(problem).string();
    if (here != "/") {
        text = without(here, "<working directory>", std::move(text));
    }
    if (const char* const home = std::getenv("HOME"); home != nullptr && std::string(home) != "/") {
        text = without(home, "<home>", std::move(text));
    }
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) == 0) {
        text = without(static_cast<const char*>(host), "<host>", std::move(text));
    }
    // "root" is nobody's name.
    if (const passwd* const user = ::getpwuid(::getuid()); user != nullptr && ::getuid() != 0) {
        text = without(user->pw_name, "<user>", std::move(text));
    }
    return text + (cut_ ? "\n(the rest was left out)\n" : "");
}

}  // namespace vkrope::conformance
