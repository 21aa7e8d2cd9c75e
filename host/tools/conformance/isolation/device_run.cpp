// SPDX-License-Identifier: MIT
#include "conformance/isolation/device_run.hpp"

#include "conformance/interrupt.hpp"
#include "conformance/isolation/messages.hpp"
#include "conformance/isolation/worker.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::json;
using tools::ExitCode;

/// A device on which this many groups in a row end before any check has an outcome is given up: a
/// driver that hangs would take a time limit for each group.
constexpr std::size_t max_fruitless = 3;

[[noreturn]] void rethrow(const Json& message) {
    throw tools::Failure(static_cast<ExitCode>(message.at("code").get<int>()),
                         message.at("failure").get<std::string>());
}

class DeviceRun {
   public:
    DeviceRun(const DeviceOptions& options, const FoundDevice& device, ChildLimits limits,
              const RunListener& listener)
        : options_(options), manifest_(device.manifest), limits_(limits), listener_(listener) {
        options_.select = device.select;
        report_.device = device.info;
    }

    DeviceReport run(const std::vector<Group>& groups, bool with_facts) {
        std::size_t fruitless = 0;
        for (const Group& group : groups) {
            if (group.checks.empty()) {
                continue;
            }
            if (interrupted_by() != 0) {
                stopped_ = true;
            }
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
        const bool answers = fruitless < max_fruitless;
        report_.may_be_timed = answers && judged_ > 0;
        if (with_facts && !stopped_ && answers) {
            find_facts_apart();
        }
        return std::move(report_);
    }

   private:
    void run_one(const Group& group) {
        ChildProcess child(
            [&](const Sender& sender, Activity& activity) {
                load_only(manifest_);
                run_group(options_, group, traits_, sender, activity);
            },
            limits_, listener_.printed);
        std::size_t done = 0;
        bool lost = false;
        while (const std::optional<Json> message = child.next()) {
            if (message->contains("failure")) {
                refuse(group, *message);
                return;
            }
            if (message->contains("interrupted")) {
                stopped_ = report_.interrupted = true;
                ended_by_signal(group, done, message->at("interrupted").get<int>());
                return;
            }
            if (message->contains("traits")) {
                report_.traits = traits_of(message->at("traits"));
                traits_ = report_.traits;
            } else if (message->contains("outcome") && done < group.checks.size()) {
                Outcome outcome = outcome_of(message->at("outcome"));
                lost = outcome.verdict == Verdict::error && outcome.exit == ExitCode::device_failed;
                judged_ += lost ? 0 : 1;
                if (lost) {
                    report_.ends.push_back(
                        fmt::format("{}, in group {}", outcome.reason, group.name));
                }
                if (done + 1 < group.checks.size() || lost) {
                    add(group, done, std::move(outcome));
                } else {
                    last_ = std::move(outcome);  // its device has yet to be closed
                }
                ++done;
            }
            if (stopped_) {
                report_.interrupted = true;
                return;
            }
        }
        end(group, done, lost, child.end());
    }

    void find_facts_apart() {
        ChildProcess child(
            [&](const Sender& sender, Activity& activity) {
                load_only(manifest_);
                send_facts(options_, traits_, sender, activity);
            },
            limits_, listener_.printed);
        while (const std::optional<Json> message = child.next()) {
            if (message->contains("facts")) {
                report_.facts = nlohmann::ordered_json::parse(
                    message->at("facts").get<std::string>(), nullptr, false);
            }
        }
        if (!child.end().well) {
            report_.ends.push_back(child.end().sentence + ", while facts were measured");
        }
    }

    /// The process of a group has ended after `done` checks.
    void end(const Group& group, std::size_t done, bool lost, const ChildEnd& how) {
        std::string sentence = fmt::format("{}, in group {}", how.sentence, group.name);
        Outcome crash = {
            .verdict = Verdict::error,
            .reason = sentence,
            .exit = how.out_of_memory ? ExitCode::out_of_memory : ExitCode::device_failed};
        if (how.well) {
            if (last_) {
                add(group, done - 1, *std::exchange(last_, std::nullopt));
            }
        } else if (!lost) {
            if (last_) {  // closing the device is not a check: the last one gets the blame
                crash.reason += fmt::format(", after the last check: {}", word_for(last_->verdict));
                last_.reset();
                --done;
            }
            add(group, done, crash);
            ++done;
            report_.ends.push_back(std::move(sentence));
        }
        if (done < group.checks.size()) {
            skip(group, done, "not run: the device has failed in this group", crash.exit);
        }
    }

    /// The device could not be opened, or something has failed that is not of the device.
    void refuse(const Group& group, const Json& message) {
        if (report_.checks.empty()) {
            rethrow(message);
        }
        const auto code = static_cast<ExitCode>(message.at("code").get<int>());
        const std::string reason = message.at("failure").get<std::string>();
        report_.ends.push_back(fmt::format("{}, in group {}", reason, group.name));
        last_.reset();
        const std::size_t first = report_.checks.size() - before_group(group);
        add(group, first, {.verdict = Verdict::error, .reason = reason, .exit = code});
        skip(group, first + 1, "not run: the device could not be opened for this group");
    }

    std::size_t before_group(const Group& group) const {
        std::size_t count = report_.checks.size();
        while (count > 0 && report_.checks[count - 1].group == group.name) {
            --count;
        }
        return count;
    }

    /// A signal came to the process alone: the driver sent it.
    void ended_by_signal(const Group& group, std::size_t done, int signal) {
        if (interrupted_by() != 0) {
            return;
        }
        stopped_ = report_.interrupted = false;
        end(group, done, false,
            {.sentence = fmt::format("was interrupted by signal {}, which this program did not get",
                                     signal)});
    }

    void skip(const Group& group, std::size_t from, const std::string& reason,
              ExitCode exit = ExitCode::device_failed) {
        for (std::size_t i = from; i < group.checks.size(); ++i) {
            add(group, i, {.verdict = Verdict::error, .reason = reason, .exit = exit}, true);
        }
    }

    void add(const Group& group, std::size_t index, Outcome outcome, bool silent = false) {
        const Check& check = *group.checks[index];
        report_.checks.push_back(
            {.group = group.name, .id = check.id(), .outcome = std::move(outcome)});
        if (!listener_.ended(check, report_.checks.back(), report_.checks.size(), silent)) {
            stopped_ = true;
        }
    }

    DeviceOptions options_;
    std::string manifest_;
    ChildLimits limits_;
    const RunListener& listener_;
    DeviceReport report_;
    std::optional<Traits> traits_;
    std::optional<Outcome> last_;  // of the last check of a group, until its device is closed
    std::size_t judged_ = 0;
    bool stopped_ = false;
};

}  // namespace

DeviceReport run_device(const DeviceOptions& options, const FoundDevice& device,
                        const std::vector<Group>& groups, ChildLimits limits, bool with_facts,
                        const RunListener& listener) {
    DeviceRun run(options, device, limits, listener);
    return run.run(groups, with_facts);
}

}  // namespace vkrope::conformance
