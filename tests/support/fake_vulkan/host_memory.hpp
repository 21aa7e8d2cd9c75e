// SPDX-License-Identifier: MIT
// Observes host memory: this executable's operator new counts calls, and fails on demand.
#pragma once

#include <cstddef>

namespace vkrope::test {

/// While one exists, allocations are neither counted nor failed: used for the bookkeeping of the
/// fake and of doctest.
class Unobserved {
   public:
    Unobserved() noexcept;
    ~Unobserved();
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
};

/// Starts counting calls of operator new; the `fail_at`-th, from 1, fails. 0: none does.
void observe_host_memory(std::size_t fail_at = 0) noexcept;

/// Stops counting, and returns the count.
std::size_t observed_allocations() noexcept;

}  // namespace vkrope::test
