// SPDX-License-Identifier: MIT
#include "cli/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/output_file.hpp"

namespace vkrope::tools {
namespace {

std::atomic<bool> held = false;
std::atomic<int> waiting = 0;  // the interrupt that arrived while interrupts were held
std::atomic<const char*> lost_by_crash = "";
std::atomic<bool> crashes_end_by_signal = false;

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

[[noreturn]] void end_at_once(ExitCode code,
                              std::initializer_list<std::string_view> sentence) noexcept {
    remove_temporaries();
    const auto say = [](std::string_view part) {
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part.data(), part.size());
    };
    say("vkrope: error: ");
    for (const std::string_view part : sentence) {
        say(part);
    }
    say("\n");
    ::_exit(static_cast<int>(code));
}

extern "C" void on_crash(int signal) {
    if (crashes_end_by_signal) {
        end_by(signal);  // takes effect when this handler has returned
        return;
    }
    end_at_once(ExitCode::device_failed,
                {"crashed, most likely in the Vulkan driver; ", lost_by_crash.load()});
}

std::atomic<const ExitGuard*> youngest = nullptr;

extern "C" void on_exit_of_anyone() {
    if (const ExitGuard* guard = youngest; guard != nullptr) {
        end_at_once(guard->code(), {guard->sentence()});
    }
}

/// Sets an alternate stack, unless a sanitizer has set one already, which the sanitizer will free.
void give_handlers_a_stack() noexcept {
    alignas(64) static unsigned char memory[64 << 10];  // several times the size of all registers
    stack_t stack = {};
    if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
        stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = sizeof memory};
        ::sigaltstack(&stack, nullptr);
    }
}

/// Leaves a signal unchanged if it is ignored (nohup) or has a handler already (from a sanitizer).
void handle_unless_taken(int signal, void (*handler)(int)) noexcept {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
        action.sa_handler == SIG_DFL) {
        action = {};
        action.sa_handler = handler;
        action.sa_flags = SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
}

}  // namespace

void install_signal_handlers(const char* lost) noexcept {
    lost_by_crash = lost;
    give_handlers_a_stack();
    for (const int signal : interrupts) {
        handle_unless_taken(signal, on_interrupt);
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP}) {
        handle_unless_taken(signal, on_crash);
    }
    ::signal(SIGXFSZ, SIG_IGN);
}

void let_crashes_end_by_signal() noexcept {
    crashes_end_by_signal = true;
}

ExitGuard::ExitGuard(ExitCode code, std::string sentence)
    : older_(youngest), code_(code), sentence_(std::move(sentence)) {
    [[maybe_unused]] static const int registered = std::atexit(on_exit_of_anyone) +
                                                   std::at_quick_exit(on_exit_of_anyone);
    youngest = this;
}

ExitGuard::~ExitGuard() {
    youngest = older_;
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
