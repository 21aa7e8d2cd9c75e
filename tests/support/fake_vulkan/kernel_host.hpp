// SPDX-License-Identifier: MIT
// Provides an application on the fake with its own device, which the kernel tier borrows.
#pragma once

#include <doctest/doctest.h>

#include "fake_vulkan.hpp"
#include "interface.h"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

// Counts Vulkan's allocation callbacks and forwards them to the heap.
struct CountedAllocator {
    CountedAllocator();
    VkAllocationCallbacks callbacks = {};
    std::size_t allocated = 0, freed = 0;
};

class KernelHost {
   public:
    // With `with_allocator` the objects of vkrope get allocation callbacks.
    explicit KernelHost(const FakeConfig& config = {}, bool with_allocator = false);
    ~KernelHost();
    KernelHost(const KernelHost&) = delete;
    KernelHost& operator=(const KernelHost&) = delete;

    DeviceRef ref;
    CountedAllocator allocator;
    VkCommandBuffer commands = VK_NULL_HANDLE;  // in the recording state
    VkBuffer q = VK_NULL_HANDLE, k = VK_NULL_HANDLE, v = VK_NULL_HANDLE, q_out = VK_NULL_HANDLE,
             k_out = VK_NULL_HANDLE, v_out = VK_NULL_HANDLE, words = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    static constexpr VkDeviceSize buffer_bytes = 1u << 20;

   private:
    template <class Handle>
    void add(Handle handle, VkObjectType type);
    std::vector<std::pair<VkObjectType, std::uint64_t>> made_;
};

// Returns everything that a device can report: every mode, with both widths independent.
VkPhysicalDeviceFloatControlsProperties all_float_controls();

// Returns info for f16 Q and K with 128 rotated channels, implicit positions, and a texture.
KernelInfo kernel_info(AngleSource angles = VKROPE_ANGLES_DIRECT_TEXTURE);

// Returns a plan for kernel_info(): 64 pairs, 4096 positions in textures, 512 in direct buffers.
const AngleTableLayout& angle_plan(AngleSource angles = VKROPE_ANGLES_DIRECT_TEXTURE);

// Returns a call that kernel_info() allows: one sequence, 8 and 2 heads, out of place in separate
// buffers, from offset 0.
Call kernel_call(const KernelHost& host, std::uint32_t tokens = 7,
                 AngleSource angles = VKROPE_ANGLES_DIRECT_TEXTURE);

// Adds V, which has K's heads and strides.
KernelInfo with_v(KernelInfo info);
Call with_v(const KernelHost& host, Call call);

// Sets the ops and the number of heads of each of Q, K and V that `info` has. Only Q keeps
// `scale_call`.
KernelInfo with_ops(KernelInfo info, Ops ops, std::uint32_t q_heads = 8, std::uint32_t k_heads = 2,
                    std::uint32_t v_heads = 2);
// Adds the parameters and factors that the kernel reads, after the angles, in buffers of words.
Call with_ops(const KernelHost& host, const KernelInfo& info, Call call);

// Returns ops with everything that a norm of this kind can have.
Ops full_ops(NormKind kind, NormSpan span, NormPlace place);

// Returns the names of the commands in the host's command buffer.
std::vector<std::string> recorded(const KernelHost& host);

// Returns every dispatch in the host's command buffer, with its state.
std::vector<Command> dispatches(const KernelHost& host);

shader::Push pushed(const Command& dispatch);
// Returns the byte `which` of Push::offsets, where `which` is an offset_* constant.
std::uint32_t offset_of(const shader::Push& push, std::uint32_t which);

// Checks that no rule was broken.
void check_no_faults();

// Checks that no rule was broken, and that no object is alive.
void check_clean();

}  // namespace vkrope::test
