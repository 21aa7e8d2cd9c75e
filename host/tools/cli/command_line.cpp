// SPDX-License-Identifier: MIT
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "cli/terminal.hpp"

namespace vkrope::tools {
namespace {

// CLI11 reports --help and --version as errors with exit code 0. Returns true for these.
bool print_help(const CLI::App& app, const CLI::ParseError& error) {
    std::ostringstream out, unused;
    if (app.exit(error, out, unused) != 0) return false;
    write_output(out.str());
    return true;
}

void print_mistake(CLI::App& app, const std::string& first_argument, const char* mistake) {
    const std::string name = app.get_name();
    const std::vector<CLI::App*> named = app.get_subcommands();
    const bool takes_command = !app.get_subcommands([](CLI::App*) { return true; }).empty();
    if (takes_command && named.empty() && !first_argument.empty() && first_argument[0] != '-') {
        print_error(fmt::format("'{}' is not a command (see {} --help)", first_argument, name));
    } else {
        print_error(fmt::format("{} (see {} {}--help)", mistake, name,
                                named.empty() ? "" : named[0]->get_name() + " "));
    }
}

}  // namespace

double parse_number(const std::string& text, bool (*accepts)(double), const char* rule) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stop != end || !std::isfinite(value) || !accepts(value))
        throw BadValue(fmt::format("'{}' must be {}", text, rule));
    return value;
}

Option& Option::required() {
    option_->required();
    return *this;
}

Option& Option::excludes(const Option& other) {
    option_->excludes(other.option_);
    return *this;
}

Option& Option::needs(const Option& other) {
    option_->needs(other.option_);
    return *this;
}

Option& Option::from_environment(const char* variable) {
    option_->envname(variable);
    return *this;
}

CommandLine::CommandLine(const char* description, const std::string& name, const char* version,
                         const std::string& footer)
    : owned_(std::make_unique<CLI::App>(description, name)), app_(*owned_) {
    app_.footer(footer);
    app_.set_version_flag("--version", name + " " + version);
}

CommandLine::CommandLine(CLI::App& subcommand) : app_(subcommand) {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const char* name, const char* description) {
    app_.require_subcommand(1);
    CLI::App& subcommand = *app_.add_subcommand(name, description);
    commands_.emplace_back(new CommandLine(subcommand));
    return *commands_.back();
}

Option CommandLine::add_texts(const char* option, const char* type_name,
                              std::vector<std::string>& target, const std::string& help,
                              bool several) {
    return Option(
        app_.add_option(option, target, help)->type_name(type_name)->allow_extra_args(several));
}

Option CommandLine::add_flag(const char* option, bool& target, const std::string& help) {
    return Option(app_.add_flag(option, target, help));
}

void CommandLine::add_action(const char* option, std::function<void()> act,
                             const std::string& help) {
    const auto act_alone = [act = std::move(act)] {
        act();
        throw CLI::Success();
    };
    app_.add_flag_callback(option, act_alone, help);
}

Option CommandLine::add_value(const char* option, const std::string& type_name,
                              std::function<void(const std::string&)> parse,
                              const std::string& help) {
    const auto checked = [name = std::string(option),
                          parse = std::move(parse)](const std::string& text) {
        try {
            parse(text);
        } catch (const BadValue& bad) {
            throw CLI::ValidationError(name, bad.what());
        }
    };
    return Option(
        app_.add_option_function<std::string>(option, checked, help)->type_name(type_name));
}

void CommandLine::keep_extras(std::vector<std::string>& extras) {
    app_.allow_extras();
    extras_ = &extras;
}

bool CommandLine::parse(int argc, char** argv, ExitCode& end) {
    std::vector<CLI::App*> apps = app_.get_subcommands([](CLI::App*) { return true; });
    apps.push_back(&app_);
    for (int i = 1; i < argc; ++i) {  // CLI11 would take the next word for the value of --option=
        std::string name = argv[i];
        if (name.empty() || name.find('=') != name.size() - 1) continue;
        name.pop_back();
        if (std::any_of(apps.begin(), apps.end(),
                        [&](CLI::App* app) { return app->get_option_no_throw(name) != nullptr; })) {
            print_mistake(app_, argv[1], (name + ": the text is empty").c_str());
            end = ExitCode::usage;
            return false;
        }
    }
    try {
        app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        end = ExitCode::success;
        if (!print_help(app_, error)) {
            print_mistake(app_, argc > 1 ? argv[1] : "", error.what());
            end = ExitCode::usage;
        }
        return false;
    }
    if (extras_ != nullptr) *extras_ = app_.remaining();
    return true;
}

ExitCode CommandLine::run(int argc, char** argv) {
    ExitCode end = ExitCode::usage;
    if (!parse(argc, argv, end)) return end;
    for (const std::unique_ptr<CommandLine>& command : commands_)
        if (command->app_.parsed()) return command->run_();
    return run_();
}

}  // namespace vkrope::tools
