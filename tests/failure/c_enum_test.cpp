// SPDX-License-Identifier: MIT
// Values that callers in C may put into structs that only a kernel or a device reads. Numbers that
// are not enumerators: each is refused and named. Under the undefined-behaviour sanitizer this also
// shows that none is treated as an enumerator on the way. And V, which structs of older callers do
// not have. tests/unit/c/c_abi_test.cpp has the cases that need neither a kernel nor a device.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/c_numbers.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::test {

namespace {

template <class Struct>
Struct sized() {
    Struct s = {};
    s.struct_size = sizeof s;
    return s;
}

template <auto destroy>
struct Destroy {
    template <class Handle>
    void operator()(Handle* handle) const {
        destroy(handle);
    }
};

/// Calls `call` with each of these numbers in `field`, which must fail with an error that names
/// field and number. Then restores the field.
template <class Enum, class Function>
void refuses_numbers(const char* name, Enum& field, const Function& call) {
    const std::uint32_t before = number_in(field);
    for (const std::uint32_t number : no_enumerators) {
        put(field, number);
        vkrope_error error;
        CHECK(call(&error) == VKROPE_ERROR_INVALID_ARGUMENT);
        check_names(error.what, name + (" " + std::to_string(number)));
    }
    put(field, before);
}

std::unique_ptr<vkrope_rotation, Destroy<vkrope_rotation_destroy>> make_rotation() {
    static constexpr double frequencies[] = {1.0, 0.1, 0.01, 0.001};
    auto info = sized<vkrope_rotation_info>();
    info.head_dim = info.rotary_dim = 8;
    info.inv_freq = frequencies;
    info.inv_freq_count = 4;
    vkrope_rotation* rotation = nullptr;
    REQUIRE(vkrope_rotation_create(&info, &rotation, nullptr) == VKROPE_SUCCESS);
    return decltype(make_rotation())(rotation);
}

vkrope_device_ref ref_of(const KernelHost& host) {
    auto ref = sized<vkrope_device_ref>();
    ref.instance = host.ref.instance;
    ref.physical = host.ref.physical;
    ref.device = host.ref.device;
    ref.get_instance_proc_addr = host.ref.get_instance_proc_addr;
    ref.enabled = host.ref.enabled;
    return ref;
}

using OwnedKernel = std::unique_ptr<vkrope_kernel, Destroy<vkrope_kernel_destroy>>;

}  // namespace

TEST_CASE("C: a call's direction and gain that are none are refused, and nothing is recorded") {
    fake().restart();
    {
        const KernelHost host;
        const vkrope_device_ref ref = ref_of(host);
        const auto rotation = make_rotation();
        auto plan = sized<vkrope_angle_plan>();
        REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 64, 4096, &plan,
                                   nullptr) == VKROPE_SUCCESS);
        auto width = sized<vkrope_head_format>();
        auto info = sized<vkrope_kernel_info>();
        REQUIRE(vkrope_rotation_get_kernel_info(rotation.get(), &plan, &width, nullptr, nullptr,
                                                &info, nullptr) == VKROPE_SUCCESS);
        vkrope_kernel* made = nullptr;
        REQUIRE(vkrope_kernel_create(&ref, &info, &made, nullptr) == VKROPE_SUCCESS);
        const OwnedKernel kernel(made);

        auto tensor = sized<vkrope_tensor>();
        tensor.where = {host.q, 0, 3 * 8 * 4};
        tensor.heads = 1;
        auto angles = sized<vkrope_angles>();
        angles.plan = &plan;
        angles.buffer = {host.words, 0, plan.bytes};
        auto call = sized<vkrope_call>();
        call.tokens = 3;
        call.q_in = call.q_out = &tensor;
        call.angles = &angles;
        vkrope_error error;
        const auto record = [&](vkrope_error* to) {
            return vkrope_record(host.commands, kernel.get(), &call, nullptr, to);
        };
        const auto count = [&](vkrope_error* to) {
            std::uint64_t dispatches = 0;
            return vkrope_get_dispatches(kernel.get(), &call, &dispatches, to);
        };
        const std::size_t before = recorded(host).size();
        refuses_numbers("direction", call.direction, record);
        refuses_numbers("gain", call.gain, record);
        refuses_numbers("call.angles.plan.format", plan.format, record);
        refuses_numbers("direction", call.direction, count);
        refuses_numbers("gain", call.gain, count);
        CHECK(recorded(host).size() == before);
        // Otherwise the call is valid.
        CHECK_MESSAGE(record(&error) == VKROPE_SUCCESS, error.what);
        CHECK(recorded(host).size() > before);
    }
    check_clean();
}

TEST_CASE("C: a kernel's and a call's V, which structs of an older size do not have") {
    fake().restart();
    {
        const KernelHost host;
        const vkrope_device_ref ref = ref_of(host);
        const auto rotation = make_rotation();
        auto plan = sized<vkrope_angle_plan>();
        vkrope_error error;
        const auto source = VKROPE_ANGLES_DIRECT_BUFFER;
        REQUIRE(vkrope_plan_angles(rotation.get(), source, 64, 4096, &plan, &error) ==
                VKROPE_SUCCESS);
        auto k_width = sized<vkrope_head_format>(), v_width = sized<vkrope_head_format>();
        auto info = sized<vkrope_kernel_info>();
        const auto fill = vkrope_rotation_get_kernel_info;
        REQUIRE(fill(rotation.get(), &plan, nullptr, &k_width, nullptr, &info, &error) ==
                VKROPE_SUCCESS);
        v_width.head_dim = 8;
        const auto create = [&] {
            vkrope_kernel* made = nullptr;
            const vkrope_result result = vkrope_kernel_create(&ref, &info, &made, &error);
            CHECK_MESSAGE(result == VKROPE_SUCCESS, error.what);
            return OwnedKernel(made);
        };
        info.v = &v_width;
        info.v_heads = 2;
        const OwnedKernel newer = create();
        // If the struct ends before V, the bytes after it must not be read.
        vkrope_head_format no_width = {};
        info.v = &no_width;
        info.struct_size = offsetof(vkrope_kernel_info, v);
        const OwnedKernel older = create();

        const auto tensor = [](VkBuffer buffer) {
            auto packed = sized<vkrope_tensor>();
            packed.where = {buffer, 0, 3 * 2 * 8 * 4};
            packed.heads = 2;
            return packed;
        };
        const vkrope_tensor k = tensor(host.k), k_out = tensor(host.k_out);
        vkrope_tensor v = tensor(host.q), v_out = tensor(host.q_out);
        auto angles = sized<vkrope_angles>();
        angles.plan = &plan;
        angles.buffer = {host.words, 0, plan.bytes};
        auto call = sized<vkrope_call>();
        call.tokens = 3;
        call.k_in = &k;
        call.k_out = &k_out;
        call.v_in = &v;
        call.v_out = &v_out;
        call.angles = &angles;
        // The number of outputs of K and V that a call binds, and its dispatches.
        const auto bound = [&](const OwnedKernel& kernel) {
            const std::size_t before = dispatches(host).size();
            std::set<VkBuffer> buffers;
            const vkrope_result result = vkrope_record(host.commands, kernel.get(), &call, nullptr,
                                                       &error);
            CHECK_MESSAGE(result == VKROPE_SUCCESS, error.what);
            const std::vector<Command> all = dispatches(host);
            for (std::size_t i = before; i < all.size(); ++i) {
                for (const auto& [binding, descriptor] : all[i].descriptors)
                    buffers.insert(descriptor.buffer.buffer);
            }
            return std::pair(buffers.count(host.k_out) + buffers.count(host.q_out),
                             all.size() - before);
        };
        const std::pair<std::size_t, std::size_t> beside_k(2, 1), apart(2, 2), without(1, 1);
        CHECK(bound(newer) == beside_k);
        v_out.head_stride = 24, v_out.token_stride = 8;  // [heads, tokens, head_dim]
        CHECK(bound(newer) == apart);
        CHECK(vkrope_record(host.commands, older.get(), &call, nullptr, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        check_names(error.what, "v_in.heads 2");
        v.heads = v_out.heads = 1;
        CHECK(vkrope_record(host.commands, newer.get(), &call, nullptr, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        check_names(error.what, "v_in.heads 1");
        vkrope_tensor no_tensor = {};
        call.v_in = call.v_out = &no_tensor;
        CHECK(vkrope_record(host.commands, newer.get(), &call, nullptr, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        call.struct_size = offsetof(vkrope_call, v_in);
        CHECK(bound(newer) == without);
        CHECK(bound(older) == without);
    }
    check_clean();
}

TEST_CASE("C: a host shape's and a run's enumerators that are none are refused") {
    fake().restart();
    {
        auto options = sized<vkrope_device_options>();
        options.get_instance_proc_addr = fake_get_instance_proc_addr;
        vkrope_device* opened = nullptr;
        REQUIRE(vkrope_device_open(&options, &opened, nullptr) == VKROPE_SUCCESS);
        const std::unique_ptr<vkrope_device, Destroy<vkrope_device_destroy>> device(opened);
        const auto rotation = make_rotation();
        auto shape = sized<vkrope_host_shape>();
        shape.tokens = 3;
        shape.q_heads = 2;
        using Owned = std::unique_ptr<vkrope_host_rotation, Destroy<vkrope_host_rotation_destroy>>;
        Owned work;
        const auto create = [&](vkrope_error* error) {
            vkrope_host_rotation* made = nullptr;
            const vkrope_result result = vkrope_host_rotation_create(device.get(), rotation.get(),
                                                                     &shape, &made, error);
            work.reset(made);
            return result;
        };
        refuses_numbers("element", shape.element, create);
        refuses_numbers("layout", shape.layout, create);
        refuses_numbers("angles", shape.angles, create);
        refuses_numbers("mapping", shape.mapping, create);
        refuses_numbers("conversion", shape.conversion, create);
        vkrope_error error;
        REQUIRE_MESSAGE(create(&error) == VKROPE_SUCCESS, error.what);

        auto run = sized<vkrope_host_run>();
        const auto run_at = [&](vkrope_error* to) {
            return vkrope_host_rotation_run_at(work.get(), &run, nullptr, to);
        };
        refuses_numbers("run.direction", run.direction, run_at);
        vkrope_direction direction = VKROPE_DIRECTION_FORWARD;
        refuses_numbers("run.direction", direction, [&](vkrope_error* to) {
            return as_in_c(vkrope_host_rotation_run)(work.get(), number_in(direction), nullptr, to);
        });
        CHECK_MESSAGE(run_at(&error) == VKROPE_SUCCESS, error.what);

        vkrope_angle_source source = VKROPE_ANGLES_DIRECT_BUFFER;
        vkrope_angle_table* table = nullptr;
        refuses_numbers("source", source, [&](vkrope_error* to) {
            return as_in_c(vkrope_angle_table_create)(device.get(), rotation.get(),
                                                      number_in(source), 16, &table, to);
        });
        CHECK(table == nullptr);

        // `select` is quoted unchanged, even if it looks like a sentence that is worded differently
        // in C.
        for (const char* select :
             {"source is 9: it must be an AngleSource", "rotation.rotates is false"}) {
            options.select = select;
            vkrope_device* none = nullptr;
            CHECK(vkrope_device_open(&options, &none, &error) == VKROPE_ERROR_NO_DEVICE);
            CHECK_MESSAGE(std::string(error.what).find(std::string("\"") + select + "\"") !=
                              std::string::npos,
                          error.what);
        }
    }
    check_clean();
}

}  // namespace vkrope::test
