// SPDX-License-Identifier: MIT
// Checks that numbers that are not enumerators, which callers in C may put into structs, are
// refused and named where only a kernel or a device reads the struct. Under the undefined-behaviour
// sanitizer the test also shows that no code before the check treats such a number as an
// enumerator. tests/unit/c_test.cpp has the cases that need neither a kernel nor a device.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios.hpp"
#include "support/c_numbers.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::test {

namespace {

// Calls `call` with each number of no_enumerators in `field`; each call must fail with an error
// that names the field and the number. Then restores the field.
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

}  // namespace

TEST_CASE("C: a call's direction or gain that is no enumerator is refused and records nothing") {
    fake().restart();
    {
        const KernelHost host;
        const vkrope_rope_params rotation = eight_channels();
        vkrope_angle_table_layout plan = {};
        REQUIRE(vkrope_plan_angles(&rotation, VKROPE_ANGLES_DIRECT_BUFFER, 64, 4096, &plan,
                                   nullptr) == VKROPE_SUCCESS);
        const vkrope_element f32 = VKROPE_F32;
        vkrope_kernel_info info = {};
        REQUIRE(vkrope_get_kernel_info(&rotation, &plan, &f32, nullptr, nullptr, &info, nullptr) ==
                VKROPE_SUCCESS);
        OwnedKernel kernel;
        REQUIRE(make(kernel, vkrope_kernel_create, &host.ref, &info));

        vkrope_call call = {};
        call.tokens = 3;
        vkrope_tensor& q = call.in[VKROPE_Q];
        q.where = {host.q, 0, 3 * 8 * 4};
        q.heads = 1;
        call.out[VKROPE_Q] = q;
        call.angles.layout = &plan;
        call.angles.buffer = {host.words, 0, plan.bytes};
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
        refuses_numbers("angles.layout->format", plan.format, record);
        refuses_numbers("direction", call.direction, count);
        refuses_numbers("gain", call.gain, count);
        CHECK(recorded(host).size() == before);
        // With its enumerators restored, the call is valid.
        CHECK_MESSAGE(record(&error) == VKROPE_SUCCESS, error.what);
        CHECK(recorded(host).size() > before);
    }
    check_clean();
}

TEST_CASE("C: numbers that are no enumerators are refused in a host shape and in a run") {
    fake().restart();
    {
        vkrope_device_options options = {};
        options.get_instance_proc_addr = fake_get_instance_proc_addr;
        OwnedDevice device;
        REQUIRE(make(device, vkrope_device_open, &options));
        const vkrope_rope_params rotation = eight_channels();
        vkrope_host_shape shape = {};
        shape.tokens = 3;
        shape.heads[VKROPE_Q] = 2;
        OwnedHostRotation work;
        const auto create = [&](vkrope_error* error) {
            vkrope_host_rotation* made = nullptr;
            const vkrope_result result = vkrope_host_rotation_create(device.get(), &rotation,
                                                                     &shape, &made, error);
            work.reset(made);
            return result;
        };
        refuses_numbers("shape.element", shape.element, create);
        refuses_numbers("shape.layout", shape.layout, create);
        refuses_numbers("shape.angles", shape.angles, create);
        refuses_numbers("mapping", shape.mapping, create);
        refuses_numbers("shape.conversion", shape.conversion, create);
        vkrope_error error;
        REQUIRE_MESSAGE(create(&error) == VKROPE_SUCCESS, error.what);

        vkrope_host_run run = {};
        const auto run_at = [&](vkrope_error* to) {
            return vkrope_host_rotation_run(work.get(), &run, nullptr, to);
        };
        refuses_numbers("run.direction", run.direction, run_at);
        CHECK_MESSAGE(run_at(&error) == VKROPE_SUCCESS, error.what);

        vkrope_angle_source source = VKROPE_ANGLES_DIRECT_BUFFER;
        vkrope_angle_table* table = nullptr;
        refuses_numbers("source", source, [&](vkrope_error* to) {
            return as_in_c(vkrope_angle_table_create)(device.get(), &rotation, number_in(source),
                                                      16, &table, to);
        });
        // The library checks the counts before it copies anything.
        const auto refuses_rotation = [&](const vkrope_rope_params& of, const char* words) {
            vkrope_error wrong;
            CHECK(vkrope_angle_table_create(device.get(), &of, VKROPE_ANGLES_COMPUTED, 16, &table,
                                            &wrong) == VKROPE_ERROR_INVALID_ARGUMENT);
            check_names(wrong.what, words);
            vkrope_host_rotation* none = nullptr;
            CHECK(vkrope_host_rotation_create(device.get(), &of, &shape, &none, &wrong) ==
                  VKROPE_ERROR_INVALID_ARGUMENT);
            check_names(wrong.what, words);
        };
        vkrope_rope_params miscounted = rotation;
        miscounted.inv_freq_count = 200;
        refuses_rotation(miscounted, "rotation.inv_freq_count 200");
        miscounted = rotation;
        miscounted.phase_count = 4;
        refuses_rotation(miscounted, "rotation.phase null");
        CHECK(table == nullptr);
    }
    check_clean();
}

}  // namespace vkrope::test
