// SPDX-License-Identifier: MIT
#include "conformance/isolation/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "conformance/interrupt.hpp"
#include "shell/failure.hpp"
#include "shell/signals.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;
using Json = nlohmann::json;

/// A message is its length, then CBOR, which unlike JSON takes strings of any bytes.
using Length = std::uint32_t;

struct Pipe {
    int read = -1, write = -1;
};

Pipe make_pipe() {
    int ends[2];
    if (::pipe(ends) != 0) {
        tools::fail(ExitCode::out_of_memory, "a process for a device cannot be started: {}",
                    std::strerror(errno));
    }
    for (const int end : ends) {
        ::fcntl(end, F_SETFD, FD_CLOEXEC);
    }
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return {ends[0], ends[1]};
}

void write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(file, text.data(), text.size());
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            ::_exit(static_cast<int>(ExitCode::bad_file));  // nobody is there to be told
        }
    }
}

/// Reads what there is; false at the end of the pipe.
bool read_into(int file, const std::function<void(std::string_view)>& take) {
    char piece[65536];
    for (;;) {
        const ssize_t count = ::read(file, piece, sizeof piece);
        if (count > 0) {
            take({piece, static_cast<std::size_t>(count)});
        } else if (count == 0) {
            return false;
        } else if (errno != EINTR) {
            return true;
        }
    }
}

const char* name_of(int signal) {
    switch (signal) {
        case SIGSEGV: return "SIGSEGV";
        case SIGBUS: return "SIGBUS";
        case SIGFPE: return "SIGFPE";
        case SIGILL: return "SIGILL";
        case SIGABRT: return "SIGABRT";
        case SIGSYS: return "SIGSYS";
        case SIGTRAP: return "SIGTRAP";
        case SIGKILL: return "SIGKILL";
        case SIGTERM: return "SIGTERM";
        default: return ::strsignal(signal);
    }
}

}  // namespace

void Sender::send(const Json& message) const {
    std::string bytes(sizeof(Length), '\0');
    Json::to_cbor(message, bytes);
    const auto length = static_cast<Length>(bytes.size() - sizeof(Length));
    std::memcpy(bytes.data(), &length, sizeof length);
    write_all(pipe_, bytes);
}

void Sender::finish() const {
    send({{"finished", true}});
    std::fflush(nullptr);
    ::_exit(0);
}

ChildProcess::ChildProcess(const Body& body, ChildLimits limits,
                           std::function<void(std::string_view)> printed)
    : limits_(limits), printed_(std::move(printed)) {
    const Pipe messages = make_pipe(), output = make_pipe();
    std::fflush(nullptr);        // what is buffered must not be printed twice
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody learns how a process ended
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ == -1) {
        tools::fail(ExitCode::out_of_memory, "a process for a device cannot be started: {}",
                    std::strerror(errno));
    }
    if (process_ == 0) {
        ::setpgid(0, 0);
#ifdef __linux__
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != parent) {
            ::_exit(static_cast<int>(ExitCode::bad_file));
        }
        run(body, messages.write, output.write);
    }
    // A group of its own: a key that interrupts reaches it through this process alone, once, and
    // what it starts ends with it. Both sides set it, since either may be the first.
    ::setpgid(process_, process_);
    ::close(messages.write);
    ::close(output.write);
    messages_ = messages.read;
    output_ = output.read;
    started_ = call_began_ = Clock::now();
}

void ChildProcess::run(const Body& body, int messages, int output) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    tools::let_crashes_end_by_signal();
    const Sender sender(messages);
    const tools::ExitGuard guard(ExitCode::device_failed,
                                 "ended by a library that it uses, most likely the Vulkan driver");
    try {
        body(sender, *activity_);
    } catch (const tools::Failure& failure) {
        sender.send({{"failure", failure.what()}, {"code", static_cast<int>(failure.code())}});
    } catch (const std::bad_alloc&) {
        sender.send(
            {{"failure", "out of memory"}, {"code", static_cast<int>(ExitCode::out_of_memory)}});
    } catch (const std::exception& error) {
        sender.send({{"failure", error.what()}, {"code", static_cast<int>(ExitCode::bad_file)}});
    }
    sender.finish();
}

ChildProcess::~ChildProcess() {
    if (process_ != -1) {
        ::kill(-process_, SIGKILL);
        ::kill(process_, SIGKILL);
        while (::waitpid(process_, nullptr, 0) == -1 && errno == EINTR) {
        }
    }
    ::close(messages_);
    ::close(output_);
}

std::optional<Json> ChildProcess::next() {
    bool running = process_ != -1;
    for (;;) {
        if (std::optional<Json> message = take_message()) {
            if (!message->contains("finished")) {
                return message;
            }
            finished_ = true;
            continue;
        }
        if (!running) {
            end_ = describe();
            return std::nullopt;
        }
        pass_interrupt_on();
        end_if_silent();
        running = !reap();
        read_pipes(running ? 100 : 0);
    }
}

std::optional<Json> ChildProcess::take_message() {
    Length length = 0;
    if (received_.size() < sizeof length) {
        return std::nullopt;
    }
    std::memcpy(&length, received_.data(), sizeof length);
    if (received_.size() - sizeof length < length) {
        return std::nullopt;
    }
    // A driver that writes to a file that is not its own can spoil the pipe.
    Json message = Json::from_cbor(received_.begin() + sizeof length,
                                   received_.begin() + sizeof length + length, true, false);
    received_.erase(0, sizeof length + length);
    return message.is_object() ? message : Json::object();
}

void ChildProcess::read_pipes(int wait_ms) {
    pollfd pipes[] = {{messages_, POLLIN, 0}, {output_, POLLIN, 0}};
    if (::poll(pipes, 2, wait_ms) <= 0 && wait_ms > 0) {
        return;
    }
    // Messages first: what was printed before one is then shown before it is dealt with.
    const bool open = read_into(messages_,
                                [this](std::string_view piece) { received_.append(piece); });
    read_into(output_, printed_);
    if (!open && wait_ms > 0) {  // it ends any moment, and poll() no longer waits
        ::usleep(1000);
    }
}

void ChildProcess::pass_interrupt_on() {
    if (const int signal = interrupted_by(); signal != 0 && !passed_on_) {
        passed_on_ = true;
        ::kill(process_, signal);
    }
}

void ChildProcess::end_if_silent() {
    const Clock::time_point now = Clock::now();
    if (const std::uint64_t calls = activity_->calls; calls != last_call_) {
        last_call_ = calls;
        call_began_ = now;
    }
    if (!over_limit_.empty()) {
        return;
    }
    if (activity_->call != nullptr && now - call_began_ > limits_.call) {
        over_limit_ = fmt::format("has not returned from {} for {} seconds", activity_->call.load(),
                                  limits_.call.count());
    } else if (now - started_ > limits_.whole) {
        over_limit_ = fmt::format("took more than {} seconds{}", limits_.whole.count(), place());
    }
    if (!over_limit_.empty()) {
        ::kill(-process_, SIGKILL);
    }
}

/// True once the process has ended.
bool ChildProcess::reap() {
    const pid_t ended = ::waitpid(process_, &status_, WNOHANG);
    if (ended == 0 || (ended == -1 && errno == EINTR)) {
        return false;
    }
    ::kill(-process_, SIGKILL);  // what it started
    process_ = -1;
    return true;
}

std::string ChildProcess::place() const {
    const char* const call = activity_->call;
    return call != nullptr ? fmt::format(" in {}", call) : " outside of any Vulkan call";
}

ChildEnd ChildProcess::describe() const {
    if (!over_limit_.empty()) {
        return {.sentence = over_limit_};
    }
    if (WIFEXITED(status_)) {
        const int code = WEXITSTATUS(status_);
        return code == 0 && finished_
                   ? ChildEnd{.well = true}
                   : ChildEnd{.sentence = fmt::format("was ended by a library that it uses, most "
                                                      "likely the Vulkan driver,{} (exit code {})",
                                                      place(), code)};
    }
    const int signal = WTERMSIG(status_);
    if (signal == SIGKILL) {
        return {.out_of_memory = true,
                .sentence = fmt::format("was killed{}, signal 9 (SIGKILL): most likely the system "
                                        "ran out of memory",
                                        place())};
    }
    return {.sentence = fmt::format("crashed{}, signal {} ({})", place(), signal, name_of(signal))};
}

}  // namespace vkrope::conformance
