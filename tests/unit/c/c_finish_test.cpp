// SPDX-License-Identifier: MIT
// Norms and their parameter buffer in C: what the C++ tier makes of the same numbers.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/names.hpp"
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

    vkrope::KernelInfo in_cpp{.rotary_dim = 8, .tensor = {{.head_dim = 8, .heads = 2}}};
    in_cpp.tensor[vkrope::Q].ops = {.bias = vkrope::ParameterShape::channel,
                                    .norm = {.kind = vkrope::NormKind::rms,
                                             .eps = 1e-6f,
                                             .weight = vkrope::ParameterShape::head_channel,
                                             .weight_offset = 1}};
    const auto planned = vkrope::plan_parameters(in_cpp);
    REQUIRE(bool(planned));
    CHECK(plan.bytes == planned->bytes);
    CHECK(plan.q.weight.offset == planned->tensor[vkrope::Q].weight.offset);
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
    vkrope::ParameterSources in_cpp_sources;
    in_cpp_sources.tensor[vkrope::Q].bias = {bias.data(), {}, bias.size()};
    in_cpp_sources.tensor[vkrope::Q].weight = {weight.data(), {}, weight.size()};
    CHECK(vkrope::fill_parameters(planned.value, in_cpp_sources, wanted.data(), plan.bytes));
    CHECK(memory == wanted);
    CHECK(memory[8] == 1.5f);

    sources.q.weight.count = 15;
    CHECK(vkrope_fill_parameters(&plan, &sources, memory.data(), plan.bytes, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    vkrope::test::check_names(error.what, "q.weight.count 15 16");
    info.q_heads = 0;
    CHECK(vkrope_plan_parameters(&info, &plan, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("C: a kernel of a model has its norms, of V too, unless they are left out") {
    const std::string config = R"({"model_type": "gemma3n_text", "hidden_size": 512,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6})";
    vkrope_rotation* rotation = nullptr;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_rotation_from_hf_config(config.data(), config.size(), nullptr, &rotation,
                                                   &error) == VKROPE_SUCCESS,
                    error.what);
    vkrope_angle_plan plan = {};
    plan.struct_size = sizeof plan;
    REQUIRE(vkrope_plan_angles(rotation, VKROPE_ANGLES_COMPUTED, 4096, 0, &plan, &error) ==
            VKROPE_SUCCESS);
    vkrope_head_format q = {}, k = {}, v = {};
    q.struct_size = k.struct_size = v.struct_size = sizeof q;
    v.out = VKROPE_ELEMENT_F16;
    vkrope_kernel_info info = {};
    info.struct_size = sizeof info;
    REQUIRE_MESSAGE(vkrope_rotation_get_kernel_info(rotation, &plan, &q, &k, &v, &info, &error) ==
                        VKROPE_SUCCESS,
                    error.what);
    CHECK(info.v == &v);
    CHECK(v.head_dim == 64);
    CHECK(v.out == VKROPE_ELEMENT_F16);
    CHECK(info.q_heads == 8);
    CHECK(info.v_heads == 2);
    for (const vkrope_finish* finish : {info.q_finish, info.k_finish, info.v_finish}) {
        REQUIRE(finish);
        REQUIRE(finish->norm);
        CHECK(finish->norm->kind == VKROPE_NORM_RMS);
    }
    vkrope_parameter_plan parameters = {};
    parameters.struct_size = sizeof parameters;
    REQUIRE(vkrope_plan_parameters(&info, &parameters, &error) == VKROPE_SUCCESS);
    CHECK(parameters.bytes == 2 * 64 * 4);
    info.q_finish = info.k_finish = info.v_finish = nullptr;
    REQUIRE(vkrope_plan_parameters(&info, &parameters, &error) == VKROPE_SUCCESS);
    CHECK(parameters.bytes == 0);
    REQUIRE(vkrope_rotation_get_kernel_info(rotation, &plan, nullptr, &k, nullptr, &info, &error) ==
            VKROPE_SUCCESS);
    CHECK(info.q_finish == nullptr);
    CHECK(info.v_finish == nullptr);
    CHECK(info.q_heads == 0);
    vkrope_rotation_destroy(rotation);
}

TEST_CASE("C: given scales are planned and filled as in C++, and Hadamard blocks are the same") {
    vkrope_head_format q = {}, v = {};
    q.struct_size = v.struct_size = sizeof q;
    q.head_dim = v.head_dim = 64;
    q.out = VKROPE_ELEMENT_E4M3FN;
    v.out = VKROPE_ELEMENT_INT8;
    vkrope_finish q_finish = {}, v_finish = {};
    q_finish.struct_size = v_finish.struct_size = sizeof q_finish;
    q_finish.hadamard = 64;
    q_finish.store_scale = VKROPE_STORE_SCALE_GIVEN;
    v_finish.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
    vkrope_kernel_info info = {};
    info.struct_size = sizeof info;
    info.rotary_dim = 8;
    info.q = &q;
    info.v = &v;
    info.q_heads = 2;
    info.v_heads = 3;
    info.q_finish = &q_finish;
    info.v_finish = &v_finish;
    vkrope_parameter_plan plan = {};
    plan.struct_size = sizeof plan;
    vkrope_error error;
    REQUIRE(vkrope_plan_parameters(&info, &plan, &error) == VKROPE_SUCCESS);

    using vkrope::Element, vkrope::StoreScale;
    vkrope::KernelInfo in_cpp{
        .rotary_dim = 8,
        .tensor = {{.in = Element::f32,
                    .out = Element::e4m3fn,
                    .head_dim = 64,
                    .heads = 2,
                    .ops = {.hadamard = 64, .store_scale = StoreScale::given}},
                   {},
                   {.in = Element::f32,
                    .out = Element::int8,
                    .head_dim = 64,
                    .heads = 3,
                    .ops = {.store_scale = StoreScale::given_head}}}};
    const auto planned = vkrope::plan_parameters(in_cpp);
    REQUIRE(bool(planned));
    CHECK(plan.bytes == planned->bytes);
    CHECK(plan.q.store_scale.offset == planned->tensor[vkrope::Q].store_scale.offset);
    CHECK(plan.v.store_scale.offset == planned->tensor[vkrope::V].store_scale.offset);
    CHECK(plan.q.store_scale.count == 1);
    CHECK(plan.k.store_scale.count == 0);
    CHECK(plan.v.store_scale.count == 3);

    const float q_scale = 4, v_scales[] = {0.5f, 2, 8};
    vkrope_parameter_sources sources = {};
    sources.struct_size = sizeof sources;
    sources.q.store_scale.data = &q_scale;
    sources.q.store_scale.count = 1;
    sources.v.store_scale.data = v_scales;
    sources.v.store_scale.count = 3;
    std::vector<float> memory(plan.bytes / 4), wanted(plan.bytes / 4);
    CHECK(vkrope_fill_parameters(&plan, &sources, memory.data(), plan.bytes, &error) ==
          VKROPE_SUCCESS);
    vkrope::ParameterSources in_cpp_sources;
    in_cpp_sources.tensor[vkrope::Q].store_scale = {&q_scale, {}, 1};
    in_cpp_sources.tensor[vkrope::V].store_scale = {v_scales, {}, 3};
    CHECK(vkrope::fill_parameters(planned.value, in_cpp_sources, wanted.data(), plan.bytes));
    CHECK(memory == wanted);
    CHECK(memory[plan.q.store_scale.offset] == 4);
    CHECK(memory[plan.v.store_scale.offset + 2] == 8);

    sources.v.store_scale.count = 2;
    CHECK(vkrope_fill_parameters(&plan, &sources, memory.data(), plan.bytes, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    vkrope::test::check_names(error.what, "v.store_scale.count 2 3");
    info.v_heads = 0;  // a scale for each head
    CHECK(vkrope_plan_parameters(&info, &plan, &error) == VKROPE_ERROR_INVALID_ARGUMENT);

    for (const std::uint32_t head_dim : {64u, 96u, 192u, 1024u}) {
        const vkrope_hadamard_blocks in_c = vkrope_hadamard_of_llama_cpp(head_dim, 1, head_dim, 1);
        const vkrope::HadamardBlocks blocks = vkrope::hadamard_of_llama_cpp(head_dim, true,
                                                                            head_dim, true);
        CHECK(in_c.q_and_k == blocks.q_and_k);
        CHECK(in_c.v == blocks.v);
    }
    CHECK(vkrope_hadamard_of_llama_cpp(1024, 1, 128, 0).q_and_k == 512);
    CHECK(vkrope_hadamard_of_llama_cpp(1024, 1, 128, 0).v == 0);
}
