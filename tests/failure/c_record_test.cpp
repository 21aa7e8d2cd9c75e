// SPDX-License-Identifier: MIT
// A kernel and its calls in C come to Vulkan as they do from C++.
#include "c_kernel.hpp"
#include "injection.hpp"
#include "support/fake_vulkan/host_memory.hpp"

namespace vkrope::test {

TEST_CASE("C: requirements and conversion equal those in C++") {
    for (const bool feature : {true, false}) {
        const auto prepared = std::make_shared<PreparedInC>(
            FakeConfig{.float16_feature = feature, .float_controls = all_float_controls()});
        const vkrope_device_ref& ref = prepared->ref;
        auto needs = sized<vkrope_requirements>();
        REQUIRE(vkrope_get_requirements(ref.instance, ref.physical, ref.get_instance_proc_addr,
                                        &needs, nullptr) == VKROPE_SUCCESS);
        const auto same = requirements(ref.instance, ref.physical, ref.get_instance_proc_addr);
        CHECK(needs.optional_extension_count == 3);
        CHECK(needs.optional_extension_count == same->optional_extension_count);
        CHECK(needs.enabled == same->enabled);
        CHECK((needs.enabled & VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS) != 0);
        CHECK(needs.offers_shader_float16 == VkBool32(feature));
        OwnedKernel kernel;
        const Status native = make_kernel(*prepared, kernel, VKROPE_CONVERSION_NATIVE);
        CHECK(native.code == (feature ? Code::ok : Code::not_supported));
        CHECK(make_kernel(*prepared, kernel, VKROPE_CONVERSION_INTEGER));
        const Status none = make_kernel(*prepared, kernel, vkrope_conversion(3));
        check_error(none, Code::invalid_argument, "conversion 3");
        check_no_faults();
    }
}

TEST_CASE("C: norms, parameters and factors come to the shader as they do from C++") {
    const FakeConfig joined, apart{.storage_buffers = 4, .push_descriptors = false};
    for (const FakeConfig& config : {joined, apart}) {
        fake().restart(config);
        {
            const auto prepared = prepare_record(config, VKROPE_ANGLES_FACTORED_TEXTURE,
                                                 &norm_of_token());
            const std::size_t shaders = fake().shaders().size();
            CHECK(record_call(*prepared));
            const Owned<Kernel> kernel(create(prepared->host.ref, info_of(*prepared)).value);
            REQUIRE(kernel);
            const Owned<DescriptorArena> arena(
                config.push_descriptors ? nullptr : create_arena(kernel.get(), 3).value);
            CHECK(record(prepared->host.commands, kernel.get(), call_of(*prepared), arena.get()));
            const auto& words = fake().shaders();  // the constants are in the code
            REQUIRE(words.size() == 2 * shaders);
            for (std::size_t i = 0; i < shaders; ++i) CHECK(words[i] == words[shaders + i]);
            const std::vector<Command> all = dispatches(prepared->host);
            const std::size_t count = config.push_descriptors ? 1 : 3;
            REQUIRE(all.size() == 2 * count);
            for (std::size_t i = 0; i < count; ++i) {
                const Command &in_c = all[i], &in_cpp = all[count + i];
                CHECK(in_c.pushed == in_cpp.pushed);
                REQUIRE(in_c.descriptors.size() == in_cpp.descriptors.size());
                for (const auto& [binding, descriptor] : in_c.descriptors) {
                    CAPTURE(binding);
                    const VkDescriptorBufferInfo &a = descriptor.buffer,
                                                 &b = in_cpp.descriptors.at(binding).buffer;
                    CHECK(a.buffer == b.buffer);
                    CHECK(a.offset == b.offset);
                    CHECK(a.range == b.range);
                }
            }
        }
        check_clean();
    }
}

TEST_CASE("C: a record makes the calls that it makes from C++, and allocates nothing") {
    for (const bool push_descriptors : {true, false}) {
        const FakeConfig config{.push_descriptors = push_descriptors};
        fake().restart(config);
        {
            const auto prepared = prepare_record(config);
            const std::size_t asked = prepared->host.allocator.allocated;
            fake().forget_calls();
            observe_host_memory();
            const Status status = record_call(*prepared);
            CHECK(observed_allocations() == 0);
            CHECK(prepared->host.allocator.allocated == asked);
            INFO(status.what);
            CHECK(status);
            using Names = std::vector<std::string>;
            const Names pushes = {"vkCmdBeginDebugUtilsLabelEXT",
                                  "vkCmdPushDescriptorSetKHR",
                                  "vkCmdBindPipeline",
                                  "vkCmdPushConstants",
                                  "vkCmdDispatch",
                                  "vkCmdEndDebugUtilsLabelEXT"};
            const Names sets = {"vkCmdBeginDebugUtilsLabelEXT", "vkUpdateDescriptorSets",
                                "vkCmdBindDescriptorSets",      "vkCmdBindPipeline",
                                "vkCmdPushConstants",           "vkCmdDispatch",
                                "vkCmdEndDebugUtilsLabelEXT"};
            CHECK(fake().calls() == (push_descriptors ? pushes : sets));
        }
        check_clean();
    }
}

}  // namespace vkrope::test
