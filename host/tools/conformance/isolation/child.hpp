// SPDX-License-Identifier: MIT
// Runs a program in a separate process, which may send lines to its parent, each a JSON object. The
// parent learns how the process ended in every case.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::conformance {

// The file descriptor of the pipe that a child writes its lines to.
inline constexpr int line_file = 3;

// The settings for watching a child.
struct Watch {
    std::chrono::seconds limit;  // a child that sends no line for this long is killed
    std::function<void(std::string_view)> printed;  // receives the output of child and driver
};

// The way a child ended. `sentence` describes it: "crashed, signal 11 (SIGSEGV)".
struct ChildEnd {
    bool well = false;  // exit code 0 after the line {"finished": true}
    std::optional<int> exit_code = {};
    bool out_of_memory = false;
    bool interrupted = false;  // by the signal that its parent forwarded
    std::string sentence = {};
};

class ChildProcess {
   public:
    // Starts a program. Throws tools::Failure if it cannot be started.
    //
    // words        the program, then its arguments
    // environment  variables that override those of this process
    ChildProcess(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment, const Watch& watch);
    // Kills the process if it is still running.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    // Waits for the next line and returns it, except for the last line {"finished": true}. Returns
    // nullopt once the process has ended or was killed at the limit. Forwards the first interrupt
    // of this process to the child, which then ends early.
    std::optional<nlohmann::json> next();

    // Returns the way the child ended. To be called after next() has returned nullopt.
    const ChildEnd& end() const noexcept { return end_; }

   private:
    using Clock = std::chrono::steady_clock;
    std::optional<nlohmann::json> take_line();
    void read_pipes(int wait_ms);
    void pass_interrupt_on();
    void end_if_silent();
    bool reap();
    ChildEnd describe() const;

    Watch watch_;
    pid_t process_ = -1;
    int lines_ = -1, output_ = -1;  // the read ends of the pipes
    std::string received_;
    bool finished_ = false;
    int passed_on_ = 0;  // the forwarded signal, or 0
    int status_ = 0;     // from waitpid()
    Clock::time_point heard_;
    bool over_limit_ = false;
    ChildEnd end_;
};

// Returns the command that starts this program again. Under an emulator that the system does not
// start by itself, the variable VKROPE_SELF gives the command: "qemu-aarch64 -L ROOT PROGRAM".
//
// argv  the argument of main()
std::vector<std::string> own_command(int argc, char** argv);

}  // namespace vkrope::conformance
