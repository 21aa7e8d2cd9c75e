// SPDX-License-Identifier: MIT
// A kernel and a call that keep every rule, and what happens where a change breaks one: the code,
// and the field and the value in the message.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "arguments.hpp"
#include "support/names.hpp"

namespace vkrope {

inline const VkBuffer q_buffer = fake<VkBuffer>(1), k_buffer = fake<VkBuffer>(2),
                      other_buffer = fake<VkBuffer>(3), v_buffer = fake<VkBuffer>(4);
inline constexpr StorageLimits limits{.offset_alignment = 64, .range = 1u << 20};

inline KernelInfo info() {
    return completed({.pairing = VKROPE_HALF_SPLIT,
                      .rotary_dim = 16,
                      .tensor = {{VKROPE_F16, VKROPE_F16, 16, 0}, {VKROPE_F16, VKROPE_F16, 16, 0}},
                      .angles = VKROPE_ANGLES_DIRECT_TEXTURE,
                      .positions = VKROPE_POSITIONS_IDS});
}

inline AngleTableLayout plan() {
    AngleTableLayout p;
    p.source = VKROPE_ANGLES_DIRECT_TEXTURE;
    p.attention_factor = 1;
    p.head_groups = 1;
    p.pairs = 8;
    p.rows = 100;
    p.bytes = 100 * 8 * 8;
    p.row_texels = 4;
    p.fold_log2 = 7;
    p.extent = {4, 100};
    return p;
}
inline const AngleTableLayout the_plan = plan();

inline Tensor tensor(VkBuffer buffer, std::uint32_t heads, VkDeviceSize offset = 0,
                     VkDeviceSize range = 4096) {
    return {.where = {buffer, offset, range}, .heads = heads};
}

/// Valid: 2 sequences of 4 tokens, 4 and 2 heads of 16 channels, in place.
inline Call call() {
    Call c{.batch = 2, .tokens = 4};
    c.in[Q] = c.out[Q] = tensor(q_buffer, 4);
    c.in[K] = c.out[K] = tensor(k_buffer, 2);
    c.positions.ids = {other_buffer, 0, 64};
    c.angles = {.layout = &the_plan, .view = fake<VkImageView>(9)};
    return c;
}

/// What the device binds of a view.
inline VkDescriptorBufferInfo bound(const View& view, const Call& c) {
    const std::uint64_t span = span_of(view, view.heads,
                                       {.batch = c.batch, .heads = view.heads, .tokens = c.tokens});
    return binding_of(view.buffer, view.first_byte, span * view.element_bytes, limits);
}

inline void expect(const Status& status, ErrorCode code, const std::string& words) {
    test::check_error(status, code, words);
}

template <class Change>
void breaks_create(Change change, const char* names,
                   ErrorCode code = VKROPE_ERROR_INVALID_ARGUMENT) {
    DeviceRef d = device();
    KernelInfo i = info();
    change(d, i);
    expect(check(d, i), code, names);
}

template <class Change>
void breaks_record(Change change, const char* names,
                   ErrorCode code = VKROPE_ERROR_INVALID_ARGUMENT) {
    KernelInfo i = info();
    Call c = call();
    change(i, c);
    expect(resolve(i, limits, c).status, code, names);
}

}  // namespace vkrope
