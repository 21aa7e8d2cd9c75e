// SPDX-License-Identifier: MIT
// The device that checks run on, and what they share of it: pipelines, which take longer to compile
// than a small case to run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/reported_limits.hpp"
#include "conformance/traits.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

class DeviceUnderTest {
   public:
    /// Opens the device. With options.validation the layer's errors are kept for layer_error().
    /// Throws tools::Failure.
    explicit DeviceUnderTest(DeviceOptions options);
    ~DeviceUnderTest();
    DeviceUnderTest(const DeviceUnderTest&) = delete;
    DeviceUnderTest& operator=(const DeviceUnderTest&) = delete;

    Device& device() noexcept { return device_; }
    const DeviceInfo& info() const noexcept { return device_.info(); }
    /// Longest wait for one submission.
    std::uint64_t timeout_ns() const noexcept { return timeout_ns_; }

    /// Measured when first asked for.
    const Traits& traits();

    /// The first error of the validation layer since the last call; empty: none.
    std::string layer_error() { return std::exchange(*layer_error_, {}); }

    /// A buffer that holds `bytes` bytes of `data`; of 4 bytes at least, so that nothing is nothing
    /// to bind.
    Buffer upload(const void* data, std::size_t bytes);

    /// How many dispatches the kernel of `info` makes of a call: an error where it does not take
    /// the call. Throws Refusal where the kernel cannot be created.
    Status accepts(const KernelInfo& info, const Call& call);

    struct KernelCall {
        KernelInfo info;
        Call call;
        ReportedLimits limits = {};
    };
    /// Told of every call before rotate() records it; for tests of what the checks reach.
    std::function<void(const Kernel*, const Call&)> on_rotate = {};
    /// Records one call, submits it and waits. Returns how many dispatches it took. Throws Refusal.
    std::uint64_t rotate(const KernelCall& call);
    /// The same for positions.
    void expand(const PositionCall& call);

    /// Compiled when first asked for, and kept until many others were. Throws Refusal.
    const Kernel* kernel_for(const KernelInfo& info, const ReportedLimits& limits = {});
    /// Null where the device has push descriptors.
    template <class AnyKernel>
    Owned<DescriptorArena> arena_for(const AnyKernel* kernel, std::uint64_t dispatches);

   private:
    struct Made {
        KernelInfo info;
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
    bool may_be_busy_ = false;  // a submission went wrong: what it uses is left to the driver
};

}  // namespace vkrope::conformance
