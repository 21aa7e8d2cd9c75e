// SPDX-License-Identifier: MIT
// Quotes words so that a printed command can be pasted into a shell.
#pragma once

#include <string>

namespace vkrope::conformance {

// Returns `text` quoted as one word of a POSIX shell, or of cmd on Windows.
std::string shell_word(const std::string& text);

}  // namespace vkrope::conformance
