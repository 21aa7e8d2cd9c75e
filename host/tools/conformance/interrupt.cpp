// SPDX-License-Identifier: MIT
#include "conformance/interrupt.hpp"

#include <signal.h>
#ifdef _WIN32
#include <windows.h>
#endif

#include <atomic>

namespace vkrope::conformance {
namespace {

std::atomic<int> came = 0;
std::atomic<int> came_again = 0;
static_assert(std::atomic<int>::is_always_lock_free);

#ifdef _WIN32

void end_by(int) noexcept {
    ::TerminateProcess(::GetCurrentProcess(), DWORD(STATUS_CONTROL_C_EXIT));
}

// Windows calls this in a new thread. Once it returns for a window that closes, the process ends.
BOOL WINAPI note_interrupt(DWORD event) {
    int none = 0;
    if (!came.compare_exchange_strong(none, SIGINT) && ++came_again > 1) end_by(SIGINT);
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) ::Sleep(INFINITE);
    return TRUE;
}

#else

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

#endif

}  // namespace

void note_interrupts() noexcept {
#ifdef _WIN32
    ::SetConsoleCtrlHandler(note_interrupt, TRUE);
#else
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
#endif
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
