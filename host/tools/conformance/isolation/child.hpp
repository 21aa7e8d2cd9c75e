// SPDX-License-Identifier: MIT
// A program in a process of its own: it may send lines, each a JSON object, and however it ends,
// its parent learns how.
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

/// The file number of the pipe that a child writes its lines to.
inline constexpr int line_file = 3;

/// How a parent watches its children.
struct Watch {
    std::chrono::seconds limit;  ///< a child that sends no line for this long ends
    std::function<void(std::string_view)> printed;  ///< receives what it prints, and its driver
};

/// How a child ended. `sentence` says it: "crashed, signal 11 (SIGSEGV)".
struct ChildEnd {
    bool well = false;  ///< exit code 0 after the line {"finished": true}
    std::optional<int> exit_code = {};
    bool out_of_memory = false;
    bool interrupted = false;  ///< by the signal that its parent passed on
    std::string sentence = {};
};

class ChildProcess {
   public:
    /// Starts a program. Throws tools::Failure if it cannot be started.
    ///
    /// words        the program, then its arguments
    /// environment  variables that replace those of this process
    ChildProcess(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment, const Watch& watch);
    /// Ends the process if it still runs.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// Waits for the next line but the last, {"finished": true}; nothing once the process has ended
    /// or the limit has ended it. A first interrupt of this process is passed on to the child,
    /// which then ends early.
    std::optional<nlohmann::json> next();

    /// After next() has returned nothing.
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
    int lines_ = -1, output_ = -1;  // ends of pipes that are read
    std::string received_;
    bool finished_ = false;
    int passed_on_ = 0;  // a signal
    int status_ = 0;     // of waitpid()
    Clock::time_point heard_;
    bool over_limit_ = false;
    ChildEnd end_;
};

/// The command that started this program, for starting it again. Under an emulator, which the
/// system does not start by itself, VKROPE_SELF names it: "qemu-aarch64 -L ROOT PROGRAM".
///
/// argv  of main()
std::vector<std::string> own_command(int argc, char** argv);

}  // namespace vkrope::conformance
