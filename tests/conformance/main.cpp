// SPDX-License-Identifier: MIT
#include "command.hpp"
#include "program.hpp"

int main(int argc, char** argv) {
    return vkrope::tools::run_program(
        [=] { return vkrope::conformance::run_command(argc, argv, vkrope::conformance::builtin_groups); });
}
