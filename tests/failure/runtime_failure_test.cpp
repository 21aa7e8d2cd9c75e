// SPDX-License-Identifier: MIT
// The runtime tier, with every call and every allocation failing in turn.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "support/fake_vulkan/kernel_host.hpp"
#include "tolerances.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::test {

namespace {

DeviceOptions options() {
    return {.get_instance_proc_addr = fake_get_instance_proc_addr,
            .validation = fake().config.validation,
            .timeout_ns = 1'000'000};
}

std::shared_ptr<void> open_device() {
    auto opened = Device::open(options());
    return std::make_shared<Device>(std::move(opened.value));
}

Status open_and_close(void*) {
    return Device::open(options()).status;
}

// Made once, so that only allocations of the library are counted.
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
    static const HostShape the_shape{
        .tokens = 3, .q_heads = 2, .k_heads = 1, .positions = {5, 6, 7}};
    return the_shape;
}

// Downloads what it uploaded.
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

// All steps of a program without its own device.
Status rotate(void* device, const HostShape& what) {
    auto made = HostRotation::make(*static_cast<Device*>(device), rotation(), what);
    if (!made) return made.status;
    std::array<std::byte, 3 * 2 * 8 * 4> q = {};
    std::array<std::byte, 3 * 8 * 4> k = {};
    CHECK(made->q_bytes() == q.size());
    CHECK(made->k_bytes() == k.size());
    if (Status s = made->upload(q.data(), k.data()); !s) return s;
    const auto ran = made->run();
    if (!ran) return ran.status;
    CHECK(ran->value_or(2000) == 2000);  // the fake's time; none if timestamps are missing or fail
    return made->download(q.data(), k.data());
}

Status rotate_by_default(void* device) {
    return rotate(device, shape());
}

const HostShape& computed_shape() {
    static const HostShape the_shape = [] {
        HostShape s = shape();
        s.angles = VKROPE_ANGLES_COMPUTED;
        return s;
    }();
    return the_shape;
}

Status rotate_computed(void* device) {
    return rotate(device, computed_shape());
}

std::vector<Scenario> scenarios() {
    const FakeConfig controls{.float_controls = all_float_controls()};
    const FakeConfig without_push{.push_descriptors = false, .timestamps = false};
    return {
        // std::stable_sort requests a buffer, and can do without it.
        {.name = "devices",
         .act = [](void*) { return devices(options()).status; },
         .harmless_allocations = 1},
        {.name = "open a device", .act = open_and_close, .harmless_allocations = 1},
        {.name = "open a device, validation",
         .config = {.validation = true},
         .act = open_and_close,
         .harmless_allocations = 1},
        {.name = "buffer", .prepare = open_device, .act = use_buffer, .keeps_nothing = false},
        {.name = "angle texture",
         .prepare = open_device,
         .act = make_table<VKROPE_ANGLES_DIRECT_TEXTURE>,
         .keeps_nothing = false},
        {.name = "angle buffer",
         .prepare = open_device,
         .act = make_table<VKROPE_ANGLES_DIRECT_BUFFER>,
         .keeps_nothing = false},
        {.name = "angle texture, factored",
         .prepare = open_device,
         .act = make_table<VKROPE_ANGLES_FACTORED_TEXTURE>,
         .keeps_nothing = false},
        {.name = "numbers of computed angles",
         .prepare = open_device,
         .act = make_table<VKROPE_ANGLES_COMPUTED>,
         .keeps_nothing = false},
        {.name = "rotation",
         .prepare = open_device,
         .act = rotate_by_default,
         .keeps_nothing = false},
        {.name = "rotation, computed angles",
         .prepare = open_device,
         .act = rotate_computed,
         .keeps_nothing = false},
        {.name = "open a device, float controls",
         .config = controls,
         .act = open_and_close,
         .harmless_allocations = 1},
        {.name = "rotation, float controls",
         .config = controls,
         .prepare = open_device,
         .act = rotate_by_default,
         .keeps_nothing = false},
        {.name = "rotation, validation",
         .config = {.validation = true},
         .prepare = open_device,
         .act = rotate_by_default,
         .keeps_nothing = false},
        {.name = "rotation, arena, no timestamps",
         .config = without_push,
         .prepare = open_device,
         .act = rotate_by_default,
         .keeps_nothing = false},
    };
}

}  // namespace

TEST_CASE("runtime tier: every call fails with every result that it may have") {
    fail_every_call(scenarios(), runtime_tolerances());
}

TEST_CASE("runtime tier: every host allocation fails") {
    rotation();
    shape();
    computed_shape();
    fail_every_allocation(scenarios());
}

TEST_CASE("runtime tier: in memory that is not coherent every byte arrives and comes back") {
    fake().restart();
    {
        Result<Device> device = Device::open(options());
        REQUIRE(device);
        for (const std::size_t bytes : {1u, 63u, 4096u, 200'000u}) {
            CAPTURE(bytes);
            constexpr std::size_t offset = 100;
            std::vector<std::uint8_t> in(bytes), out(bytes);
            std::iota(in.begin(), in.end(), std::uint8_t{1});
            Result<Buffer> buffer = Buffer::make(device.value, offset + bytes),
                           other = Buffer::make(device.value, bytes);
            REQUIRE(buffer);
            REQUIRE(other);
            REQUIRE(buffer->upload(in.data(), bytes, offset));
            // The memory that both go through holds zeros when the bytes come back.
            REQUIRE(other->upload(out.data(), bytes));
            REQUIRE(buffer->download(out.data(), bytes, offset));
            CHECK(in == out);
        }
        for (const AngleSource source :
             {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_DIRECT_TEXTURE,
              VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_ANGLES_COMPUTED}) {
            CAPTURE(int(source));
            const Result<AngleTable> table = AngleTable::make(device.value, rotation(), source,
                                                              3000);
            REQUIRE(table);
            const Angles angles = table->angles();
            const Object* object = angles.view
                                       ? fake().find(VK_OBJECT_TYPE_IMAGE_VIEW, angles.view, "test")
                                       : fake().find(VK_OBJECT_TYPE_BUFFER, angles.buffer.buffer,
                                                     "test");
            REQUIRE(object);
            std::vector<float> expected(table->plan().bytes / 4);
            REQUIRE(fill_angles(rotation(), table->plan(), expected.data(), table->plan().bytes));
            CHECK(std::memcmp(fake().content_of(*object), expected.data(), table->plan().bytes) ==
                  0);
        }
    }
    check_clean();
}

TEST_CASE("runtime tier: an entry point that is missing is an error, and nothing is left") {
    for (const char* missing :
         {"vkCreateInstance", "vkDestroyInstance", "vkCreateDevice", "vkEnumeratePhysicalDevices",
          "vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceProperties2", "vkGetDeviceProcAddr",
          "vkAllocateCommandBuffers", "vkDestroyDevice", "vkWaitForFences"}) {
        CAPTURE(missing);
        fake().restart({.missing = {missing}});
        CHECK(Device::open(options()).status.code == VKROPE_ERROR_NO_DEVICE);
        const std::string never = missing;
        if (never != "vkDestroyInstance" && never != "vkDestroyDevice")
            CHECK(fake().alive() == std::vector<std::string>{});
    }
}

}  // namespace vkrope::test
