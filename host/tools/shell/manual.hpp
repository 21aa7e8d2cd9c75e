// SPDX-License-Identifier: MIT
// What a program's command line takes, as data: from it come the manual page and the completion of
// shells, which therefore say what --help says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vkrope::tools {

struct DescribedOption {
    std::vector<std::string> names;  ///< with their dashes, short ones first
    std::string value;               ///< placeholder, or the words a|b|c; empty: a flag
    std::string help;
    bool required = false;
};

struct DescribedCommand {
    std::string name, description;
    std::vector<DescribedOption> options;
    std::vector<DescribedCommand> commands;
};

/// What else a manual page says of a program.
struct ManualText {
    std::string version;  ///< "vkrope 1.2.3"
    std::string footer;   ///< the end of --help: one paragraph, in lines
};

/// The manual page of a program, section 1, for man.
std::string manual_page(const DescribedCommand& program, const ManualText& text);

/// The functions that make a shell complete a program's commands, options and their words.
std::string bash_completion(const DescribedCommand& program);
std::string zsh_completion(const DescribedCommand& program);
std::string fish_completion(const DescribedCommand& program);

/// The words of an option that takes one of several; empty if it takes anything else.
std::vector<std::string> words_of(const DescribedOption& option);

/// Whether the value is the path of a file.
bool takes_file(const DescribedOption& option);

}  // namespace vkrope::tools
