// SPDX-License-Identifier: MIT
// Checks the parameter buffer: where its items are, what is written, and what is refused.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

namespace {

KernelInfo info() {
    KernelInfo of{.pairing = VKROPE_HALF_SPLIT, .rotary_dim = 6};
    of.tensor[Q] = {VKROPE_F16, VKROPE_F16, 6, 0};
    of.tensor[K] = of.tensor[V] = of.tensor[Q];
    of.tensor[Q].heads = 3;
    of.tensor[Q].ops = {.bias = VKROPE_PARAMETER_HEAD_CHANNEL,
                        .norm = {.kind = VKROPE_NORM_LAYER,
                                 .eps = 1e-5f,
                                 .weight = VKROPE_PARAMETER_CHANNEL,
                                 .weight_offset = 1,
                                 .bias = VKROPE_PARAMETER_CHANNEL}};
    of.tensor[V].ops.bias = VKROPE_PARAMETER_CHANNEL;
    return of;
}

const std::vector<float> eighteen(18, 0.5f), six = {1, 2, 3, 4, 5, 6};

ParameterSources sources() {
    static const std::uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x8000, 0x7c00, 0x0400};
    static const std::uint16_t brains[] = {0x3f80, 0xbf80, 0x0000, 0x8000, 0x4000, 0x7f80};
    ParameterSources all;
    all.tensor[Q] = {
        {eighteen.data(), VKROPE_F32, 18}, {halves, VKROPE_F16, 6}, {six.data(), VKROPE_F32, 6}};
    all.tensor[V].bias = {brains, VKROPE_BF16, 6};
    return all;
}

}  // namespace

TEST_CASE("parameters: items follow each other from multiples of 16 bytes on") {
    const auto plan = plan_parameters(info());
    REQUIRE(bool(plan));
    CHECK(plan->tensor[Q].bias.offset == 0);
    CHECK(plan->tensor[Q].bias.count == 18);
    CHECK(plan->tensor[Q].weight.offset == 20);
    CHECK(plan->tensor[Q].weight.added == 1);
    CHECK(plan->tensor[Q].norm_bias.offset == 28);
    CHECK(plan->tensor[K].bias.shape == VKROPE_PARAMETER_NONE);
    CHECK(plan->tensor[V].bias.offset == 36);
    CHECK(plan->bytes == 44 * 4);
    CHECK(plan_parameters({.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 2,
                           .tensor = {{VKROPE_F32, VKROPE_F32, 2, 0}}})
              ->bytes == 0);
}

TEST_CASE("parameters: the weight and bias of a norm over a part have its channels for each head") {
    KernelInfo of = info();
    Norm& norm = of.tensor[Q].ops.norm;
    norm.first_channel = 1;
    norm.channels = 5;
    norm.weight = VKROPE_PARAMETER_HEAD_CHANNEL;
    const ParameterLayout plan = plan_parameters(of).value;
    CHECK(plan.tensor[Q].bias.count == 18);
    CHECK(plan.tensor[Q].weight.count == 15);
    CHECK(plan.tensor[Q].weight.offset == 20);
    CHECK(plan.tensor[Q].norm_bias.count == 5);
    CHECK(plan.tensor[Q].norm_bias.offset == 36);
    CHECK(plan.tensor[V].bias.offset == 44);
    CHECK(plan.bytes == 52 * 4);
    std::vector<float> memory(plan.bytes / 4, 99.f);
    ParameterSources all = sources();
    all.tensor[Q].weight = {eighteen.data(), VKROPE_F32, 15};
    all.tensor[Q].norm_bias = {six.data(), VKROPE_F32, 5};
    REQUIRE(bool(fill_parameters(plan, all, memory.data(), plan.bytes)));
    CHECK(memory[34] == 1.5f);
    CHECK(memory[40] == 5);
    CHECK(memory[41] == 0);
    all.tensor[Q].weight.count = 18;
    test::check_invalid(fill_parameters(plan, all, memory.data(), plan.bytes),
                        "tensor[0].weight.count 18 15");

    norm.first_channel = 2;
    test::check_invalid(plan_parameters(of).status,
                        "tensor[0].ops.norm.channels 5 first_channel 2 head_dim 6");
    norm.first_channel = ~0u;  // their sum exceeds 32 bits
    test::check_invalid(plan_parameters(of).status, "tensor[0].ops.norm.channels 5");
    norm.channels = 0;
    norm.first_channel = 3;
    test::check_invalid(plan_parameters(of).status,
                        "tensor[0].ops.norm.first_channel 3 norm.channels 0");
}

TEST_CASE("parameters: items follow each other, each from a multiple of 16 bytes") {
    const ParameterLayout plan = plan_parameters(info()).value;
    std::vector<float> memory(plan.bytes / 4, 99.f);
    REQUIRE(bool(fill_parameters(plan, sources(), memory.data(), plan.bytes)));
    const auto at = [&](std::uint32_t offset, std::initializer_list<float> wanted) {
        CHECK(std::memcmp(&memory[offset], std::data(wanted), wanted.size() * 4) == 0);
    };
    at(17, {0.5f, 0, 0});  // followed by a gap
    at(20, {2, -1, 1 + 0x1p-24f, 1, __builtin_inff(), 1 + 0x1p-14f});
    at(28, {1, 2, 3, 4, 5, 6});
    at(36, {1, -1, 0, -0.f, 2, __builtin_inff()});
}

TEST_CASE("parameters: a wrong source is an error that names field, count and rule") {
    const ParameterLayout plan = plan_parameters(info()).value;
    std::vector<float> memory(plan.bytes / 4);
    const auto refuses = [&](const char* words, const auto& change) {
        ParameterSources changed = sources();
        change(changed);
        test::check_invalid(fill_parameters(plan, changed, memory.data(), plan.bytes), words);
    };
    refuses(
        "tensor[0].bias.count 17 18", [](ParameterSources& s) { s.tensor[Q].bias.count = 17; });
    refuses(
        "tensor[0].weight.data null 6", [](ParameterSources& s) { s.tensor[Q].weight = {}; });
    refuses(
        "tensor[1].weight", [](ParameterSources& s) { s.tensor[K].weight = s.tensor[Q].weight; });
    refuses(
        "tensor[1].weight", [](ParameterSources& s) { s.tensor[K].weight.element = VKROPE_BF16; });
    refuses(
        "tensor[1].weight", [](ParameterSources& s) { s.tensor[K].weight.count = 1; });
    refuses("tensor[2].bias.element 3",
            [](ParameterSources& s) { s.tensor[V].bias.element = Element(3); });
    CHECK_FALSE(fill_parameters(plan, sources(), memory.data(), plan.bytes - 4));
    CHECK_FALSE(fill_parameters(plan, sources(), nullptr, plan.bytes));
    KernelInfo wrong = info();
    wrong.tensor[Q].heads = 0;
    test::check_invalid(plan_parameters(wrong).status,
                        "tensor[0].ops.bias head_dim] tensor[0].heads 0");
    wrong = info();
    wrong.tensor[V].head_dim = 0;
    test::check_invalid(plan_parameters(wrong).status, "tensor[2].in tensor[2].head_dim 0");
    wrong.tensor[V].in = wrong.tensor[V].out = VKROPE_F32;
    wrong.tensor[V].heads = 0;
    test::check_invalid(plan_parameters(wrong).status, "tensor[2].ops tensor[2].head_dim 0");
}

TEST_CASE("parameters: a weight that a call binds is none") {
    KernelInfo of = info();
    of.tensor[Q].ops.norm.weight_bound = 4;  // true, like every number but 0
    const ParameterLayout plan = plan_parameters(of).value;
    CHECK(plan.tensor[Q].weight.shape == VKROPE_PARAMETER_NONE);
    CHECK(plan.tensor[Q].norm_bias.offset == 20);  // where the weight would be
    CHECK(plan.bytes == 36 * 4);
    std::vector<float> memory(plan.bytes / 4);
    ParameterSources all = sources();
    test::check_invalid(fill_parameters(plan, all, memory.data(), plan.bytes), "tensor[0].weight");
    all.tensor[Q].weight = {};
    CHECK(fill_parameters(plan, all, memory.data(), plan.bytes));
}

TEST_CASE("parameters: a layout that plan_parameters cannot have made is refused by name") {
    KernelInfo of = info();
    of.tensor[Q].ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
    const ParameterLayout plan = plan_parameters(of).value;
    std::vector<float> memory(plan.bytes / 4);
    const auto refuses = [&](const std::string& words, const auto& change) {
        ParameterLayout changed = plan;
        change(changed);
        test::check_invalid(fill_parameters(changed, sources(), memory.data(), plan.bytes), words);
    };
    refuses("layout.bytes", [](ParameterLayout& p) { p.bytes -= 16; });
    for (const TensorIndex t : every_tensor) {
        constexpr std::pair<const char*, ParameterItem TensorParameters::*> items[] = {
            {"bias", &TensorParameters::bias},
            {"weight", &TensorParameters::weight},
            {"norm_bias", &TensorParameters::norm_bias},
            {"store_scale", &TensorParameters::store_scale}};
        for (const auto& [name, which] : items) {
            const std::string at = "layout.tensor[" + std::to_string(t) + "]." + name;
            const auto item = which;  // lambdas cannot capture structured bindings in C++17
            const bool none = (plan.tensor[t].*item).shape == VKROPE_PARAMETER_NONE;
            refuses(
                at + ".shape 9",
                [&](ParameterLayout& p) { (p.tensor[t].*item).shape = ParameterShape(9); });
            refuses(
                at + ".offset", [&](ParameterLayout& p) { (p.tensor[t].*item).offset += 4; });
            refuses(
                at + ".added 2", [&](ParameterLayout& p) { (p.tensor[t].*item).added = 2; });
            refuses(at + ".count",
                    [&](ParameterLayout& p) { (p.tensor[t].*item).count = none ? 1 : 0; });
        }
    }
}

TEST_CASE("parameters: scales of quantised outputs, which must be finite and not 0") {
    KernelInfo of = info();
    of.tensor[K].heads = 5;
    of.tensor[Q].ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
    of.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
    of.tensor[V].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    const ParameterLayout plan = plan_parameters(of).value;
    CHECK(plan.tensor[Q].store_scale.shape == VKROPE_PARAMETER_TENSOR);
    CHECK(plan.tensor[Q].store_scale.offset == 36);
    CHECK(plan.tensor[Q].store_scale.count == 1);
    CHECK(plan.tensor[K].store_scale.shape == VKROPE_PARAMETER_HEAD);
    CHECK(plan.tensor[K].store_scale.offset == 40);
    CHECK(plan.tensor[K].store_scale.count == 5);
    CHECK(plan.tensor[V].store_scale.shape == VKROPE_PARAMETER_NONE);
    std::vector<float> memory(plan.bytes / 4, 99.f), scales = {0.5f, -2, 3, 4, 5};
    const float one = 0.25f;
    ParameterSources all = sources();
    all.tensor[Q].store_scale = {&one, VKROPE_F32, 1};
    all.tensor[K].store_scale = {scales.data(), VKROPE_F32, 5};
    REQUIRE(bool(fill_parameters(plan, all, memory.data(), plan.bytes)));
    CHECK(memory[36] == 0.25f);
    CHECK(memory[37] == 0);
    CHECK(std::memcmp(&memory[40], scales.data(), 20) == 0);
    scales[3] = 0;
    test::check_invalid(fill_parameters(plan, all, memory.data(), plan.bytes),
                        "tensor[1].store_scale[3] 0");
    scales[3] = __builtin_inff();
    test::check_invalid(fill_parameters(plan, all, memory.data(), plan.bytes),
                        "tensor[1].store_scale[3] inf");
    of.tensor[K].heads = 0;
    test::check_invalid(plan_parameters(of).status,
                        "tensor[1].ops.store_scale 2 tensor[1].heads 0");
    of = info();
    of.tensor[V].ops.store_scale = StoreScale(5);
    test::check_invalid(plan_parameters(of).status, "tensor[2].ops.store_scale 5");
}

TEST_CASE("parameters: the Hadamard blocks of llama.cpp") {
    const auto blocks = [](std::uint32_t k, bool k_quantised, std::uint32_t v, bool v_quantised) {
        const HadamardBlocks of = vkrope_hadamard_of_llama_cpp(k, k_quantised, v, v_quantised);
        return std::pair(of.q_and_k, of.v);
    };
    CHECK(blocks(128, true, 128, true) == std::pair(128u, 64u));
    CHECK(blocks(128, false, 128, true) == std::pair(0u, 64u));
    CHECK(blocks(192, true, 128, false) == std::pair(64u, 0u));
    CHECK(blocks(256, true, 256, true) == std::pair(256u, 64u));
    for (const auto& [k, v] : {std::pair(576u, 512u), std::pair(576u, 0u), std::pair(64u, 512u),
                               std::pair(320u, 256u), std::pair(288u, 256u), std::pair(32u, 256u)})
        CHECK(blocks(k, true, v, true) == std::pair(0u, 0u));
    CHECK(blocks(320, true, 320, true) == std::pair(64u, 64u));
    CHECK(blocks(128, true, 0, false) == std::pair(128u, 0u));
    CHECK(blocks(64, true, 0, false) == std::pair(64u, 0u));
    CHECK(blocks(512, true, 0, false) == std::pair(512u, 0u));
    CHECK(blocks(640, true, 512, true) == std::pair(128u, 64u));
    CHECK(blocks(2048, true, 2048, true) == std::pair(512u, 64u));
    CHECK(blocks(80, true, 96, true) == std::pair(0u, 0u));
    CHECK(blocks(0, true, 0, true) == std::pair(0u, 0u));
}

}  // namespace vkrope
