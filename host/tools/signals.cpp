// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "failure.hpp"
#include "output_file.hpp"

namespace vkrope::tools {
namespace {

std::atomic<bool> held = false;
std::atomic<int> waiting = 0;  // the interrupt that arrived while held

void end_by(int signal) noexcept {
    remove_temporaries();
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // the parent process learns of the interrupt as if there were no handler
}

extern "C" void on_interrupt(int signal) {
    if (held) {
        waiting = signal;
    } else {
        end_by(signal);
    }
}

extern "C" void on_crash(int) {
    remove_temporaries();
    constexpr char sentence[] = "vkrope: error: crashed, most likely in the Vulkan driver; no output was written\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence, sizeof sentence - 1);
    ::_exit(static_cast<int>(ExitCode::device_failed));
}

/// Leaves alone a signal that is ignored (nohup) or has a handler already (a sanitizer's).
void handle_unless_taken(int signal, void (*handler)(int)) noexcept {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL) {
        action = {};
        action.sa_handler = handler;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
}

}  // namespace

void install_signal_handlers() noexcept {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        handle_unless_taken(signal, on_interrupt);
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        handle_unless_taken(signal, on_crash);
    }
    ::signal(SIGXFSZ, SIG_IGN);
}

SignalsHeld::SignalsHeld() noexcept {
    held = true;
}

SignalsHeld::~SignalsHeld() {
    held = false;
    if (const int signal = waiting.exchange(0); signal != 0) {
        end_by(signal);
    }
}

}  // namespace vkrope::tools
