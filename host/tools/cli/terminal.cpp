// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/failure.hpp"
#include "cli/system.hpp"

namespace vkrope::tools {
namespace {

// Removes the first character of `text`, which must not be empty, and returns its printable form.
std::string_view take_printable(std::string_view& text) noexcept {
    const auto byte = [&text](std::size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const std::uint32_t lead = byte(0);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    constexpr std::uint32_t lead_bits[] = {0, 0x7f, 0x1f, 0xf, 7},
                            lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    std::uint32_t code = lead & lead_bits[length];
    bool valid = length > 0;
    for (std::size_t i = 1; i < length; ++i) {
        valid = valid && (byte(i) & 0xc0) == 0x80;
        code = code << 6 | (byte(i) & 0x3f);
    }
    valid = valid && code >= lowest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
    const std::string_view taken = text.substr(0, valid ? length : 1);
    text.remove_prefix(taken.size());
    return valid && !control ? taken : "?";
}

// Prints without allocating, because the error may be that memory has run out.
void print_line(const char* colour, const char* kind, std::string_view sentence) noexcept {
    const bool coloured = colour_allowed(stderr);
    std::fprintf(stderr, "vkrope: %s%s:%s ", coloured ? colour : "", kind,
                 coloured ? "\033[0m" : "");
    while (!sentence.empty()) {
        const std::string_view character = take_printable(sentence);
        std::fwrite(character.data(), 1, character.size(), stderr);
    }
    std::fputc('\n', stderr);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown;
    while (!text.empty()) shown += take_printable(text);
    return shown;
}

void print_error(std::string_view sentence) noexcept {
    print_line("\033[1;31m", "error", sentence);
}

void print_warning(std::string_view sentence) noexcept {
    print_line("\033[1;33m", "warning", sentence);
}

void print_note(std::string_view sentence) noexcept {
    print_line("\033[1m", "note", sentence);
}

void write_output(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        fail(ExitCode::bad_file, "standard output: cannot be written: {}", std::strerror(errno));
}

void write_json(const nlohmann::ordered_json& json) {
    write_output(json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

bool colour_allowed(std::FILE* stream) noexcept {
    const char* no_color = std::getenv("NO_COLOR");
    return is_terminal(stream) && (no_color == nullptr || *no_color == '\0');
}

std::string in_colour(const char* colour, std::string_view word) {
    return colour_allowed(stdout) ? fmt::format("\033[{}m{}\033[0m", colour, word)
                                  : std::string(word);
}

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)), on_terminal_(is_terminal(stderr)) {}

ProgressLine::~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::update(double fraction) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (!on_terminal_ || now < next_) return;
    std::fprintf(stderr, "\r%s %.0f %%\033[K", label_.c_str(), 100 * fraction);
    shown_ = true;
    next_ = now + std::chrono::milliseconds(100);
}

}  // namespace vkrope::tools
