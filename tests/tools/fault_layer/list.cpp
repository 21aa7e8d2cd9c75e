// SPDX-License-Identifier: MIT
// Prints one line for each fault of the layer: "fault", "program" (a fault that any program must
// handle) or "variation", its name, and its description.
#include <cstdio>

#include "faults.hpp"

int main() {
    using namespace vkrope::faults;
    const std::pair<const char*, std::span<const Fault>> lists[] = {{"fault", shader_faults()},
                                                                    {"fault", command_faults()},
                                                                    {"fault", device_faults()},
                                                                    {"program", program_faults()},
                                                                    {"variation", variations()}};
    for (const auto& [kind, faults] : lists)
        for (const Fault& one : faults) std::printf("%s\t%s\t%s\n", kind, one.name, one.what);
}
