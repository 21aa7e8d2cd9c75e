// SPDX-License-Identifier: MIT
// The command "vkrope": selects the subcommand.
#include "cli/commands.hpp"
#include "cli/program.hpp"

namespace vkrope::tools {
namespace {

ExitCode run(int argc, char** argv) {
    CommandLine vkrope("Rotary position embedding on Vulkan devices.", "vkrope",
                       VKROPE_PROJECT_VERSION);
    for (const auto add :
         {add_devices, add_frequencies, add_explain, add_rotate, add_check, add_make_input})
        add(vkrope);
    return vkrope.run(argc, argv);
}

}  // namespace
}  // namespace vkrope::tools

int main(int argc, char** argv) {
    // Files are published and JSON is printed after the device is closed.
    return vkrope::tools::run_program("no output was written",
                                      [=] { return vkrope::tools::run(argc, argv); });
}
