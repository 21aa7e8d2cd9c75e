// SPDX-License-Identifier: MIT
// Passes one target to libFuzzer: the function VKROPE_FUZZ_TARGET.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    vkrope::fuzz::VKROPE_FUZZ_TARGET(vkrope::fuzz::Input({data, bytes}));
    return 0;
}
