// SPDX-License-Identifier: MIT
// The rules of norms, biases, clip, scale, Hadamard transforms and quantised outputs: each broken
// one is an error that names the field, the value and the rule.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "arguments.hpp"
#include "kernel/geometry/ops.hpp"
#include "support/names.hpp"

namespace vkrope {

namespace {

KernelInfo info() {
    const TensorInfo format = {VKROPE_F32, VKROPE_F32, 64, 0};
    TensorInfo normed = format;
    normed.ops.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
    return completed({.pairing = VKROPE_HALF_SPLIT,
                      .rotary_dim = 64,
                      .tensor = {normed, format, format},
                      .angles = VKROPE_ANGLES_DIRECT_TEXTURE});
}

AngleTableLayout angle_plan() {
    AngleTableLayout plan;
    plan.source = VKROPE_ANGLES_DIRECT_TEXTURE;
    plan.attention_factor = 1;
    plan.head_groups = 1;
    plan.pairs = 32;
    plan.rows = 100;
    plan.bytes = 100 * 32 * 8;
    plan.row_texels = 16;
    plan.fold_log2 = 7;
    plan.extent = {16, 100};
    return plan;
}

template <class Change>
void refuses(ErrorCode code, const std::string& words, const Change& change) {
    KernelInfo changed = info();
    change(changed);
    test::check_error(check(device(), changed), code, words);
}

}  // namespace

TEST_CASE("create: rules of norms, biases, clip and scale") {
    CHECK(check(device(), info()));
    const float nan = std::nanf("");
    const ErrorCode bad = VKROPE_ERROR_INVALID_ARGUMENT;
    refuses(bad, "tensor[0].ops.norm.eps 0 1e-20 1",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.eps = 0; });
    refuses(bad, "tensor[0].ops.norm.eps 9.99e-21 1e-20 1",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.eps = 9.99e-21f; });
    refuses(bad, "tensor[0].ops.norm.eps nan 1e-20 1",
            [=](KernelInfo& i) { i.tensor[Q].ops.norm.eps = nan; });
    refuses(bad, "tensor[0].ops.norm.kind 3",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.kind = NormKind(3); });
    refuses(bad, "tensor[0].ops.norm.kind none",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.kind = VKROPE_NORM_NONE; });
    refuses(bad, "tensor[0].ops.norm.span 2",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.span = NormSpan(2); });
    refuses(bad, "tensor[0].ops.norm.place 2",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.place = NormPlace(2); });
    refuses(bad, "tensor[0].ops.norm.weight 3",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.weight = ParameterShape(3); });
    refuses(bad, "tensor[0].ops.norm.weight head_dim] tensor[0].heads 0",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.weight = VKROPE_PARAMETER_HEAD_CHANNEL; });
    refuses(bad, "tensor[0].ops.norm.weight_offset 1 norm.weight none",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.weight_offset = 1; });
    refuses(bad, "tensor[0].ops.norm.bias 1",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.bias = VKROPE_PARAMETER_CHANNEL; });
    refuses(bad, "tensor[0].ops.norm.span token tensor[0].heads 0",
            [](KernelInfo& i) { i.tensor[Q].ops.norm.span = VKROPE_NORM_SPAN_TOKEN; });
    refuses(bad, "tensor[1].ops.clip -1", [](KernelInfo& i) { i.tensor[K].ops.clip = -1; });
    refuses(bad, "tensor[2].ops.scale nan", [=](KernelInfo& i) { i.tensor[V].ops.scale = nan; });
    refuses(bad, "tensor[1].ops.scale_call true q_scale",
            [](KernelInfo& i) { i.tensor[K].ops.scale_call = true; });
    refuses(bad, "two_parameter_sets VK_TRUE", [](KernelInfo& i) {
        i.tensor[Q].ops = i.tensor[K].ops = i.tensor[V].ops = {};
        i.two_parameter_sets = true;
    });
    refuses(bad, "tensor[2].ops tensor[2].head_dim 0", [](KernelInfo& i) {
        i.tensor[V] = {};
        i.tensor[V].ops.bias = VKROPE_PARAMETER_CHANNEL;
    });
    refuses(VKROPE_ERROR_NOT_SUPPORTED, "tensor[0].head_dim 4098 4096",
            [](KernelInfo& i) { i.tensor[Q].head_dim = 4098; });
    refuses(VKROPE_ERROR_NOT_SUPPORTED, "tensor[0].heads 1025 1024", [](KernelInfo& i) {
        i.tensor[Q].heads = 1025;
        i.tensor[Q].ops.norm.span = VKROPE_NORM_SPAN_TOKEN;
    });
}

TEST_CASE("record: rules of parameters and scales") {
    const AngleTableLayout plan = angle_plan();
    KernelInfo of = info();
    of.tensor[Q].ops.norm.weight = VKROPE_PARAMETER_CHANNEL;
    of.tensor[Q].ops.scale_call = of.tensor[Q].ops.scale_tokens = true;
    of.tensor[Q].ops.scale = 2;
    Call good{.batch = 2,
              .tokens = 4,
              .positions = {.batch_stride = broadcast},
              .angles = {.layout = &plan, .view = fake<VkImageView>(9)}};
    good.in[Q] = good.out[Q] = {.where = {fake<VkBuffer>(1), 0, 2 * 4 * 64 * 4}, .heads = 1};
    good.parameters = {fake<VkBuffer>(2), 16, 256};
    good.scale_tokens[Q] = {fake<VkBuffer>(2), 512, 32};
    good.q_scale = 0.25f;
    const auto resolved = resolve(of, {}, good);
    INFO(resolved.status.what);
    REQUIRE(bool(resolved.status));
    CHECK(resolved->q_scale == 0.5f);
    CHECK(resolved->parameters_offset == 4);
    const auto refuses_call = [&](const char* words, const auto& change) {
        Call changed = good;
        change(changed);
        test::check_error(resolve(of, {}, changed).status, VKROPE_ERROR_INVALID_ARGUMENT, words);
    };
    refuses_call("parameters.buffer null", [](Call& c) { c.parameters = {}; });
    refuses_call("parameters.offset 4 16", [](Call& c) { c.parameters.offset = 4; });
    refuses_call("parameters.range 252 256", [](Call& c) { c.parameters.range = 252; });
    refuses_call("scale_tokens[0].range 28 32", [](Call& c) { c.scale_tokens[Q].range = 28; });
    refuses_call("q_scale nan", [](Call& c) { c.q_scale = std::nanf(""); });
    refuses_call("out[0] parameters", [](Call& c) {
        c.parameters = {fake<VkBuffer>(1), 1024, 256};
    });
    refuses_call("first_set_tokens 3 one set", [](Call& c) { c.first_set_tokens = 3; });
    of.two_parameter_sets = true;
    refuses_call("parameters.range 256 512", [](Call& c) { c.first_set_tokens = 3; });
    good.parameters.range = 512;
    for (const std::uint32_t tokens : {0u, 4u, 0x80000000u})
        refuses_call("first_set_tokens 1 4", [=](Call& c) { c.first_set_tokens = tokens; });
    good.first_set_tokens = 3;
    CHECK(resolve(of, {}, good).status);
    of.two_parameter_sets = false;
    good.first_set_tokens = 0;
    of.tensor[Q].ops.scale_call = false;
    refuses_call("q_scale 0.25 tensor[0].ops.scale_call", [](Call&) {});
    good.q_scale = 1;
    of.tensor[Q].ops.scale_tokens = false;
    refuses_call("scale_tokens[0]", [](Call&) {});
}

TEST_CASE("create: rules of Hadamard transforms, quantised outputs and their scales") {
    const ErrorCode bad = VKROPE_ERROR_INVALID_ARGUMENT;
    refuses(bad, "tensor[0].in 3 f32 f16 bf16",
            [](KernelInfo& i) { i.tensor[Q].in = VKROPE_E4M3FN; });
    refuses(bad, "tensor[1].out 11", [](KernelInfo& i) { i.tensor[K].out = Element(11); });
    refuses(bad, "tensor[1].head_dim 80 32 tensor[1].out 32", [](KernelInfo& i) {
        i.tensor[K].head_dim = 80;
        i.tensor[K].out = VKROPE_Q8_0;
    });
    for (const std::uint32_t block : {1u, 3u, 48u, 1024u})
        refuses(bad, "tensor[1].ops.hadamard " + std::to_string(block) + " 2 512",
                [=](KernelInfo& i) { i.tensor[K].ops.hadamard = block; });
    refuses(bad, "tensor[1].ops.hadamard 128 head_dim 64",
            [](KernelInfo& i) { i.tensor[K].ops.hadamard = 128; });
    refuses(bad, "tensor[2].ops.store_scale 5",
            [](KernelInfo& i) { i.tensor[V].ops.store_scale = StoreScale(5); });
    refuses(bad, "tensor[2].ops.store_scale 1 e4m3fn e5m2 int8 tensor[2].out 6", [](KernelInfo& i) {
        i.tensor[V].out = VKROPE_Q8_0;
        i.tensor[V].ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
    });
    refuses(bad, "tensor[2].ops.store_scale 3 tensor[2].heads 0", [](KernelInfo& i) {
        i.tensor[V].out = VKROPE_INT8;
        i.tensor[V].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    });
    refuses(bad, "tensor[2].ops.store_scale 4 tensor[2].heads 0", [](KernelInfo& i) {
        i.tensor[V].out = VKROPE_INT8;
        i.tensor[V].ops.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    });
    refuses(bad, "tensor[2].ops.scale_floor 3e+38 2^127", [](KernelInfo& i) {
        i.tensor[V].out = VKROPE_INT8;
        i.tensor[V].heads = 2;
        i.tensor[V].ops = {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                           .scale_floor = 3e38f};
    });
    refuses(bad, "tensor[2].ops.store_scale 2 tensor[2].heads 0", [](KernelInfo& i) {
        i.tensor[V].out = VKROPE_E5M2;
        i.tensor[V].ops.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
    });
    refuses(bad, "tensor[1].ops.scale_floor 0.5 0 store_scale",
            [](KernelInfo& i) { i.tensor[K].ops.scale_floor = 0.5f; });
    refuses(bad, "tensor[1].ops.scale_layout 2",
            [](KernelInfo& i) { i.tensor[K].ops.scale_layout = vkrope_scale_layout(2); });
    refuses(bad, "tensor[1].ops.scale_layout 1",
            [](KernelInfo& i) { i.tensor[K].ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS; });
    refuses(bad, "tensor[2].ops tensor[2].head_dim 0", [](KernelInfo& i) {
        i.tensor[V] = {};
        i.tensor[V].ops.hadamard = 2;
    });
    KernelInfo good = info();
    good.tensor[K].out = VKROPE_E4M3FN;
    good.tensor[K].heads = 3;
    good.scatter_kv = true;
    good.tensor[K].ops = {.hadamard = 64,
                          .store_scale = VKROPE_STORE_SCALE_MADE,
                          .scale_floor = 1e-6f,
                          .scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS};
    CHECK(check(device(), good));
}

TEST_CASE("record: strides, offsets and scales of quantised outputs") {
    const AngleTableLayout plan = angle_plan();
    KernelInfo of = info();
    of.tensor[Q].out = VKROPE_Q8_0;
    of.tensor[K].out = VKROPE_INT8;
    of.tensor[K].heads = 2;
    of.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    Call good{.batch = 2,
              .tokens = 4,
              .positions = {.batch_stride = broadcast},
              .angles = {.layout = &plan, .view = fake<VkImageView>(9)}};
    good.in[Q] = {.where = {fake<VkBuffer>(1), 0, 2 * 4 * 3 * 64 * 4}, .heads = 3};
    good.out[Q] = {
        .where = {fake<VkBuffer>(2), 2, 2 * 4 * 3 * 68}, .heads = 3, .buffer_size = 2000};
    good.in[K] = {.where = {fake<VkBuffer>(3), 0, 2 * 4 * 2 * 64 * 4}, .heads = 2};
    good.out[K] = {
        .where = {fake<VkBuffer>(4), 1, 2 * 4 * 2 * 64}, .heads = 2, .buffer_size = 2000};
    good.scales_out[K] = {fake<VkBuffer>(5), 4, 2 * 4 * 2 * 4};
    const auto resolved = resolve(of, {}, good);
    INFO(resolved.status.what);
    REQUIRE(bool(resolved.status));
    CHECK(resolved->tensor[Q].out.head_dim == 2);
    CHECK(resolved->tensor[Q].out.head == 2);
    CHECK(resolved->tensor[Q].out.token == 6);
    CHECK(resolved->tensor[Q].out.element_bytes == 34);
    CHECK(resolved->tensor[K].out.head == 64);
    CHECK(resolved->tensor[K].scales_out->element_bytes == 8);
    CHECK(resolved->tensor[K].scales_out->batch == 4);
    const auto refuses_call = [&](const char* words, const auto& change) {
        Call changed = good;
        change(changed);
        test::check_error(resolve(of, {}, changed).status, VKROPE_ERROR_INVALID_ARGUMENT, words);
    };
    refuses_call("out[0].head_stride 72 32", [](Call& c) { c.out[Q].head_stride = 72; });
    refuses_call("out[0].head_stride 32 64", [](Call& c) { c.out[Q].head_stride = 32; });
    refuses_call("out[0].where.offset 1 2", [](Call& c) { c.out[Q].where.offset = 1; });
    refuses_call("out[0].where.range 1631 1632 out[0].batch_stride 0 768",
                 [](Call& c) { c.out[Q].where.range = 1631; });
    refuses_call("in[0] out[0]", [](Call& c) { c.out[Q].where.buffer = c.in[Q].where.buffer; });
    refuses_call("scales_out[1].buffer null", [](Call& c) { c.scales_out[K] = {}; });
    refuses_call("scales_out[1].range 60 64", [](Call& c) { c.scales_out[K].range = 60; });
    refuses_call("scales_out[0] store_scale", [](Call& c) { c.scales_out[Q] = c.scales_out[K]; });
    refuses_call("out[1] scales_out[1]", [](Call& c) {
        c.scales_out[K] = {c.out[K].where.buffer, 512, 64};
    });
    refuses_call("in[0] scales_out[1]", [](Call& c) {
        c.scales_out[K] = {c.in[Q].where.buffer, 512, 64};
    });
    refuses_call("out_of_range scales_out[1]", [](Call& c) {
        c.out_of_range = {c.scales_out[K].buffer, 8, 4};
    });
    of.tensor[Q].out = of.tensor[Q].in;
    of.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_NONE;
    good.out[Q] = good.in[Q];
    refuses_call("scales_out[1] store_scale", [](Call&) {});
}

TEST_CASE("steps: one sum of squares is enough for halves that nothing makes larger") {
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
                    KernelInfo of = info();
                    of.rotary_dim = 2;
                    of.tensor[Q].head_dim = of.tensor[K].head_dim = of.tensor[V].head_dim =
                        head_dim;
                    of.tensor[Q].heads = of.tensor[K].heads = of.tensor[V].heads = heads;
                    of.tensor[Q].ops.norm.span = span;
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
        KernelInfo of = info();
        of.tensor[Q].ops = {};
        of.tensor[Q] = of.tensor[K] = of.tensor[V] = {VKROPE_F16, out, head_dim};
        of.tensor[Q].heads = of.tensor[K].heads = of.tensor[V].heads = 8;
        of.rotary_dim = 64;
        return std::pair{of, geometry_for(of, shader::access_wide, load, {})};
    };
    for (const Element out : {VKROPE_Q8_0, VKROPE_Q5_1, VKROPE_E4M3FN}) {
        CAPTURE(int(out));
        // A lane of a processor exchanges nothing: 32 rows of 128 channels.
        const auto [rows, processor] = stores(out, 128, Load::processor);
        CHECK(processor.workgroup_size() == 32);
        CHECK(shared_bytes(rows, processor) == 16384);
        // A GPU has one row of 4096 channels, more than lanes have blocks, and no room for gaps.
        const auto [row, gpu] = stores(out, 4096, Load::few_tokens);
        CHECK(gpu.workgroup_size() == 64);
        CHECK(shared_bytes(row, gpu) == 16384);
    }
    // 8 rows of 128 channels, gaps of four words after every 32 of these and behind each row; two
    // words of each lane in blocks.
    const auto [plain, lanes] = stores(VKROPE_E4M3FN, 128, Load::few_tokens);
    CHECK(shared_bytes(plain, lanes) == 4 * (1024 + 8 * 20));
    const auto [blocks, same] = stores(VKROPE_Q4_0, 128, Load::few_tokens);
    CHECK(same == lanes);
    CHECK(shared_bytes(blocks, same) == 4 * (1024 + 8 * 20 + 128));
}

}  // namespace vkrope
