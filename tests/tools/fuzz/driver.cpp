// SPDX-License-Identifier: MIT
// One target for libFuzzer: VKROPE_FUZZ_TARGET is its function.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    vkrope::fuzz::VKROPE_FUZZ_TARGET(vkrope::fuzz::Input({data, bytes}));
    return 0;
}
