// SPDX-License-Identifier: MIT
// Handles signals that would end the program while checks run: the current check completes, or
// stops early if it has calls left to make, and the results so far are reported. A second signal
// changes nothing, because a user who presses a key twice still wants the report; a third ends the
// program at once.
#pragma once

namespace vkrope::conformance {

/// From here on interrupts only set a flag. Those that are ignored, as under nohup, stay ignored.
void note_interrupts() noexcept;

/// Returns the first signal that arrived; 0: none.
int interrupted_by() noexcept;

/// Thrown by a check that stops early: it has no outcome.
struct Interrupted {};

/// For checks that may take long: throws Interrupted if a signal has arrived.
void leave_off_if_interrupted();

/// Ends the program by the signal that arrived, so that the parent process sees it. Returns if
/// there was none.
void end_if_interrupted() noexcept;

}  // namespace vkrope::conformance
