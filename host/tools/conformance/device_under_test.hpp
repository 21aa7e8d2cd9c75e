// SPDX-License-Identifier: MIT
// The device that checks run on, and its shared pipelines, which take longer to compile than a
// small case takes to run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/reported_limits.hpp"
#include "conformance/traits.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

// Returns the seconds of vkrope_device_options::timeout_ns 0.
std::uint32_t default_timeout_s(VkPhysicalDeviceType type) noexcept;

class DeviceUnderTest {
   public:
    // Opens the device. With options.validation, keeps the errors of the layer for layer_error().
    // Throws tools::Failure.
    //
    // traits  what another DeviceUnderTest of this device measured; nullopt: not measured yet
    explicit DeviceUnderTest(DeviceOptions options, std::optional<Traits> traits = {});
    ~DeviceUnderTest();
    DeviceUnderTest(const DeviceUnderTest&) = delete;
    DeviceUnderTest& operator=(const DeviceUnderTest&) = delete;

    Device& device() noexcept { return device_; }
    const DeviceInfo& info() const noexcept { return device_.info(); }
    // Timeout of one submission: that of the options, or the default.
    std::uint64_t timeout_ns() const noexcept { return timeout_ns_; }

    // Returns the traits of the device, measured on first use.
    const Traits& traits();

    // Returns the first error of the validation layer since the last call, or an empty string.
    std::string layer_error() { return std::exchange(*layer_error_, {}); }

    // Returns a buffer with `bytes` bytes of `data`; at least 4 bytes, so that an empty tensor can
    // be bound.
    Buffer upload(const void* data, std::size_t bytes);

    // Reads `bytes` bytes of a buffer, starting at `offset`, and adds them to answers(). Throws
    // Refusal.
    void download(Buffer& buffer, void* target, std::size_t bytes, VkDeviceSize offset = 0);
    // Returns a hash of all bits downloaded since the last call. Two runs of one check that got
    // the same bits have the same hash.
    std::uint64_t answers() { return std::exchange(answers_, 0); }

    // Returns ok if the kernel of `info` accepts the call, and otherwise an error. Throws Refusal
    // if the kernel cannot be created.
    Status accepts(const KernelInfo& info, const Call& call);

    struct KernelCall {
        KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        Call call;
        ReportedLimits limits = {};
    };
    // For tests: called before rotate() records a call, and destroyed when the device is closed.
    std::function<void(const Kernel*, const Call&)> on_rotate = {};
    // Records one call, submits it and waits. Returns its number of dispatches. Throws Refusal.
    std::uint64_t rotate(const KernelCall& call);
    // Records calls of one kernel into one command buffer, with the barrier of boundary() between
    // consecutive calls, submits the command buffer and waits. Throws Refusal.
    void rotate_in_order(const KernelInfo& info, const std::vector<Call>& calls);
    // Like rotate(), for a call that writes positions.
    void expand(const PositionCall& call);

    // Returns a kernel, compiled on first use, from a cache of bounded size. Throws Refusal.
    const Kernel* kernel_for(const KernelInfo& info, const ReportedLimits& limits = {});
    // Returns null if the kernel has push descriptors.
    template <class AnyKernel>
    Owned<DescriptorArena> arena_for(const AnyKernel* kernel, std::uint64_t dispatches,
                                     const ReportedLimits& limits = {});

   private:
    struct Made {
        KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        ReportedLimits limits;
        Owned<Kernel> kernel;
    };
    void submit(const std::function<Status(VkCommandBuffer)>& record_commands,
                Owned<DescriptorArena> arena);

    std::uint64_t timeout_ns_;
    std::shared_ptr<std::string> layer_error_;
    Device device_;
    std::vector<Made> kernels_;  // destroyed before the device
    Owned<PositionKernel> positions_;
    std::optional<Traits> traits_;
    std::uint64_t answers_ = 0;
    bool may_be_busy_ = false;  // a submission failed: its resources are not destroyed
};

}  // namespace vkrope::conformance
