// SPDX-License-Identifier: MIT
// Divides a call: groups the tensors that share dispatches, chooses their pipeline, and
// tiles them. Reads the kernel; makes no Vulkan call.
#pragma once

#include <new>

#include "kernel/geometry/tiling.hpp"
#include "kernel/kernel_object.hpp"
#include "kernel/resolve/resolve.hpp"

namespace vkrope {

// Tensors that share one tiling of a call: Q, K and V, or some of them.
struct TiledTensors {
    const PipelineSet* set = nullptr;
    const Pipeline* pipeline = nullptr;
    bool has[tensor_count] = {};
    bool of_second = false;  // the second destination of one tensor, in dispatches of its own
    bool counts_positions = false, counts_slots = false;
    bool has_source = false;  // Plan::source of this part is set
    Tiling tiling;

    bool together() const noexcept { return has[Q] + has[K] + has[V] > 1; }
};

struct Plan {
    Plan() noexcept {}

    // Second destinations come first, because K and V may be in place. Only the first `count` are
    // initialised, because every call makes a plan.
    static constexpr std::uint32_t most_parts = 5;
    union {
        TiledTensors of[most_parts];
    };
    Source source[most_parts];
    std::uint32_t count = 0;

    // Returns the source of the part that is added next.
    Source& next_source() noexcept { return source[count]; }
    void add(const TiledTensors& tensors) noexcept { new (&of[count++]) TiledTensors(tensors); }

    std::uint64_t dispatches() const noexcept {
        std::uint64_t all = 0;
        for (std::uint32_t i = 0; i < count; ++i) all += of[i].tiling.count();
        return all;
    }
};

// Plans a call. Returns limit_exceeded if it does not fit the limits of the device.
Result<Plan> plan(const Kernel& kernel, const ResolvedCall& call) noexcept;

}  // namespace vkrope
