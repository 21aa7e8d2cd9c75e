// SPDX-License-Identifier: MIT
// Completion for bash, zsh and fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "shell/manual.hpp"

namespace vkrope::tools {
namespace {

/// A word of a shell, whatever it holds. In single quotes only their end has to be written
/// otherwise, which all three shells read the same way.
std::string in_quotes(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

std::string function_name(const DescribedCommand& program) {
    std::string name = "_" + program.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::vector<std::string> names_of(const std::vector<DescribedCommand>& commands) {
    std::vector<std::string> names;
    for (const DescribedCommand& command : commands) {
        names.push_back(command.name);
    }
    return names;
}

std::vector<std::string> names_of(const std::vector<DescribedOption>& options) {
    std::vector<std::string> names;
    for (const DescribedOption& option : options) {
        names.insert(names.end(), option.names.begin(), option.names.end());
    }
    return names;
}

/// What bash offers after an option of `command`: a case for each that takes a value.
std::string bash_values(const DescribedCommand& command, const std::string& name) {
    std::string cases;
    for (const DescribedOption& option : command.options) {
        if (option.value.empty()) {
            continue;
        }
        std::string pattern, action = "return";
        for (const std::string& option_name : option.names) {
            pattern += fmt::format("{}{}:{}", pattern.empty() ? "" : " | ", name, option_name);
        }
        const std::vector<std::string> words = words_of(option);
        if (!words.empty()) {
            action = fmt::format(
                "mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")\n"
                "            return",
                in_quotes(fmt::format("{}", fmt::join(words, " "))));
        } else if (takes_file(option)) {
            action =
                "compopt -o filenames\n"
                "            mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                "            return";
        }
        cases += fmt::format("        {})\n            {}\n            ;;\n", pattern, action);
    }
    return cases;
}

std::string bash_words(const std::string& name, std::vector<std::string> words) {
    return fmt::format("        {}) words={} ;;\n", in_quotes(name),
                       in_quotes(fmt::format("{}", fmt::join(words, " "))));
}

/// Text within a specification of zsh's _arguments.
std::string in_specification(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

std::string zsh_arguments(const DescribedCommand& command, const char* indent) {
    std::string lines;
    for (const DescribedOption& option : command.options) {
        std::string value;
        if (const auto words = words_of(option); !words.empty()) {
            value = fmt::format(":value:({})", fmt::join(words, " "));
        } else if (takes_file(option)) {
            value = ":file:_files";
        } else if (!option.value.empty()) {
            value = fmt::format(":{}:", in_specification(option.value));
        }
        for (const std::string& name : option.names) {
            lines += fmt::format(
                " \\\n{}{}", indent,
                in_quotes(fmt::format("{}[{}]{}", name, in_specification(option.help), value)));
        }
    }
    return lines;
}

std::string fish_options(const DescribedCommand& command, const std::string& start) {
    std::string lines;
    for (const DescribedOption& option : command.options) {
        lines += start;
        for (const std::string& name : option.names) {
            lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        }
        if (const auto words = words_of(option); !words.empty()) {
            lines += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(words, " "))));
        } else if (takes_file(option)) {
            lines += " -r -F";
        } else if (!option.value.empty()) {
            lines += " -x";
        }
        // In fish's single quotes a backslash escapes: doubled, it stands for itself.
        std::string help = option.help;
        for (std::size_t at = 0; (at = help.find('\\', at)) != std::string::npos; at += 2) {
            help.insert(at, 1, '\\');
        }
        lines += fmt::format(" -d {}\n", in_quotes(help));
    }
    return lines;
}

}  // namespace

std::vector<std::string> words_of(const DescribedOption& option) {
    std::vector<std::string> words;
    if (option.value.find('|') == std::string::npos) {
        return words;
    }
    for (std::size_t start = 0; start <= option.value.size();) {
        const std::size_t end = std::min(option.value.find('|', start), option.value.size());
        words.push_back(option.value.substr(start, end - start));
        start = end + 1;
    }
    return words;
}

bool takes_file(const DescribedOption& option) {
    return option.value.starts_with("FILE") || option.value == "DIR";
}

std::string bash_completion(const DescribedCommand& program) {
    const std::string function = function_name(program);
    std::string values = bash_values(program, ""), words;
    std::vector<std::string> first = names_of(program.commands);
    for (const DescribedCommand& command : program.commands) {
        values += bash_values(command, command.name);
        words += bash_words(command.name, names_of(command.options));
    }
    const std::string commands = fmt::format("{}", fmt::join(first, " | "));
    for (const std::string& option : names_of(program.options)) {
        first.push_back(option);
    }
    std::string text = fmt::format(
        "# bash completion for {0}\n{1}() {{\n"
        "    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
        "    local command='' words='' i\n    COMPREPLY=()\n",
        program.name, function);
    if (!commands.empty()) {
        text += fmt::format(
            "    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${{COMP_WORDS[i]}} in\n"
            "            {})\n                command=${{COMP_WORDS[i]}}\n                break\n"
            "                ;;\n        esac\n    done\n",
            commands);
    }
    text += fmt::format(
        "    case $command:$before in\n{}    esac\n    case $command in\n{}{}    esac\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}}\ncomplete -F {} {}\n",
        values, bash_words("", first), words, function, program.name);
    return text;
}

std::string zsh_completion(const DescribedCommand& program) {
    std::string text = fmt::format("#compdef {}\n{}() {{\n    local line state\n", program.name,
                                   function_name(program));
    if (program.commands.empty()) {
        text += "    _arguments" + zsh_arguments(program, "        ") + "\n";
    } else {
        text += "    local -a commands=(\n";
        for (const DescribedCommand& command : program.commands) {
            text += fmt::format("        {}\n", in_quotes(command.name + ":" +
                                                          in_specification(command.description)));
        }
        text += "    )\n    _arguments -C" + zsh_arguments(program, "        ") +
                " \\\n        '1:command:->command' '*::argument:->argument'\n"
                "    case $state in\n        command) _describe command commands ;;\n"
                "        argument)\n            case $line[1] in\n";
        for (const DescribedCommand& command : program.commands) {
            text += fmt::format(
                "                {})\n                    _arguments{}\n"
                "                    ;;\n",
                command.name, zsh_arguments(command, "                        "));
        }
        text += "            esac\n            ;;\n    esac\n";
    }
    // Loaded by name, the file is the function; read as a script, it only defines it.
    return text + fmt::format("}}\ncompdef {0} {1}\n[ \"$funcstack[1]\" != {0} ] || {0} \"$@\"\n",
                              function_name(program), program.name);
}

std::string fish_completion(const DescribedCommand& program) {
    const std::string start = "complete -c " + program.name;
    if (program.commands.empty()) {
        return start + " -f\n" + fish_options(program, start);
    }
    std::string text = start + " -f\n" + fish_options(program, start + " -n __fish_use_subcommand");
    for (const DescribedCommand& command : program.commands) {
        text += fmt::format("{} -n __fish_use_subcommand -a {} -d {}\n", start, command.name,
                            in_quotes(command.description));
        text += fish_options(
            command, fmt::format("{} -n '__fish_seen_subcommand_from {}'", start, command.name));
    }
    return text;
}

}  // namespace vkrope::tools
