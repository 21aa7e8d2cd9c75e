// SPDX-License-Identifier: MIT
// Host memory under observation: this executable's operator new counts, and fails on demand.
#pragma once

#include <cstddef>

namespace vkrope::test {

/// While one exists, what is allocated is neither counted nor failed: the fake's own bookkeeping,
/// and doctest's.
class Unobserved {
   public:
    Unobserved() noexcept;
    ~Unobserved();
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
};

/// Counts calls of operator new from here on; the `fail_at`-th, from 1, fails. 0: none does.
void observe_host_memory(std::size_t fail_at = 0) noexcept;

/// Stops counting, and returns the count.
std::size_t observed_allocations() noexcept;

}  // namespace vkrope::test
