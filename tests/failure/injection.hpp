// SPDX-License-Identifier: MIT
// Fails every call of a scenario, in turn, with every result that it may have.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_vulkan/fake_vulkan.hpp"
#include "vkrope/types.hpp"

namespace vkrope::test {

/// How many a scenario has, where that is a promise; else at least one.
using Promised = std::optional<std::size_t>;

/// Something that a program does with the library.
struct Scenario {
    std::string name;
    FakeConfig config = {};
    /// Makes what `act` starts from; what it returns is destroyed at the end. Nothing fails
    /// meanwhile.
    std::function<std::shared_ptr<void>()> prepare = [] { return std::shared_ptr<void>(); };
    /// Does it, and destroys what it made. `prepared` is what prepare() returned.
    std::function<Status(void* prepared)> act = {};
    /// Nothing that `act` made may outlive it; otherwise what was prepared may keep memory for
    /// later, and be lost for good.
    bool keeps_nothing = true;
    Promised calls = {};        ///< calls that return a VkResult
    Promised allocations = {};  ///< calls of operator new
    /// Host allocations that may fail without harm.
    std::size_t harmless_allocations = 0;
};

/// A failure that another outcome than its own error is right for.
struct Tolerance {
    const char* scenario;  ///< start of its name
    const char* entry;
    std::vector<VkResult> results;
    std::vector<Code> outcomes;
    const char* reason;
};

/// Counts and fails; every deviation is a failed check of doctest. So is a result or an outcome
/// that is tolerated and never comes.
void fail_every_call(const std::vector<Scenario>& scenarios,
                     const std::vector<Tolerance>& tolerances = {});

/// The same for each operator new of the library: out_of_host_memory, and nothing leaked. Memory of
/// malloc is not failed; only Vulkan Memory Allocator asks for it, for its own objects, and has no
/// way to say that there is none.
void fail_every_allocation(const std::vector<Scenario>& scenarios);

/// "failure injection: N points in N scenarios, N failed as they should"
std::string injection_summary();

}  // namespace vkrope::test
