// SPDX-License-Identifier: MIT
// A device that is lost, and one that does not respond.
#include <doctest/doctest.h>

#include "support/fake_vulkan/fake_vulkan.hpp"
#include "vkrope/runtime.hpp"

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

Device open_device(const FakeConfig& config = {}) {
    fake().restart(config);
    auto opened = Device::open(
        {.get_instance_proc_addr = fake_get_instance_proc_addr, .timeout_ns = 1'000'000});
    INFO(opened.status.what);
    REQUIRE(opened);
    return std::move(opened.value);
}

Rotation rotation() {
    Rotation r;
    r.head_dim = r.rotary_dim = 8;
    r.inv_freq = {1.0, 0.1, 0.01, 0.001};
    return r;
}

HostRotation make_rotation(Device& device) {
    auto made = HostRotation::make(device, rotation(), {.tokens = 3, .q_heads = 2, .k_heads = 1});
    INFO(made.status.what);
    REQUIRE(made);
    return std::move(made.value);
}

// The next call of `entry` returns `result`.
void fail_next(Device& device, const char* entry, VkResult result) {
    const std::size_t before = fake().points().size();
    const auto nothing = device.submit([](VkCommandBuffer) { return Status{}; });
    REQUIRE(nothing);
    const auto& points = fake().points();
    std::size_t distance = 0;
    while (std::string(points[before + distance].entry) != entry) ++distance;
    fake().failure = {points.size() + distance + 1, result, false};
}

void check_clean() {
    for (const std::string& fault : fake().faults()) FAIL_CHECK(fault);
    for (const std::string& object : fake().alive()) FAIL_CHECK(object << " was never destroyed");
}

}  // namespace

TEST_CASE(
    "a lost device: every later submission says so without calling Vulkan, and everything can be "
    "destroyed") {
    for (const bool push_descriptors : {true, false}) {
        for (const char* entry : {"vkQueueSubmit", "vkWaitForFences", "vkGetQueryPoolResults"}) {
            CAPTURE(entry);
            {
                Device device = open_device({.push_descriptors = push_descriptors});
                HostRotation made = make_rotation(device);
                std::vector<std::byte> q(made.q_bytes()), k(made.k_bytes());
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
    "a wait that runs out: a timeout, nothing that the queue may use is freed until it has "
    "finished, then everything") {
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
            // The rotation is destroyed, but its objects are not: the fence has not been signaled.
            for (const char* entry : {"vkDestroyBuffer", "vkDestroyImage", "vkDestroyImageView",
                                      "vkDestroyDescriptorPool", "vkFreeMemory"})
                CHECK(fake().count(entry) == 0);
        }
        check_clean();
    }
}

TEST_CASE("a queue that never answers: its objects are left alone for good") {
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
    for (const std::string& fault : fake().faults()) FAIL_CHECK(fault);
}

}  // namespace vkrope::test
