// SPDX-License-Identifier: MIT
// Provides kernels, buffers and calls of the kernel tier on the test device.
#pragma once

#include <memory>

#include "conformance/reported_limits.hpp"
#include "test_device.hpp"

namespace vkrope::test {

inline Owned<Kernel> make_kernel(Device& on, const KernelInfo& info) {
    return Owned<Kernel>(must(create(on.ref(), info)));
}

// Returns an arena for this many dispatches; null if the device needs none.
template <class Kind>
Owned<DescriptorArena> make_arena(Device& on, const Kind& kernel, std::uint32_t dispatches) {
    if (on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
    return Owned<DescriptorArena>(must(create_arena(kernel.get(), dispatches)));
}

inline Buffer upload(Device& on, const Bytes& bytes) {
    Buffer buffer = must(Buffer::make(on, bytes.size()));
    must(buffer.upload(bytes.data(), bytes.size()));
    return buffer;
}

// Returns the bytes of any numbers.
template <class Number>
Bytes bytes_of(const std::vector<Number>& numbers) {
    Bytes bytes(numbers.size() * sizeof(Number));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
}

inline Bytes download(Buffer& buffer, std::size_t bytes) {
    Bytes content(bytes);
    must(buffer.download(content.data(), bytes));
    return content;
}

inline VkDescriptorBufferInfo part(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
    return {buffer.handle(), offset, bytes};
}

using conformance::ReportedLimits;
using conformance::reporting;

// Records one call and waits for it.
inline void run(Device& on, const Owned<Kernel>& kernel, const Call& call) {
    const Owned<DescriptorArena> arena = make_arena(
        on, kernel, std::uint32_t(must(dispatches(kernel.get(), call))));
    must(on.submit([&](VkCommandBuffer commands) {
        return record(commands, kernel.get(), call, arena.get());
    }));
}

}  // namespace vkrope::test
