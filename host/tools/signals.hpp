// SPDX-License-Identifier: MIT
// What happens when the command is interrupted, crashes, or is ended by a library: no temporary
// file stays behind, and none of these is a success.
#pragma once

#include "failure.hpp"

namespace vkrope::tools {

/// Signals that end a program by default remove the temporary files first. Crashes, here most
/// likely a driver's, do the same and exit with ExitCode::device_failed, on a stack of their own,
/// for the other one may be used up. Only the calling thread gets such a stack: a driver's own
/// thread that overflows its stack ends the program by SIGSEGV, temporary files and all, because
/// POSIX lets nobody but that thread give it one. A file-size limit becomes an error of write().
void install_signal_handlers() noexcept;

/// While one exists, exit() removes the temporary files and ends the program with a sentence and an
/// exit code, whatever status it was called with: a driver that ends the program has not done its
/// work. The youngest counts. What calls _exit() is beyond us.
class ExitGuard {
   public:
    ExitGuard(ExitCode code, const char* sentence) noexcept;
    ~ExitGuard();
    ExitGuard(const ExitGuard&) = delete;
    ExitGuard& operator=(const ExitGuard&) = delete;

    ExitCode code() const noexcept { return code_; }
    const char* sentence() const noexcept { return sentence_; }

   private:
    const ExitGuard* older_;
    ExitCode code_;
    const char* sentence_;
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
