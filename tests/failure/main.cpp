// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstdio>

#include "injection.hpp"

int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    const int failed = context.run();
    if (context.shouldExit()) return failed;
    std::printf("%s\n", vkrope::test::injection_summary().c_str());
    return failed;
}
