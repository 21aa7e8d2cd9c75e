// SPDX-License-Identifier: MIT
// Checks names.hpp, by which all tests read messages: a looser match would weaken each of them.
#include "support/names.hpp"

#include <doctest/doctest.h>

using namespace vkrope::test;

TEST_CASE("a message names whole words, in their order") {
    const std::string message = "rope.factor[1] is -2.5: it must be 1 to 20";
    for (const char* words : {"", "rope.factor[1] -2.5", "rope.factor[1] 1 20", "-2.5 20"})
        CHECK(names(message, words));
    for (const char* words : {"factor[1]", "rope.factor", "rope", "2.5", "-2", "2", "20 1"})
        CHECK(!names(message, words));
}
