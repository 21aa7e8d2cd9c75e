// SPDX-License-Identifier: MIT
// Makes every Vulkan call and every allocation of the library fail, in every scenario.
#include "scenarios.hpp"

namespace vkrope::test {

namespace {

// Returns all failures whose correct outcome is not the error of the call that failed.
const std::vector<Tolerance>& tolerances() {
    static const std::vector<Tolerance> all = {
        {"requirements",
         "vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE},
         {VKROPE_SUCCESS},
         "the list grew between two calls: what has come is used, all of it is optional"},
        {"",
         "vkEnumerateInstanceExtensionProperties",
         {VK_INCOMPLETE},
         {VKROPE_SUCCESS},
         "the list grew between two calls: what has come is used, all of it is optional"},
        {"open a device, validation",
         "vkEnumerateInstanceExtensionProperties",
         {VK_INCOMPLETE, VK_ERROR_LAYER_NOT_PRESENT},
         {VKROPE_ERROR_NOT_SUPPORTED},
         "a layer that does not tell its extensions does not do what was asked for"},
        {"",
         "vkCreateInstance",
         {VK_ERROR_INCOMPATIBLE_DRIVER},
         {VKROPE_ERROR_NO_DEVICE},
         "the loader's word for: no driver is installed"},
        {"devices",
         "vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_LAYER_NOT_PRESENT,
          VK_ERROR_UNKNOWN},
         {VKROPE_SUCCESS},
         "one device that cannot be described must not hide the others: it is listed as "
         "unsuitable, with the reason"},
        {"open a device",
         "vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_LAYER_NOT_PRESENT,
          VK_ERROR_UNKNOWN},
         {VKROPE_ERROR_NO_DEVICE},
         "the device is listed as unsuitable, and there is no other"},
        {"open a device",
         "vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE},
         {VKROPE_SUCCESS},
         "as in requirements(): an optional extension that came late is not used"},
        {"devices",
         "vkEnumeratePhysicalDevices",
         {VK_INCOMPLETE},
         {VKROPE_SUCCESS},
         "a device came between two calls: the others are listed"},
        {"open a device",
         "vkEnumeratePhysicalDevices",
         {VK_INCOMPLETE},
         {VKROPE_ERROR_NO_DEVICE},
         "the fake's only device was left out"},
        {"",
         "vkAllocateMemory",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_EXTERNAL_HANDLE, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR,
          VK_ERROR_UNKNOWN},
         {VKROPE_SUCCESS, VKROPE_ERROR_OUT_OF_DEVICE_MEMORY},
         "Vulkan Memory Allocator tries smaller blocks and other memory types, and calls it out of "
         "device memory when all fail"},
        {"",
         "vkMapMemory",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_MEMORY_MAP_FAILED,
          VK_ERROR_UNKNOWN},
         {VKROPE_SUCCESS, VKROPE_ERROR_OUT_OF_DEVICE_MEMORY},
         "as vkAllocateMemory: another memory type is tried"},
        {"",
         "vkGetQueryPoolResults",
         {VK_NOT_READY, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_UNKNOWN},
         {VKROPE_SUCCESS},
         "the rotation is done; only the time that it took is unknown, which is what submit() then "
         "says"},
    };
    return all;
}

std::vector<Scenario> all_scenarios(bool slow) {
    std::vector<Scenario> all;
    for (const auto& list : {plan_scenarios(), kernel_scenarios(), runtime_scenarios()}) {
        for (const Scenario& one : list)
            if (one.slow == slow) all.push_back(one);
    }
    return all;
}

}  // namespace

TEST_CASE("every call fails with every result that it may return; every host allocation fails") {
    fail_everything(all_scenarios(false), tolerances());
}

TEST_CASE("slow scenarios: every call and every host allocation fails") {
    fail_everything(all_scenarios(true), tolerances());
}

}  // namespace vkrope::test
