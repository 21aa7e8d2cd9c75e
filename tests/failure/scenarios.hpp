// SPDX-License-Identifier: MIT
// Scenarios: uses of the library by programs, through vkrope.h. Also owners of the objects of the C
// interface, and functions that check its errors.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "injection.hpp"
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

// Destroys an object of the C interface.
template <auto destroy>
struct Destroy {
    template <class Handle>
    void operator()(Handle* handle) const {
        destroy(handle);
    }
};
using OwnedKernel = std::unique_ptr<vkrope_kernel, Destroy<vkrope_kernel_destroy>>;
using OwnedPositionKernel =
    std::unique_ptr<vkrope_position_kernel, Destroy<vkrope_position_kernel_destroy>>;
using OwnedArena = std::unique_ptr<vkrope_arena, Destroy<vkrope_arena_destroy>>;
using OwnedList = std::unique_ptr<vkrope_device_list, Destroy<vkrope_device_list_destroy>>;
using OwnedDevice = std::unique_ptr<vkrope_device, Destroy<vkrope_device_destroy>>;
using OwnedBuffer = std::unique_ptr<vkrope_buffer, Destroy<vkrope_buffer_destroy>>;
using OwnedTable = std::unique_ptr<vkrope_angle_table, Destroy<vkrope_angle_table_destroy>>;
using OwnedHostRotation =
    std::unique_ptr<vkrope_host_rotation, Destroy<vkrope_host_rotation_destroy>>;

// Returns the error of function(arguments..., error), after a check against the result.
template <class Function, class... Arguments>
Status answer(Function function, Arguments... arguments) {
    Status status = vkrope_error{VKROPE_ERROR_INTERNAL, VK_INCOMPLETE, "left by someone else"};
    const vkrope_result result = function(arguments..., &status);
    CHECK(status.code == result);
    return status;
}

// Does the same as answer() for function(arguments..., handle, error), which makes an object, and
// checks that the handle is null on failure.
template <class Handle, class Deleter, class Function, class... Arguments>
Status make(std::unique_ptr<Handle, Deleter>& owned, Function function, Arguments... arguments) {
    Handle* handle = wrong_handle<Handle*>();
    const Status status = answer(function, arguments..., &handle);
    CHECK((handle != nullptr) == bool(status));
    owned.reset(handle);
    return status;
}

// Returns a rotation of heads of 8 channels.
vkrope_rope_params eight_channels();

std::vector<Scenario> plan_scenarios();
std::vector<Scenario> kernel_scenarios();
std::vector<Scenario> runtime_scenarios();

}  // namespace vkrope::test
