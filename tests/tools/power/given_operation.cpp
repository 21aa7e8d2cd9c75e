// SPDX-License-Identifier: MIT
// vkrope-conformance, with one check in place of its own if VKROPE_OPERATION names a file: the
// operation whose text is in the file.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/program.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/command.hpp"
#include "verify/text.hpp"

namespace {

using namespace vkrope::conformance;

std::vector<Group> groups(const Extent& extent) {
    const char* const name = std::getenv("VKROPE_OPERATION");
    if (name == nullptr) return builtin_groups(extent);
    std::ifstream file(name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<Group> all(1);
    all[0].name = "given operation";
    Checks(all[0], "given", extent).add("operation", [text](Test& test) {
        test.run(vkrope::verify::operation_of(text));
    });
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    return vkrope::tools::run_program(
        lost_report, [=] { return run_command(argc, argv, groups); });
}
