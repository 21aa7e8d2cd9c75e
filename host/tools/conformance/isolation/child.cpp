// SPDX-License-Identifier: MIT
#include "conformance/isolation/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/failure.hpp"
#include "conformance/interrupt.hpp"

extern char** environ;

namespace vkrope::conformance {
namespace {

using tools::ExitCode;
using Json = nlohmann::json;

[[noreturn]] void not_started(const std::string& program, int error) {
    tools::fail(error == ENOENT || error == EACCES || error == ENOEXEC ? ExitCode::bad_file
                                                                       : ExitCode::out_of_memory,
                "'{}' cannot be started: {}", program, std::strerror(error));
}

struct Pipe {
    int read = -1, write = -1;
};

Pipe make_pipe(const std::string& program) {
    int ends[2];
    if (::pipe(ends) != 0) not_started(program, errno);
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return {ends[0], ends[1]};
}

// Reads the available bytes. Returns false at the end of the pipe.
bool read_into(int file, const std::function<void(std::string_view)>& take) {
    char piece[65536];
    for (;;) {
        const ssize_t count = ::read(file, piece, sizeof piece);
        if (count > 0)
            take({piece, std::size_t(count)});
        else if (count == 0)
            return false;
        else if (errno != EINTR)
            return true;
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
        case SIGTERM: return "SIGTERM";
        default: return ::strsignal(signal);
    }
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& replaced) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!replaced.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
    }
    for (const auto& [name, value] : replaced) all.push_back(name + '=' + value);
    return all;
}

// Returns a null-terminated array for C functions. `words` must outlive the array.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Starts a process in a new process group. The interrupt key then reaches the child only once,
// through this process, and processes that the child starts end with the child.
int start(pid_t& process, std::vector<std::string> words, std::vector<std::string> environment,
          int lines, int output) {
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    // No pipe has the number of a standard stream. `output` may be line_file, so it comes first.
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, lines, line_file);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    const int error = ::posix_spawnp(&process, words[0].c_str(), &files, &attributes,
                                     pointers_to(words).data(), pointers_to(environment).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    return error;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words,
                           const std::map<std::string, std::string>& environment,
                           const Watch& watch)
    : watch_(watch) {
    const Pipe lines = make_pipe(words[0]), output = make_pipe(words[0]);
    lines_ = lines.read;
    output_ = output.read;
    ::signal(SIGCHLD, SIG_DFL);  // if ignored, waitpid() cannot tell how a process ended
    const int error = start(process_, words, environment_with(environment), lines.write,
                            output.write);
    ::close(lines.write);
    ::close(output.write);
    if (error != 0) {
        ::close(lines_);
        ::close(output_);
        not_started(words[0], error);
    }
    heard_ = Clock::now();
}

ChildProcess::~ChildProcess() {
    if (process_ != -1) {
        ::kill(-process_, SIGKILL);
        while (::waitpid(process_, nullptr, 0) == -1 && errno == EINTR) {
        }
    }
    ::close(lines_);
    ::close(output_);
}

std::optional<Json> ChildProcess::next() {
    bool running = process_ != -1;
    for (;;) {
        if (std::optional<Json> line = take_line()) {
            if (!line->contains("finished")) return line;
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

std::optional<Json> ChildProcess::take_line() {
    const std::size_t end = received_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    // A driver that writes to a file descriptor of another owner can corrupt the pipe.
    Json line = Json::parse(received_.begin(), received_.begin() + std::ptrdiff_t(end), nullptr,
                            false);
    received_.erase(0, end + 1);
    return line.is_object() ? line : Json::object();
}

void ChildProcess::read_pipes(int wait_ms) {
    pollfd pipes[] = {{lines_, POLLIN, 0}, {output_, POLLIN, 0}};
    if (::poll(pipes, 2, wait_ms) <= 0 && wait_ms > 0) return;
    // Reads lines first, so that output printed before a line is shown before the line is handled.
    const bool open = read_into(lines_, [this](std::string_view piece) {
        received_.append(piece);
        heard_ = Clock::now();
    });
    read_into(output_, watch_.printed);
    if (!open && wait_ms > 0)  // the child is about to end, and poll() no longer waits
        ::usleep(1000);
}

void ChildProcess::pass_interrupt_on() {
    if (const int signal = interrupted_by(); signal != 0 && passed_on_ == 0) {
        passed_on_ = signal;
        ::kill(process_, signal);
    }
}

void ChildProcess::end_if_silent() {
    if (!over_limit_ && Clock::now() - heard_ > watch_.limit) {
        over_limit_ = true;
        ::kill(-process_, SIGKILL);
    }
}

// Returns true once the process has ended.
bool ChildProcess::reap() {
    const pid_t ended = ::waitpid(process_, &status_, WNOHANG);
    if (ended == 0 || (ended == -1 && errno == EINTR)) return false;
    ::kill(-process_, SIGKILL);  // processes that the child started
    process_ = -1;
    return true;
}

ChildEnd ChildProcess::describe() const {
    if (over_limit_)
        return {.sentence = fmt::format("took more than {} seconds", watch_.limit.count())};
    if (WIFEXITED(status_)) {
        const int code = WEXITSTATUS(status_);
        return {.well = code == 0 && finished_,
                .exit_code = code,
                .sentence = fmt::format("was ended by a library that it uses, most likely the "
                                        "Vulkan driver (exit code {})",
                                        code)};
    }
    const int signal = WTERMSIG(status_);
    if (signal == SIGKILL) {
        return {
            .out_of_memory = true,
            .sentence = "was killed, signal 9 (SIGKILL): most likely the system ran out of memory"};
    }
    return {.interrupted = signal == passed_on_,
            .sentence = fmt::format("crashed, signal {} ({})", signal, name_of(signal))};
}

std::vector<std::string> own_command(int argc, char** argv) {
    std::vector<std::string> words;
    if (const char* const self = std::getenv("VKROPE_SELF"); self != nullptr && *self != '\0') {
        std::istringstream text(self);
        for (std::string word; text >> word;) words.push_back(word);
        words.insert(words.end(), argv + 1, argv + argc);
        return words;
    }
    // Unlike argv, this includes a dynamic loader that was named before the program.
    std::ifstream command("/proc/self/cmdline", std::ios::binary);
    for (std::string word; std::getline(command, word, '\0');) words.push_back(word);
    if (words.empty())
        words.assign(argv, argv + argc);
    else
        words[0] = "/proc/self/exe";
    return words;
}

}  // namespace vkrope::conformance
