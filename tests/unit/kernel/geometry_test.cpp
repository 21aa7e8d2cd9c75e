// SPDX-License-Identifier: MIT
#include "kernel/geometry/geometry.hpp"

#include <doctest/doctest.h>

#include "kernel/geometry/ops.hpp"

namespace vkrope {

namespace {

KernelInfo info(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim,
                std::uint32_t offset = 0) {
    const TensorInfo width{element, element, head_dim, offset};
    return {.pairing = VKROPE_HALF_SPLIT,
            .rotary_dim = rotary_dim,
            .tensor = {width, width},
            .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
}

}  // namespace

TEST_CASE("a unit has as many of the smallest elements as the widest access loads") {
    CHECK(unit_elements(info(VKROPE_F32, 128, 128), shader::access_wide) == 4);
    CHECK(unit_elements(info(VKROPE_F16, 128, 128), shader::access_wide) == 8);
    CHECK(unit_elements(info(VKROPE_BF16, 128, 128), shader::access_pair) == 4);
    CHECK(unit_elements(info(VKROPE_F32, 128, 128), shader::access_pair) == 2);
    CHECK(unit_elements(info(VKROPE_BF16, 128, 128), shader::access_word) == 2);
    CHECK(unit_elements(info(VKROPE_F32, 128, 128), shader::access_word) == 1);
    CHECK(unit_elements(info(VKROPE_F16, 128, 128), shader::access_narrow) == 1);
    KernelInfo mixed = info(VKROPE_F32, 128, 128);
    mixed.tensor[K].out = VKROPE_F16;
    CHECK(unit_elements(mixed, shader::access_wide) == 8);
}

TEST_CASE("the windows decide which accesses are possible") {
    CHECK(formats_allow(info(VKROPE_F16, 128, 128), shader::access_wide));
    CHECK_FALSE(formats_allow(info(VKROPE_F16, 80, 20), shader::access_wide));  // 10 % 8 != 0
    CHECK_FALSE(formats_allow(info(VKROPE_F16, 80, 20), shader::access_pair));  // 10 % 4 != 0
    CHECK(formats_allow(info(VKROPE_F16, 96, 24), shader::access_pair));
    CHECK(formats_allow(info(VKROPE_F16, 80, 20), shader::access_word));
    CHECK_FALSE(formats_allow(info(VKROPE_F16, 7, 6), shader::access_word));  // odd row
    CHECK(formats_allow(info(VKROPE_F16, 7, 6), shader::access_narrow));
    CHECK_FALSE(formats_allow(info(VKROPE_F32, 80, 64, 2),
                              shader::access_wide));  // starts in the middle of 16 bytes
    CHECK(formats_allow(info(VKROPE_F32, 80, 64, 4), shader::access_wide));
}

TEST_CASE("strides and offsets decide the access of each call") {
    CHECK(strides_allow(2, 8 | 64 | 16, shader::access_wide));
    CHECK_FALSE(strides_allow(2, 4 | 64 | 16, shader::access_wide));
    CHECK(strides_allow(4, 4 | 64 | 16, shader::access_wide));
    CHECK(strides_allow(2, 4 | 64 | 16, shader::access_pair));
    CHECK_FALSE(strides_allow(2, 2 | 64 | 16, shader::access_pair));
    CHECK(strides_allow(4, 2 | 64 | 16, shader::access_pair));
    CHECK_FALSE(strides_allow(2, 63 | 16, shader::access_word));
    CHECK(strides_allow(2, 1 | 3 | 63 | 7, shader::access_narrow));
}

TEST_CASE("on a GPU a workgroup owns a token, and its lanes are chunks times heads") {
    const DispatchLimits limits;
    KernelInfo llama = info(VKROPE_F16, 128, 128);
    const Geometry open = geometry_for(llama, shader::access_wide, Load::many_tokens, limits);
    CHECK(open.chunk_lanes == 8);  // 128 channels are 8 chunks of 2 x 8
    CHECK(open.head_lanes == 8);
    CHECK(open.group_tokens == 1);
    CHECK(open.q_batch == 4);
    CHECK(open.k_batch == 1);
    CHECK(shape_of(open, {.z = 3, .tokens = 100, .q_heads = 32, .k_heads = 8}).groups[0] == 100);
    CHECK(shape_of(open, {.z = 3, .tokens = 100, .q_heads = 32, .k_heads = 8}).groups[1] == 1);
    CHECK(shape_of(open, {.z = 3, .tokens = 100, .q_heads = 32, .k_heads = 8}).groups[2] == 3);
    CHECK(shape_of(open, {.z = 1, .tokens = 1, .q_heads = 33, .k_heads = 8}).groups[1] == 2);
    CHECK(shape_of(open, {.z = 1, .tokens = 1, .q_heads = 32, .k_heads = 32}).groups[1] == 4);
    llama.tensor[Q].heads = llama.tensor[K].heads =
        32;  // known heads: K's heads share their angles, too
    const Geometry known = geometry_for(llama, shader::access_wide, Load::many_tokens, limits);
    CHECK(known.k_batch == 4);
    CHECK(shape_of(known, {.z = 1, .tokens = 1, .q_heads = 32, .k_heads = 32}).groups[1] == 1);
    // Few tokens are spread over as many workgroups as possible.
    const Geometry few = geometry_for(llama, shader::access_wide, Load::few_tokens, limits);
    CHECK(few.q_batch == 1);
    CHECK(shape_of(few, {.z = 1, .tokens = 1, .q_heads = 32, .k_heads = 32}).groups[1] == 4);
    // A lane has two heads if the limits allow no more.
    CHECK(geometry_for(llama, shader::access_wide, Load::many_tokens, {.batch = 2}).q_batch == 2);
}

TEST_CASE("on a GPU a workgroup has 128 lanes if each lane then has as many heads as allowed") {
    const auto lanes = [](std::uint32_t head_dim, std::uint32_t heads, Load load,
                          std::uint32_t batch = 4) {
        KernelInfo of = info(VKROPE_F16, head_dim, head_dim);  // chunks of 16
        of.tensor[Q].heads = heads;
        of.tensor[K].heads = 8;
        const Geometry g = geometry_for(of, shader::access_wide, load, {.batch = batch});
        if (g.workgroup_size() == 128) CHECK(g.q_batch == batch);
        return g.workgroup_size();
    };
    CHECK(lanes(128, 63, Load::many_tokens) == 64);
    CHECK(lanes(128, 64, Load::many_tokens) == 128);
    CHECK(lanes(128, 64, Load::few_tokens) == 64);
    CHECK(lanes(128, 31, Load::many_tokens, 2) == 64);
    CHECK(lanes(128, 32, Load::many_tokens, 2) == 128);
    CHECK(lanes(128, 64, Load::many_tokens, 1) == 64);  // as for few tokens: one pipeline is enough
    CHECK(lanes(4096, 8, Load::many_tokens) == 128);    // two chunks per lane
    // Many chunks do not replace many heads.
    KernelInfo one = info(VKROPE_F16, 16384, 16384);
    one.tensor[Q].heads = one.tensor[K].heads = 1;
    CHECK(geometry_for(one, shader::access_wide, Load::many_tokens, {}) ==
          geometry_for(one, shader::access_wide, Load::few_tokens, {}));
    // A device may not support workgroups of that size.
    one = info(VKROPE_F16, 128, 128);
    one.tensor[Q].heads = one.tensor[K].heads = 64;
    CHECK(geometry_for(one, shader::access_wide, Load::many_tokens, {.workgroup_invocations = 64})
              .workgroup_size() == 64);
}

TEST_CASE("on a GPU, tokens share a workgroup where their chunks and heads leave lanes idle") {
    KernelInfo key = info(VKROPE_F16, 576, 64, 512);  // MLA: one head, 4 chunks that rotate
    key.tensor[Q] = {};
    key.tensor[K].heads = 1;
    const Geometry one_head = geometry_for(key, shader::access_wide, Load::many_tokens, {});
    CHECK(one_head.chunk_lanes == 4);
    CHECK(one_head.head_lanes == 1);
    CHECK(one_head.group_tokens == 16);
    CHECK(shape_of(one_head, {.z = 1, .tokens = 33, .k_heads = 1}).groups[0] == 3);
    KernelInfo many = info(VKROPE_F16, 192, 64, 128);
    many.tensor[Q].heads = 128;
    many.tensor[K] = {};
    const Geometry heads = geometry_for(many, shader::access_wide, Load::many_tokens, {});
    CHECK(heads.head_lanes == 16);  // 64 lanes, of eight heads each
    CHECK(heads.q_batch == 8);
    CHECK(heads.group_tokens == 1);
    CHECK(shape_of(heads, {.z = 1, .tokens = 1, .q_heads = 128}).groups[1] == 1);
    many.tensor[Q].heads = 3;
    CHECK(geometry_for(many, shader::access_wide, Load::few_tokens, {}).head_lanes == 4);
}

TEST_CASE("on a GPU, channels that do not rotate are copied as wide as the windows allow") {
    const auto of = [](const KernelInfo& kernel, std::uint32_t access) {
        return geometry_for(kernel, access, Load::few_tokens, {});
    };
    const KernelInfo neox = info(VKROPE_F16, 96, 24);  // 12 % 8 != 0, 24 % 8 == 0
    CHECK(of(neox, shader::access_wide).access == shader::access_pair);
    CHECK(of(neox, shader::access_wide).unit_elements == 4);
    CHECK(of(neox, shader::access_wide).copy_access == shader::access_wide);
    CHECK(of(neox, shader::access_wide).copy_elements == 8);
    CHECK(of(neox, shader::access_wide).widest_access() == shader::access_wide);
    CHECK(of(neox, shader::access_pair).copy_access == shader::access_pair);
    CHECK(of(neox, shader::access_word).access == shader::access_word);
    CHECK(of(neox, shader::access_wide).chunk_lanes == 3);
    // 3 chunks times 16 heads would leave a quarter of two subgroups idle.
    KernelInfo known = neox;
    known.tensor[Q].heads = known.tensor[K].heads = 64;
    CHECK(of(known, shader::access_wide).workgroup_size() == 96);
    // Without such channels, and with ops, all channels have one width.
    CHECK(of(info(VKROPE_F16, 24, 24), shader::access_wide).copy_access == shader::access_pair);
    KernelInfo normed = neox;
    normed.tensor[Q].ops.norm.kind = VKROPE_NORM_RMS;
    CHECK(of(normed, shader::access_pair).copy_access == shader::access_pair);
    // V decides about copies alone.
    KernelInfo with_v = info(VKROPE_F16, 128, 128);
    with_v.tensor[V] = {VKROPE_F16, VKROPE_F16, 124};
    CHECK(of(with_v, shader::access_wide).access == shader::access_wide);
    CHECK(of(with_v, shader::access_wide).copy_access == shader::access_pair);
}

TEST_CASE("a tuning replaces the choices for a GPU, up to the device's limits") {
    KernelInfo llama = info(VKROPE_F16, 128, 128);
    llama.tensor[Q].heads = 32;
    llama.tensor[K].heads = 8;
    const auto of = [&](const Tuning& tuning, const DispatchLimits& limits = {}) {
        KernelInfo tuned = llama;
        tuned.tuning = tuning;
        return geometry_for(tuned, shader::access_wide, Load::many_tokens, limits);
    };
    CHECK(of({.lane_heads = 2}).q_batch == 2);
    CHECK(of({.lane_heads = 16}).q_batch == 4);  // 32 heads, of which 8 are side by side
    CHECK(of({.group_lanes = 32}).workgroup_size() == 32);
    CHECK(of({.group_lanes = 1024}).workgroup_size() == 128);  // limit
    CHECK(of({.group_lanes = 1024}, {.workgroup_invocations = 1024}).workgroup_size() == 256);
    CHECK(of({.group_tokens = 8}).group_tokens == 2);  // of 64 lanes
    CHECK(of({.group_lanes = 32, .group_tokens = 8}).group_tokens == 1);
    llama.tensor[Q].ops.norm.kind = VKROPE_NORM_RMS;
    CHECK(of({.lane_heads = 7}).rounds == 7);
    CHECK(shape_of(of({.lane_heads = 4}), {.z = 1, .tokens = 1, .q_heads = 32, .k_heads = 8})
              .groups[1] == 1);  // however few the tokens
}

TEST_CASE("on a GPU, a lane has several chunks where a row has more than a workgroup has lanes") {
    const Geometry long_rows = geometry_for(info(VKROPE_F16, 65534, 65534), shader::access_narrow,
                                            Load::few_tokens, {});
    CHECK(long_rows.chunk_lanes == 64);
    CHECK(long_rows.workgroup_size() == 64);
    // One pair rotates, and 32 766 chunks copy 65 534 channels, too many for one lane.
    CHECK(geometry_for(info(VKROPE_F32, 65534, 2), shader::access_word, Load::few_tokens, {})
              .chunk_lanes == 64);
    CHECK(geometry_for(info(VKROPE_F16, 160, 160), shader::access_narrow, Load::few_tokens, {})
              .chunk_lanes == 40);
    CHECK(geometry_for(info(VKROPE_F16, 128, 128), shader::access_narrow, Load::few_tokens,
                       {.workgroup_invocations = 16})
              .chunk_lanes == 16);
}

TEST_CASE("on a processor a lane has 64 bytes of a row, in all heads of its token") {
    const DispatchLimits limits;
    const KernelInfo partial = info(VKROPE_F32, 96, 24);
    // 24 channels are 3 chunks of 2 x 4; the other 72 are 9.
    const Geometry geometry = geometry_for(partial, shader::access_wide, Load::processor, limits);
    CHECK(geometry.chunks_together == 4);
    CHECK(geometry.chunk_lanes == 1);
    CHECK(geometry.group_tokens == 128);
    CHECK(geometry.q_batch == 0);
    CHECK(shape_of(geometry, {.z = 2, .tokens = 129, .q_heads = 5, .k_heads = 2}).groups[0] == 2);
    CHECK(shape_of(geometry, {.z = 2, .tokens = 129, .q_heads = 5, .k_heads = 2}).groups[1] == 1);
    const KernelInfo half = info(VKROPE_F32, 128, 64);
    const Geometry two = geometry_for(half, shader::access_wide, Load::processor, limits);
    CHECK(two.chunk_lanes == 2);
    CHECK(two.group_tokens == 64);
    // 8190 copying chunks are more than 64 per rotating chunk.
    const Geometry wide = geometry_for(info(VKROPE_F32, 65532, 8), shader::access_wide,
                                       Load::processor, limits);
    CHECK(wide.chunk_lanes == 128);
    CHECK(wide.group_tokens == 1);
    CHECK(max_heads(info(VKROPE_F32, 65532, 8), wide, limits) == 16384 / (4 + 64));
    CHECK(max_heads(half, two, limits) == 16384 / (4 + 4));
    const KernelInfo whole = info(VKROPE_F32, 128, 128);
    CHECK(max_heads(whole, geometry_for(whole, shader::access_wide, Load::processor, limits),
                    limits) == 16384 / 4);
    // A row of 65534 elements, one at a time: 256 chunks per lane.
    const KernelInfo elements = info(VKROPE_F16, 65534, 65534);
    CHECK(max_heads(elements,
                    geometry_for(elements, shader::access_narrow, Load::processor, limits),
                    limits) == 16384 / 256);
}

TEST_CASE("V in a dispatch without K spreads its channels over lanes; with K it uses K's lanes") {
    const DispatchLimits limits;
    KernelInfo alone = info(VKROPE_F16, 128, 0);  // a K that is not rotated
    alone.tensor[Q] = {};
    const Geometry gpu = geometry_for(alone, shader::access_wide, Load::few_tokens, limits);
    CHECK(gpu.chunk_lanes == 8);  // 16 channels per lane
    CHECK(gpu.workgroup_size() == 64);
    const Geometry processor = geometry_for(alone, shader::access_wide, Load::processor, limits);
    CHECK(processor.chunk_lanes == 2);  // as many units per lane as in a row that rotates
    CHECK(max_heads(alone, processor, limits) == 16384 / 4);
    KernelInfo with_v = info(VKROPE_F16, 128, 128);
    const Geometry without = geometry_for(with_v, shader::access_wide, Load::few_tokens, limits);
    with_v.tensor[V] = with_v.tensor[K];
    CHECK(geometry_for(with_v, shader::access_wide, Load::few_tokens, limits) == without);
    // The units of V must not cross the end of a row, whatever V's element type is.
    with_v.tensor[V].head_dim = 124;
    CHECK_FALSE(formats_allow(with_v, shader::access_wide));
    CHECK(formats_allow(with_v, shader::access_word));
    KernelInfo floats = info(VKROPE_F32, 128, 128);
    floats.tensor[V] = {VKROPE_F32, VKROPE_F16, 128, 0};
    CHECK(unit_elements(floats, shader::access_wide) == 8);
}

TEST_CASE("on a processor a chunk of word access has as many words as the windows allow") {
    const auto unit = [](const KernelInfo& of, Load load) {
        return geometry_for(of, shader::access_word, load, {}).unit_elements;
    };
    CHECK(unit(info(VKROPE_F16, 96, 24), Load::processor) == 4);    // 12 % 4 == 0
    CHECK(unit(info(VKROPE_F16, 128, 128), Load::processor) == 2);  // most calls use 16-byte access
    CHECK(unit(info(VKROPE_F16, 80, 20), Load::processor) == 2);
    CHECK(unit(info(VKROPE_F32, 96, 24), Load::processor) == 1);
    CHECK(unit(info(VKROPE_F32, 90, 20, 2), Load::processor) == 2);
    CHECK(unit(info(VKROPE_F32, 7, 6), Load::processor) == 1);
    CHECK(unit(info(VKROPE_F16, 128, 128), Load::few_tokens) ==
          2);  // neighbouring lanes take neighbouring words
    CHECK(unit(info(VKROPE_F32, 128, 128), Load::few_tokens) == 1);
}

TEST_CASE("rows that lanes of a GPU store together have gaps if shared memory has space for them") {
    KernelInfo stored = info(VKROPE_F16, 128, 128);
    stored.tensor[Q].heads = 32;
    stored.tensor[K].heads = 8;
    stored.tensor[K].out = VKROPE_Q8_0;
    const auto gaps = [](const KernelInfo& of, Load load) {
        const Geometry geometry = geometry_for(of, shader::access_wide, load, {});
        CHECK(geometry.ops == shader::ops_shared);
        return geometry.staged_gaps;
    };
    CHECK(gaps(stored, Load::few_tokens));
    CHECK_FALSE(gaps(stored, Load::processor));  // a lane has a row for itself
    KernelInfo longest = info(VKROPE_F32, 4096, 64);
    longest.tensor[K].out = VKROPE_Q8_0;
    CHECK_FALSE(gaps(longest, Load::few_tokens));
    KernelInfo normed = info(VKROPE_F16, 128, 128);
    normed.tensor[Q].ops.norm.kind = VKROPE_NORM_RMS;
    CHECK_FALSE(gaps(normed, Load::few_tokens));  // nothing is stored together
}

TEST_CASE("on a GPU a lane finishes several heads, one after the other, if tokens are many") {
    KernelInfo normed = info(VKROPE_F16, 128, 128);
    normed.tensor[Q].heads = 32;
    normed.tensor[K].heads = 8;
    normed.tensor[Q].ops.norm.kind = VKROPE_NORM_RMS;
    const auto of = [&](Load load, std::uint32_t batch = 4) {
        return geometry_for(normed, shader::access_wide, load, {.batch = batch});
    };
    CHECK(of(Load::many_tokens) == of(Load::few_tokens));  // one pipeline is enough
    CHECK(of(Load::many_tokens).rounds == 4);
    CHECK(of(Load::many_tokens, 1).rounds == 1);
    CHECK(of(Load::processor).rounds == 1);
    const auto workgroups = [&](std::uint32_t tokens, std::uint32_t q_heads) {
        const Work work{.z = 1, .tokens = tokens, .q_heads = q_heads, .k_heads = 8};
        return shape_of(of(Load::many_tokens), work).groups[1];
    };
    CHECK(workgroups(9, 32) == 4);  // of 8 heads
    CHECK(workgroups(1023, 32) == 4);
    CHECK(workgroups(1024, 32) == 1);  // 1024 tokens of 64 lanes suffice
    CHECK(workgroups(1024, 33) == 2);
    normed.tensor[Q].ops.norm.span = VKROPE_NORM_SPAN_TOKEN;  // one row in one workgroup
    CHECK(of(Load::many_tokens).rounds == 1);
}

TEST_CASE("no unit of a kernel with several windows crosses the end of a window") {
    KernelInfo two = info(VKROPE_F16, 64, 48);
    two.windows[0] = {0, 16};
    two.windows[1] = {16, 32};
    CHECK(formats_allow(two, shader::access_wide));
    two.windows[0] = {0, 8};  // 4 % 8 != 0
    two.windows[1] = {8, 40};
    CHECK_FALSE(formats_allow(two, shader::access_wide));
    CHECK(formats_allow(two, shader::access_word));
    two.windows[1] = {9, 40};
    CHECK_FALSE(formats_allow(two, shader::access_word));
}

TEST_CASE("a dispatch has no more tokens and heads than the device has workgroups along x and y") {
    const KernelInfo whole = info(VKROPE_F32, 128, 128);
    const DispatchLimits limits{.workgroup_count = {7, 7, 7}, .workgroup_invocations = 64};
    const Geometry gpu = geometry_for(whole, shader::access_wide, Load::few_tokens, limits);
    CHECK(gpu.workgroup_size() == 64);
    CHECK(max_tokens(gpu, limits) == 7);
    CHECK(max_heads(whole, gpu, limits) == 7 * 4);  // a workgroup has 16 chunks x 4 heads
    CHECK(max_heads(whole, gpu, {}) == 65535);      // the limit of the shader
    const Geometry processor = geometry_for(whole, shader::access_wide, Load::processor, limits);
    CHECK(processor.group_tokens == 16);
    CHECK(max_tokens(processor, limits) == 7 * 16);
}

TEST_CASE("invocations in a row fold from x into y, and are never more than a shader counts") {
    const DispatchLimits limits{.workgroup_count = {7, 7, 7}};
    const auto shape = [&](std::uint64_t invocations) {
        return shape_in_a_row(invocations, 64, limits);
    };
    CHECK(shape(7 * 64).groups[0] == 7);
    CHECK(shape(7 * 64).groups[1] == 1);
    CHECK(shape(7 * 64 + 1).groups[1] == 2);
    CHECK(shape(49 * 64).groups[1] == 7);
    CHECK(max_in_a_row(64, limits) == 49 * 64);
    // The shader counts at most 2^32 invocations, whatever the device allows.
    CHECK(max_in_a_row(64, {.workgroup_count = {4294967295u, 65535, 65535}}) == std::uint64_t{1}
                                                                                    << 32);
    CHECK(max_in_a_row(64, {.workgroup_count = {65535, 65535, 65535}}) ==
          std::uint64_t{65535} * 1024 * 64);
}

TEST_CASE("steps: one sum of squares is enough for f16 rows that nothing makes larger") {
    const auto one_sum = [](Element in, ParameterShape bias, NormPlace place) {
        const Ops ops = {.bias = bias,
                         .norm = {.kind = VKROPE_NORM_RMS, .place = place, .eps = 1e-6f}};
        return (op_bits({.in = in, .head_dim = 64, .ops = ops}) & shader::op_one_sum) != 0;
    };
    CHECK(one_sum(VKROPE_F16, VKROPE_PARAMETER_NONE, VKROPE_NORM_PLACE_BEFORE));
    CHECK_FALSE(one_sum(VKROPE_F16, VKROPE_PARAMETER_CHANNEL, VKROPE_NORM_PLACE_BEFORE));
    CHECK_FALSE(one_sum(VKROPE_F16, VKROPE_PARAMETER_NONE, VKROPE_NORM_PLACE_AFTER));
    CHECK_FALSE(one_sum(VKROPE_BF16, VKROPE_PARAMETER_NONE, VKROPE_NORM_PLACE_BEFORE));
    CHECK_FALSE(one_sum(VKROPE_F32, VKROPE_PARAMETER_NONE, VKROPE_NORM_PLACE_BEFORE));
}

TEST_CASE("geometry: a workgroup that shares rows stays within 128 lanes and 16 KiB") {
    for (const std::uint32_t head_dim : {2u, 64u, 96u, 256u, 1024u, 4096u}) {
        for (const std::uint32_t heads : {0u, 1u, 40u, 128u}) {
            for (const NormSpan span : {VKROPE_NORM_SPAN_HEAD, VKROPE_NORM_SPAN_TOKEN}) {
                for (const std::uint32_t access : {shader::access_wide, shader::access_narrow}) {
                    if (span == VKROPE_NORM_SPAN_TOKEN && heads == 0) continue;
                    KernelInfo of = info(VKROPE_F32, head_dim, 2);
                    of.tensor[V] = of.tensor[K];
                    of.tensor[Q].heads = of.tensor[K].heads = of.tensor[V].heads = heads;
                    of.tensor[Q].ops.norm = {.kind = VKROPE_NORM_RMS, .span = span, .eps = 1e-6f};
                    const Geometry g = geometry_for(of, access, Load::few_tokens, {});
                    CAPTURE(head_dim);
                    CAPTURE(heads);
                    CHECK(g.workgroup_size() <= 128);
                    if (g.ops == shader::ops_shared)
                        CHECK(shared_bytes(of, g) <= 16384);
                    else
                        CHECK(head_dim * (span == VKROPE_NORM_SPAN_TOKEN ? heads : 1) >= 2048);
                }
            }
        }
    }
}

TEST_CASE("geometry: rows that are stored together may fill the 16 KiB") {
    const auto stores = [](Element out, std::uint32_t head_dim, Load load) {
        KernelInfo of = info(VKROPE_F16, head_dim, 64);
        of.tensor[Q] = of.tensor[K] = of.tensor[V] = {VKROPE_F16, out, head_dim};
        of.tensor[Q].heads = of.tensor[K].heads = of.tensor[V].heads = 8;
        return std::pair{of, geometry_for(of, shader::access_wide, load, {})};
    };
    for (const Element out : {VKROPE_Q8_0, VKROPE_Q5_1, VKROPE_E4M3FN}) {
        CAPTURE(int(out));
        // Lanes of a processor exchange nothing. A workgroup has 32 rows of 128 channels.
        const auto [rows, processor] = stores(out, 128, Load::processor);
        CHECK(processor.workgroup_size() == 32);
        CHECK(shared_bytes(rows, processor) == 16384);
        // On a GPU there is one row of 4096 channels, with more blocks than lanes and no gaps.
        const auto [row, gpu] = stores(out, 4096, Load::few_tokens);
        CHECK(gpu.workgroup_size() == 64);
        CHECK(shared_bytes(row, gpu) == 16384);
    }
    // A workgroup has 8 rows of 128 channels, with gaps of four words after every 32 words and
    // after each row. For types with blocks each lane has two more words.
    const auto [plain, lanes] = stores(VKROPE_E4M3FN, 128, Load::few_tokens);
    CHECK(shared_bytes(plain, lanes) == 4 * (1024 + 8 * 20));
    const auto [blocks, same] = stores(VKROPE_Q4_0, 128, Load::few_tokens);
    CHECK(same == lanes);
    CHECK(shared_bytes(blocks, same) == 4 * (1024 + 8 * 20 + 128));
}

}  // namespace vkrope
