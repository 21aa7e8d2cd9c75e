// SPDX-License-Identifier: MIT
// The options of a program or of a subcommand, parsed by CLI11. Only one file includes CLI11,
// because its headers take longer to compile than any file of vkrope.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/failure.hpp"
#include "cli/words.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vkrope::tools {

// The text at the end of every --help.
inline constexpr const char* exit_codes =
    "Data goes to stdout, messages to stderr.\n"
    "Exit codes: 0 success, 1 verification failed, 2 usage, 3 no suitable device (or beyond its "
    "limits), 4 a device failed,\n"
    "5 a file that cannot be read, is wrong or cannot be written, 6 out of memory.";

// Thrown while an option value is parsed. The text follows the name of the option in the error.
class BadValue : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

// Parses `text` as a decimal integer from `lowest` to `highest`. Throws BadValue. (CLI11 would
// read 010 as octal.)
template <std::integral T>
T parse_integer(const std::string& text, T lowest, T highest) {
    T value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stop != end || value < lowest || value > highest) {
        throw BadValue(
            fmt::format("'{}' must be a decimal integer from {} to {}", text, lowest, highest));
    }
    return value;
}

// Parses `text` as a finite decimal number for which `accepts` returns true; `rule` is the text of
// that condition for the error. Throws BadValue.
double parse_number(const std::string& text, bool (*accepts)(double), const char* rule);

// Returns the words of a table, "bshd|bhsd".
template <class T, std::size_t count>
std::string words_of(const Choice<T> (&choices)[count]) {
    std::string words;
    for (const Choice<T>& choice : choices) {
        words += words.empty() ? "" : "|";
        words += choice.word;
    }
    return words;
}

// Returns the value of a word of a table. Throws BadValue.
template <class T, std::size_t count>
T parse_choice(const std::string& text, const Choice<T> (&choices)[count]) {
    for (const Choice<T>& choice : choices)
        if (text == choice.word) return choice.value;
    throw BadValue(fmt::format("'{}' is not valid; the values are {}", text, words_of(choices)));
}

// Handle to an existing option of a command line; copies refer to the same option.
class Option {
   public:
    explicit Option(CLI::Option* option) noexcept : option_(option) {}
    Option& required();
    Option& excludes(const Option& other);
    Option& needs(const Option& other);
    Option& from_environment(const char* variable);

   private:
    CLI::Option* option_;
};

// The command line of a program, or the part of it that belongs to one subcommand. The variables
// that options write to must outlive the parsing. `type_name` is the placeholder for the value in
// --help.
class CommandLine {
   public:
    CommandLine(const char* description, const std::string& name, const char* version,
                const std::string& footer = exit_codes);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // Adds a subcommand; from then on, the user must name one. The returned reference is valid as
    // long as the command line of the program.
    CommandLine& add_command(const char* name, const char* description);

    // Sets the function that run() calls after parsing, unless the user named a subcommand: then
    // run() calls the function of the subcommand.
    void on_run(std::function<ExitCode()> run) { run_ = std::move(run); }

    // Text: a std::string, or a std::optional<std::string>, which is empty if the option is
    // absent.
    template <class Text>
    Option add_text(const char* option, const char* type_name, Text& target,
                    const std::string& help) {
        const auto parse = [&target](const std::string& text) {
            if (text.empty()) throw BadValue("the text is empty");
            target = text;
        };
        return add_value(option, type_name, parse, help);
    }

    // Adds an option that may be repeated. With `several`, more than one value may follow it.
    Option add_texts(const char* option, const char* type_name, std::vector<std::string>& target,
                     const std::string& help, bool several = false);
    Option add_flag(const char* option, bool& target, const std::string& help);

    // Adds an option that calls `act` and ends the parsing, so that run() calls no other function.
    void add_action(const char* option, std::function<void()> act, const std::string& help);

    // parse  throws BadValue for text that is not a value
    Option add_value(const char* option, const std::string& type_name,
                     std::function<void(const std::string&)> parse, const std::string& help);

    // Target: an integer or a std::optional of an integer.
    template <class Target, std::integral T>
    Option add_integer(const char* option, Target& target, T lowest, T highest,
                       const std::string& help, const char* type_name = "N") {
        const auto parse = [&target, lowest, highest](const std::string& text) {
            target = parse_integer<T>(text, lowest, highest);
        };
        return add_value(option, type_name, parse, help);
    }

    // Target: a double or a std::optional<double>. `rule` says which numbers are accepted.
    template <class Target>
    Option add_number(const char* option, Target& target, bool (*accepts)(double), const char* rule,
                      const std::string& help) {
        const auto parse = [&target, accepts, rule](const std::string& text) {
            target = parse_number(text, accepts, rule);
        };
        return add_value(option, "X", parse, help);
    }

    // Target: a T or a std::optional<T>.
    template <class Target, class T, std::size_t count>
    Option add_choice(const char* option, Target& target, const Choice<T> (&choices)[count],
                      const std::string& help) {
        const auto parse = [&target, &choices](const std::string& text) {
            target = parse_choice(text, choices);
        };
        return add_value(option, words_of(choices), parse, help);
    }

    // Keeps words that match no option in `extras`, instead of failing.
    void keep_extras(std::vector<std::string>& extras);

    // Parses the line and runs its command. --help and --version go to stdout. A usage error is
    // reported on stderr and returns ExitCode::usage.
    ExitCode run(int argc, char** argv);

   private:
    explicit CommandLine(CLI::App& subcommand);
    bool parse(int argc, char** argv, ExitCode& end);

    std::unique_ptr<CLI::App> owned_;  // set only for the program itself
    CLI::App& app_;
    std::function<ExitCode()> run_;
    std::vector<std::unique_ptr<CommandLine>> commands_;
    std::vector<std::string>* extras_ = nullptr;
};

}  // namespace vkrope::tools
