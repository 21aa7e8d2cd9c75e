// SPDX-License-Identifier: MIT
// record(): which tensors share a dispatch, and when two dispatches wait for each other.
#include "recorder.hpp"

namespace vkrope::test {

TEST_CASE(
    "record: apart dispatches have a barrier between them exactly where their bound ranges "
    "overlap") {
    Recorder recorder({.storage_buffers = 4, .debug_utils = false});
    // [tokens, 8 + 2 + 2 heads, 128] in one buffer: rows are disjoint, ranges are not.
    Call packed = kernel_call(recorder.host);
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        const VkDeviceSize start = first * 256, bytes = 7 * 12 * 256;
        return Tensor{.where = {recorder.host.q, start, bytes - start},
                      .heads = heads,
                      .token_stride = 12 * 128};
    };
    packed.in[Q] = packed.out[Q] = plane(0, 8);
    packed.in[K] = packed.out[K] = plane(8, 2);
    CHECK(recorder(packed));
    CHECK(fake().calls() == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    const Command& barrier = fake().commands(recorder.host.commands)[4];
    CHECK(barrier.stages[0] == boundary().stage);
    CHECK(barrier.stages[1] == boundary().stage);
    REQUIRE(barrier.memory_barriers.size() == 1);
    CHECK(barrier.memory_barriers[0].srcAccessMask == VK_ACCESS_SHADER_WRITE_BIT);
    CHECK(barrier.memory_barriers[0].dstAccessMask ==
          (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
    // Adjacent in one buffer: the ranges share no byte.
    Call beside = kernel_call(recorder.host);
    beside.out[K].where.buffer = beside.out[Q].where.buffer;
    beside.out[K].where.offset = beside.out[Q].where.range;
    CHECK(recorder(beside));
    CHECK(fake().calls() == pushes + pushes);
    // Only the inputs overlap, and nothing writes them.
    Call shared = kernel_call(recorder.host);
    shared.in[K].where = {shared.in[Q].where.buffer, 0, shared.in[K].where.range};
    CHECK(recorder(shared));
    CHECK(fake().calls() == pushes + pushes);
}

TEST_CASE(
    "record: apart dispatches also wait where a lowered binding of one reaches into the ids of the "
    "other") {
    KernelInfo info = kernel_info();
    info.positions = VKROPE_POSITIONS_IDS;
    Recorder recorder({.storage_buffers = 4, .offset_alignment = 256, .debug_utils = false}, info);
    // The ids are before one of the tensors, in its buffer: the tensor's binding starts at the ids.
    const auto calls = [&](Tensor(Call::*tensors)[tensor_count], TensorIndex index) {
        Call call = kernel_call(recorder.host, 5);
        Tensor& tensor = (call.*tensors)[index];
        tensor.where.offset = 64;
        call.positions.ids = {tensor.where.buffer, 0, 20};
        CHECK(recorder(call));
        return fake().calls();
    };
    CHECK(calls(&Call::out, Q) == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    CHECK(calls(&Call::out, K) == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    CHECK(calls(&Call::in, Q) == pushes + pushes);
    CHECK(calls(&Call::in, K) == pushes + pushes);
}

TEST_CASE(
    "record: apart, a dispatch sees its tensor as Q; the counter goes with the first dispatch") {
    Recorder recorder({.storage_buffers = 4, .debug_utils = false});
    const KernelHost& host = recorder.host;
    Call call = kernel_call(host);
    call.out_of_range = {host.words, 0, 4};
    CHECK(recorder(call));
    const auto two = dispatches(host);
    REQUIRE(two.size() == 2);
    check_bound(two[0], shader::binding_q_in, host.q, 0, 7 * 8 * 256);
    check_bound(two[0], shader::binding_q_out, host.q_out, 0, 7 * 8 * 256);
    check_bound(two[0], shader::binding_out_of_range, host.words, 0, 4);
    check_bound(two[1], shader::binding_q_in, host.k, 0, 7 * 2 * 256);
    check_bound(two[1], shader::binding_q_out, host.k_out, 0, 7 * 2 * 256);
    check_bound(two[1], shader::binding_out_of_range, host.k_out, 0, 7 * 2 * 256);
    CHECK(pushed(two[0]).heads == 8);
    CHECK(pushed(two[1]).heads == 2);
    CHECK(pushed(two[0]).flags == shader::flag_count_positions);
    CHECK(pushed(two[1]).flags == 0);
    check_side(pushed(two[1]).q_in, 0, 2 * 128, 128);
}

TEST_CASE(
    "record: V goes with K; apart where it lies otherwise, or the device binds too few storage "
    "buffers") {
    const auto recorded_on = [](const FakeConfig& config, const auto& change) {
        fake().restart();
        const KernelHost host(config);
        const Owned<Kernel> kernel(create(host.ref, with_v(kernel_info())).value);
        REQUIRE(kernel);
        Call call = with_v(host, kernel_call(host));
        change(call);
        const Owned<DescriptorArena> arena(
            config.push_descriptors ? nullptr : create_arena(kernel.get(), 3).value);
        const Status status = record(host.commands, kernel.get(), call, arena.get());
        INFO(status.what);
        REQUIRE(status);
        std::vector<std::vector<VkBuffer>>
            buffers;  // of each dispatch: tensors that it reads and writes
        for (const Command& dispatch : dispatches(host)) {
            std::vector<VkBuffer>& bound = buffers.emplace_back();
            const bool with_k = (pushed(dispatch).flags & shader::flag_v) != 0;
            const std::uint32_t heads = pushed(dispatch).heads;
            const auto add = [&](std::uint32_t binding) {
                bound.push_back(dispatch.descriptors.at(binding).buffer.buffer);
            };
            if ((heads & 0xffff) != 0) add(shader::binding_q_in), add(shader::binding_q_out);
            if (heads >> 16 != 0) add(shader::binding_k_in), add(shader::binding_k_out);
            if (with_k) add(shader::binding_v_in), add(shader::binding_v_out);
        }
        check_no_faults();
        using Named = std::vector<std::vector<std::string>>;
        Named named;
        for (const auto& bound : buffers) {
            auto& names = named.emplace_back();
            for (const VkBuffer buffer : bound) {
                names.push_back(buffer == host.q       ? "q"
                                : buffer == host.q_out ? "out[0]"
                                : buffer == host.k     ? "k"
                                : buffer == host.k_out ? "out[1]"
                                : buffer == host.v     ? "v"
                                : buffer == host.v_out ? "out[2]"
                                                       : "other");
            }
        }
        return named;
    };
    using Named = std::vector<std::vector<std::string>>;
    const auto as_it_is = [](Call&) {};
    const Named one = {{"q", "out[0]", "k", "out[1]", "v", "out[2]"}},
                two = {{"q", "out[0]", "k", "out[1]"}, {"v", "out[2]"}};
    CHECK(recorded_on({}, as_it_is) == one);
    CHECK(recorded_on({.push_descriptors = false}, as_it_is) == one);
    CHECK(recorded_on({}, [](Call& call) {
              call.in[V].token_stride = 3 * 128, call.in[V].where.range = 7 * 3 * 128 * 2;
          }) == two);
    CHECK(recorded_on({}, [](Call& call) { call.in[V].heads = call.out[V].heads = 1; }) == two);
    CHECK(recorded_on({}, [](Call& call) { call.in[V] = call.out[V]; }) ==
          Named{{"q", "out[0]", "k", "out[1]"}});
    CHECK(recorded_on({}, [](Call& call) { call.in[Q] = call.out[Q] = {}; }) ==
          Named{{"k", "out[1]", "v", "out[2]"}});
    CHECK(recorded_on({}, [](Call& call) { call.in[K] = call.out[K] = {}; }) ==
          Named{{"q", "out[0]"}, {"v", "out[2]"}});
    CHECK(recorded_on({}, [](Call& call) {
              call.in[Q] = call.out[Q] = call.in[K] = call.out[K] = {};
          }) == Named{{"v", "out[2]"}});
    CHECK(recorded_on({}, [](Call& call) { call.in[V] = call.out[V] = {}; }) ==
          Named{{"q", "out[0]", "k", "out[1]"}});
    // Q, K, V and the counter bind 7; Q, K and the counter 5.
    CHECK(recorded_on({.storage_buffers = 7}, as_it_is) == one);
    CHECK(recorded_on({.storage_buffers = 6}, as_it_is) == two);
    CHECK(recorded_on({.storage_buffers = 4}, as_it_is) ==
          Named{{"q", "out[0]"}, {"k", "out[1]"}, {"v", "out[2]"}});
    CHECK(recorded_on({.storage_buffers = 4, .push_descriptors = false}, as_it_is) ==
          Named{{"q", "out[0]"}, {"k", "out[1]"}, {"v", "out[2]"}});
}

}  // namespace vkrope::test
