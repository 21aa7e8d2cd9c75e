// SPDX-License-Identifier: MIT
#include "conformance/repeat.hpp"

#include <map>

#include "conformance/device_under_test.hpp"
#include "conformance/interrupt.hpp"

namespace vkrope::conformance {
namespace {

class RepeatedCheck : public Check {
   public:
    RepeatedCheck(std::unique_ptr<Check> check, std::uint32_t times)
        : check_(std::move(check)), times_(times) {}

    const std::string& id() const noexcept override { return check_->id(); }
    std::string source_options() const override {
        const std::string options = check_->source_options();
        return fmt::format("--repeat {}{}{}", times_, options.empty() ? "" : " ", options);
    }

    Outcome run(DeviceUnderTest& device) override {
        static_cast<void>(device.traits());                // measured before the first run
        std::map<std::uint64_t, std::uint32_t> runs_with;  // runs by their answers()
        Outcome outcome;
        for (std::uint32_t i = 0; i < times_; ++i) {
            leave_off_if_interrupted();
            static_cast<void>(device.answers());
            const Outcome now = check_->run(device);
            if (now.verdict == Verdict::error || now.verdict == Verdict::unsupported) return now;
            ++runs_with[device.answers()];
            if (i == 0 || (now.verdict == Verdict::fail && outcome.verdict != Verdict::fail))
                outcome = now;
        }
        if (runs_with.size() > 1) {
            std::uint32_t most = 0;
            for (const auto& [answers, runs] : runs_with) most = std::max(most, runs);
            outcome.verdict = Verdict::unstable;
            outcome.reason = fmt::format("{} of {} runs give other bits than the rest{}{}",
                                         times_ - most, times_, outcome.reason.empty() ? "" : "; ",
                                         outcome.reason);
        }
        return outcome;
    }

   private:
    std::unique_ptr<Check> check_;
    std::uint32_t times_;
};

}  // namespace

void repeat_checks(std::vector<Group>& groups, std::uint32_t times) {
    for (Group& group : groups)
        for (std::unique_ptr<Check>& check : group.checks)
            check = std::make_unique<RepeatedCheck>(std::move(check), times);
}

}  // namespace vkrope::conformance
