// SPDX-License-Identifier: MIT
// Makes each Vulkan call of a scenario fail in turn, with every result that the call may return,
// and then each allocation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_vulkan/fake_vulkan.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

// The exact number that a scenario promises; if empty, the number must be at least 1.
using Promised = std::optional<std::size_t>;

// One use of the library by a program.
struct Scenario {
    std::string name;
    FakeConfig config = {};
    // Makes the objects that `act` needs; they are destroyed at the end. No failure is injected
    // into this function.
    std::function<std::shared_ptr<void>()> prepare = [] { return std::shared_ptr<void>(); };
    // Uses the library, and destroys the objects that it made. `prepared` is what prepare() gave.
    std::function<Status(void* prepared)> act = {};
    // If true, no object that `act` made may outlive the call of `act`. If false, the prepared
    // objects may keep memory, and may be unusable after a lost device or a timeout.
    bool keeps_nothing = true;
    Promised calls = {};        // the number of calls that return a VkResult
    Promised allocations = {};  // the number of calls of operator new
    // The number of host allocations that may fail without harm.
    std::size_t harmless_allocations = 0;
    bool slow = false;  // takes seconds, and runs only code that another scenario runs, too
};

// A failure of a call whose correct outcome is not the error of the call.
struct Tolerance {
    const char* scenario;  // the start of the scenario's name
    const char* entry;
    std::vector<VkResult> results;
    std::vector<ErrorCode> outcomes;
    const char* reason;
};

// Counts the calls and allocations of each scenario and makes each fail: each once, and each call
// also together with all later calls of its entry point. The scenario must return the error of the
// call, or out_of_host_memory; it must leak nothing; a second try must succeed. Every deviation is
// a failed check of doctest, and so is a tolerated result or outcome that never occurs though the
// call does. malloc never fails here, because only Vulkan Memory Allocator calls it, for its own
// objects, and cannot report a failure.
void fail_everything(const std::vector<Scenario>& scenarios,
                     const std::vector<Tolerance>& tolerances = {});

// Returns the results other than VK_SUCCESS that an entry point may return.
std::vector<VkResult> result_codes(const std::string& entry, bool fills_array);

}  // namespace vkrope::test
