// SPDX-License-Identifier: MIT
// The kernel tier, with every call and every allocation failing in turn.
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

// Nothing in record() can fail half-way: it calls nothing that returns a VkResult, and allocates no
// memory.
Scenario record_a_call(const char* name, const FakeConfig& config, AngleSource angles,
                       bool v = false) {
    return {.name = name,
            .config = config,
            .prepare =
                [config, angles, v] {
                    auto made = std::make_shared<Prepared>(config);
                    const KernelInfo info = kernel_info(angles);
                    made->kernel = create(made->host.ref, v ? with_v(info) : info).value;
                    if (!config.push_descriptors) made->arena = create_arena(made->kernel, 3).value;
                    return made;
                },
            .act =
                [angles, v](void* prepared) {
                    const auto& [host, kernel, arena,
                                 positions] = *static_cast<Prepared*>(prepared);
                    const std::size_t asked = host.allocator.allocated;
                    reset(arena);
                    const Call call = kernel_call(host, 7, angles);
                    const Status status = record(host.commands, kernel,
                                                 v ? with_v(host, call) : call, arena);
                    CHECK(host.allocator.allocated == asked);
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

const std::vector<Scenario>& scenarios() {
    constexpr AngleSource texture = AngleSource::direct_texture,
                          buffer = AngleSource::direct_buffer,
                          factored = AngleSource::factored_texture,
                          computed = AngleSource::computed;
    const FakeConfig native{.float_controls = all_float_controls()};
    const FakeConfig apart{.storage_buffers = 4, .push_descriptors = false, .debug_utils = false};
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
        record_a_call("record, push descriptors, labels", {}, texture),
        record_a_call("record, push descriptors, no labels", {.debug_utils = false}, buffer),
        record_a_call("record, arena, labels", {.push_descriptors = false}, texture),
        record_a_call("record, arena, apart, no labels", apart, buffer),
        record_a_call("record, push descriptors, factored angles", {}, factored),
        record_a_call("record, push descriptors, computed angles", {}, computed),
        record_a_call("record, arena, apart, factored angles", apart, factored),
        record_a_call("record, arena, apart, computed angles", apart, computed),
        record_a_call("record with V, push descriptors, labels", {}, texture, true),
        record_a_call("record with V, arena, apart, no labels", apart, texture, true),
    };
    return all;
}

}  // namespace

TEST_CASE("kernel tier: every call fails with every result that it may have") {
    fail_every_call(scenarios(), kernel_tolerances());
}

TEST_CASE("kernel tier: every host allocation fails") {
    fail_every_allocation(scenarios());
}

}  // namespace vkrope::test
