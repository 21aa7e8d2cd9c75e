// SPDX-License-Identifier: MIT
// The command "vkrope": finds the subcommand.
#include "commands.hpp"
#include "program.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

ExitCode end_of_parsing(const CLI::App& app, const std::string& first_argument,
                        const CLI::ParseError& error) {
    if (print_help(app, error)) {
        return ExitCode::success;
    }
    const std::vector<CLI::App*> commands = app.get_subcommands();
    if (commands.empty() && !first_argument.empty() && first_argument.front() != '-') {
        print_error(fmt::format("'{}' is not a command (see vkrope --help)", first_argument));
    } else {
        print_error(fmt::format("{} (see vkrope {}--help)", error.what(),
                                commands.empty() ? "" : commands[0]->get_name() + " "));
    }
    return ExitCode::usage;
}

ExitCode run(int argc, char** argv) {
    CLI::App app("Rotary position embedding on Vulkan devices.", "vkrope");
    app.footer(exit_codes);
    app.set_version_flag("--version", std::string("vkrope " VKROPE_VERSION));
    app.require_subcommand(1);
    const Command commands[] = {add_devices(app),   add_frequencies(app), add_explain(app),
                                add_rotate(app),    add_check(app),       add_accuracy(app),
                                add_make_input(app)};
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return end_of_parsing(app, argc > 1 ? argv[1] : "", error);
    }
    for (const Command& command : commands) {
        if (command.options->parsed()) {
            return command.run();
        }
    }
    return ExitCode::usage;
}

}  // namespace
}  // namespace vkrope::tools

int main(int argc, char** argv) {
    // Files are published, and JSON printed, once the device is closed.
    return vkrope::tools::run_program("no output was written",
                                      [=] { return vkrope::tools::run(argc, argv); });
}
