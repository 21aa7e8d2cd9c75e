// SPDX-License-Identifier: MIT
// Tests the report of vkrope-conformance with a suite in which one check passes and the others must
// not pass.
#include "cli/program.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/command.hpp"

namespace {

using namespace vkrope;
using namespace vkrope::conformance;

// Compares a correct device with the values of other frequencies, so the check must fail.
void another_frequency(Test& test) {
    Trial trial = trial_of(VKROPE_F32, 8, 4);
    trial.call.positions.first = 1;
    const Rotated right = test.run(trial);
    trial.inv_freq = {1, 0.1, 0.01, 0.002};
    const Rotated other = test.run(trial);
    test.expect(right.rows[Q] == other.rows[Q], "seeded: other frequencies give different bits");
}

std::vector<Group> groups(const Extent& extent) {
    std::vector<Group> all(1);
    all[0].name = "seeded faults";
    Checks checks(all[0], "seeded", extent);
    checks.add("good", [](Test& test) { test.run(trial_of(VKROPE_F16, 8, 4)); });
    checks.add("fault", another_frequency);
    checks.add("fault of full", another_frequency, Level::full);
    checks.add(
        "fault before a refusal",
        [](Test& test) {
            another_frequency(test);
            unsupported("seeded: a refusal");
        },
        Level::full);
    checks.add(
        "refusal", [](Test&) { unsupported("seeded: a refusal"); }, Level::full);
    checks.add(
        "nothing", [](Test&) {}, Level::full);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    return tools::run_program(
        lost_report, [=] { return run_command(argc, argv, groups); });
}
