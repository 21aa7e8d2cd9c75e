// SPDX-License-Identifier: MIT
// The C interface on a device: norms, parameters and factors of tokens.
#include "support/finishing.hpp"
#include "support/in_c.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

// The parameters of a kernel, filled by C.
Bytes filled_in_c(const KernelInfo& info, const Parameters& parameters) {
    const KernelInfoInC in_c(info);
    auto plan = sized<vkrope_parameter_plan>();
    vkrope_error error = {};
    REQUIRE(vkrope_plan_parameters(&in_c.info, &plan, &error) == VKROPE_SUCCESS);
    REQUIRE(plan.bytes == parameters.plan.bytes);
    auto sources = sized<vkrope_parameter_sources>();
    vkrope_parameter_source* const all[] = {
        &sources.q.bias, &sources.q.weight, &sources.q.norm_bias,
        &sources.k.bias, &sources.k.weight, &sources.k.norm_bias,
        &sources.v.bias, &sources.v.weight, &sources.v.norm_bias};
    for (std::size_t i = 0; i < std::size(all); ++i) {
        if (parameters.of[i].empty()) continue;
        all[i]->data = parameters.of[i].data();
        all[i]->count = parameters.of[i].size();
    }
    Bytes filled(plan.bytes);
    REQUIRE(vkrope_fill_parameters(&plan, &sources, filled.data(), filled.size(), &error) ==
            VKROPE_SUCCESS);
    return filled;
}

// Makes a kernel and records a call, both in C, and waits for it.
void run_in_c(Device& on, const KernelInfo& info, const Call& call) {
    const KernelInfoInC kernel_in_c(info);
    const CallInC call_in_c(call);
    const vkrope_device_ref ref = in_c(on.ref());
    vkrope_kernel* kernel = nullptr;
    vkrope_arena* arena = nullptr;
    std::uint64_t count = 0;
    vkrope_error error = {};
    INFO(error.what);
    REQUIRE(vkrope_kernel_create(&ref, &kernel_in_c.info, &kernel, &error) == VKROPE_SUCCESS);
    CHECK(vkrope_get_dispatches(kernel, &call_in_c.call, &count, &error) == VKROPE_SUCCESS);
    if (!(on.ref().enabled & push_descriptor))
        CHECK(vkrope_arena_create(kernel, std::uint32_t(count), &arena, &error) == VKROPE_SUCCESS);
    must(on.submit([&](VkCommandBuffer commands) {
        CHECK(vkrope_record(commands, kernel, &call_in_c.call, arena, &error) == VKROPE_SUCCESS);
        return Status{};
    }));
    vkrope_arena_destroy(arena);
    vkrope_kernel_destroy(kernel);
}

}  // namespace

TEST_CASE("C: a kernel with norms, parameters and factors gives the bits of C++") {
    constexpr std::uint32_t D = 64, tokens = 5, heads[] = {4, 2, 2};
    const HeadFormat width = {Element::f16, Element::bf16, D, 0};
    const KernelInfo info = {
        .rotary_dim = 32,
        .q = width,
        .k = width,
        .v = width,
        .q_heads = heads[0],
        .k_heads = heads[1],
        .v_heads = heads[2],
        .q_finish = {.bias = ParameterShape::head_channel,
                     .norm = {.kind = NormKind::rms,
                              .span = NormSpan::token,
                              .eps = 1e-6f,
                              .weight = ParameterShape::head_channel,
                              .weight_offset = 1,
                              .round_between = true},
                     .clip = 1.5f,
                     .scale = 0.3f,
                     .scale_call = true,
                     .scale_tokens = true},
        .k_finish = {.norm = {.kind = NormKind::layer,
                              .place = NormPlace::after,
                              .eps = 1e-5f,
                              .weight = ParameterShape::channel,
                              .bias = ParameterShape::channel},
                     .scale_tokens = true},
        .v_finish = {.norm = {.kind = NormKind::rms, .eps = 1e-6f}, .scale_tokens = true}};
    const Parameters parameters = parameters_of(info);
    const Bytes filled = filled_in_c(info, parameters);
    CHECK(filled == parameters.filled);
    const std::vector<float> factors = random_factors(3 * tokens);
    Device& on = device();
    const AngleTable table = must(
        AngleTable::make(on, rotation(Pairing::half_split, D, 32), info.angles, tokens + 3));
    Buffer of_layer = upload(on, filled), of_tokens = upload(on, bytes_of(factors));
    const auto of = [&](std::size_t tensor) {
        return part(of_tokens, tensor * tokens * 4, tokens * 4);
    };
    Call call{.tokens = tokens,
              .positions = {.first = 3},
              .angles = table.angles(),
              .parameters = of_layer.whole(),
              .q_scale = 0.7f,
              .q_scale_tokens = of(0),
              .k_scale_tokens = of(1),
              .v_scale_tokens = of(2)};
    const struct {
        Tensor &in, &out;
    } tensors[] = {{call.q_in, call.q_out}, {call.k_in, call.k_out}, {call.v_in, call.v_out}};
    Buffer in[3], out[3];
    for (std::uint32_t i = 0; i < 3; ++i) {
        const std::size_t bytes = std::size_t{tokens} * heads[i] * D * 2;
        in[i] = upload(on, random_elements(Element::f16, bytes / 2, 21 + i));
        out[i] = upload(on, Bytes(bytes));
        tensors[i].in = {.where = in[i].whole(), .heads = heads[i]};
        tensors[i].out = {.where = out[i].whole(), .heads = heads[i]};
    }
    const auto outputs = [&] {
        std::vector<Bytes> all;
        for (Buffer& buffer : out) {
            all.push_back(download(buffer, buffer.whole().range));
            const Bytes none(all.back().size());
            CHECK(all.back() != none);
            must(buffer.upload(none.data(), none.size()));
        }
        return all;
    };
    run(on, make_kernel(on, info), call);
    const std::vector<Bytes> in_cpp = outputs();
    run_in_c(on, info, call);
    CHECK(outputs() == in_cpp);
}

}  // namespace vkrope::test
