// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>

#include "cli/output_file.hpp"
#include "cli/program.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/interrupt.hpp"
#include "conformance/isolation/device_run.hpp"
#include "conformance/isolation/worker.hpp"
#include "conformance/options.hpp"
#include "conformance/repeat.hpp"
#include "conformance/report.hpp"
#include "conformance/reports/waivers.hpp"
#include "conformance/selection.hpp"
#include "conformance/shell_word.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

// Allows several submissions per check, before each of which a driver may compile shaders.
std::chrono::seconds limit_of(const Options& options, VkPhysicalDeviceType type) {
    const std::uint32_t quick = 10 * options.timeout_s.value_or(default_timeout_s(type)),
                        full = 12 * 1800;
    return std::chrono::seconds(options.check_timeout_s.value_or(
        options.extent.level == Level::full ? std::max(quick, full) : quick));
}

DeviceOptions device_options(const Options& options) {
    return {.validation = options.validation,
            .timeout_ns = std::uint64_t{options.timeout_s.value_or(0)} * 1'000'000'000};
}

void print_text(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
}

// The state that all parts of a run share.
struct Run {
    const Options& options;
    const std::vector<std::string>& command;  // starts this program again
    Watch watch;                              // for the search for devices
    // Set if a line could not be printed: the run ends, and the report keeps the results so far.
    std::optional<tools::Failure> unprinted = {};
    Report report = {};

    bool stopped() const { return interrupted_by() != 0 || unprinted; }
};

// Returns the devices to test.
std::vector<FoundDevice> selected_devices(const Run& run) {
    const Options& options = run.options;
    std::vector<FoundDevice> found = find_devices(run.command, run.watch);
    if (options.device != "all") {
        std::vector<DeviceInfo> infos;
        for (const FoundDevice& device : found) {
            DeviceInfo info;
            info.name = device.info.name.c_str();
            info.uuid = device.info.uuid.c_str();
            info.reason = device.info.reason.c_str();
            info.suitable = device.info.suitable;
            infos.push_back(info);
        }
        const std::uint32_t index = tools::value_of(
            result_of<std::uint32_t>(vkrope_select_device, infos.data(),
                                     std::uint32_t(infos.size()), options.device.c_str()),
            tools::Subject::device);
        return {found[index]};
    }
    std::vector<FoundDevice> selected;
    for (FoundDevice& device : found) {
        if (device.info.suitable) {
            selected.push_back(std::move(device));
        } else {
            tools::print_note(
                fmt::format("{} is left out: {}", device.info.name, device.info.reason));
        }
    }
    if (selected.empty()) tools::fail(ExitCode::no_device, "there is no suitable Vulkan device");
    return selected;
}

// Returns the options that run a check again.
std::string repeating_options(const Check& check, bool validation) {
    const std::string source = check.source_options();
    return fmt::format("{}{}{} --filter {}", validation ? " --validation" : "",
                       source.empty() ? "" : " ", source, shell_word(check.id()));
}

std::string repeating_command(const Options& options, const FoundDevice& device,
                              const Check& check) {
    const std::string select = options.device == "all" ? device.select : options.device;
    return fmt::format("vkrope-conformance{}{}",
                       select.empty() ? "" : " --device " + shell_word(select),
                       repeating_options(check, options.validation));
}

DeviceReport run_on(Run& run, const FoundDevice& device, const std::vector<Group>& groups) {
    const Options& options = run.options;
    tools::print_note(fmt::format("running on {}, {}", device.info.name, device.info.driver));
    std::size_t count = 0;
    for (const Group& group : groups) count += group.checks.size();
    const bool prints_lines = options.json != "-";
    std::optional<tools::ProgressLine> progress;
    if (!prints_lines ||
        !tools::is_terminal(stdout))  // lines on a terminal already show the progress
        progress.emplace("checking");
    const auto ended = [&](const Check& check, CheckReport& done, std::size_t number, bool silent) {
        if (progress) progress->update(double(number) / double(count));
        const Outcome& outcome = done.outcome;
        if (is_bad(outcome.verdict) && !silent) {
            done.repeat = "vkrope-conformance" + repeating_options(check, options.validation);
            tools::print_warning(
                fmt::format("{}: {}: {}", word_for(outcome.verdict), done.id, outcome.reason));
            tools::print_note("to repeat it: " + repeating_command(options, device, check));
            if (!outcome.operation.empty()) {
                tools::print_note("a small operation that fails, as C++:");
                print_text(outcome.operation);
            }
        }
        if (prints_lines) {
            try {
                tools::write_output(line_of(done));
            } catch (const tools::Failure& failure) {
                run.unprinted = failure;
            }
        }
        return !run.unprinted;
    };
    const Watch watch = {.limit = limit_of(options, device.info.type),
                         .printed = run.watch.printed};
    DeviceReport report = run_device(run.command, device, groups, watch, ended);
    report.whole_suite = options.filter.empty();
    return report;
}

void write_report(Run& run) {
    const Options& options = run.options;
    const nlohmann::ordered_json json = json_of(run.report, options.extent.level,
                                                options.with_uuid);
    print_text(verdicts_text(run.report));
    if (options.json == "-") {
        tools::write_json(json);
    } else if (!options.json.empty()) {
        const std::string report = report_path(options.json, run.report);
        std::vector<tools::OutputFile> files;
        files.emplace_back("--json", report)
            .write(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                   '\n');
        tools::OutputFile::publish(files);
        if (report != options.json) tools::print_note("the report: " + report);
    }
}

// Applies the waivers, and returns sentences about waivers that are not needed.
std::vector<std::string> waive_all(Run& run, const std::vector<Waiver>& waivers) {
    std::vector<std::string> problems;
    for (DeviceReport& device : run.report)
        for (std::string& sentence : waive(device, waivers))
            problems.push_back(std::move(sentence));
    return problems;
}

}  // namespace

void run_worker(const Job& job, const Options& options, BuiltinGroups builtin) {
    work(
        job, device_options(options), [&] { return group_of(job.group, options, builtin); });
}

ExitCode run_checks(const Options& options, BuiltinGroups builtin,
                    const std::vector<std::string>& command) {
    std::vector<Group> groups = builtin(options.extent);
    std::vector<Waiver> waivers;
    if (!options.waivers.empty()) waivers = read_waivers(options.waivers);
    std::vector<std::string> problems = unknown_waivers(waivers, groups);
    apply_filter(options, groups);
    if (options.repeat > 1) repeat_checks(groups, options.repeat);
    if (options.list) {
        for (const Group& group : groups)
            for (const std::unique_ptr<Check>& check : group.checks)
                tools::write_output(check->id() + '\n');
        return ExitCode::success;
    }
    Run run = {.options = options,
               .command = command,
               .watch = {.limit = limit_of(options, VK_PHYSICAL_DEVICE_TYPE_OTHER),
                         .printed = print_text}};
    if (!options.json.empty() && options.json != "-") {
        // Fails now if it cannot be written, instead of after all checks.
        const tools::OutputFile writable("--json", report_path(options.json, run.report));
    }
    const std::vector<FoundDevice> selected = selected_devices(run);
    note_interrupts();
    for (const FoundDevice& device : selected) {
        if (run.stopped()) break;
        try {
            run.report.push_back(run_on(run, device, groups));
        } catch (const tools::Failure& failure) {
            if (selected.size() == 1) throw;
            tools::print_warning(fmt::format("{}: {}", device.info.name, failure.what()));
            run.report.push_back(
                {.device = device.info, .traits = {}, .checks = {}, .ends = {failure.what()}});
        }
    }
    for (std::string& sentence : waive_all(run, waivers)) problems.push_back(std::move(sentence));
    for (const std::string& problem : problems) tools::print_warning(problem);
    try {
        write_report(run);
    } catch (const tools::Failure&) {
        end_if_interrupted();  // for example by SIGPIPE
        throw;
    }
    end_if_interrupted();
    if (run.unprinted) throw *run.unprinted;
    const ExitCode code = exit_of(run.report);
    if (code != ExitCode::success) {
        tools::print_error(sentence_of(run.report));
    } else if (!problems.empty()) {
        tools::print_error(fmt::format("--waive: '{}': {}", options.waivers, problems[0]));
        return ExitCode::verification_failed;
    }
    return code;
}

}  // namespace vkrope::conformance
