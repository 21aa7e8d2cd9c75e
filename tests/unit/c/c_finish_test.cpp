// SPDX-License-Identifier: MIT
// Norms and their parameter buffer in C: what the C++ tier makes of the same numbers.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

TEST_CASE("C: a kernel's parameters are planned and filled as in C++") {
    vkrope_head_format q = {};
    q.struct_size = sizeof q;
    q.head_dim = 8;
    vkrope_norm norm = {};
    norm.struct_size = sizeof norm;
    norm.kind = VKROPE_NORM_RMS;
    norm.eps = 1e-6f;
    norm.weight = VKROPE_PARAMETER_HEAD_CHANNEL;
    norm.weight_offset = 1;
    vkrope_finish finish = {};
    finish.struct_size = sizeof finish;
    finish.norm = &norm;
    finish.bias = VKROPE_PARAMETER_CHANNEL;
    vkrope_kernel_info info = {};
    info.struct_size = sizeof info;
    info.rotary_dim = 8;
    info.q = &q;
    info.q_heads = 2;
    info.q_finish = &finish;
    vkrope_parameter_plan plan = {};
    plan.struct_size = sizeof plan;
    vkrope_error error;
    REQUIRE(vkrope_plan_parameters(&info, &plan, &error) == VKROPE_SUCCESS);

    vkrope::KernelInfo in_cpp{.rotary_dim = 8, .q = {{}, {}, 8, 0}, .q_heads = 2};
    in_cpp.q_finish = {.bias = vkrope::ParameterShape::channel,
                       .norm = {.kind = vkrope::NormKind::rms,
                                .eps = 1e-6f,
                                .weight = vkrope::ParameterShape::head_channel,
                                .weight_offset = 1}};
    const auto planned = vkrope::plan_parameters(in_cpp);
    REQUIRE(bool(planned));
    CHECK(plan.bytes == planned->bytes);
    CHECK(plan.q.weight.offset == planned->q.weight.offset);
    CHECK(plan.q.weight.count == 16);
    CHECK(plan.q.weight.added == 1);
    CHECK(plan.k.bias.shape == VKROPE_PARAMETER_NONE);

    const std::vector<float> bias(8, 0.25f), weight(16, 0.5f);
    vkrope_parameter_sources sources = {};
    sources.struct_size = sizeof sources;
    sources.q.bias.data = bias.data();
    sources.q.bias.count = bias.size();
    sources.q.weight.data = weight.data();
    sources.q.weight.count = weight.size();
    std::vector<float> memory(plan.bytes / 4), wanted(plan.bytes / 4);
    CHECK(vkrope_fill_parameters(&plan, &sources, memory.data(), plan.bytes, &error) ==
          VKROPE_SUCCESS);
    CHECK(bool(vkrope::fill_parameters(planned.value,
                                       {.q = {.bias = {bias.data(), {}, bias.size()},
                                              .weight = {weight.data(), {}, weight.size()}}},
                                       wanted.data(), plan.bytes)));
    CHECK(memory == wanted);
    CHECK(memory[8] == 1.5f);

    sources.q.weight.count = 15;
    CHECK(vkrope_fill_parameters(&plan, &sources, memory.data(), plan.bytes, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what) == "q.weight.count is 15: the plan has 16 numbers for it");
    info.q_heads = 0;
    CHECK(vkrope_plan_parameters(&info, &plan, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
}
