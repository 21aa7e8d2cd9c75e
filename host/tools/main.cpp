// SPDX-License-Identifier: MIT
// The command "vkrope": finds the subcommand and turns every way of ending into an exit code.
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>

#include "commands.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr const char* exit_codes =
    "Data goes to stdout, messages to stderr.\n"
    "Exit codes: 0 success, 1 verification failed, 2 usage, 3 no suitable device (or beyond its limits), 4 device lost or\n"
    "driver crash, 5 a file that cannot be read, is wrong or cannot be written, 6 out of memory.";

/// --help and --version arrive here too, as errors of exit code 0.
ExitCode end_of_parsing(const CLI::App& app, const std::string& first_argument, const CLI::ParseError& error) {
    std::ostringstream out, unused;
    if (app.exit(error, out, unused) == 0) {
        write_output(out.str());
        return ExitCode::success;
    }
    const std::vector<CLI::App*> commands = app.get_subcommands();
    if (commands.empty() && !first_argument.empty() && first_argument.front() != '-') {
        print_error(fmt::format("'{}' is not a command (see vkrope --help)", first_argument));
    } else {
        print_error(fmt::format("{} (see vkrope {}--help)", error.what(), commands.empty() ? "" : commands[0]->get_name() + " "));
    }
    return ExitCode::usage;
}

ExitCode run(int argc, char** argv) {
    CLI::App app("Rotary position embedding on Vulkan devices.", "vkrope");
    app.footer(exit_codes);
    app.set_version_flag("--version", std::string("vkrope " VKROPE_VERSION));
    app.require_subcommand(1);
    const Command commands[] = {add_devices(app), add_frequencies(app), add_rotate(app), add_make_input(app)};
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

ExitCode end(ExitCode code, const char* sentence) {
    print_error(sentence);
    return code;
}

}  // namespace
}  // namespace vkrope::tools

int main(int argc, char** argv) {
    using namespace vkrope::tools;
    const auto run_to_the_end = [&] {
        if (!open_standard_streams()) {
            return end(ExitCode::bad_file, "standard output: is closed");
        }
        install_signal_handlers();
        try {
            return run(argc, argv);
        } catch (const Failure& failure) {
            return end(failure.code(), failure.what());
        } catch (const std::bad_alloc&) {
            return end(ExitCode::out_of_memory, "out of memory");
        } catch (const std::length_error&) {
            return end(ExitCode::out_of_memory, "out of memory: a size is beyond what this machine can address");
        } catch (const std::exception& error) {
            return end(ExitCode::bad_file, error.what());
        }
    };
    return static_cast<int>(run_to_the_end());
}
