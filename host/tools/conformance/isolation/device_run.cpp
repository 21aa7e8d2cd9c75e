// SPDX-License-Identifier: MIT
#include "conformance/isolation/device_run.hpp"

#include "conformance/interrupt.hpp"
#include "conformance/isolation/messages.hpp"
#include "conformance/isolation/worker.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::json;
using tools::ExitCode;

// The run on a device stops when this number of consecutive groups end before any check has an
// outcome, because a driver that hangs would use up the time limit of each group.
constexpr std::size_t max_fruitless = 3;

class DeviceRun {
   public:
    DeviceRun(const std::vector<std::string>& command, const FoundDevice& device,
              const Watch& watch, const RunListener& listener)
        : command_(command), watch_(watch),
          listener_(listener), job_{.device = device.select, .group = {}, .traits = {}} {
        report_.device = device.info;
    }

    DeviceReport run(const std::vector<Group>& groups) {
        std::size_t fruitless = 0;
        for (const Group& group : groups) {
            if (group.checks.empty()) continue;
            if (interrupted_by() != 0) stopped_ = true;
            if (stopped_) {
                report_.interrupted = true;
                break;
            }
            if (fruitless == max_fruitless) {
                skip(group, 0,
                     fmt::format("not run: {} groups in a row ended in this way", max_fruitless));
                continue;
            }
            const std::size_t before = judged_;
            const std::size_t ends = report_.ends.size();
            run_one(group);
            fruitless = judged_ > before || report_.ends.size() == ends ? 0 : fruitless + 1;
        }
        return std::move(report_);
    }

   private:
    void run_one(const Group& group) {
        job_.group = group.name;
        ChildProcess child(command_, environment_of(job_), watch_);
        std::size_t begun = 0, done = 0;
        bool lost = false;
        while (const std::optional<Json> line = child.next()) {
            if (line->contains("failure")) {
                refuse(group, done, *line);
                return;
            }
            if (line->contains("interrupted")) {
                stopped_ = report_.interrupted = true;
                ended_by_signal(group, done, line->at("interrupted").get<int>());
                return;
            }
            if (line->contains("traits")) {
                line->at("traits").get_to(report_.traits);
                job_.traits = report_.traits;
            } else if (line->contains("begun")) {
                if (begun == group.checks.size() ||
                    group.checks[begun]->id() != line->at("begun").get<std::string>()) {
                    tools::fail(ExitCode::bad_file, "the checks of the group {} have changed",
                                group.name);
                }
                ++begun;
            } else if (line->contains("outcome") && done < begun) {
                auto outcome = line->at("outcome").get<Outcome>();
                lost = outcome.verdict == Verdict::error && outcome.exit == ExitCode::device_failed;
                judged_ += lost ? 0 : 1;
                if (lost)
                    report_.ends.push_back(outcome.reason + ", in " + group.checks[done]->id());
                if (done + 1 < group.checks.size() || lost)
                    add(group, done, std::move(outcome));
                else
                    last_ = std::move(outcome);  // added after its device is closed
                ++done;
            }
            if (stopped_) {
                report_.interrupted = true;
                return;
            }
        }
        if (child.end().interrupted) {  // before the child could report the signal
            stopped_ = report_.interrupted = true;
            return;
        }
        end(group, begun, done, lost, child.end());
    }

    // Records the end of the process of a group that began `begun` checks, `done` of which have
    // an outcome.
    void end(const Group& group, std::size_t begun, std::size_t done, bool lost,
             const ChildEnd& how) {
        Outcome crash = {
            .verdict = Verdict::error,
            .reason = how.sentence,
            .exit = how.out_of_memory ? ExitCode::out_of_memory : ExitCode::device_failed};
        if (how.well) {
            if (last_) add(group, done - 1, *std::exchange(last_, std::nullopt));
        } else if (!lost) {
            if (begun > done) {
                crash.reason += ", in " + group.checks[done]->id();
            } else {
                crash.reason += fmt::format(", {} of group {}",
                                            done == 0 ? "before the first check" : "after a check",
                                            group.name);
            }
            report_.ends.push_back(crash.reason);
            if (last_) {  // closing the device is no check: the last check fails instead
                crash.reason += fmt::format(", which had ended with: {}", word_for(last_->verdict));
                last_.reset();
                --done;
            }
            add(group, done, crash);
            ++done;
        }
        if (done < group.checks.size())
            skip(group, done, "not run: the device has failed in this group", crash.exit);
    }

    // Handles a device that could not be opened, or a failure that the device did not cause.
    void refuse(const Group& group, std::size_t done, const Json& line) {
        const auto code = ExitCode(line.at("code").get<int>());
        const std::string reason = line.at("failure").get<std::string>();
        if (report_.checks.empty()) throw tools::Failure(code, reason);
        report_.ends.push_back(fmt::format("{}, in group {}", reason, group.name));
        done -= std::exchange(last_, std::nullopt) ? 1 : 0;
        add(group, done, {.verdict = Verdict::error, .reason = reason, .exit = code});
        skip(group, done + 1, "not run: the device could not be opened for this group");
    }

    // Handles a signal that only the child got, which means that the driver sent it.
    void ended_by_signal(const Group& group, std::size_t done, int signal) {
        if (interrupted_by() != 0) return;
        stopped_ = report_.interrupted = false;
        end(group, done + 1, done, false,
            {.sentence = fmt::format("was interrupted by signal {}, which this program did not get",
                                     signal)});
    }

    void skip(const Group& group, std::size_t from, const std::string& reason,
              ExitCode exit = ExitCode::device_failed) {
        for (std::size_t i = from; i < group.checks.size(); ++i)
            add(group, i, {.verdict = Verdict::error, .reason = reason, .exit = exit}, true);
    }

    void add(const Group& group, std::size_t index, Outcome outcome, bool silent = false) {
        const Check& check = *group.checks[index];
        report_.checks.push_back(
            {.group = group.name, .id = check.id(), .outcome = std::move(outcome)});
        if (!listener_(check, report_.checks.back(), report_.checks.size(), silent))
            stopped_ = true;
    }

    const std::vector<std::string>& command_;
    const Watch& watch_;
    const RunListener& listener_;
    Job job_;
    DeviceReport report_;
    std::optional<Outcome> last_;  // outcome of a group's last check, until its device is closed
    std::size_t judged_ = 0;
    bool stopped_ = false;
};

}  // namespace

DeviceReport run_device(const std::vector<std::string>& command, const FoundDevice& device,
                        const std::vector<Group>& groups, const Watch& watch,
                        const RunListener& listener) {
    return DeviceRun(command, device, watch, listener).run(groups);
}

}  // namespace vkrope::conformance
