// SPDX-License-Identifier: MIT
#include "conformance/device_under_test.hpp"

#include <algorithm>
#include <string_view>

#include "base/meaning.hpp"
#include "cli/device_text.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::size_t max_kernels = 64;

}  // namespace

std::uint32_t default_timeout_s(VkPhysicalDeviceType type) noexcept {
    return type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 300 : 30;
}

DeviceUnderTest::DeviceUnderTest(DeviceOptions options, std::optional<Traits> traits)
    : timeout_ns_(options.timeout_ns), layer_error_(std::make_shared<std::string>()),
      traits_(std::move(traits)) {
    options.user_data = layer_error_.get();
    options.on_message = [](void* first, VkBool32 is_error, const char* id, const char* text) {
        if (!is_error) return;
        tools::print_message(nullptr, is_error, id, text);
        if (auto& error = *static_cast<std::string*>(first); error.empty()) error = id;
    };
    device_ = tools::value_of(Device::open(options), tools::Subject::device);
    if (timeout_ns_ == 0)
        timeout_ns_ = default_timeout_s(info().type) * std::uint64_t{1'000'000'000};
}

DeviceUnderTest::~DeviceUnderTest() {
    if (may_be_busy_) {
        for (Made& made : kernels_) static_cast<void>(made.kernel.release());
        static_cast<void>(positions_.release());
    }
}

Buffer DeviceUnderTest::upload(const void* data, std::size_t bytes) {
    Buffer buffer = value_of(Buffer::make(device_, std::max<std::size_t>(bytes, 4)));
    if (bytes > 0) check(buffer.upload(data, bytes));
    return buffer;
}

void DeviceUnderTest::download(Buffer& buffer, void* target, std::size_t bytes,
                               VkDeviceSize offset) {
    check(buffer.download(target, bytes, offset));
    const std::string_view bits(static_cast<const char*>(target), bytes);
    answers_ = answers_ * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(bits);
}

const Traits& DeviceUnderTest::traits() {
    if (!traits_) traits_ = measure_traits(*this);
    return *traits_;
}

const Kernel* DeviceUnderTest::kernel_for(const KernelInfo& info, const ReportedLimits& limits) {
    for (const Made& made : kernels_)
        if (vkrope_kernel_info_equal(&made.info, &info) && made.limits == limits)
            return made.kernel.get();
    Owned<Kernel> kernel(value_of(create(reporting(device_, limits), info)));
    if (kernels_.size() == max_kernels) kernels_.erase(kernels_.begin());
    kernels_.push_back({info, limits, std::move(kernel)});
    return kernels_.back().kernel.get();
}

template <class AnyKernel>
Owned<DescriptorArena> DeviceUnderTest::arena_for(const AnyKernel* kernel, std::uint64_t dispatches,
                                                  const ReportedLimits& limits) {
    if (!limits.no_push_descriptors &&
        (device_.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        return nullptr;
    if (dispatches > max_calls)
        unsupported("{} dispatches are more than the {} of an arena", dispatches, max_calls);
    return Owned<DescriptorArena>(
        value_of(create_arena(kernel, std::uint32_t(std::max<std::uint64_t>(dispatches, 1)))));
}

template Owned<DescriptorArena> DeviceUnderTest::arena_for(const Kernel*, std::uint64_t,
                                                           const ReportedLimits&);

void DeviceUnderTest::submit(const std::function<Status(VkCommandBuffer)>& record_commands,
                             Owned<DescriptorArena> arena) {
    const Status status = device_.submit(record_commands).status;
    if (status.code == VKROPE_ERROR_TIMEOUT || status.code == VKROPE_ERROR_VULKAN) {
        static_cast<void>(arena.release());
        may_be_busy_ = true;
    }
    check(status);
}

Status DeviceUnderTest::accepts(const KernelInfo& info, const Call& call) {
    return dispatches(kernel_for(info), call).status;
}

std::uint64_t DeviceUnderTest::rotate(const KernelCall& call) {
    const Kernel* kernel = kernel_for(call.info, call.limits);
    const std::uint64_t count = value_of(dispatches(kernel, call.call));
    if (on_rotate) on_rotate(kernel, call.call);
    Owned<DescriptorArena> arena = arena_for(kernel, count, call.limits);
    DescriptorArena* const sets = arena.get();
    submit([&](VkCommandBuffer commands) { return record(commands, kernel, call.call, sets); },
           std::move(arena));
    return count;
}

void DeviceUnderTest::rotate_in_order(const KernelInfo& info, const std::vector<Call>& calls) {
    const Kernel* kernel = kernel_for(info);
    std::uint64_t count = 0;
    for (const Call& call : calls) count += value_of(dispatches(kernel, call));
    const DeviceRef& ref = device_.ref();
    const auto add_barrier = reinterpret_cast<PFN_vkCmdPipelineBarrier>(
        ref.get_instance_proc_addr(ref.instance, "vkCmdPipelineBarrier"));
    const Boundary boundary = vkrope::boundary();
    VkMemoryBarrier memory = {};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = boundary.output_access | boundary.in_place_access;
    memory.dstAccessMask = boundary.input_access | memory.srcAccessMask;
    Owned<DescriptorArena> arena = arena_for(kernel, count);
    DescriptorArena* const sets = arena.get();
    submit(
        [&](VkCommandBuffer commands) {
            for (const Call& call : calls) {
                if (&call != calls.data())
                    add_barrier(commands, boundary.stage, boundary.stage, 0, 1, &memory, 0, nullptr,
                                0, nullptr);
                if (const Status status = record(commands, kernel, call, sets); !status)
                    return status;
            }
            return Status{};
        },
        std::move(arena));
}

void DeviceUnderTest::expand(const PositionCall& call) {
    if (!positions_) positions_.reset(value_of(create_positions(device_.ref())));
    Owned<DescriptorArena> arena = arena_for(positions_.get(), 4);  // a set for each output
    DescriptorArena* const sets = arena.get();
    submit(
        [&](VkCommandBuffer commands) {
            return record_positions(commands, positions_.get(), call, sets);
        },
        std::move(arena));
}

}  // namespace vkrope::conformance
