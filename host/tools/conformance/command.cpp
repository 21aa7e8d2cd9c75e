// SPDX-License-Identifier: MIT
#include "conformance/command.hpp"

#include "cli/command_line.hpp"
#include "conformance/isolation/worker.hpp"
#include "conformance/options.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

constexpr tools::Choice<Level> levels[] = {{"quick", Level::quick}, {"full", Level::full}};

void add_options(tools::CommandLine& program, Options& options) {
    program
        .add_text("--device", "DEVICE", options.device,
                  "Index, UUID or part of the name of the device, or all (the best one).")
        .from_environment("VKROPE_DEVICE");
    program.add_text(
        "--json", "FILE", options.json,
        "Write a JSON report to FILE, or into a folder, where it is named after device "
        "and day; - is stdout.");
    program.add_flag("--list", options.list, "List what would run, and run nothing.");
    program.add_text("--filter", "ID", options.filter,
                     "Run only checks with these ids, separated by commas; * and ? stand for any "
                     "characters, and a - before an id leaves it out.");
    program.add_choice("--level", options.extent.level, levels,
                       "How much of the built-in checks to run (quick).");
    program.add_integer("--random", options.extent.random_kernels, 1u, 1u << 30,
                        "Run the random operations of N kernels, random/0 to random/(N-1), in "
                        "place of those of the level.",
                        "N");
    program.add_flag("--no-shrink", options.extent.no_shrink,
                     "Look for no small operation that fails where a random one does.");
    program.add_integer("--repeat", options.repeat, 1u, 1000000u,
                        "Run each check N times and demand the same bits; 1 to 1000000 (1).", "N");
    program.add_flag("--with-uuid", options.with_uuid,
                     "Include the UUID of each device in the JSON report.");
    program.add_text("--waive", "FILE", options.waivers,
                     "Known failures as JSON, {\"waivers\": [{\"check\": ID, \"reason\": TEXT, "
                     "\"link\": URL}]}: they do not fail the run; a waiver that is not needed, or "
                     "names no check, does.");
    program.add_texts("--compare", "OLD NEW", options.compare,
                      "Run nothing: say what changed from one report to another. Exit code 1 where "
                      "a check has become a failure.",
                      true);
    program.add_texts("--page", "OUT.html REPORT...", options.page,
                      "Run nothing: make one page of these reports.", true);
    program.add_flag("--validation", options.validation,
                     "Run with the validation layer; an error of it fails the check.");
    program
        .add_integer("--timeout", options.timeout_s, 1u, 86400u,
                     "Seconds to wait for one submission, 1 to 86400 (30; 300 on a CPU device, "
                     "which compiles a pipeline in the first submission that uses it).",
                     "SECONDS")
        .from_environment("VKROPE_TIMEOUT");
    program.add_integer("--check-timeout", options.check_timeout_s, 1u, 864000u,
                        "Wait no longer for one check; 1 to 864000 (ten times --timeout; at least "
                        "21600 with --level full).",
                        "SECONDS");
}

}  // namespace

ExitCode run_command(int argc, char** argv, BuiltinGroups builtin) {
    tools::CommandLine program(
        "Checks Vulkan devices against the definition of rotary position embedding.",
        "vkrope-conformance", VKROPE_PROJECT_VERSION);
    Options options;
    add_options(program, options);
    program.on_run([&] {
        if (const std::optional<Job> job = job_of_this_process())
            run_worker(*job, options, builtin);
        return !options.page.empty()      ? write_page(options.page)
               : !options.compare.empty() ? compare_reports(options.compare)
                                          : run_checks(options, builtin, own_command(argc, argv));
    });
    return program.run(argc, argv);
}

}  // namespace vkrope::conformance
