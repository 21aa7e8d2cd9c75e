// SPDX-License-Identifier: MIT
// Tests how vkrope-conformance reports checks that end their process. Each group of this suite ends
// in a different way, with a good check before and after the bad one.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/program.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/command.hpp"

namespace {

using namespace vkrope;
using namespace vkrope::conformance;

void good(Test& test) {
    test.run(trial_of(VKROPE_F16, 8, 4));
}

// Ends the process as `how` says. A check that returns is good.
void end(const std::string& how) {
    if (how == "crash") ::raise(SIGSEGV);
    if (how == "abort") {
        std::fputs("a driver's last words\n", stderr);
        std::abort();
    }
    if (how == "exit") std::exit(0);
    if (how == "exit at once") ::_exit(0);
    if (how == "kill") ::raise(SIGKILL);
    if (how == "terminate") ::raise(SIGTERM);
    if (how == "lose")
        throw Refusal(Verdict::error, tools::ExitCode::device_failed, "the device is lost");
    while (how == "loop") ::pause();
}

std::vector<Group> groups(const Extent& extent) {
    std::vector<Group> all;
    for (const char* how : {"nothing", "crash", "abort", "exit", "exit at once", "kill",
                            "terminate", "lose", "loop", "nothing more"}) {
        Group& group = all.emplace_back(Group{.name = how, .checks = {}});
        Checks checks(group, how, extent);
        checks.add("before", good);
        checks.add("it", [how](Test& test) {
            end(how);
            good(test);
        });
        checks.add("after", good);
    }
    // The process ends when all checks are done.
    Group& closing = all.emplace_back(Group{.name = "closing", .checks = {}});
    Checks checks(closing, "closing", extent);
    checks.add("it", [](Test& test) {
        good(test);
        // The device drops this function when it is closed.
        const std::shared_ptr<void> last(nullptr, [](void*) { ::raise(SIGBUS); });
        test.device.on_rotate = [last](const Kernel*, const Call&) {};
    });
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    return tools::run_program(
        lost_report, [=] { return run_command(argc, argv, groups); });
}
