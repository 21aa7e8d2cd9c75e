// SPDX-License-Identifier: MIT
// The C interface on a device: norms, parameters, factors of tokens, and quantised outputs.
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
    const auto give = [](vkrope_parameter_source& source, const std::vector<float>& numbers) {
        if (numbers.empty()) return;
        source.data = numbers.data();
        source.count = numbers.size();
    };
    vkrope_tensor_parameter_sources* const tensors[] = {&sources.q, &sources.k, &sources.v};
    for (std::size_t i = 0; i < 3; ++i) {
        give(tensors[i]->bias, parameters.of[3 * i]);
        give(tensors[i]->weight, parameters.of[3 * i + 1]);
        give(tensors[i]->norm_bias, parameters.of[3 * i + 2]);
        give(tensors[i]->store_scale, parameters.store_scales[i]);
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

// C++ and C make the kernel and call it, and must write the same outputs and made scales.
void check_same_bits(const KernelInfo& info) {
    constexpr std::uint32_t tokens = 5;
    const Parameters parameters = parameters_of(info);
    const Bytes filled = filled_in_c(info, parameters);
    CHECK(filled == parameters.filled);
    const std::vector<float> factors = random_factors(3 * tokens);
    Device& on = device();
    const AngleTable table = must(AngleTable::make(
        on, rotation(Pairing::half_split, info.tensor[Q].head_dim, info.rotary_dim), info.angles,
        tokens + 3));
    Buffer of_layer = upload(on, filled), of_tokens = upload(on, bytes_of(factors));
    Call call{.tokens = tokens, .positions = {.first = 3}, .angles = table.angles()};
    if (!filled.empty()) call.parameters = of_layer.whole();
    if (info.tensor[Q].ops.scale_call) call.q_scale = 0.7f;
    const struct {
        const TensorInfo& format;
        const Finish& finish;
        std::uint32_t heads;
        Tensor &in, &out;
        VkDescriptorBufferInfo &factors, &scales;
    } tensors[] = {{info.tensor[Q], info.tensor[Q].ops, info.tensor[Q].heads, call.in[Q],
                    call.out[Q], call.scale_tokens[Q], call.scales_out[Q]},
                   {info.tensor[K], info.tensor[K].ops, info.tensor[K].heads, call.in[K],
                    call.out[K], call.scale_tokens[K], call.scales_out[K]},
                   {info.tensor[V], info.tensor[V].ops, info.tensor[V].heads, call.in[V],
                    call.out[V], call.scale_tokens[V], call.scales_out[V]}};
    Buffer in[3], out[3], scales[3];
    std::vector<Buffer*> written;
    for (std::uint32_t i = 0; i < 3; ++i) {
        const auto& [format, finish, heads, from, to, of_token, made] = tensors[i];
        const std::size_t rows = std::size_t{tokens} * heads, count = rows * format.head_dim;
        const std::size_t bytes = count / block_channels(format.out) * element_bytes(format.out);
        in[i] = upload(on, random_elements(format.in, count, 21 + i));
        out[i] = upload(on, Bytes(bytes));
        from = {.where = in[i].whole(), .heads = heads};
        to = {.where = out[i].whole(), .heads = heads};
        written.push_back(&out[i]);
        if (finish.scale_tokens) of_token = part(of_tokens, i * tokens * 4, tokens * 4);
        if (!is_made(finish.store_scale)) continue;
        scales[i] = upload(on, Bytes(rows * 4));
        made = scales[i].whole();
        written.push_back(&scales[i]);
    }
    const auto outputs = [&] {
        std::vector<Bytes> all;
        for (Buffer* buffer : written) {
            all.push_back(download(*buffer, buffer->whole().range));
            const Bytes none(all.back().size());
            CHECK(all.back() != none);
            must(buffer->upload(none.data(), none.size()));
        }
        return all;
    };
    run(on, make_kernel(on, info), call);
    const std::vector<Bytes> in_cpp = outputs();
    run_in_c(on, info, call);
    CHECK(outputs() == in_cpp);
}

}  // namespace

TEST_CASE("C: a kernel with norms, parameters and factors gives the bits of C++") {
    const auto tensor = [](std::uint32_t heads, const Finish& ops) {
        return TensorInfo{Element::f16, Element::bf16, 64, 0, heads, ops};
    };
    check_same_bits({.rotary_dim = 32,
                     .tensor = {tensor(4, {.bias = ParameterShape::head_channel,
                                           .norm = {.kind = NormKind::rms,
                                                    .span = NormSpan::token,
                                                    .eps = 1e-6f,
                                                    .weight = ParameterShape::head_channel,
                                                    .weight_offset = 1,
                                                    .round_between = true},
                                           .clip = 1.5f,
                                           .scale = 0.3f,
                                           .scale_call = true,
                                           .scale_tokens = true}),
                                tensor(2, {.norm = {.kind = NormKind::layer,
                                                    .place = NormPlace::after,
                                                    .eps = 1e-5f,
                                                    .weight = ParameterShape::channel,
                                                    .bias = ParameterShape::channel},
                                           .scale_tokens = true}),
                                tensor(2, {.norm = {.kind = NormKind::rms, .eps = 1e-6f},
                                           .scale_tokens = true})}});
}

TEST_CASE("C: a kernel with quantised outputs and Hadamard transforms gives the bits of C++") {
    const auto format = [](Element out, std::uint32_t heads, const Finish& ops) {
        return TensorInfo{Element::f16, out, 64, 0, heads, ops};
    };
    check_same_bits(
        {.rotary_dim = 32,
         .tensor = {
             format(Element::q5_1, 4, {.hadamard = 64}),
             format(Element::q8_0, 2,
                    {.norm = {.kind = NormKind::rms, .eps = 1e-6f}, .hadamard = 32}),
             format(Element::int8, 2, {.hadamard = 64, .store_scale = StoreScale::given_head})}});
    check_same_bits({.rotary_dim = 64,
                     .tensor = {format(Element::e4m3fn, 4, {.store_scale = StoreScale::given}),
                                format(Element::e5m2, 2,
                                       {.store_scale = StoreScale::made, .scale_floor = 1e-4f}),
                                format(Element::int8, 2, {.store_scale = StoreScale::made})}});
}

}  // namespace vkrope::test
