// SPDX-License-Identifier: MIT
// Tests devices that are lost, do not respond, lack entry points, or have non-coherent memory.
#include <cstring>
#include <numeric>

#include "support/fake_vulkan/kernel_host.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VKROPE_TEST_LEAKS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define VKROPE_TEST_LEAKS 1
#endif
#if defined(VKROPE_TEST_LEAKS)
#include <sanitizer/lsan_interface.h>
#endif

namespace vkrope::test {

namespace {

const DeviceOptions options{.get_instance_proc_addr = fake_get_instance_proc_addr,
                            .timeout_ns = 1'000'000};

Device open_device(const FakeConfig& config = {}, const DeviceOptions& with = options) {
    fake().restart(config);
    auto opened = Device::open(with);
    INFO(opened.status.what);
    REQUIRE(opened);
    return std::move(opened.value);
}

RopeParams rotation() {
    RopeParams r;
    r.pairing = VKROPE_HALF_SPLIT;
    r.head_dim = r.rotary_dim = 8;
    r.inv_freq = {1.0, 0.1, 0.01, 0.001};
    return r;
}

HostRotation make_rotation(Device& device) {
    auto made = HostRotation::make(device, rotation(), {.tokens = 3, .heads = {2, 1}});
    INFO(made.status.what);
    REQUIRE(made);
    return std::move(made.value);
}

// Makes the next call of `entry` return `result`.
void fail_next(Device& device, const char* entry, VkResult result) {
    const std::size_t before = fake().points().size();
    const auto nothing = device.submit([](VkCommandBuffer) { return Status{}; });
    REQUIRE(nothing);
    const auto& points = fake().points();
    std::size_t distance = 0;
    while (std::string(points[before + distance].entry) != entry) ++distance;
    fake().failure = {points.size() + distance + 1, result, false};
}

}  // namespace

TEST_CASE(
    "a lost device: every later submission reports the loss without calling Vulkan, and every "
    "object can be destroyed") {
    for (const bool push_descriptors : {true, false}) {
        for (const char* entry : {"vkQueueSubmit", "vkWaitForFences", "vkGetQueryPoolResults"}) {
            CAPTURE(entry);
            {
                Device device = open_device({.push_descriptors = push_descriptors});
                HostRotation made = make_rotation(device);
                std::vector<std::byte> q(made.bytes(Q)), k(made.bytes(K));
                fail_next(device, entry, VK_ERROR_DEVICE_LOST);
                const auto first = made.run();
                CHECK(first.status.code == VKROPE_ERROR_DEVICE_LOST);
                CHECK(first.status.vk_result == VK_ERROR_DEVICE_LOST);
                fake().forget_calls();
                CHECK(made.run().status.code == VKROPE_ERROR_DEVICE_LOST);
                CHECK(device.submit([](VkCommandBuffer) { return Status{}; }).status.code ==
                      VKROPE_ERROR_DEVICE_LOST);
                CHECK(made.upload(q.data(), k.data()).code == VKROPE_ERROR_DEVICE_LOST);
                CHECK(made.download(q.data(), k.data()).code == VKROPE_ERROR_DEVICE_LOST);
                CHECK(fake().count("vkQueueSubmit") == 0);
                CHECK(fake().count("vkWaitForFences") == 0);
            }
            check_clean();
        }
    }
}

TEST_CASE(
    "a wait that exceeds its limit is a timeout; objects that the queue may use are freed once the "
    "queue has finished") {
    for (const bool push_descriptors : {true, false}) {
        {
            Device device = open_device({.push_descriptors = push_descriptors});
            {
                HostRotation made = make_rotation(device);
                fail_next(device, "vkWaitForFences", VK_TIMEOUT);
                const auto first = made.run();
                CHECK(first.status.code == VKROPE_ERROR_TIMEOUT);
                CHECK(first.status.vk_result == VK_TIMEOUT);
                fake().forget_calls();
                CHECK(made.run().status.code == VKROPE_ERROR_TIMEOUT);
                CHECK(fake().count("vkQueueSubmit") == 0);
                fake().forget_calls();
            }
            // The rotation is destroyed, but not its Vulkan objects, since the fence is unsignaled.
            for (const char* entry : {"vkDestroyBuffer", "vkDestroyImage", "vkDestroyImageView",
                                      "vkDestroyDescriptorPool", "vkFreeMemory"})
                CHECK(fake().count(entry) == 0);
        }
        check_clean();
    }
}

TEST_CASE("a wait is as long as the caller says, or else 30 s, or 300 s on a CPU device") {
    for (const VkPhysicalDeviceType type :
         {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_CPU}) {
        for (const std::uint64_t timeout_ns : {std::uint64_t{0}, std::uint64_t{7}}) {
            DeviceOptions with = options;
            with.timeout_ns = timeout_ns;
            Device device = open_device({.type = type}, with);
            REQUIRE(device.submit([](VkCommandBuffer) { return Status{}; }));
            const std::uint64_t otherwise = type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 300 : 30;
            CHECK(fake().timeout_ns == (timeout_ns != 0 ? timeout_ns : otherwise * 1'000'000'000));
        }
    }
}

TEST_CASE("objects of a queue that never finishes are never destroyed") {
#if defined(VKROPE_TEST_LEAKS)
    const __lsan::ScopedDisabler leaks_on_purpose;
#endif
    std::size_t alive = 0;
    {
        Device device = open_device();
        HostRotation made = make_rotation(device);
        fake().config.never_finishes = true;
        CHECK(made.run().status.code == VKROPE_ERROR_TIMEOUT);
        fake().forget_calls();
        alive = fake().alive().size();
    }
    CHECK(fake().alive().size() == alive);
    for (const std::string& call : fake().calls())
        CHECK(call.find("vkDestroy") == std::string::npos);
    check_no_faults();
}

TEST_CASE("a HostRotation: a field without an effect is refused by name") {
    Device device = open_device();
    const std::int32_t ids[9] = {};
    const HostShape good = {.tokens = 3, .heads = {2, 1}};
    const auto refuses = [&](const char* words, const auto& change) {
        HostShape shape = good;
        RopeParams of = rotation();
        change(shape, of);
        check_invalid(HostRotation::make(device, of, shape).status, words);
    };
    using Shape = HostShape;
    using Of = RopeParams;
    refuses("shape.heads[0] shape.heads[1] 0", [](Shape& s, Of&) { s.heads[Q] = s.heads[K] = 0; });
    refuses("shape.heads[0] shape.heads[1] 0", [](Shape& s, Of&) {
        s.heads[Q] = s.heads[K] = 0;
        s.heads[V] = 2;
    });
    for (const TensorIndex t : every_tensor) {
        refuses(("shape.head_dim[" + std::to_string(t) + "] 8").c_str(),
                [=](Shape& s, Of&) {
                    s.heads[t] = 0;
                    s.head_dim[t] = 8;
                });
    }
    refuses(
        "shape.conversion 2", [](Shape& s, Of&) { s.conversion = VKROPE_CONVERSION_INTEGER; });
    refuses("shape.first_position 2147483646",
            [](Shape& s, Of&) { s.first_position = INT32_MAX - 1; });
    refuses("shape.first_position 1", [&](Shape& s, Of&) {
        s.first_position = 1;
        s.positions = ids;
        s.position_count = 3;
    });
    refuses(
        "shape.axes 3",
        [&](Shape& s, Of&) {
            s.axes = 3;
            s.positions = ids;
            s.position_count = 9;
        });
    refuses(
        "rotation.sections.pairs[1] 4", [](Shape&, Of& r) { r.sections.pairs[1] = 4; });
    refuses("rotation.pairing 0", [](Shape&, Of& r) { r.pairing = Of().pairing; });
    HostShape far = good;
    far.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
    far.first_position = INT32_MIN;
    check_error(HostRotation::make(device, rotation(), far).status, VKROPE_ERROR_INVALID_ARGUMENT,
                "shape.first_position 2147483648");
    far.first_position = 1 << 22;
    check_error(HostRotation::make(device, rotation(), far).status, VKROPE_ERROR_LIMIT_EXCEEDED,
                "shape.first_position 4194306");

    HostRotation q_alone = std::move(
        HostRotation::make(device, rotation(), {.tokens = 3, .heads = {2}}).value);
    std::vector<std::byte> rows(q_alone.bytes(Q));
    check_invalid(q_alone.upload(rows.data(), rows.data()), "k");
    check_invalid(q_alone.upload(rows.data(), nullptr, rows.data()), "v");
    check_invalid(q_alone.download(rows.data(), rows.data()), "k");
    CHECK(q_alone.upload(rows.data(), nullptr));
}

TEST_CASE("runtime tier: with non-coherent memory every byte is uploaded and downloaded") {
    {
        Device device = open_device();
        for (const std::size_t bytes : {1u, 63u, 4096u, 200'000u}) {
            CAPTURE(bytes);
            constexpr std::size_t offset = 100;
            std::vector<std::uint8_t> in(bytes), out(bytes);
            std::iota(in.begin(), in.end(), std::uint8_t{1});
            Result<Buffer> buffer = Buffer::make(device, offset + bytes),
                           other = Buffer::make(device, bytes);
            REQUIRE(buffer);
            REQUIRE(other);
            REQUIRE(buffer->upload(in.data(), bytes, offset));
            // This upload clears the staging memory, so that the download cannot return old bytes.
            REQUIRE(other->upload(out.data(), bytes));
            REQUIRE(buffer->download(out.data(), bytes, offset));
            CHECK(in == out);
        }
        for (const AngleSource source :
             {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_DIRECT_TEXTURE,
              VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_ANGLES_COMPUTED}) {
            CAPTURE(int(source));
            const Result<AngleTable> table = AngleTable::make(device, rotation(), source, 3000);
            REQUIRE(table);
            const Angles angles = table->angles();
            const Object* object = angles.view
                                       ? fake().find(VK_OBJECT_TYPE_IMAGE_VIEW, angles.view, "test")
                                       : fake().find(VK_OBJECT_TYPE_BUFFER, angles.buffer.buffer,
                                                     "test");
            REQUIRE(object);
            std::vector<float> expected(table->layout().bytes / 4);
            REQUIRE(
                fill_angles(rotation(), table->layout(), expected.data(), table->layout().bytes));
            CHECK(std::memcmp(fake().content_of(*object), expected.data(), table->layout().bytes) ==
                  0);
        }
    }
    check_clean();
}

TEST_CASE("runtime tier: a missing entry point is an error, and no object is left") {
    for (const char* missing :
         {"vkCreateInstance", "vkDestroyInstance", "vkCreateDevice", "vkEnumeratePhysicalDevices",
          "vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceProperties2", "vkGetDeviceProcAddr",
          "vkAllocateCommandBuffers", "vkDestroyDevice", "vkWaitForFences"}) {
        CAPTURE(missing);
        fake().restart({.missing = {missing}});
        CHECK(Device::open(options).status.code == VKROPE_ERROR_NO_DEVICE);
        const std::string never = missing;
        if (never != "vkDestroyInstance" && never != "vkDestroyDevice")
            CHECK(fake().alive() == std::vector<std::string>{});
    }
}

}  // namespace vkrope::test
