// SPDX-License-Identifier: MIT
// Observes host memory: this executable's operator new counts calls, and fails on demand.
#pragma once

#include <cstddef>

namespace vkrope::test {

// While an object of this class exists, allocations are neither counted nor failed. The fake and
// doctest use it for their bookkeeping.
class Unobserved {
   public:
    Unobserved() noexcept;
    ~Unobserved();
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
};

// Starts counting calls of operator new. Call number `fail_at`, from 1, fails; with 0 none does.
void observe_host_memory(std::size_t fail_at = 0) noexcept;

// Stops counting, and returns the count.
std::size_t observed_allocations() noexcept;

}  // namespace vkrope::test
