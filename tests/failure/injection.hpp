// SPDX-License-Identifier: MIT
// Fails every call of a scenario, in turn, with every result that the call may return, and every
// allocation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_vulkan/fake_vulkan.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

/// The number that a scenario promises; without a promise, at least one.
using Promised = std::optional<std::size_t>;

/// Something that a program does with the library.
struct Scenario {
    std::string name;
    FakeConfig config = {};
    /// Makes the objects that `act` starts from; the result is destroyed at the end. Nothing fails
    /// meanwhile.
    std::function<std::shared_ptr<void>()> prepare = [] { return std::shared_ptr<void>(); };
    /// Does it, and destroys what it made. `prepared` is the result of prepare().
    std::function<Status(void* prepared)> act = {};
    /// No object that `act` made may outlive it. If false, the prepared objects may keep memory,
    /// and may stay unusable after a lost device or a timeout.
    bool keeps_nothing = true;
    Promised calls = {};        ///< calls that return a VkResult
    Promised allocations = {};  ///< calls of operator new
    /// Host allocations that may fail without harm.
    std::size_t harmless_allocations = 0;
    bool slow = false;  ///< takes seconds, with code that another scenario has too
};

/// A failure of a call whose correct outcome is not its own error.
struct Tolerance {
    const char* scenario;  ///< start of its name
    const char* entry;
    std::vector<VkResult> results;
    std::vector<ErrorCode> outcomes;
    const char* reason;
};

/// Counts the calls and allocations of each scenario and fails each of them, once and (calls) from
/// there on. The error is that of the call, or out_of_host_memory; nothing leaks; a second try
/// succeeds. Every deviation is a failed check of doctest, and so is a tolerated result or outcome
/// that never occurs though its call does. malloc does not fail: only Vulkan Memory Allocator calls
/// it, for its own objects, and cannot report that it failed.
void fail_everything(const std::vector<Scenario>& scenarios,
                     const std::vector<Tolerance>& tolerances = {});

/// The results that an entry point may return besides VK_SUCCESS.
std::vector<VkResult> result_codes(const std::string& entry, bool fills_array);

}  // namespace vkrope::test
