// SPDX-License-Identifier: MIT
#include "cli/program.hpp"
#include "conformance/command.hpp"

int main(int argc, char** argv) {
    using namespace vkrope;
    return tools::run_program(conformance::lost_report, [=] {
        return conformance::run_command(argc, argv, conformance::builtin_groups);
    });
}
