// SPDX-License-Identifier: MIT
// A function in a process of its own: it sends messages, and however it ends, its parent learns
// how.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/isolation/activity.hpp"

namespace vkrope::conformance {

/// The end of the pipe that a child writes to.
class Sender {
   public:
    explicit Sender(int pipe) noexcept : pipe_(pipe) {}
    /// Sends `message` to the parent; ends the process if there is none any more.
    void send(const nlohmann::json& message) const;
    /// Ends the process well, and at once: nothing is destroyed.
    [[noreturn]] void finish() const;

   private:
    int pipe_;
};

/// How long a parent waits for its child.
struct ChildLimits {
    std::chrono::seconds call;   ///< for one Vulkan call
    std::chrono::seconds whole;  ///< for the whole process
};

/// How a child ended. `sentence` says it: "crashed in vkQueueSubmit, signal 11 (SIGSEGV)".
struct ChildEnd {
    bool well = false;  ///< its function returned
    bool out_of_memory = false;
    std::string sentence = {};
};

class ChildProcess {
   public:
    using Body = std::function<void(const Sender&, Activity&)>;

    /// Starts a process that calls `body`. What it prints, and its driver, goes to `printed`.
    ChildProcess(const Body& body, ChildLimits limits,
                 std::function<void(std::string_view)> printed);
    /// Ends the process if it still runs.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// Waits for the next message; nothing once the process has ended or a limit has ended it. A
    /// first interrupt of this process is passed on to the child, which then ends early.
    std::optional<nlohmann::json> next();

    /// After next() has returned nothing.
    const ChildEnd& end() const noexcept { return end_; }

    const Activity& activity() const noexcept { return *activity_; }

   private:
    using Clock = std::chrono::steady_clock;
    [[noreturn]] void run(const Body& body, int messages, int output);
    std::optional<nlohmann::json> take_message();
    void read_pipes(int wait_ms);
    void pass_interrupt_on();
    void end_if_silent();
    bool reap();
    ChildEnd describe() const;
    std::string place() const;

    SharedActivity activity_;
    ChildLimits limits_;
    std::function<void(std::string_view)> printed_;
    pid_t process_ = -1;
    int messages_ = -1, output_ = -1;  // ends of pipes that are read
    std::string received_;
    bool passed_on_ = false, finished_ = false;
    int status_ = 0;  // of waitpid()
    Clock::time_point started_, call_began_;
    std::uint64_t last_call_ = 0;
    std::string over_limit_;  // why it was killed
    ChildEnd end_;
};

}  // namespace vkrope::conformance
