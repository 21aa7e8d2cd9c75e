// SPDX-License-Identifier: MIT
// The kernel tier, with every call and every allocation failing in turn.
#include "injection.hpp"
#include "kernel_host.hpp"

namespace vkrope::test {

namespace {

struct Prepared {
    explicit Prepared(const FakeConfig& config) : host(config, true) {}
    ~Prepared() { destroy(kernel); }
    KernelHost host;
    Kernel* kernel = nullptr;
};

Scenario create_and_destroy(const char* name, const FakeConfig& config, AngleSource angles) {
    return {.name = name,
            .config = config,
            .prepare = [config] { return std::make_shared<Prepared>(config); },
            .act =
                [angles](void* prepared) {
                    const auto& host = static_cast<Prepared*>(prepared)->host;
                    const auto kernel = create(host.ref, kernel_info(angles));
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

Scenario ask_requirements() {
    return {.name = "requirements",
            .prepare = [] { return std::make_shared<Prepared>(FakeConfig{}); },
            .act =
                [](void* prepared) {
                    const DeviceRef& ref = static_cast<Prepared*>(prepared)->host.ref;
                    return requirements(ref.instance, ref.physical, ref.get_instance_proc_addr).status;
                }};
}

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all = {
        ask_requirements(),
        create_and_destroy("create and destroy a kernel, push descriptors", {}, AngleSource::direct_texture),
        create_and_destroy("create and destroy a kernel, angles from a buffer", {}, AngleSource::direct_buffer),
        create_and_destroy("create and destroy a kernel, lean, no labels",
                           {.storage_buffers = 4, .push_descriptors = false, .debug_utils = false}, AngleSource::direct_texture),
        arena(),
    };
    return all;
}

const std::vector<Tolerance>& tolerances() {
    static const std::vector<Tolerance> all = {
        {"requirements",
         "vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE},
         {Code::ok},
         "the list grew between two calls: what has come is used, all of it is optional"},
    };
    return all;
}

}  // namespace

TEST_CASE("kernel tier: every call fails with every result that it may have") {
    for (const Scenario& scenario : scenarios()) fail_every_call(scenario, tolerances());
}

TEST_CASE("kernel tier: every host allocation fails") {
    for (const Scenario& scenario : scenarios()) fail_every_allocation(scenario);
}

}  // namespace vkrope::test
