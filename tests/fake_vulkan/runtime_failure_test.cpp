// SPDX-License-Identifier: MIT
// The runtime tier, with every call and every allocation failing in turn.
#include <doctest/doctest.h>

#include <array>
#include <numeric>

#include "injection.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::test {

namespace {

DeviceOptions options() {
    return {.get_instance_proc_addr = fake_get_instance_proc_addr, .timeout_ns = 1'000'000};
}

std::shared_ptr<void> open_device() {
    auto opened = Device::open(options());
    return std::make_shared<Device>(std::move(opened.value));
}

// Made once, so that what the library allocates is all that counts.
const Rotation& rotation() {
    static const Rotation the_rotation = [] {
        Rotation r;
        r.head_dim = r.rotary_dim = 8;
        r.inv_freq = {1.0, 0.1, 0.01, 0.001};
        return r;
    }();
    return the_rotation;
}

const HostShape& shape() {
    static const HostShape the_shape{.tokens = 3, .q_heads = 2, .k_heads = 1, .positions = {5, 6, 7}};
    return the_shape;
}

// What is uploaded comes back.
Status use_buffer(void* device) {
    auto buffer = Buffer::make(*static_cast<Device*>(device), 4096);
    if (!buffer) return buffer.status;
    std::array<std::uint8_t, 4096> in, out;
    std::iota(in.begin(), in.end(), std::uint8_t{1});
    if (Status s = buffer->upload(in.data(), in.size()); !s) return s;
    if (Status s = buffer->download(out.data(), out.size()); !s) return s;
    CHECK(in == out);
    return {};
}

template <AngleSource source>
Status make_table(void* device) {
    return AngleTable::make(*static_cast<Device*>(device), rotation(), source, 100).status;
}

// Everything that a program without a device of its own does.
Status rotate(void* device) {
    auto made = HostRotation::make(*static_cast<Device*>(device), rotation(), shape());
    if (!made) return made.status;
    std::array<std::byte, 3 * 2 * 8 * 4> q = {};
    std::array<std::byte, 3 * 8 * 4> k = {};
    CHECK(made->q_bytes() == q.size());
    CHECK(made->k_bytes() == k.size());
    if (Status s = made->upload(q.data(), k.data()); !s) return s;
    if (const auto ran = made->run(); !ran) return ran.status;
    return made->download(q.data(), k.data());
}

std::vector<Scenario> scenarios() {
    const FakeConfig without_push{.push_descriptors = false, .timestamps = false};
    return {
        // std::stable_sort asks for a buffer, and does without one.
        {.name = "devices", .act = [](void*) { return devices(options()).status; }, .harmless_allocations = 1},
        {.name = "open a device", .act = [](void*) { return Device::open(options()).status; }, .harmless_allocations = 1},
        {.name = "buffer", .prepare = open_device, .act = use_buffer, .keeps_nothing = false},
        {.name = "angle texture", .prepare = open_device, .act = make_table<AngleSource::direct_texture>, .keeps_nothing = false},
        {.name = "angle buffer", .prepare = open_device, .act = make_table<AngleSource::direct_buffer>, .keeps_nothing = false},
        {.name = "rotation", .prepare = open_device, .act = rotate, .keeps_nothing = false},
        {.name = "rotation, arena, no timestamps",
         .config = without_push,
         .prepare = open_device,
         .act = rotate,
         .keeps_nothing = false},
    };
}

const std::vector<Tolerance>& tolerances() {
    static const std::vector<Tolerance> all = {
        {"",
         "vkEnumerateInstanceExtensionProperties",
         {},
         {Code::ok},
         "asked for the optional VK_KHR_portability_enumeration only; an instance without it may still have devices"},
        {"",
         "vkCreateInstance",
         {VK_ERROR_INCOMPATIBLE_DRIVER},
         {Code::no_device},
         "the loader's word for: no driver is installed"},
        {"devices",
         "vkEnumerateDeviceExtensionProperties",
         {},
         {Code::ok},
         "one device that cannot be described must not hide the others: it is listed as unsuitable, with the reason"},
        {"open a device",
         "vkEnumerateDeviceExtensionProperties",
         {},
         {Code::ok, Code::no_device},
         "the device is listed as unsuitable, and there is no other"},
        {"devices",
         "vkEnumeratePhysicalDevices",
         {VK_INCOMPLETE},
         {Code::ok},
         "a device came between two calls: the others are listed"},
        {"open a device", "vkEnumeratePhysicalDevices", {VK_INCOMPLETE}, {Code::no_device}, "the fake's only device was left out"},
        {"",
         "vkAllocateMemory",
         {},
         {Code::ok, Code::out_of_device_memory},
         "Vulkan Memory Allocator tries smaller blocks and other memory types, and calls it out of device memory when all fail"},
        {"", "vkMapMemory", {}, {Code::ok, Code::out_of_device_memory}, "as vkAllocateMemory: another memory type is tried"},
        {"",
         "vkGetQueryPoolResults",
         {VK_NOT_READY, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_UNKNOWN},
         {Code::ok},
         "the rotation is done; only the time that it took is unknown, which submit() may say"},
    };
    return all;
}

}  // namespace

TEST_CASE("runtime tier: every call fails with every result that it may have") {
    for (const Scenario& scenario : scenarios()) fail_every_call(scenario, tolerances());
}

TEST_CASE("runtime tier: every host allocation fails") {
    rotation();
    shape();
    for (const Scenario& scenario : scenarios()) fail_every_allocation(scenario);
}

TEST_CASE("runtime tier: an entry point that is missing is an error, and nothing is left") {
    for (const char* missing : {"vkCreateInstance", "vkDestroyInstance", "vkCreateDevice", "vkEnumeratePhysicalDevices",
                                "vkGetDeviceProcAddr", "vkAllocateCommandBuffers", "vkDestroyDevice", "vkWaitForFences"}) {
        CAPTURE(missing);
        fake().restart({.missing = {missing}});
        CHECK(Device::open(options()).status.code == Code::no_device);
        const std::string never = missing;
        if (never != "vkDestroyInstance" && never != "vkDestroyDevice") CHECK(fake().alive() == std::vector<std::string>{});
    }
}

}  // namespace vkrope::test
