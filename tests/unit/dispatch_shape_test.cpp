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
    CHECK(strides_allow(Element::f16, {.offset = 8, .batch = 0, .token = 64, .head = 16}, shader::access_wide));
    CHECK_FALSE(strides_allow(Element::f16, {.offset = 4, .batch = 0, .token = 64, .head = 16}, shader::access_wide));
    CHECK(strides_allow(Element::f32, {.offset = 4, .batch = 0, .token = 64, .head = 16}, shader::access_wide));
    CHECK_FALSE(strides_allow(Element::f16, {.offset = 0, .batch = 0, .token = 63, .head = 16}, shader::access_word));
    CHECK(strides_allow(Element::f16, {.offset = 1, .batch = 3, .token = 63, .head = 7}, shader::access_narrow));
}

TEST_CASE("invocations: in place moves the window, out of place the whole row") {
    const DispatchLimits limits;
    const KernelInfo partial = info(Element::f32, 96, 24);
    const Variant gpu = variant_for(partial, false, shader::access_wide, false, limits);
    // 24 channels are 3 steps of 2 x 4; the other 72 are 9.
    CHECK(items_per_token(partial, gpu,
                          {.batch = 1, .tokens = 1, .q_heads = 5, .k_heads = 2, .q_in_place = true, .k_in_place = true}) == 3 * 7);
    CHECK(items_per_token(partial, gpu, {.batch = 1, .tokens = 1, .q_heads = 5, .k_heads = 2, .q_in_place = true}) ==
          3 * 5 + 12 * 2);
    const Variant four = variant_for(partial, false, shader::access_wide, true, limits);
    CHECK(items_per_token(partial, four, {.batch = 1, .tokens = 1, .q_heads = 5, .k_heads = 2}) == 12 * 2 + 12 * 1);
    // All heads of a token, 64 bytes of a row: 4 steps an invocation.
    const Variant cpu = variant_for(partial, true, shader::access_wide, false, limits);
    CHECK(items_per_token(partial, cpu, {.batch = 1, .tokens = 1, .q_heads = 5, .k_heads = 2}) == 1 + 3);
}

TEST_CASE("workgroups fold from x into y, sequences go along z, and what cannot be counted is refused") {
    const KernelInfo whole = info(Element::f32, 128, 128);
    const DispatchLimits limits{.workgroup_count = {7, 7, 7}, .workgroup_invocations = 64};
    const Variant v = variant_for(whole, false, shader::access_wide, false, limits);
    CHECK(v.workgroup_size == 64);
    const auto shape = [&](std::uint32_t batch, std::uint32_t tokens) {
        return dispatch_shape(whole, v, {.batch = batch, .tokens = tokens, .q_heads = 4, .k_heads = 0, .q_in_place = true}, limits);
    };
    // 16 steps x 4 heads are one workgroup a token.
    REQUIRE(shape(2, 7));
    CHECK(shape(2, 7)->groups[0] == 7);
    CHECK(shape(2, 7)->groups[1] == 1);
    CHECK(shape(2, 7)->groups[2] == 2);
    CHECK(shape(1, 8)->groups[1] == 2);
    CHECK(shape(1, 49)->groups[1] == 7);
    CHECK(shape(1, 50).status.code == Code::limit_exceeded);
    CHECK(shape(8, 1).status.code == Code::limit_exceeded);
    // 2^32 invocations are more than the shader counts, whatever the device allows.
    const DispatchLimits wide{.workgroup_count = {4294967295u, 65535, 65535}, .workgroup_invocations = 64};
    CHECK(dispatch_shape(whole, v, {.batch = 1, .tokens = 1u << 26, .q_heads = 4, .q_in_place = true}, wide).status.code ==
          Code::limit_exceeded);
    CHECK(dispatch_shape(whole, v, {.batch = 1, .tokens = (1u << 26) - 1, .q_heads = 4, .q_in_place = true}, wide));
}

}  // namespace vkrope
