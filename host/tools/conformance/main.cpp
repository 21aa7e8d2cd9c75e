// SPDX-License-Identifier: MIT
#include "conformance/command.hpp"
#include "shell/program.hpp"

int main(int argc, char** argv) {
    using namespace vkrope;
    return tools::run_program(conformance::lost_report, [=] {
        return conformance::run_command(argc, argv, conformance::builtin_groups);
    });
}
