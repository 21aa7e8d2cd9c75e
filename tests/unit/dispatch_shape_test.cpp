// SPDX-License-Identifier: MIT
#include "kernel/dispatch_shape.hpp"

#include <doctest/doctest.h>

namespace vkrope {

namespace {

KernelInfo info(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim, std::uint32_t offset = 0) {
    const Width width{element, element, head_dim, offset};
    return {.rotary_dim = rotary_dim, .q = width, .k = width};
}

}  // namespace

TEST_CASE("a unit is what the widest access holds of the smallest element") {
    CHECK(unit_elements(info(Element::f32, 128, 128), shader::access_wide) == 4);
    CHECK(unit_elements(info(Element::f16, 128, 128), shader::access_wide) == 8);
    CHECK(unit_elements(info(Element::bf16, 128, 128), shader::access_word) == 2);
    CHECK(unit_elements(info(Element::f32, 128, 128), shader::access_word) == 1);
    CHECK(unit_elements(info(Element::f16, 128, 128), shader::access_narrow) == 1);
    KernelInfo mixed = info(Element::f32, 128, 128);
    mixed.k.out = Element::f16;
    CHECK(unit_elements(mixed, shader::access_wide) == 8);
}

TEST_CASE("the windows decide which accesses there are") {
    CHECK(widths_allow(info(Element::f16, 128, 128), shader::access_wide));
    CHECK_FALSE(widths_allow(info(Element::f16, 80, 20), shader::access_wide));  // halves of 10
    CHECK(widths_allow(info(Element::f16, 80, 20), shader::access_word));
    CHECK_FALSE(widths_allow(info(Element::f16, 7, 6), shader::access_word));  // a row of 7
    CHECK(widths_allow(info(Element::f16, 7, 6), shader::access_narrow));
    CHECK_FALSE(widths_allow(info(Element::f32, 80, 64, 2), shader::access_wide));  // starts in the middle of 16 bytes
    CHECK(widths_allow(info(Element::f32, 80, 64, 4), shader::access_wide));
}

TEST_CASE("strides and offsets decide per call") {
    CHECK(strides_allow(2, 8 | 64 | 16, shader::access_wide));
    CHECK_FALSE(strides_allow(2, 4 | 64 | 16, shader::access_wide));
    CHECK(strides_allow(4, 4 | 64 | 16, shader::access_wide));
    CHECK_FALSE(strides_allow(2, 63 | 16, shader::access_word));
    CHECK(strides_allow(2, 1 | 3 | 63 | 7, shader::access_narrow));
}

TEST_CASE("invocations: in place moves the window, out of place the whole row") {
    const DispatchLimits limits;
    const KernelInfo partial = info(Element::f32, 96, 24);
    const Variant gpu = variant_for(partial, false, shader::access_wide, false, limits);
    // 24 channels are 3 steps of 2 x 4; the other 72 are 9.
    CHECK(items_per_token(partial, gpu,
                          {.z = 1, .tokens = 1, .q_heads = 5, .k_heads = 2, .q_in_place = true, .k_in_place = true}) == 3 * 7);
    CHECK(items_per_token(partial, gpu, {.z = 1, .tokens = 1, .q_heads = 5, .k_heads = 2, .q_in_place = true}) == 3 * 5 + 12 * 2);
    const Variant four = variant_for(partial, false, shader::access_wide, true, limits);
    CHECK(items_per_token(partial, four, {.z = 1, .tokens = 1, .q_heads = 5, .k_heads = 2}) == 12 * 2 + 12 * 1);
    // All heads of a token, 64 bytes of a row: 4 steps an invocation, and as large a share of those that copy.
    const Variant cpu = variant_for(partial, true, shader::access_wide, false, limits);
    CHECK(items_per_token(partial, cpu, {.z = 1, .tokens = 1, .q_heads = 5, .k_heads = 2}) == 1);
    const KernelInfo half = info(Element::f32, 128, 64);
    CHECK(items_per_token(half, cpu, {.z = 1, .tokens = 1, .q_heads = 5}) == 2);
    // 8190 steps that copy are more than 64 for each of those that rotate.
    CHECK(items_per_token(info(Element::f32, 65532, 8), cpu,
                          {.z = 1, .tokens = 1, .q_heads = 5, .k_heads = 2, .q_in_place = true}) == 128);
    CHECK(most_heads(info(Element::f32, 65532, 8), cpu) == 16384 / (4 + 64));
    CHECK(most_heads(half, cpu) == 16384 / (4 + 4));
    CHECK(most_heads(info(Element::f32, 128, 128), cpu) == 16384 / 4);
    CHECK(most_heads(half, gpu) == 65535);
}

TEST_CASE("on a software device a step of word access has as many words as the windows allow") {
    const auto unit = [](const KernelInfo& of, bool cpu) {
        return variant_for(of, cpu, shader::access_word, false, {}).unit_elements;
    };
    CHECK(unit(info(Element::f16, 96, 24), true) == 4);    // halves of 12
    CHECK(unit(info(Element::f16, 128, 128), true) == 2);  // 16-byte access does it, and few calls are left
    CHECK(unit(info(Element::f16, 80, 20), true) == 2);
    CHECK(unit(info(Element::f32, 96, 24), true) == 1);
    CHECK(unit(info(Element::f32, 90, 20, 2), true) == 2);
    CHECK(unit(info(Element::f32, 7, 6), true) == 1);
    CHECK(unit(info(Element::f16, 128, 128), false) == 2);  // neighbouring invocations: neighbouring words
    CHECK(unit(info(Element::f32, 128, 128), false) == 1);
}

TEST_CASE("a window of several has units that straddle none of them") {
    KernelInfo two = info(Element::f16, 64, 48);
    two.windows[0] = {0, 16};
    two.windows[1] = {16, 32};
    CHECK(widths_allow(two, shader::access_wide));
    two.windows[0] = {0, 8};  // halves of 4
    two.windows[1] = {8, 40};
    CHECK_FALSE(widths_allow(two, shader::access_wide));
    CHECK(widths_allow(two, shader::access_word));
    two.windows[1] = {9, 40};
    CHECK_FALSE(widths_allow(two, shader::access_word));
}

TEST_CASE("workgroups fold from x into y, and no more are asked for than the shader counts") {
    const KernelInfo whole = info(Element::f32, 128, 128);
    const DispatchLimits limits{.workgroup_count = {7, 7, 7}, .workgroup_invocations = 64};
    const Variant v = variant_for(whole, false, shader::access_wide, false, limits);
    CHECK(v.workgroup_size == 64);
    const auto shape = [&](std::uint32_t z, std::uint32_t tokens) {
        const Work work{.z = z, .tokens = tokens, .q_heads = 4, .q_in_place = true};
        return shape_of(items_per_token(whole, v, work) * tokens, z, v, limits);
    };
    // 16 steps x 4 heads are one workgroup a token.
    CHECK(shape(2, 7).groups[0] == 7);
    CHECK(shape(2, 7).groups[1] == 1);
    CHECK(shape(2, 7).groups[2] == 2);
    CHECK(shape(1, 8).groups[1] == 2);
    CHECK(shape(1, 49).groups[1] == 7);
    CHECK(most_invocations(v, limits) == 49 * 64);
    // 2^32 invocations are the most that the shader counts, whatever the device allows.
    CHECK(most_invocations(v, {.workgroup_count = {4294967295u, 65535, 65535}}) == std::uint64_t{1} << 32);
    CHECK(most_invocations(v, {.workgroup_count = {65535, 65535, 65535}}) == std::uint64_t{65535} * 1024 * 64);
}

}  // namespace vkrope
