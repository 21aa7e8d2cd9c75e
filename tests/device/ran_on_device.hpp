// SPDX-License-Identifier: MIT
// Runs operations on the test device.
#pragma once

#include "support/recording.hpp"
#include "verify/compare.hpp"
#include "verify/on_device.hpp"

namespace vkrope::test {

struct Ran {
    Bytes after;  // the memory after the call
    std::uint64_t dispatches = 0;
};

// Runs an operation, and compares the memory with its definition.
inline Ran ran_on_device(const verify::Operation& operation, const ReportedLimits& limits = {}) {
    verify::OnDevice there = must(verify::OnDevice::make(device(), operation));
    const Owned<Kernel> kernel(must(create(reporting(device(), limits), operation.info)));
    const Call call = there.call(operation.call);
    Ran ran = {.after = {}, .dispatches = must(dispatches(kernel.get(), call))};
    run(device(), kernel, call);
    ran.after = download(there.memory(), operation.memory.size());
    CHECK(verify::compare(operation, ran.after, true).problem == "");  // subnormals may be flushed
    return ran;
}

}  // namespace vkrope::test
