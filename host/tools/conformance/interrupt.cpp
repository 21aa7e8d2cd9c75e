// SPDX-License-Identifier: MIT
#include "conformance/interrupt.hpp"

#include <signal.h>

#include <atomic>

namespace vkrope::conformance {
namespace {

std::atomic<int> came = 0;
std::atomic<int> came_again = 0;
static_assert(std::atomic<int>::is_always_lock_free);

// Signals that end a program by default and are not crashes, but requests of a user or a limit.
constexpr int interrupts[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE,   SIGALRM, SIGTERM,
                              SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, SIGXCPU};

void end_by(int signal) noexcept {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

extern "C" void note_interrupt(int signal) {
    int none = 0;
    if (came.compare_exchange_strong(none, signal)) return;
    // SIGPIPE and SIGXCPU are not counted: SIGPIPE comes with each write to a closed pipe, SIGXCPU
    // with each second beyond a limit.
    if (signal != SIGPIPE && signal != SIGXCPU && ++came_again > 1) end_by(signal);
}

}  // namespace

void note_interrupts() noexcept {
    for (const int signal : interrupts) {
        struct sigaction action = {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
            action = {};
            action.sa_handler = note_interrupt;
            action.sa_flags = SA_RESTART;
            ::sigemptyset(&action.sa_mask);
            ::sigaction(signal, &action, nullptr);
        }
    }
}

int interrupted_by() noexcept {
    return came;
}

void leave_off_if_interrupted() {
    if (came != 0) throw Interrupted();
}

void end_if_interrupted() noexcept {
    if (came != 0) end_by(came);
}

}  // namespace vkrope::conformance
