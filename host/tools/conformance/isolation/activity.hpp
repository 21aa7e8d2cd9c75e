// SPDX-License-Identifier: MIT
// Which Vulkan call a process is in, written to memory that its parent can read even after a crash.
#pragma once

#include <vulkan/vulkan.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vkrope::conformance {

/// What a child process is doing. The child writes, the parent reads.
struct Activity {
    /// Name of the call that has begun and not ended; null outside of Vulkan. It points to a
    /// literal, which has one address in a process and its forks.
    std::atomic<const char*> call = nullptr;
    /// Number of calls begun. The same number twice means the same call.
    std::atomic<std::uint64_t> calls = 0;
    /// Number of checks that have begun.
    std::atomic<std::size_t> checks = 0;
};

/// An Activity in memory that forks share.
class SharedActivity {
   public:
    SharedActivity();
    ~SharedActivity();
    SharedActivity(const SharedActivity&) = delete;
    SharedActivity& operator=(const SharedActivity&) = delete;

    Activity& operator*() const noexcept { return *activity_; }
    Activity* operator->() const noexcept { return activity_; }

   private:
    Activity* activity_;
};

/// The system's vkGetInstanceProcAddr, with functions that note each call in `activity`; null if
/// there is no Vulkan loader. For one instance and one device at a time, and for calls by one
/// thread. `activity` must live as long as the process.
PFN_vkGetInstanceProcAddr watched_loader(Activity& activity);

}  // namespace vkrope::conformance
