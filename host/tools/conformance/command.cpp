// SPDX-License-Identifier: MIT
#include "conformance/command.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "conformance/cases/suite.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/interrupt.hpp"
#include "conformance/repeat.hpp"
#include "conformance/report.hpp"
#include "conformance/shell_word.hpp"
#include "conformance/table.hpp"
#include "shell/command_line.hpp"
#include "shell/output_file.hpp"
#include "shell/program.hpp"
#include "shell/terminal.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

constexpr tools::Choice<Level> levels[] = {{"quick", Level::quick}, {"full", Level::full}};

struct Options {
    std::string device;
    std::vector<std::string> cases;
    bool no_builtin = false;
    std::string outputs, json, filter;
    Level level = Level::quick;
    bool list = false, with_uuid = false, validation = false;
    std::uint32_t timeout_s = 30, repeat = 1;
    std::vector<std::string> table, missing;
};

void add_options(tools::CommandLine& program, Options& options) {
    program
        .add_text("--device", "DEVICE", options.device,
                  "Index, UUID or part of the name of the device, or all (the best one).")
        .from_environment("VKROPE_DEVICE");
    program.add_texts("--cases", "DIR", options.cases,
                      "Run every folder at or below DIR that holds a case.json; may be repeated.");
    program.add_flag("--no-builtin", options.no_builtin, "Run cases only.");
    program.add_text("--write-outputs", "DIR", options.outputs,
                     "Write DIR/<id>/actual_q.npy and actual_k.npy of every case.");
    program.add_text("--json", "FILE", options.json, "Write a JSON report to FILE; - is stdout.");
    program.add_flag("--list", options.list, "List what would run, and run nothing.");
    program.add_text("--filter", "ID", options.filter,
                     "Run only checks and cases with this id; * and ? stand for any characters.");
    program.add_choice("--level", options.level, levels,
                       "How much of the built-in checks to run (quick).");
    program.add_integer("--repeat", options.repeat, 1u, 1000000u,
                        "Run each check N times and demand the same bits; 1 to 1000000 (1).", "N");
    program.add_flag("--with-uuid", options.with_uuid,
                     "Include the UUID of each device in the JSON report.");
    program.add_texts("--table", "FILE...", options.table,
                      "Run nothing: print one table of these reports of --json. Exit code 1 if a "
                      "device failed, or if nothing was checked on it.",
                      true);
    program.add_texts("--missing", "NAME=REASON", options.missing,
                      "Name in the table a device that was not available; may be repeated.");
    program.add_flag("--validation", options.validation,
                     "Run with the validation layer; an error of it fails the check.");
    program
        .add_integer("--timeout", options.timeout_s, 1u, 86400u,
                     "Seconds to wait for one submission, 1 to 86400 (30).", "SECONDS")
        .from_environment("VKROPE_TIMEOUT");
}

std::vector<Group> find_groups(const Options& options, BuiltinGroups builtin) {
    std::vector<Group> groups;
    if (!options.no_builtin) {
        groups = builtin(options.level);
    }
    if (!options.cases.empty()) {
        groups.push_back(find_cases(options.cases, options.outputs));
    }
    if (groups.empty()) {
        tools::fail(ExitCode::usage, "--cases is missing, so there is nothing to run");
    }
    if (options.repeat > 1) {
        repeat_checks(groups, options.repeat);
    }
    if (options.filter.empty()) {
        return groups;
    }
    std::size_t left = 0;
    for (Group& group : groups) {
        std::erase_if(group.checks, [&options](const std::unique_ptr<Check>& check) {
            // An id may contain pattern characters.
            return check->id() != options.filter &&
                   ::fnmatch(options.filter.c_str(), check->id().c_str(), 0) != 0;
        });
        left += group.checks.size();
    }
    if (left == 0) {
        tools::fail(ExitCode::usage, "--filter: '{}' matches no id that would run (see --list)",
                    options.filter);
    }
    return groups;
}

void make_output_folder(const std::string& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem || !std::filesystem::is_directory(folder, problem)) {
        tools::fail(ExitCode::bad_file, "--write-outputs: '{}' cannot be made a folder: {}", folder,
                    problem.message());
    }
}

/// Returns the value of DeviceOptions::select for each device.
std::vector<std::string> selected_devices(const Options& options) {
    if (options.device != "all") {
        return {options.device};
    }
    std::vector<std::string> selected;
    const std::vector<DeviceInfo> found = tools::value_of(devices(), tools::Subject::device);
    for (std::size_t index = 0; index < found.size(); ++index) {
        if (found[index].suitable) {
            selected.push_back(std::to_string(index));
        } else {
            tools::print_note(
                fmt::format("{} is left out: {}", found[index].name, found[index].reason));
        }
    }
    if (selected.empty()) {
        tools::fail(ExitCode::no_device, "there is no suitable Vulkan device");
    }
    return selected;
}

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

std::string repeating_command(const Check& check, const std::string& select, bool validation) {
    const std::string source = check.source_options();
    return fmt::format("vkrope-conformance{}{}{}{} --filter {}",
                       select.empty() ? "" : " --device " + shell_word(select),
                       validation ? " --validation" : "", source.empty() ? "" : " ", source,
                       shell_word(check.id()));
}

/// Shared by the whole run: a line that could not be printed ends the run, but the report stays
/// complete up to there.
using Unprinted = std::optional<tools::Failure>;

DeviceReport run_on(const Options& options, const std::string& select,
                    const std::vector<Group>& groups, Unprinted& unprinted) {
    const std::uint64_t timeout_ns = std::uint64_t{options.timeout_s} * 1'000'000'000;
    DeviceUnderTest device(
        {.select = select, .validation = options.validation, .timeout_ns = timeout_ns});
    DeviceReport report = {.device = device.info(),
                           .traits = device.traits(),
                           .checks = {},
                           .whole_suite = !options.no_builtin && options.filter.empty()};
    tools::print_note(fmt::format("running on {}, {}", report.device.name, report.device.driver));
    std::size_t count = 0;
    for (const Group& group : groups) {
        count += group.checks.size();
    }
    const bool prints_lines = options.json != "-";
    std::optional<tools::ProgressLine> progress;
    if (!prints_lines || ::isatty(STDOUT_FILENO) !=
                             1) {  // lines that appear on a terminal show the progress themselves
        progress.emplace("checking");
    }
    bool lost = false;
    for (const Group& group : groups) {
        for (const std::unique_ptr<Check>& check : group.checks) {
            if (interrupted_by() != 0 || unprinted) {
                report.interrupted = true;
                return report;
            }
            if (progress) {
                progress->update(double(report.checks.size()) / double(count));
            }
            CheckReport done = {.group = group.name, .id = check->id(), .outcome = {}};
            try {
                done.outcome = lost ? Outcome{.verdict = Verdict::error,
                                              .reason = "not run: the device has failed",
                                              .exit = ExitCode::device_failed}
                                    : run_check(*check, device);
            } catch (const Interrupted&) {
                report.interrupted = true;
                return report;
            }
            const Outcome& outcome = done.outcome;
            if (is_bad(outcome.verdict) && !lost) {
                tools::print_warning(
                    fmt::format("{}: {}: {}", word_for(outcome.verdict), done.id, outcome.reason));
                tools::print_note("to repeat it: " +
                                  repeating_command(*check, select, options.validation));
            }
            lost = lost ||
                   (outcome.verdict == Verdict::error && outcome.exit == ExitCode::device_failed);
            report.checks.push_back(std::move(done));
            if (prints_lines) {
                try {
                    tools::write_output(line_of(report.checks.back()));
                } catch (const tools::Failure& failure) {
                    unprinted = failure;
                }
            }
        }
    }
    return report;
}

/// Fails now if the report cannot be written, not after all checks have run.
void check_report_file(const std::string& json) {
    if (!json.empty() && json != "-") {
        const tools::OutputFile writable(
            "--json", json, 1);  // removed again: the size of the report is not known yet
    }
}

void write_report(const Options& options, const Report& report) {
    const nlohmann::ordered_json json = json_of(report, options.level, options.with_uuid);
    const std::string table = table_of(json.at("devices"));
    std::fwrite(table.data(), 1, table.size(), stderr);
    if (options.json.empty()) {
        return;
    }
    if (options.json == "-") {
        tools::write_json(json);
        return;
    }
    const std::string text =
        json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
    std::vector<tools::OutputFile> files;
    files.emplace_back("--json", options.json, text.size()).write(text);
    tools::OutputFile::publish(files);
}

/// Prints one table of the results that other runs, on other drivers, have reported.
ExitCode merge_reports(const Options& options) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    std::string empty_report;
    for (const std::string& file : options.table) {
        nlohmann::ordered_json reported = read_devices(file);
        if (reported.empty()) {
            empty_report = fmt::format("--table: '{}' has no device: nothing was checked", file);
        }
        for (nlohmann::ordered_json& device : reported) {
            devices.push_back(std::move(device));
        }
    }
    std::vector<MissingDevice> missing;
    for (const std::string& text : options.missing) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) {
            tools::fail(ExitCode::usage, "--missing: '{}' must be NAME=REASON", text);
        }
        missing.push_back({.name = text.substr(0, equals), .reason = text.substr(equals + 1)});
    }
    tools::write_output(table_of(devices, missing));
    const std::string shortfall = shortfall_of(devices);
    if (!shortfall.empty() || !empty_report.empty()) {
        tools::print_error(shortfall.empty() ? empty_report : shortfall);
        return ExitCode::verification_failed;
    }
    return ExitCode::success;
}

ExitCode run_checks(const Options& options, BuiltinGroups builtin) {
    const std::vector<Group> groups = find_groups(options, builtin);
    if (options.list) {
        for (const Group& group : groups) {
            for (const std::unique_ptr<Check>& check : group.checks) {
                tools::write_output(check->id() + '\n');
            }
        }
        return ExitCode::success;
    }
    if (!options.outputs.empty()) {
        make_output_folder(options.outputs);
    }
    check_report_file(options.json);
    Report report;
    Unprinted unprinted;
    note_interrupts();
    for (const std::string& select : selected_devices(options)) {
        if (interrupted_by() == 0 && !unprinted) {
            report.push_back(run_on(options, select, groups, unprinted));
        }
    }
    try {
        write_report(options, report);
    } catch (const tools::Failure&) {
        end_if_interrupted();  // for example by SIGPIPE
        throw;
    }
    end_if_interrupted();
    if (unprinted) {
        throw *unprinted;
    }
    const ExitCode code = exit_of(report);
    if (code != ExitCode::success) {
        tools::print_error(sentence_of(report));
    }
    return code;
}

}  // namespace

ExitCode run_command(int argc, char** argv, BuiltinGroups builtin) {
    tools::CommandLine program(
        "Checks Vulkan devices against the definition of rotary position embedding.",
        "vkrope-conformance", VKROPE_VERSION);
    Options options;
    add_options(program, options);
    program.on_run([&] {
        return options.table.empty() && options.missing.empty() ? run_checks(options, builtin)
                                                                : merge_reports(options);
    });
    return program.run(argc, argv);
}

}  // namespace vkrope::conformance
