// SPDX-License-Identifier: MIT
#include "cli/program.hpp"

#include <exception>
#include <new>
#include <stdexcept>

#include "cli/exit_guard.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"

namespace vkrope::tools {
namespace {

ExitCode end(ExitCode code, const char* sentence) {
    print_error(sentence);
    return code;
}

ExitCode run_to_the_end(const char* lost, const std::function<ExitCode()>& run) {
    if (!open_standard_streams()) return end(ExitCode::bad_file, "standard output: is closed");
    const ExitGuard guard(
        ExitCode::device_failed,
        fmt::format("ended by a library that it uses, most likely the Vulkan driver; {}", lost));
    try {
        return run();
    } catch (const Failure& failure) {
        return end(failure.code(), failure.what());
    } catch (const std::bad_alloc&) {
        return end(ExitCode::out_of_memory, "out of memory");
    } catch (const std::length_error&) {
        return end(ExitCode::out_of_memory,
                   "out of memory: a size is beyond what this machine can address");
    } catch (const std::exception& error) {
        return end(ExitCode::bad_file, error.what());
    }
}

}  // namespace

int run_program(const char* lost, const std::function<ExitCode()>& run) {
    return int(run_to_the_end(lost, run));
}

}  // namespace vkrope::tools
