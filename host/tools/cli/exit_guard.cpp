// SPDX-License-Identifier: MIT
#include "cli/exit_guard.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "cli/terminal.hpp"

namespace vkrope::tools {
namespace {

std::atomic<const ExitGuard*> youngest = nullptr;

extern "C" void on_exit_of_anyone() {
    if (const ExitGuard* guard = youngest; guard != nullptr) {
        print_error(guard->sentence());
        ::_exit(int(guard->code()));
    }
}

}  // namespace

ExitGuard::ExitGuard(ExitCode code, std::string sentence)
    : older_(youngest), code_(code), sentence_(std::move(sentence)) {
    [[maybe_unused]] static const int registered = std::atexit(on_exit_of_anyone) +
                                                   std::at_quick_exit(on_exit_of_anyone);
    youngest = this;
}

ExitGuard::~ExitGuard() {
    youngest = older_;
}

}  // namespace vkrope::tools
