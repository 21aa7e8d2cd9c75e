// SPDX-License-Identifier: MIT
// Prints the table of lies, a line each: "lie" or "liberty", its name, what it is.
#include <cstdio>

#include "lies.hpp"

namespace {

void print(const char* kind, std::span<const vkrope::lies::Lie> lies) {
    for (const vkrope::lies::Lie& lie : lies) {
        std::printf("%s\t%s\t%s\n", kind, lie.name, lie.what);
    }
}

}  // namespace

int main() {
    print("lie", vkrope::lies::shader_lies());
    print("lie", vkrope::lies::command_lies());
    print("lie", vkrope::lies::device_lies());
    print("liberty", vkrope::lies::liberties());
}
