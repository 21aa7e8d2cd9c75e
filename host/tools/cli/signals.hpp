// SPDX-License-Identifier: MIT
// Handles interrupts, crashes, and exits forced by a library: no temporary file is left behind, and
// the exit code is never success.
#pragma once

#include <signal.h>

#include <string>

#include "cli/failure.hpp"

namespace vkrope::tools {

/// Signals that end a program by default first remove the temporary files. Crashes, most likely in
/// a driver, do the same and exit with ExitCode::device_failed. Crash handlers run on an alternate
/// stack, because the normal one may be exhausted. Only the calling thread gets such a stack: if a
/// thread of the driver overflows its stack, SIGSEGV ends the program and leaves the temporary
/// files, because POSIX lets only that thread set its own alternate stack. A file-size limit
/// becomes an error of write().
///
/// lost  what happened to the outputs, printed after a crash; must live as long as the program
void install_signal_handlers(const char* lost) noexcept;

/// From here on a crash removes the temporary files and ends the process by its signal, which a
/// parent process learns; nothing is printed.
void let_crashes_end_by_signal() noexcept;

/// Signals that end a program by default and are not crashes, but requests of a user or a limit.
inline constexpr int interrupts[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE,   SIGALRM, SIGTERM,
                                     SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, SIGXCPU};

/// While a guard exists, exit() removes the temporary files, prints `sentence` and ends the program
/// with `code`, whatever status it was given: a driver that calls exit() has failed. The most
/// recent guard applies. Calls to _exit() cannot be caught.
class ExitGuard {
   public:
    ExitGuard(ExitCode code, std::string sentence);
    ~ExitGuard();
    ExitGuard(const ExitGuard&) = delete;
    ExitGuard& operator=(const ExitGuard&) = delete;

    ExitCode code() const noexcept { return code_; }
    const std::string& sentence() const noexcept { return sentence_; }

   private:
    const ExitGuard* older_;
    ExitCode code_;
    std::string sentence_;
};

/// Defers interrupts of all threads for as long as an object of this class exists.
class SignalsHeld {
   public:
    SignalsHeld() noexcept;
    ~SignalsHeld();
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
};

}  // namespace vkrope::tools
