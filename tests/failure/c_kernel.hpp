// SPDX-License-Identifier: MIT
// A kernel and a call of it, in C and the same in C++.
#pragma once

#include <memory>

#include "c_objects.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

/// What a kernel in C is made with, and what records it.
struct PreparedInC {
    explicit PreparedInC(const FakeConfig& config,
                         vkrope_angle_source source = VKROPE_ANGLES_FACTORED_TEXTURE,
                         const Finish* with = nullptr)
        : host(config, true), angles(source), finish(with), ref(host.ref) {}
    KernelHost host;
    vkrope_angle_source angles;
    const Finish* finish;  ///< of Q, K and V; null: none, and no V
    vkrope_device_ref ref;
    OwnedKernel kernel;  ///< before its arena: destroyed after it
    OwnedArena arena;
};

/// Of Q, K and V, each with everything.
const Finish& norm_of_token();

/// The same kernel in C++.
KernelInfo info_of(const PreparedInC& prepared);

/// As info_of().
Status make_kernel(const PreparedInC& prepared, OwnedKernel& kernel,
                   vkrope_conversion conversion = VKROPE_CONVERSION_AUTOMATIC);

/// For three dispatches.
Status make_arena(const PreparedInC& prepared, OwnedArena& arena);

/// The same call in C++.
Call call_of(const PreparedInC& prepared);

/// As call_of().
Status record_call(PreparedInC& prepared);

/// With a kernel, and an arena if there are no push descriptors.
std::shared_ptr<PreparedInC> prepare_record(
    const FakeConfig& config, vkrope_angle_source angles = VKROPE_ANGLES_FACTORED_TEXTURE,
    const Finish* finish = nullptr);

}  // namespace vkrope::test
