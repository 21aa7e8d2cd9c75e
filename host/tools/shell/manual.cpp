// SPDX-License-Identifier: MIT
// The manual page, in the macros of man(7).
#include "shell/manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace vkrope::tools {
namespace {

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/// Text as it is: no character of it is a request or an escape.
std::string plain(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool starts_line = out.empty() || out.back() == '\n';
        if (starts_line && (c == '.' || c == '\'')) {
            out += "\\&";
        }
        switch (c) {
            case '\\': out += "\\e"; break;
            case '-': out += "\\-"; break;
            default: out += c;
        }
    }
    return out;
}

std::string without_full_stop(std::string text) {
    if (text.ends_with('.')) {
        text.pop_back();
    }
    return text;
}

std::string option_text(const DescribedOption& option) {
    std::string names;
    for (const std::string& name : option.names) {
        names += (names.empty() ? "\\fB" : ", \\fB") + plain(name) + "\\fR";
    }
    const std::string value = option.value.empty()
                                  ? ""
                                  : fmt::format(" \\fI{}\\fR", plain(option.value));
    return fmt::format(".TP\n{}{}\n{}{}\n", names, value, plain(option.help),
                       option.required ? " Required." : "");
}

std::string options_text(const DescribedCommand& command) {
    std::string text;
    for (const DescribedOption& option : command.options) {
        text += option_text(option);
    }
    return text;
}

}  // namespace

std::string manual_page(const DescribedCommand& program, const ManualText& text) {
    const std::string name = plain(program.name);
    std::string page = fmt::format(
        ".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        plain(upper(program.name)), plain(text.version), name,
        plain(without_full_stop(program.description)));
    if (program.commands.empty()) {
        page += fmt::format("\\fB{}\\fR [\\fIoptions\\fR]\n", name);
    } else {
        page += fmt::format("\\fB{}\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n", name);
    }
    page += fmt::format(".SH DESCRIPTION\n{}\n.SH OPTIONS\n{}", plain(program.description),
                        options_text(program));
    if (!program.commands.empty()) {
        page += ".SH COMMANDS\n";
    }
    for (const DescribedCommand& command : program.commands) {
        page += fmt::format(".SS {}\n{}\n{}", plain(command.name), plain(command.description),
                            options_text(command));
    }
    page += fmt::format(".SH EXIT STATUS\n{}\n", plain(text.footer));
    return page;
}

}  // namespace vkrope::tools
