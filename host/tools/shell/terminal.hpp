// SPDX-License-Identifier: MIT
// The three standard streams: data on stdout, people's text on stderr.
#pragma once

#include <chrono>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vkrope::tools {

/// Makes sure that no file which is opened later takes the number of a standard stream. False:
/// stdout was closed.
bool open_standard_streams() noexcept;

/// What may be shown of text from a driver or a file: each control character (of C0, DEL, C1) and
/// each byte that is not UTF-8 becomes '?', so that nobody's name for a device moves a cursor or
/// makes a second line.
std::string printable(std::string_view text);

/// One line "vkrope: error: ..." on stderr, of what is printable in `sentence`, which may quote
/// anything.
void print_error(std::string_view sentence) noexcept;
void print_warning(std::string_view sentence) noexcept;
void print_note(std::string_view sentence) noexcept;

/// Writes all of `text` to stdout, or throws Failure: a full disk or a closed pipe must not look
/// like success.
void write_output(std::string_view text);

/// The same for JSON, indented. Bytes that are not UTF-8 are replaced; other characters than those
/// of ASCII are escaped, for a terminal acts upon some.
void write_json(const nlohmann::ordered_json& json);

/// The same, with 17 significant digits of each number that is no integer, rather than as many as
/// tell it from its neighbours.
void write_json_of_17_digits(const nlohmann::ordered_json& json);

/// True on a terminal, unless NO_COLOR is set.
bool colour_allowed(std::FILE* stream) noexcept;

/// "label 43 %" on stderr, rewritten in place, erased at the end; nothing where stderr is no
/// terminal.
class ProgressLine {
   public:
    explicit ProgressLine(std::string label);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// fraction  0 to 1
    void update(double fraction) noexcept;

   private:
    std::string label_;
    bool on_terminal_;
    bool shown_ = false;
    std::chrono::steady_clock::time_point next_;
};

}  // namespace vkrope::tools
