// SPDX-License-Identifier: MIT
// What happens when the command is interrupted, or crashes: no temporary file stays behind.
#pragma once

namespace vkrope::tools {

/// Interrupts (SIGINT, SIGTERM, SIGHUP) remove the temporary files and then do what they do by default. Crashes, here most
/// likely a driver's, do the same and exit with ExitCode::device_failed. A file-size limit becomes an error of write().
void install_signal_handlers() noexcept;

/// While one exists, interrupts wait, in whichever thread they arrive.
class SignalsHeld {
   public:
    SignalsHeld() noexcept;
    ~SignalsHeld();
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
};

}  // namespace vkrope::tools
