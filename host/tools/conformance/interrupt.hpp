// SPDX-License-Identifier: MIT
// What a signal that would end the program does while checks run: the check that runs comes to its
// end, or leaves off where it has calls left to make, and what has been found is reported. So it is
// after a second one, for who presses a key twice wants the report no less; a third ends the
// program where it is.
#pragma once

namespace vkrope::conformance {

/// Interrupts only leave a note from here on; those that are ignored, as under nohup, stay ignored.
void note_interrupts() noexcept;

/// The signal that came; 0: none.
int interrupted_by() noexcept;

/// Thrown by a check that leaves off: it has no outcome.
struct Interrupted {};

/// For a check that may take long: throws Interrupted where a signal came.
void leave_off_if_interrupted();

/// Ends the program as the signal that came would have ended it, so that whoever started it learns
/// of it. Returns where none came.
void end_if_interrupted() noexcept;

}  // namespace vkrope::conformance
