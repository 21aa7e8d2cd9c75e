// SPDX-License-Identifier: MIT
// A command that can be pasted.
#pragma once

#include <string>

namespace vkrope::conformance {

/// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace vkrope::conformance
