// SPDX-License-Identifier: MIT
// The kernel tier, with every call and every allocation failing in turn.
#include <algorithm>

#include "support/fake_vulkan/kernel_host.hpp"
#include "tolerances.hpp"

namespace vkrope::test {

namespace {

struct Prepared {
    explicit Prepared(const FakeConfig& config) : host(config, true) {}
    ~Prepared() {
        destroy(arena);
        destroy(kernel);
        destroy(positions);
    }
    KernelHost host;
    Kernel* kernel = nullptr;
    DescriptorArena* arena = nullptr;
    PositionKernel* positions = nullptr;
};

Scenario create_and_destroy(const char* name, const FakeConfig& config, const KernelInfo& info) {
    return {.name = name,
            .config = config,
            .prepare = [config] { return std::make_shared<Prepared>(config); },
            .act =
                [info](void* prepared) {
                    const auto& host = static_cast<Prepared*>(prepared)->host;
                    const auto kernel = create(host.ref, info);
                    destroy(kernel.value);
                    if (!kernel) CHECK(kernel.value == nullptr);
                    CHECK(host.allocator.allocated == host.allocator.freed);
                    return kernel.status;
                }};
}

Scenario arena() {
    const FakeConfig config{.push_descriptors = false};
    return {.name = "create and destroy an arena",
            .config = config,
            .prepare =
                [config] {
                    auto made = std::make_shared<Prepared>(config);
                    made->kernel = create(made->host.ref, kernel_info()).value;
                    return made;
                },
            .act =
                [](void* prepared) {
                    const auto made = create_arena(static_cast<Prepared*>(prepared)->kernel, 3);
                    destroy(made.value);
                    if (!made) CHECK(made.value == nullptr);
                    return made.status;
                }};
}

// Allocates nothing, unlike dispatches().
std::size_t dispatches_in(VkCommandBuffer commands) {
    const std::vector<Command>& all = fake().commands(commands);
    return std::size_t(std::count_if(all.begin(), all.end(), [](const Command& command) {
        return command.entry == "vkCmdDispatch";
    }));
}

// Nothing in record() can fail half-way: it calls nothing that returns a VkResult, and allocates no
// memory.
Scenario record_a_call(const char* name, const FakeConfig& config, const KernelInfo& info,
                       std::uint64_t dispatches_of_call = 1) {
    return {
        .name = name,
        .config = config,
        .prepare =
            [config, info] {
                auto made = std::make_shared<Prepared>(config);
                made->kernel = create(made->host.ref, info).value;
                if (!config.push_descriptors) made->arena = create_arena(made->kernel, 3).value;
                return made;
            },
        .act =
            [info, dispatches_of_call](void* prepared) {
                const auto& [host, kernel, arena, positions] = *static_cast<Prepared*>(prepared);
                const std::size_t asked = host.allocator.allocated,
                                  before = dispatches_in(host.commands);
                reset(arena);
                Call call = kernel_call(host, 7, info.angles);
                if (info.tensor[V].head_dim != 0) call = with_v(host, call);
                if (info.tensor[K].ops.store_scale == VKROPE_STORE_SCALE_MADE)
                    call.scales_out[K] = {host.words, 0xf0000, 7 * 2 * sizeof(float)};
                const Status status = record(host.commands, kernel, with_finish(host, info, call),
                                             arena);
                CHECK(host.allocator.allocated == asked);
                CHECK(dispatches_in(host.commands) - before == (status ? dispatches_of_call : 0));
                return status;
            },
        .calls = 0,
        .allocations = 0};
}

Scenario create_and_destroy_positions() {
    return {
        .name = "create and destroy a kernel of positions, and an arena",
        .config = {.push_descriptors = false},
        .prepare = [] { return std::make_shared<Prepared>(FakeConfig{.push_descriptors = false}); },
        .act =
            [](void* prepared) {
                const auto& host = static_cast<Prepared*>(prepared)->host;
                const auto kernel = create_positions(host.ref);
                if (!kernel) {
                    CHECK(kernel.value == nullptr);
                    CHECK(host.allocator.allocated == host.allocator.freed);
                    return kernel.status;
                }
                const auto made = create_arena(kernel.value, 2);
                destroy(made.value);
                destroy(kernel.value);
                CHECK(host.allocator.allocated == host.allocator.freed);
                return made.status;
            }};
}

Scenario record_ids(const char* name, const FakeConfig& config) {
    return {.name = name,
            .config = config,
            .prepare =
                [config] {
                    auto made = std::make_shared<Prepared>(config);
                    made->positions = create_positions(made->host.ref).value;
                    if (!config.push_descriptors)
                        made->arena = create_arena(made->positions, 1).value;
                    return made;
                },
            .act =
                [](void* prepared) {
                    const auto& [host, kernel, arena,
                                 positions] = *static_cast<Prepared*>(prepared);
                    reset(arena);
                    PositionCall call{.batch = 2, .tokens = 8};
                    call.offsets = {host.words, 0, 8};
                    call.out = {host.words, 256, 64};
                    return record_positions(host.commands, positions, call, arena);
                },
            .calls = 0,
            .allocations = 0};
}

Scenario ask_requirements() {
    return {
        .name = "requirements",
        .prepare = [] { return std::make_shared<Prepared>(FakeConfig{}); },
        .act =
            [](void* prepared) {
                const DeviceRef& ref = static_cast<Prepared*>(prepared)->host.ref;
                return requirements(ref.instance, ref.physical, ref.get_instance_proc_addr).status;
            }};
}

// Q, K and V, each with everything that a norm of a head or of a token may have.
KernelInfo norms_of_heads(AngleSource angles) {
    return with_finish(
        with_v(kernel_info(angles)),
        full_finish(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_HEAD, VKROPE_NORM_PLACE_BEFORE));
}
KernelInfo norms_of_tokens(AngleSource angles) {
    return with_finish(
        with_v(kernel_info(angles)),
        full_finish(VKROPE_NORM_LAYER, VKROPE_NORM_SPAN_TOKEN, VKROPE_NORM_PLACE_AFTER));
}

// Q, K and V with Hadamard transforms; a scale for each row of K, and blocks of V.
KernelInfo quantised(AngleSource angles) {
    KernelInfo info = with_v(kernel_info(angles));
    info.tensor[K].out = VKROPE_INT8;
    info.tensor[K].ops = {.hadamard = 64, .store_scale = VKROPE_STORE_SCALE_MADE};
    info.tensor[V].out = VKROPE_Q4_0;
    info.tensor[V].ops.hadamard = 32;
    info.tensor[Q].ops.hadamard = 128;
    info.tensor[Q].heads = 8;
    info.tensor[K].heads = info.tensor[V].heads = 2;
    return info;
}

const FakeConfig apart{.storage_buffers = 4, .push_descriptors = false, .debug_utils = false};

const std::vector<Scenario>& scenarios() {
    constexpr AngleSource texture = VKROPE_ANGLES_DIRECT_TEXTURE,
                          buffer = VKROPE_ANGLES_DIRECT_BUFFER,
                          factored = VKROPE_ANGLES_FACTORED_TEXTURE,
                          computed = VKROPE_ANGLES_COMPUTED;
    const FakeConfig native{.float_controls = all_float_controls()};
    // A lane of a processor owns its rows, so that its pipelines are others.
    const FakeConfig processor{.type = VK_PHYSICAL_DEVICE_TYPE_CPU};
    static const std::vector<Scenario> all = {
        ask_requirements(),
        create_and_destroy("create and destroy a kernel, push descriptors", {},
                           kernel_info(texture)),
        create_and_destroy("create and destroy a kernel, angles from a buffer", {},
                           kernel_info(buffer)),
        create_and_destroy("create and destroy a kernel, apart, no labels", apart,
                           kernel_info(texture)),
        create_and_destroy("create and destroy a kernel, factored angles, native conversion",
                           native, kernel_info(factored)),
        create_and_destroy("create and destroy a kernel, computed angles, native conversion",
                           native, kernel_info(computed)),
        create_and_destroy("create and destroy a kernel, computed angles, apart", apart,
                           kernel_info(computed)),
        create_and_destroy("create and destroy a kernel with V", {}, with_v(kernel_info(texture))),
        create_and_destroy("create and destroy a kernel with V, apart", apart,
                           with_v(kernel_info(texture))),
        arena(),
        create_and_destroy_positions(),
        record_ids("record positions, push descriptors, labels", {}),
        record_ids("record positions, arena, no labels",
                   {.push_descriptors = false, .debug_utils = false}),
        record_a_call("record, push descriptors, labels", {}, kernel_info(texture)),
        record_a_call("record, push descriptors, no labels", {.debug_utils = false},
                      kernel_info(buffer)),
        record_a_call("record, arena, labels", {.push_descriptors = false}, kernel_info(texture)),
        record_a_call("record, arena, apart, no labels", apart, kernel_info(buffer), 2),
        record_a_call("record, push descriptors, factored angles", {}, kernel_info(factored)),
        record_a_call("record, push descriptors, computed angles", {}, kernel_info(computed)),
        record_a_call("record, arena, apart, factored angles", apart, kernel_info(factored), 2),
        record_a_call("record, arena, apart, computed angles", apart, kernel_info(computed), 2),
        record_a_call("record with V, push descriptors, labels", {}, with_v(kernel_info(texture))),
        record_a_call("record with V, arena, apart, no labels", apart, with_v(kernel_info(texture)),
                      3),
        record_a_call("record with norms of heads and V, push descriptors", {},
                      norms_of_heads(texture)),
        record_a_call("record with norms of heads and V, processor", processor,
                      norms_of_heads(buffer)),
        record_a_call("record with norms of tokens and V, arena, two dispatches",
                      {.storage_buffers = 8, .push_descriptors = false}, norms_of_tokens(computed),
                      2),
        record_a_call("record with norms of tokens and V, arena, apart, no labels", apart,
                      norms_of_tokens(factored), 3),
        // Rows of int8 and of q4_0 lie in different ways, so that V has a dispatch of its own.
        record_a_call("record quantised K and V, push descriptors, labels", {}, quantised(texture),
                      2),
        record_a_call("record quantised K and V, processor", processor, quantised(buffer), 2),
        record_a_call("record quantised K and V, arena, apart, no labels", apart,
                      quantised(computed), 3),
    };
    return all;
}

// It takes seconds to make such a kernel a thousand times.
std::vector<Scenario> kernels_with_other_steps() {
    return {create_and_destroy("create and destroy a kernel with norms of heads", {},
                               norms_of_heads(VKROPE_ANGLES_DIRECT_TEXTURE)),
            create_and_destroy("create and destroy a kernel with norms of tokens, apart", apart,
                               norms_of_tokens(VKROPE_ANGLES_DIRECT_TEXTURE)),
            create_and_destroy("create and destroy a kernel of quantised outputs", {},
                               quantised(VKROPE_ANGLES_DIRECT_TEXTURE)),
            create_and_destroy("create and destroy a kernel of quantised outputs, apart", apart,
                               quantised(VKROPE_ANGLES_DIRECT_TEXTURE))};
}

}  // namespace

TEST_CASE("kernel tier: every call fails with every result that it may have") {
    fail_every_call(scenarios(), kernel_tolerances());
}

TEST_CASE("kernel tier: every host allocation fails") {
    fail_every_allocation(scenarios());
}

TEST_CASE("kernels with other steps: every call and every host allocation fails") {
    fail_every_call(kernels_with_other_steps());
    fail_every_allocation(kernels_with_other_steps());
}

}  // namespace vkrope::test
