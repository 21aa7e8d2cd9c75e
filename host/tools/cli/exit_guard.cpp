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
    [[maybe_unused]] static const int registered = std::atexit(on_exit_of_anyone);
#ifndef _WIN32  // MinGW's C library has no quick_exit()
    [[maybe_unused]] static const int also = std::at_quick_exit(on_exit_of_anyone);
#endif
    youngest = this;
}

ExitGuard::~ExitGuard() {
    youngest = older_;
}

}  // namespace vkrope::tools
