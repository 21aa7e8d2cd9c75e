// SPDX-License-Identifier: MIT
// Fails every call of a scenario, in turn, with every result that it may have.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_vulkan.hpp"
#include "vkrope/types.hpp"

namespace vkrope::test {

/// Something that a program does with the library.
struct Scenario {
    std::string name;
    FakeConfig config = {};
    /// Makes what `act` starts from; what it returns is destroyed at the end. Nothing fails meanwhile.
    std::function<std::shared_ptr<void>()> prepare = [] { return std::shared_ptr<void>(); };
    /// Does it, and destroys what it made. `prepared` is what prepare() returned.
    std::function<Status(void* prepared)> act = {};
    /// Nothing that `act` made may outlive it; otherwise the device may keep memory for later.
    bool keeps_nothing = true;
    /// Host allocations that may fail without harm.
    std::size_t harmless_allocations = 0;
};

/// A failure that another outcome than its own error is right for.
struct Tolerance {
    const char* scenario;  ///< start of its name
    const char* entry;
    std::vector<VkResult> results;  ///< empty: all of them
    std::vector<Code> outcomes;
    const char* reason;
};

/// Counts and fails; every deviation is a failed check of doctest.
void fail_every_call(const Scenario& scenario, const std::vector<Tolerance>& tolerances = {});

/// The same for each operator new of the library: out_of_host_memory, and nothing leaked.
void fail_every_allocation(const Scenario& scenario);

/// "failure injection: N points, N failed as they should"
std::string injection_summary();

}  // namespace vkrope::test
