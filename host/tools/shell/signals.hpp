// SPDX-License-Identifier: MIT
// What happens when the command is interrupted, crashes, or is ended by a library: no temporary
// file stays behind, and none of these is a success.
#pragma once

#include <signal.h>

#include <string>

#include "shell/failure.hpp"

namespace vkrope::tools {

/// Signals that end a program by default remove the temporary files first. Crashes, here most
/// likely a driver's, do the same and exit with ExitCode::device_failed, on a stack of their own,
/// for the other one may be used up. Only the calling thread gets such a stack: a driver's own
/// thread that overflows its stack ends the program by SIGSEGV, temporary files and all, because
/// POSIX lets nobody but that thread give it one. A file-size limit becomes an error of write().
///
/// lost  of the program's outputs, said after a crash; must last as long as the program
void install_signal_handlers(const char* lost) noexcept;

/// Those that end a program by default and are no crash: somebody, or a limit, wants it to end.
inline constexpr int interrupts[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE,   SIGALRM, SIGTERM,
                                     SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, SIGXCPU};

/// While one exists, exit() removes the temporary files and ends the program with a sentence and an
/// exit code, whatever status it was called with: a driver that ends the program has not done its
/// work. The youngest counts. What calls _exit() is beyond us.
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

/// While one exists, interrupts wait, in whichever thread they arrive.
class SignalsHeld {
   public:
    SignalsHeld() noexcept;
    ~SignalsHeld();
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
};

}  // namespace vkrope::tools
