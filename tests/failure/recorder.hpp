// SPDX-License-Identifier: MIT
// Records calls on the fake, and checks what a dispatch receives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/fake_vulkan/host_memory.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

using Names = std::vector<std::string>;

// A kernel on a KernelHost, with an arena if there are no push descriptors.
struct Recorder {
    explicit Recorder(const FakeConfig& config, const KernelInfo& info = kernel_info(),
                      std::uint32_t calls = 8)
        : host(config) {
        kernel.reset(create(host.ref, info).value);
        REQUIRE(kernel);
        if (!config.push_descriptors) arena.reset(create_arena(kernel.get(), calls).value);
        fake().forget_calls();
    }
    ~Recorder() { check_no_faults(); }

    Status operator()(const Call& call) {
        fake().forget_calls();
        observe_host_memory();
        const Status status = record(host.commands, kernel.get(), call, arena.get());
        CHECK(observed_allocations() == 0);
        return status;
    }

    KernelHost host;
    Owned<Kernel> kernel;
    Owned<DescriptorArena> arena;
};

inline void check_side(const shader::RowLayout& side, std::uint32_t z, std::uint32_t token,
                       std::uint32_t head) {
    CHECK(side.z == z);
    CHECK(side.token == token);
    CHECK(side.head == head);
}

inline void check_bound(const Command& dispatch, std::uint32_t binding, VkBuffer buffer,
                        VkDeviceSize offset, VkDeviceSize range) {
    CAPTURE(binding);
    REQUIRE(dispatch.descriptors.contains(binding));
    const VkDescriptorBufferInfo& at = dispatch.descriptors.at(binding).buffer;
    CHECK(at.buffer == buffer);
    CHECK(at.offset == offset);
    CHECK(at.range == range);
}

// The Vulkan calls of one dispatch with push descriptors.
inline const Names pushes = {"vkCmdPushDescriptorSetKHR", "vkCmdBindPipeline", "vkCmdPushConstants",
                             "vkCmdDispatch"};
// The Vulkan calls of one dispatch with an arena.
inline const Names sets = {"vkUpdateDescriptorSets", "vkCmdBindDescriptorSets", "vkCmdBindPipeline",
                           "vkCmdPushConstants", "vkCmdDispatch"};

inline Names operator+(Names a, const Names& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace vkrope::test
