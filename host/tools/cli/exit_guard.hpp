// SPDX-License-Identifier: MIT
// Handles exits that a library forces: the exit code is never success.
#pragma once

#include <string>

#include "cli/failure.hpp"

namespace vkrope::tools {

// While a guard exists, exit() prints `sentence` and ends the program with `code`, whatever status
// it was given: a driver that calls exit() has failed. The most recent guard applies. Calls to
// _exit() cannot be caught.
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

}  // namespace vkrope::tools
