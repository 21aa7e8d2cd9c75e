// SPDX-License-Identifier: MIT
#include "conformance/isolation/worker.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/exit_guard.hpp"
#include "cli/terminal.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/interrupt.hpp"
#include "conformance/isolation/messages.hpp"

namespace vkrope::conformance {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, device, group, traits)

namespace {

using Json = nlohmann::json;
using tools::ExitCode;

constexpr const char* job_variable = "VKROPE_WORKER";

void send(const Json& message) {
    send_line(message.dump(-1, ' ', true, Json::error_handler_t::replace));
}

// Ends the process at once: no destructor runs.
[[noreturn]] void finish() {
    send({{"finished", true}});
    std::fflush(nullptr);
    end_process(0);
}

// Throws Interrupted if the check stops early.
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
    // The reason may quote a file that contains arbitrary bytes.
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

void list_devices(const DeviceOptions& options) {
    Json found = Json::array();
    const DeviceList devices = tools::value_of(DeviceList::make(options), tools::Subject::device);
    for (tools::KnownDevice device : devices) {
        device.name = tools::printable(device.name);
        device.driver = tools::printable(device.driver);
        found.push_back(device);
    }
    send({{"devices", std::move(found)}});
}

void run_group(DeviceOptions options, const Group& group, const std::optional<Traits>& known) {
    DeviceUnderTest device(std::move(options), known);
    if (!known) send({{"traits", device.traits()}});
    for (const std::unique_ptr<Check>& check : group.checks) {
        send({{"begun", check->id()}});
        Outcome outcome;
        try {
            leave_off_if_interrupted();
            outcome = run_check(*check, device);
        } catch (const Interrupted&) {
            send({{"interrupted", interrupted_by()}});
            return;
        }
        send({{"outcome", outcome}});
        if (outcome.verdict == Verdict::error && outcome.exit == ExitCode::device_failed)
            finish();  // closing a lost or busy device may never return
    }
}

}  // namespace

std::map<std::string, std::string> environment_of(const Job& job) {
    return {{job_variable, Json(job).dump(-1, ' ', true, Json::error_handler_t::replace)}};
}

std::optional<Job> job_of_this_process() {
    const char* const text = std::getenv(job_variable);
    if (text == nullptr) return std::nullopt;
    const Job job = Json::parse(text).get<Job>();
    remove_variable(job_variable);
    begin_child();
    return job;
}

void work(const Job& job, DeviceOptions options, const std::function<Group()>& find_group) {
    const tools::ExitGuard guard(ExitCode::device_failed,
                                 "ended by a library that it uses, most likely the Vulkan driver");
    const auto fail = [](const char* sentence, ExitCode code) {
        send({{"failure", sentence}, {"code", int(code)}});
    };
    try {
        options.select = job.device.c_str();
        if (job.group.empty()) {
            list_devices(options);
        } else {
            note_interrupts();
            run_group(std::move(options), find_group(), job.traits);
        }
    } catch (const tools::Failure& failure) {
        fail(failure.what(), failure.code());
    } catch (const std::bad_alloc&) {
        fail("out of memory", ExitCode::out_of_memory);
    } catch (const std::exception& error) {
        fail(error.what(), ExitCode::bad_file);
    }
    finish();
}

}  // namespace vkrope::conformance
