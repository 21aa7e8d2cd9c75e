// SPDX-License-Identifier: MIT
// Runs a program in a separate process, which may send lines to its parent, each a JSON object. The
// parent learns how the process ended in every case.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/isolation/process.hpp"

namespace vkrope::conformance {

// The settings for watching a child.
struct Watch {
    // A child that sends no line for this long is killed. A pause of this process counts as a
    // second at most.
    std::chrono::seconds limit;
    std::function<void(std::string_view)> printed;  // receives the output of child and driver
};

// The way a child ended. `sentence` describes it: "crashed, signal 11 (SIGSEGV)".
struct ChildEnd {
    bool well = false;  // exit code 0 after the line {"finished": true}
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
    ChildEnd describe() const;

    Watch watch_;
    Process process_;
    std::string received_;
    bool finished_ = false;
    int passed_on_ = 0;  // the forwarded signal, or 0
    std::optional<ProcessEnd> how_;
    Clock::time_point counted_;    // when silent_ grew
    Clock::duration silent_ = {};  // since the last line
    bool over_limit_ = false;
    ChildEnd end_;
};

}  // namespace vkrope::conformance
