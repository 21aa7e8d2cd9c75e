// SPDX-License-Identifier: MIT
// Tests the report of vkrope-conformance with a suite in which one check passes and the others must
// not.
#include "cli/program.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/command.hpp"

namespace {

using namespace vkrope;
using namespace vkrope::conformance;

/// The device is correct, but is compared with other frequencies.
void another_frequency(DeviceUnderTest& device, Findings& findings) {
    Trial trial = trial_of(VKROPE_F32, 8, 4);
    trial.call.positions.first = 1;
    const Rotated right = run(device, trial, findings);
    trial.inv_freq = {1, 0.1, 0.01, 0.002};
    const Rotated other = run(device, trial, findings);
    findings.hold(right.rows[Q] == other.rows[Q], "seeded: other frequencies give different bits");
}

std::vector<Group> groups(Level level) {
    std::vector<Group> all(1);
    all[0].name = "seeded faults";
    Checks checks(all[0], "seeded", level);
    checks.add("good", [](DeviceUnderTest& device, Findings& findings) {
        run(device, trial_of(VKROPE_F16, 8, 4), findings);
    });
    checks.add("fault", another_frequency);
    checks.add("fault of full", another_frequency, Level::full);
    checks.add(
        "fault before a refusal",
        [](DeviceUnderTest& device, Findings& findings) {
            another_frequency(device, findings);
            unsupported("seeded: a refusal");
        },
        Level::full);
    checks.add(
        "refusal", [](DeviceUnderTest&, Findings&) { unsupported("seeded: a refusal"); },
        Level::full);
    checks.add(
        "nothing", [](DeviceUnderTest&, Findings&) {}, Level::full);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    return tools::run_program(lost_report, [=] { return run_command(argc, argv, groups); });
}
