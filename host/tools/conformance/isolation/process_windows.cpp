// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <signal.h>
#include <windows.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "cli/failure.hpp"
#include "conformance/isolation/process.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

constexpr const char* lines_variable = "VKROPE_LINES";  // the handle of the pipe, inherited
constexpr DWORD pipe_bytes = 1 << 20;  // a process that writes less does not wait for this one

HANDLE lines_to_parent = nullptr;

struct CloseHandles {
    void operator()(HANDLE handle) const noexcept { ::CloseHandle(handle); }
};
using Owned = std::unique_ptr<void, CloseHandles>;

[[noreturn]] void not_started(const std::string& program) {
    const DWORD error = ::GetLastError();
    tools::fail(error == ERROR_NOT_ENOUGH_MEMORY || error == ERROR_COMMITMENT_LIMIT
                    ? ExitCode::out_of_memory
                    : ExitCode::bad_file,
                "'{}' cannot be started: Windows error {}", program, error);
}

struct Pipe {
    Owned read, write;
};

// Makes a pipe whose write end a child inherits.
Pipe make_pipe(const std::string& program) {
    HANDLE read = nullptr, write = nullptr;
    if (::CreatePipe(&read, &write, nullptr, pipe_bytes) == 0) not_started(program);
    Pipe pipe{Owned(read), Owned(write)};
    ::SetHandleInformation(write, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    return pipe;
}

void read_into(HANDLE pipe, const Process::Take& take) {
    char piece[65536];
    DWORD count = 0;
    // At most 2 MiB, which is more than a pipe holds: a driver that prints without end fills it as
    // fast.
    for (int pieces = 0;
         pieces < 32 && ::PeekNamedPipe(pipe, nullptr, 0, nullptr, &count, nullptr) != 0 &&
         count > 0 && ::ReadFile(pipe, piece, sizeof piece, &count, nullptr) != 0;
         ++pieces)
        take({piece, count});
}

// Quotes words as the start-up code of C programs reads them: backslashes escape a quotation mark,
// and themselves only before one.
std::string command_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) {
        line += line.empty() ? "\"" : " \"";
        std::size_t backslashes = 0;
        for (const char c : word) {
            if (c == '"') line.append(backslashes + 1, '\\');
            backslashes = c == '\\' ? backslashes + 1 : 0;
            line += c;
        }
        line.append(backslashes, '\\');
        line += '"';
    }
    return line;
}

// An exception ends a process with its code as exit code: bit 31 is set, and bit 28 is not.
constexpr DWORD exception_mask = 0x90000000, exception_bits = 0x80000000;

const char* name_of(DWORD exception) {
    switch (exception) {
        case 0x80000003: return "breakpoint";
        case 0xc0000005: return "access violation";
        case 0xc0000006: return "in-page error";
        case 0xc000001d: return "illegal instruction";
        case 0xc0000094: return "integer division by zero";
        case 0xc00000fd: return "stack overflow";
        case 0xc0000135: return "a DLL is missing";
        case 0xc0000374: return "heap corruption";
        case 0xc0000409: return "fail fast";
        default: return "an exception of its own";
    }
}

ProcessEnd end_of(DWORD code) {
    if (code == 0xc0000017 || code == 0xc000012d)  // no memory; commitment limit
        return {.out_of_memory = true, .sentence = "ended because the system ran out of memory"};
    if (code == DWORD(STATUS_CONTROL_C_EXIT))
        return {.signal = SIGINT, .sentence = "was interrupted by Ctrl+C or Ctrl+Break"};
    if ((code & exception_mask) == exception_bits)
        return {.sentence = fmt::format("crashed, exception {:#x} ({})", code, name_of(code))};
    return {.exit_code = int(code)};
}

// Ends the process before a debugger or a window starts, which would wait for a user.
LONG WINAPI end_by(EXCEPTION_POINTERS* exception) {
    ::TerminateProcess(::GetCurrentProcess(), exception->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
}

}  // namespace

struct Process::State {
    Owned job, process;
    Owned lines, output;  // the read ends of the pipes
    DWORD id = 0;
};

Process::Process(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment)
    : state_(std::make_unique<State>()) {
    Pipe lines = make_pipe(words[0]), output = make_pipe(words[0]);
    state_->job.reset(::CreateJobObjectW(nullptr, nullptr));
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
                                              JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
    if (::SetInformationJobObject(state_->job.get(), JobObjectExtendedLimitInformation, &limits,
                                  sizeof limits) == 0)
        not_started(words[0]);
    STARTUPINFOA files = {};
    files.cb = sizeof files;
    files.dwFlags = STARTF_USESTDHANDLES;
    files.hStdInput = ::GetStdHandle(STD_INPUT_HANDLE);
    files.hStdOutput = files.hStdError = output.write.get();
    // The process inherits the variables.
    std::map<std::string, std::string> variables = environment;
    variables[lines_variable] = std::to_string(std::uintptr_t(lines.write.get()));
    for (const auto& [name, value] : variables)
        if (::SetEnvironmentVariableA(name.c_str(), value.c_str()) == 0) not_started(words[0]);
    PROCESS_INFORMATION started = {};
    const BOOL well = ::CreateProcessA(words[0].c_str(), command_line(words).data(), nullptr,
                                       nullptr, TRUE, CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP,
                                       nullptr, nullptr, &files, &started);
    const DWORD error = ::GetLastError();
    for (const auto& [name, value] : variables) ::SetEnvironmentVariableA(name.c_str(), nullptr);
    ::SetLastError(error);
    if (well == 0) not_started(words[0]);
    const Owned thread(started.hThread);
    state_->process.reset(started.hProcess);
    state_->id = started.dwProcessId;
    state_->lines = std::move(lines.read);
    state_->output = std::move(output.read);
    if (::AssignProcessToJobObject(state_->job.get(), started.hProcess) == 0) {
        ::TerminateProcess(started.hProcess, 1);
        not_started(words[0]);
    }
    ::ResumeThread(thread.get());
}

// Waits, because a process that a driver keeps still has the device.
Process::~Process() {
    kill();
    ::WaitForSingleObject(state_->process.get(), 10000);  // ms
}

void Process::read(int wait_ms, const Take& take_lines, const Take& take_output) {
    // The pipes cannot be waited for. 10 ms are short beside a check.
    if (wait_ms > 0) ::WaitForSingleObject(state_->process.get(), 10);
    read_into(state_->lines.get(), take_lines);
    read_into(state_->output.get(), take_output);
}

std::optional<ProcessEnd> Process::ended() {
    if (::WaitForSingleObject(state_->process.get(), 0) != WAIT_OBJECT_0) return std::nullopt;
    DWORD code = 0;
    ::GetExitCodeProcess(state_->process.get(), &code);
    kill();  // processes that the child started
    return end_of(code);
}

// A process group gets no Ctrl+C. Without a console there is no key to press either.
void Process::interrupt(int) {
    ::GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, state_->id);
}

void Process::kill() {
    ::TerminateJobObject(state_->job.get(), 1);
}

void begin_child() {
    const char* const text = std::getenv(lines_variable);
    std::uintptr_t handle = 0;
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), handle);
    lines_to_parent = reinterpret_cast<HANDLE>(handle);
    if (::SetHandleInformation(lines_to_parent, HANDLE_FLAG_INHERIT, 0) == 0)
        end_process(int(ExitCode::bad_file));
    remove_variable(lines_variable);
    ::SetUnhandledExceptionFilter(end_by);
}

void send_line(std::string_view line) {
    const std::string text = std::string(line) + '\n';
    DWORD written = 0;
    if (::WriteFile(lines_to_parent, text.data(), DWORD(text.size()), &written, nullptr) == 0)
        end_process(int(ExitCode::bad_file));
}

// ExitProcess() would call the driver, which may hang.
void end_process(int code) noexcept {
    ::TerminateProcess(::GetCurrentProcess(), UINT(code));
    std::abort();
}

void remove_variable(const char* name) {
    ::_putenv((std::string(name) + '=').c_str());
}

std::vector<std::string> own_command(int argc, char** argv) {
    std::vector<std::string> words(argv, argv + argc);
    std::string path(32768, '\0');  // bytes, more than any path has
    path.resize(::GetModuleFileNameA(nullptr, path.data(), DWORD(path.size())));
    words[0] = path;
    return words;
}

}  // namespace vkrope::conformance
