// SPDX-License-Identifier: MIT
// The three standard streams: data on stdout, messages on stderr.
#pragma once

#include <chrono>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vkrope::tools {

// Makes text from a driver or a file safe to print: each control character (C0, DEL, C1) and each
// byte that is not UTF-8 becomes '?', so that a device name cannot move the cursor or start a
// second line.
std::string printable(std::string_view text);

// Prints one line "vkrope: error: ..." on stderr, with `sentence` passed through printable(). The
// sentence may quote any text.
void print_error(std::string_view sentence) noexcept;
void print_warning(std::string_view sentence) noexcept;
void print_note(std::string_view sentence) noexcept;

// Writes all of `text` to stdout, or throws Failure: a full disk or a closed pipe must not look
// like success.
void write_output(std::string_view text);

// Writes JSON, indented. Replaces bytes that are not UTF-8 and escapes non-ASCII characters,
// because a terminal interprets some of them.
void write_json(const nlohmann::ordered_json& json);

// Returns true on a terminal, unless NO_COLOR is set.
bool colour_allowed(std::FILE* stream) noexcept;

// Returns a word for stdout in an ANSI colour, such as "32", if colours are allowed.
std::string in_colour(const char* colour, std::string_view word);

// Shows "label 43 %" on stderr, rewritten in place and erased at the end. Shows nothing if stderr
// is not a terminal.
class ProgressLine {
   public:
    explicit ProgressLine(std::string label);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    // fraction  0 to 1
    void update(double fraction) noexcept;

   private:
    std::string label_;
    bool on_terminal_;
    bool shown_ = false;
    std::chrono::steady_clock::time_point next_;
};

}  // namespace vkrope::tools
