// SPDX-License-Identifier: MIT
// Scenarios of the kernel tier. Recording cannot fail half-way, because it calls nothing that
// returns a VkResult and allocates no memory.
#include <algorithm>

#include "scenarios.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

namespace {

// An application's device with allocation callbacks, and the objects that it made on the device.
struct Engine {
    KernelHost host{fake().config, true};
    OwnedKernel kernel;
    OwnedPositionKernel positions;
    OwnedArena arena;

    Status make_kernel(const KernelInfo& info) {
        return make(kernel, vkrope_kernel_create, &host.ref, &info);
    }
    Status make_position_kernel() {
        return make(positions, vkrope_position_kernel_create, &host.ref);
    }
    Status make_arena() { return make(arena, vkrope_arena_create, kernel.get(), 3); }
    Status make_position_arena() {
        return make(arena, vkrope_position_arena_create, positions.get(), 4);
    }
    // Destroys these objects, and returns `status`.
    Status destroy(const Status& status) {
        arena.reset(), kernel.reset(), positions.reset();
        CHECK(host.allocator.allocated == host.allocator.freed);
        return status;
    }
};

Engine& engine(void* prepared) {
    return *static_cast<Engine*>(prepared);
}

std::shared_ptr<void> prepare_engine() {
    return std::make_shared<Engine>();
}

Scenario create_and_destroy(const std::string& name, const FakeConfig& config,
                            const KernelInfo& info, bool slow = false) {
    return {.name = "create and destroy a kernel, " + name,
            .config = config,
            .prepare = prepare_engine,
            .act =
                [info](void* prepared) {
                    return engine(prepared).destroy(engine(prepared).make_kernel(info));
                },
            .slow = slow};
}

// Counts the dispatches. Allocates nothing, unlike dispatches().
std::size_t dispatches_in(VkCommandBuffer commands) {
    const std::vector<Command>& all = fake().commands(commands);
    return std::size_t(std::count_if(all.begin(), all.end(), [](const Command& command) {
        return command.entry == "vkCmdDispatch";
    }));
}

Scenario record_a_call(const std::string& name, const FakeConfig& config, const KernelInfo& info,
                       std::uint64_t dispatches_of_call = 1) {
    return {
        .name = "record, " + name,
        .config = config,
        .prepare =
            [info] {
                auto made = std::make_shared<Engine>();
                REQUIRE(made->make_kernel(info));
                if (!fake().config.push_descriptors) REQUIRE(made->make_arena());
                return made;
            },
        .act =
            [info, dispatches_of_call](void* prepared) {
                const auto& [host, kernel, positions, arena] = engine(prepared);
                const std::size_t asked = host.allocator.allocated,
                                  before = dispatches_in(host.commands);
                vkrope_arena_reset(arena.get());
                Call call = kernel_call(host, 7, info.angles);
                if (info.tensor[V].head_dim != 0) call = with_v(host, call);
                if (info.tensor[K].ops.store_scale == VKROPE_STORE_SCALE_MADE)
                    call.scales_out[K] = {host.words, 0xf0000, 7 * 2 * sizeof(float)};
                call = with_ops(host, info, call);
                const Status status = answer(vkrope_record, host.commands, kernel.get(), &call,
                                             arena.get());
                CHECK(host.allocator.allocated == asked);
                CHECK(dispatches_in(host.commands) - before == (status ? dispatches_of_call : 0));
                return status;
            },
        .calls = 0,
        .allocations = 0};
}

Scenario record_a_step(const char* name, const FakeConfig& config) {
    return {.name = name,
            .config = config,
            .prepare =
                [] {
                    auto made = std::make_shared<Engine>();
                    REQUIRE(made->make_position_kernel());
                    if (!fake().config.push_descriptors) REQUIRE(made->make_position_arena());
                    return made;
                },
            .act =
                [](void* prepared) {
                    const Engine& of = engine(prepared);
                    vkrope_arena_reset(of.arena.get());
                    const auto words = [&of](VkDeviceSize offset, VkDeviceSize bytes) {
                        return VkDescriptorBufferInfo{of.host.words, offset, bytes};
                    };
                    PositionCall call{.tokens = 16, .sequences = 2};
                    call.query_lens = words(0, 8), call.seq_lens = words(8, 8);
                    call.block_table = words(16, 24), call.pages = 3, call.cache_pages = 9;
                    call.out = words(256, 64), call.slot_mapping = words(512, 64);
                    call.token_count = words(768, 4), call.out_of_range = words(1024, 4);
                    const std::size_t asked = of.host.allocator.allocated,
                                      before = dispatches_in(of.host.commands);
                    const Status status = answer(vkrope_record_positions, of.host.commands,
                                                 of.positions.get(), &call, of.arena.get());
                    CHECK(of.host.allocator.allocated == asked);
                    CHECK(dispatches_in(of.host.commands) - before == (status ? 3 : 0));
                    return status;
                },
            .calls = 0,
            .allocations = 0};
}

Status ask_requirements(void* prepared) {
    const DeviceRef& ref = engine(prepared).host.ref;
    vkrope_requirements needs = {};
    return answer(vkrope_get_requirements, ref.instance, ref.physical, ref.get_instance_proc_addr,
                  &needs);
}

Status create_positions_and_arena(void* prepared) {
    Engine& of = engine(prepared);
    const Status status = of.make_position_kernel();
    return of.destroy(status ? of.make_position_arena() : status);
}

Status create_an_arena(void* prepared) {
    const Status status = engine(prepared).make_arena();
    engine(prepared).arena.reset();
    return status;
}

constexpr AngleSource texture = VKROPE_ANGLES_DIRECT_TEXTURE,
                      direct_buffer = VKROPE_ANGLES_DIRECT_BUFFER,
                      factored = VKROPE_ANGLES_FACTORED_TEXTURE, computed = VKROPE_ANGLES_COMPUTED;
const FakeConfig no_push{.push_descriptors = false},
    apart{.storage_buffers = 4, .push_descriptors = false, .debug_utils = false},
    native{.float_controls = all_float_controls()},
    // On a CPU a lane owns whole rows, so that the pipelines differ from those of a GPU.
    processor{.type = VK_PHYSICAL_DEVICE_TYPE_CPU};

KernelInfo q_k_v(AngleSource angles) {
    return with_v(kernel_info(angles));
}

// Q, K and V, each with all parameters that a norm over a head or over a token may have.
KernelInfo norms_of_heads(AngleSource angles) {
    return with_ops(q_k_v(angles),
                    full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_HEAD, VKROPE_NORM_PLACE_BEFORE));
}
KernelInfo norms_of_tokens(AngleSource angles) {
    return with_ops(q_k_v(angles),
                    full_ops(VKROPE_NORM_LAYER, VKROPE_NORM_SPAN_TOKEN, VKROPE_NORM_PLACE_AFTER));
}

// Q, K and V with Hadamard transforms: K is int8 with a scale for each row, V is blocks of q4_0.
KernelInfo quantised(AngleSource angles) {
    KernelInfo info = q_k_v(angles);
    info.tensor[K].out = VKROPE_INT8;
    info.tensor[K].ops = {.hadamard = 64, .store_scale = VKROPE_STORE_SCALE_MADE};
    info.tensor[V].out = VKROPE_Q4_0;
    info.tensor[V].ops.hadamard = 32;
    info.tensor[Q].ops.hadamard = 128;
    info.tensor[Q].heads = 8;
    info.tensor[K].heads = info.tensor[V].heads = 2;
    return info;
}

}  // namespace

std::vector<Scenario> kernel_scenarios() {
    const FakeConfig eight_buffers{.storage_buffers = 8, .push_descriptors = false},
        no_labels{.debug_utils = false},
        arena_alone{.push_descriptors = false, .debug_utils = false};
    return {
        {.name = "requirements", .prepare = prepare_engine, .act = ask_requirements},
        create_and_destroy("push descriptors", {}, kernel_info(texture)),
        create_and_destroy("angles from a buffer", {}, kernel_info(direct_buffer)),
        create_and_destroy("apart, no labels", apart, kernel_info(texture)),
        create_and_destroy("factored angles, native conversion", native, kernel_info(factored)),
        create_and_destroy("computed angles, native conversion", native, kernel_info(computed)),
        create_and_destroy("computed angles, apart", apart, kernel_info(computed)),
        create_and_destroy("V", {}, q_k_v(texture)),
        create_and_destroy("V, apart", apart, q_k_v(texture)),
        {.name = "create and destroy an arena",
         .config = no_push,
         .prepare =
             [] {
                 auto made = std::make_shared<Engine>();
                 REQUIRE(made->make_kernel(kernel_info()));
                 return made;
             },
         .act = create_an_arena},
        {.name = "create and destroy a kernel of positions, and an arena",
         .config = no_push,
         .prepare = prepare_engine,
         .act = create_positions_and_arena},
        {.name = "create and destroy a kernel of positions, apart",
         .config = apart,
         .prepare = prepare_engine,
         .act = create_positions_and_arena},
        record_a_step("record a step, push descriptors, labels", {}),
        record_a_step("record a step, arena, no labels", arena_alone),
        record_a_call("push descriptors, labels", {}, kernel_info(texture)),
        record_a_call("push descriptors, no labels", no_labels, kernel_info(direct_buffer)),
        record_a_call("arena, labels", no_push, kernel_info(texture)),
        record_a_call("arena, apart, no labels", apart, kernel_info(direct_buffer), 2),
        record_a_call("push descriptors, factored angles", {}, kernel_info(factored)),
        record_a_call("push descriptors, computed angles", {}, kernel_info(computed)),
        record_a_call("arena, apart, factored angles", apart, kernel_info(factored), 2),
        record_a_call("arena, apart, computed angles", apart, kernel_info(computed), 2),
        record_a_call("V, push descriptors, labels", {}, q_k_v(texture)),
        record_a_call("V, arena, apart, no labels", apart, q_k_v(texture), 3),
        record_a_call("norms of heads, push descriptors", {}, norms_of_heads(texture)),
        record_a_call("norms of heads, processor", processor, norms_of_heads(direct_buffer)),
        record_a_call("norms of tokens, push descriptors", {}, norms_of_tokens(factored)),
        record_a_call("norms of tokens, arena", eight_buffers, norms_of_tokens(computed), 2),
        record_a_call("norms of tokens, arena, apart", apart, norms_of_tokens(factored), 3),
        // Rows of int8 and of q4_0 differ in layout, so that V has a separate dispatch.
        record_a_call("quantised K and V, push descriptors", {}, quantised(texture), 2),
        record_a_call("quantised K and V, processor", processor, quantised(direct_buffer), 2),
        record_a_call("quantised K and V, arena, apart", apart, quantised(computed), 3),
        create_and_destroy("norms of heads", {}, norms_of_heads(texture), true),
        create_and_destroy("norms of tokens, apart", apart, norms_of_tokens(texture), true),
        create_and_destroy("quantised outputs", {}, quantised(texture), true),
        create_and_destroy("quantised outputs, apart", apart, quantised(texture), true),
    };
}

}  // namespace vkrope::test
