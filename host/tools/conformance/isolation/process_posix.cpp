// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/failure.hpp"
#include "conformance/isolation/process.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): macOS declares it nowhere

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

// The file descriptor of the pipe that a child writes its lines to.
constexpr int line_file = 3;

constexpr const char* parent_variable = "VKROPE_PARENT";  // its process id

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

// Reads the available bytes, at most 2 MiB, which is more than a pipe holds: a driver that prints
// without end fills it as fast. Returns false at the end of the pipe.
bool read_into(int file, const Process::Take& take) {
    char piece[65536];
    for (int pieces = 0; pieces < 32; ++pieces) {
        const ssize_t count = ::read(file, piece, sizeof piece);
        if (count > 0)
            take({piece, std::size_t(count)});
        else if (count == 0 || errno != EINTR)
            return count != 0;
    }
    return true;
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

std::vector<std::string> environment_with(std::map<std::string, std::string> replaced) {
    replaced[parent_variable] = std::to_string(::getpid());
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!replaced.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
    }
    for (const auto& [name, value] : replaced) all.push_back(fmt::format("{}={}", name, value));
    return all;
}

// Returns a null-terminated array for C functions. `words` must outlive the array.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Starts a process in a new process group.
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

struct Process::State {
    pid_t process = -1;
    int lines = -1, output = -1;  // the read ends of the pipes
};

Process::Process(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment)
    : state_(std::make_unique<State>()) {
    const Pipe lines = make_pipe(words[0]), output = make_pipe(words[0]);
    state_->lines = lines.read;
    state_->output = output.read;
    ::signal(SIGCHLD, SIG_DFL);  // if ignored, waitpid() cannot tell how a process ended
    const int error = start(state_->process, words, environment_with(environment), lines.write,
                            output.write);
    ::close(lines.write);
    ::close(output.write);
    if (error != 0) {
        ::close(state_->lines);
        ::close(state_->output);
        not_started(words[0], error);
    }
}

Process::~Process() {
    if (state_->process != -1) {
        kill();
        while (::waitpid(state_->process, nullptr, 0) == -1 && errno == EINTR) {
        }
    }
    ::close(state_->lines);
    ::close(state_->output);
}

void Process::read(int wait_ms, const Take& take_lines, const Take& take_output) {
    pollfd pipes[] = {{state_->lines, POLLIN, 0}, {state_->output, POLLIN, 0}};
    if (::poll(pipes, 2, wait_ms) <= 0 && wait_ms > 0) return;
    const bool open = read_into(state_->lines, take_lines);
    read_into(state_->output, take_output);
    if (!open && wait_ms > 0)  // the child is about to end, and poll() no longer waits
        ::usleep(1000);
}

std::optional<ProcessEnd> Process::ended() {
    int status = 0;
    const pid_t ended = ::waitpid(state_->process, &status, WNOHANG);
    if (ended == 0 || (ended == -1 && errno == EINTR)) return std::nullopt;
    kill();  // processes that the child started
    state_->process = -1;
    if (WIFEXITED(status)) return ProcessEnd{.exit_code = WEXITSTATUS(status)};
    const int signal = WTERMSIG(status);
    if (signal == SIGKILL) {
        return ProcessEnd{
            .out_of_memory = true,
            .signal = signal,
            .sentence = "was killed, signal 9 (SIGKILL): most likely the system ran out of memory"};
    }
    return ProcessEnd{.signal = signal,
                      .sentence = fmt::format("crashed, signal {} ({})", signal, name_of(signal))};
}

void Process::interrupt(int signal) {
    if (state_->process != -1) ::kill(state_->process, signal);
}

void Process::kill() {
    if (state_->process != -1) ::kill(-state_->process, SIGKILL);
}

void begin_child() {
    ::fcntl(line_file, F_SETFD, FD_CLOEXEC);
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    const char* const parent = std::getenv(parent_variable);
    if (parent == nullptr || std::to_string(::getppid()) != parent)  // it has already ended
        end_process(int(ExitCode::bad_file));
    remove_variable(parent_variable);
}

void send_line(std::string_view line) {
    for (std::string text = std::string(line) + '\n'; !text.empty();) {
        const ssize_t written = ::write(line_file, text.data(), text.size());
        if (written > 0)
            text.erase(0, std::size_t(written));
        else if (errno != EINTR)
            end_process(int(ExitCode::bad_file));
    }
}

void end_process(int code) noexcept {
    ::_exit(code);
}

void remove_variable(const char* name) {
    ::unsetenv(name);
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
