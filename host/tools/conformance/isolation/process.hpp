// SPDX-License-Identifier: MIT
// What POSIX and Windows do differently with child processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::conformance {

// The way a process ended: by an exit code, or as `sentence` describes.
struct ProcessEnd {
    std::optional<int> exit_code = {};
    bool out_of_memory = false;
    int signal = 0;             // the signal that ended it; 0: none, or it is unknown
    std::string sentence = {};  // "crashed, signal 11 (SIGSEGV)"
};

// A process with two pipes to this one: its output, and the lines of send_line().
class Process {
   public:
    using Take = std::function<void(std::string_view)>;

    // Starts a program. The interrupt key reaches the process only through this one, and processes
    // that it starts end with it. Throws tools::Failure if it cannot be started.
    //
    // words        the program, then its arguments
    // environment  variables that override those of this process
    Process(const std::vector<std::string>& words,
            const std::map<std::string, std::string>& environment);
    ~Process();  // kills it if it is still running

    // Reads what has arrived, lines before output. Waits for it up to `wait_ms`.
    void read(int wait_ms, const Take& take_lines, const Take& take_output);

    // Returns the way it ended, or nullopt while it is running. Not to be called after it has
    // returned an end.
    std::optional<ProcessEnd> ended();

    // Forwards an interrupt of this process.
    void interrupt(int signal);

    void kill();

   private:
    struct State;
    std::unique_ptr<State> state_;
};

// For the process that a Process started. begin_child() is called before any other program is
// started, and ends this process if the parent has ended; from then on it ends with its parent.
void begin_child();

// Sends a line to the parent. Ends this process if the parent no longer exists.
void send_line(std::string_view line);

// Ends this process without the code of any library.
[[noreturn]] void end_process(int code) noexcept;

// Removes a variable from the environment of this process.
void remove_variable(const char* name);

// Returns the command that starts this program again. Under an emulator that the system does not
// start by itself, the variable VKROPE_SELF gives the command: "qemu-aarch64 -L ROOT PROGRAM".
//
// argv  the argument of main()
std::vector<std::string> own_command(int argc, char** argv);

}  // namespace vkrope::conformance
