// SPDX-License-Identifier: MIT
#include "conformance/isolation/worker.hpp"

#include <algorithm>
#include <chrono>

#include "conformance/device_under_test.hpp"
#include "conformance/facts.hpp"
#include "conformance/interrupt.hpp"
#include "conformance/isolation/messages.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

/// Throws Interrupted if the check stops early.
Outcome run_check(Check& check, DeviceUnderTest& device) {
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    try {
        outcome = check.run(device);
    } catch (const Refusal& refusal) {
        outcome = refusal.outcome();
    } catch (const tools::Failure& failure) {
        outcome = {.verdict = Verdict::error, .reason = failure.what(), .exit = failure.code()};
    } catch (const std::bad_alloc&) {
        outcome = {
            .verdict = Verdict::error, .reason = "out of memory", .exit = ExitCode::out_of_memory};
    } catch (const std::length_error&) {
        outcome = {
            .verdict = Verdict::error, .reason = "out of memory", .exit = ExitCode::out_of_memory};
    }
    // The reason may quote a file, which may contain any bytes.
    std::replace_if(
        outcome.reason.begin(), outcome.reason.end(), [](char c) { return c < ' ' || c > '~'; },
        '?');
    if (const std::string message = device.layer_error(); !message.empty()) {
        outcome.verdict = Verdict::fail;
        outcome.reason = "the validation layer reports " + message +
                         (outcome.reason.empty() ? "" : "; ") + outcome.reason;
    }
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return outcome;
}

}  // namespace

void send_devices(const DeviceOptions& options, const Sender& sender, Activity& activity) {
    DeviceOptions watched = options;
    watched.get_instance_proc_addr = watched_loader(activity);
    nlohmann::json found = nlohmann::json::array();
    for (const DeviceInfo& device : tools::value_of(devices(watched), tools::Subject::device)) {
        found.push_back(message_of(device));
    }
    sender.send({{"devices", std::move(found)}});
}

void run_group(DeviceOptions options, const Group& group, const std::optional<Traits>& known,
               const Sender& sender, Activity& activity) {
    options.get_instance_proc_addr = watched_loader(activity);
    DeviceUnderTest device(std::move(options), known);
    if (!known) {
        sender.send({{"traits", message_of(device.traits())}});
    }
    for (const std::unique_ptr<Check>& check : group.checks) {
        ++activity.checks;
        Outcome outcome;
        try {
            if (interrupted_by() != 0) {
                throw Interrupted();
            }
            outcome = run_check(*check, device);
        } catch (const Interrupted&) {
            sender.send({{"interrupted", interrupted_by()}});
            return;
        }
        sender.send({{"outcome", message_of(outcome)}});
        if (outcome.verdict == Verdict::error && outcome.exit == ExitCode::device_failed) {
            sender.finish();  // to close a device that is lost or busy may never end
        }
    }
}

void send_facts(DeviceOptions options, const std::optional<Traits>& known, const Sender& sender,
                Activity& activity) {
    options.get_instance_proc_addr = watched_loader(activity);
    DeviceUnderTest device(std::move(options), known);
    sender.send({{"facts", find_facts(device).dump(-1, ' ', false,
                                                   nlohmann::json::error_handler_t::replace)}});
}

}  // namespace vkrope::conformance
