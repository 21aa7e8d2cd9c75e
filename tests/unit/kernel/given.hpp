// SPDX-License-Identifier: MIT
// Provides arguments of create() and record() that keep every rule, and tables of changes that each
// break one: the code, and the field and value in the message. No Vulkan call sees them.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <span>
#include <string>

#include "base/defaults.hpp"
#include "kernel/resolve/resolve.hpp"
#include "support/names.hpp"

namespace vkrope {

template <class Handle>
Handle fake(std::uintptr_t number) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): handles of the fake are numbers.
    return reinterpret_cast<Handle>(number);
}

inline const VkBuffer q_buffer = fake<VkBuffer>(1), k_buffer = fake<VkBuffer>(2),
                      other_buffer = fake<VkBuffer>(3), v_buffer = fake<VkBuffer>(4);

inline VkDescriptorBufferInfo at(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize range) {
    return {buffer, offset, range};
}

inline Tensor tensor(VkBuffer buffer, std::uint32_t heads, VkDeviceSize offset = 0,
                     VkDeviceSize range = 4096) {
    return {.where = {buffer, offset, range}, .heads = heads};
}

// Valid arguments: 2 sequences of 4 tokens, 4 and 2 heads of 16 channels, in place, with ids and a
// table for 100 positions.
struct Given {
    DeviceRef device{.instance = fake<VkInstance>(1),
                     .physical = fake<VkPhysicalDevice>(2),
                     .device = fake<VkDevice>(3),
                     .get_instance_proc_addr = [](VkInstance, const char*) -> PFN_vkVoidFunction {
                         return nullptr;
                     }};
    KernelInfo info = completed(
        {.pairing = VKROPE_HALF_SPLIT,
         .rotary_dim = 16,
         .tensor = {{VKROPE_F16, VKROPE_F16, 16, 0}, {VKROPE_F16, VKROPE_F16, 16, 0}},
         .angles = VKROPE_ANGLES_DIRECT_TEXTURE,
         .positions = VKROPE_POSITIONS_IDS});
    AngleTableLayout layout{.source = VKROPE_ANGLES_DIRECT_TEXTURE,
                            .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                            .extent = {4, 100},
                            .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                            .bytes = 100 * 8 * 8,
                            .pairs = 8,
                            .rows = 100,
                            .fold_log2 = 7,
                            .row_texels = 4,
                            .attention_factor = 1,
                            .head_groups = 1};
    StorageLimits limits{.offset_alignment = 64, .range = 1u << 20};
    bool has_layout = true;  // whether the call has `layout`
    Call call{.batch = 2, .tokens = 4};

    Given() {
        call.in[Q] = call.out[Q] = tensor(q_buffer, 4);
        call.in[K] = call.out[K] = tensor(k_buffer, 2);
        call.positions.ids = at(other_buffer, 0, 32);
        call.angles.view = fake<VkImageView>(9);
    }

    Status created() const { return check(device, info); }

    // Resolves the call as record() does for a kernel that create() made.
    Result<ResolvedCall> resolved() const {
        Call with_layout = call;
        with_layout.angles.layout = has_layout ? &layout : nullptr;
        return resolve(completed(info), ops_needs(info), limits, with_layout);
    }

    // Returns the call as record() resolves it, which must succeed.
    ResolvedCall valid() const {
        const Result<ResolvedCall> result = resolved();
        REQUIRE_MESSAGE(result, result.status.what);
        return result.value;
    }

    // Returns the range that the device binds for a view.
    VkDescriptorBufferInfo bound(const View& view) const {
        const std::uint64_t span = span_of(
            view, view.heads, {.batch = call.batch, .heads = view.heads, .tokens = call.tokens});
        return binding_of(view.buffer, view.first_byte, span * view.element_bytes, limits);
    }
};

// A change, and the names in the error that it causes.
struct Broken {
    std::string names;
    std::function<void(Given& g)> change;
    ErrorCode code = VKROPE_ERROR_INVALID_ARGUMENT;
};

// Checks that create() accepts `good`, and refuses it with each change.
inline void check_create(const Given& good, std::span<const Broken> rules) {
    CHECK(good.created());
    for (const Broken& rule : rules) {
        Given changed = good;
        rule.change(changed);
        test::check_error(changed.created(), rule.code, rule.names);
    }
}

inline void refused(const Given& call, const std::string& names) {
    test::check_error(call.resolved().status, VKROPE_ERROR_INVALID_ARGUMENT, names);
}

// Checks that record() accepts `good`, and refuses it with each change.
inline void check_record(const Given& good, std::span<const Broken> rules) {
    good.valid();
    for (const Broken& rule : rules) {
        Given changed = good;
        rule.change(changed);
        test::check_error(changed.resolved().status, rule.code, rule.names);
    }
}

}  // namespace vkrope
