// SPDX-License-Identifier: MIT
// Tests requirements(), which reports what a device offers and what an engine should enable.
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

TEST_CASE("requirements: reports what the device offers") {
    for (std::uint32_t offered = 0; offered < 8; ++offered) {
        FakeConfig config{.push_descriptors = (offered & 1) != 0, .float16 = (offered & 4) != 0};
        if (offered & 2) config.float_controls.emplace();
        KernelHost host(config);
        const auto needs = requirements(host.ref.instance, host.ref.physical,
                                        fake_get_instance_proc_addr);
        REQUIRE(needs);
        CHECK(needs->api_version == VK_API_VERSION_1_1);
        std::vector<std::string> expected;
        if (offered & 1) expected.emplace_back(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
        if (offered & 2) expected.emplace_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
        if (offered & 4) expected.emplace_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
        const char* const* first = needs->optional_extensions;
        CHECK(std::vector<std::string>(first, first + needs->optional_extension_count) == expected);
        // shaderFloat16 is a feature, not an extension: the caller reports whether it enabled it.
        CHECK(needs->enabled == ((offered & 1 ? VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR : 0u) |
                                 (offered & 2 ? VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS : 0u)));
        CHECK(needs->offers_shader_float16 == ((offered & 4) != 0));
        check_no_faults();
    }
    // The extension may be present without the feature.
    KernelHost int8_alone({.float16_feature = false});
    const auto needs = requirements(int8_alone.ref.instance, int8_alone.ref.physical,
                                    fake_get_instance_proc_addr);
    REQUIRE(needs);
    CHECK(needs->optional_extension_count == 2);
    CHECK_FALSE(needs->offers_shader_float16);
    KernelHost old({.api_version = VK_API_VERSION_1_0});
    CHECK(
        requirements(old.ref.instance, old.ref.physical, fake_get_instance_proc_addr).status.code ==
        VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("requirements: Vulkan 1.2 has float controls and 16-bit floats without an extension") {
    for (const std::uint32_t version :
         {VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3}) {
        for (const bool feature : {false, true}) {
            KernelHost host;
            fake().config.api_version = version;
            fake().config.float16 = false;  // a driver of Vulkan 1.2 need not list the extension
            fake().config.float16_feature = feature;
            fake().config.float_controls = {};
            const auto needs = requirements(host.ref.instance, host.ref.physical,
                                            fake_get_instance_proc_addr);
            REQUIRE(needs);
            const bool core = version >= VK_API_VERSION_1_2;
            CHECK(needs->enabled_in_core ==
                  (core ? VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS |
                              (feature ? VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 : 0u)
                        : 0u));
            CHECK(!needs->offers_shader_float16);
            CHECK((needs->enabled & (VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS |
                                     VKROPE_DEVICE_FEATURE_SHADER_FLOAT16)) == 0);
        }
    }
}

TEST_CASE("requirements: an entry point that is missing is named") {
    for (const char* missing :
         {"vkGetPhysicalDeviceProperties", "vkGetPhysicalDeviceProperties2",
          "vkGetPhysicalDeviceFeatures2", "vkEnumerateDeviceExtensionProperties"}) {
        KernelHost host;
        fake().config.missing = {missing};
        const auto needs = requirements(host.ref.instance, host.ref.physical,
                                        fake_get_instance_proc_addr);
        check_error(needs.status, VKROPE_ERROR_INVALID_ARGUMENT, missing);
        check_no_faults();
    }
}

}  // namespace vkrope::test
