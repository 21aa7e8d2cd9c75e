// SPDX-License-Identifier: MIT
// Handles signals that would end the program while checks run: the current check completes, or
// stops early if it has calls left to make, and the results so far are reported. A second signal
// changes nothing, because a user who presses a key twice still wants the report; a third ends the
// program at once.
#pragma once

namespace vkrope::conformance {

// Makes signals set a flag only. Signals that are ignored, as under nohup, stay ignored.
void note_interrupts() noexcept;

// Returns the first signal that arrived, or 0.
int interrupted_by() noexcept;

// Thrown by a check that stops early and therefore has no outcome.
struct Interrupted {};

// For checks that may take long: throws Interrupted if a signal has arrived.
void leave_off_if_interrupted();

// Ends the program by the signal that arrived, so that the parent process sees the signal. Returns
// if no signal arrived.
void end_if_interrupted() noexcept;

}  // namespace vkrope::conformance
