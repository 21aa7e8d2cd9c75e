// SPDX-License-Identifier: MIT
// vkrope_bounds_test [--all] [doctest's options]
//
// --all  every float, every turn, and searches that take minutes
#include <doctest/doctest.h>

#include <cstring>

#include "error.hpp"

bool vkrope::bounds::all = false;

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "--all") == 0) vkrope::bounds::all = true;
    doctest::Context context(argc, argv);
    return context.run();
}
