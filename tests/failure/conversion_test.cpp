// SPDX-License-Identifier: MIT
// Tests which float modes the modules of a kernel declare and whether the device or integer code
// converts f16. create() derives both from the properties of the device, the enabled features and
// the requested conversion. Also tests the limit of uniform buffers.
#include <set>

#include "support/fake_vulkan/kernel_host.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

constexpr VkShaderFloatControlsIndependence independences[] = {
    VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
    VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE};

constexpr std::uint32_t rounding_mode_rte = spv::ExecutionModeRoundingModeRTE,
                        denorm_preserve = spv::ExecutionModeDenormPreserve,
                        keep_zero_inf_nan = spv::ExecutionModeSignedZeroInfNanPreserve;

// An execution mode and its width in bits.
using Mode = std::pair<std::uint32_t, std::uint32_t>;

struct Declared {
    std::set<Mode> modes;
    bool float16 = false;          // the module has the capability Float16
    std::size_t conversions = 0;   // the number of OpFConvert
    std::size_t instructions = 0;  // the number of instructions in functions
};

Declared declared_by(const std::vector<std::uint32_t>& words) {
    Declared found;
    bool in_function = false;
    each_instruction(words, [&](spv::Op op, Words operands) {
        if (op == spv::OpCapability && operands[0] == spv::CapabilityFloat16) found.float16 = true;
        if (op == spv::OpExecutionMode && operands[1] >= denorm_preserve)
            CHECK(found.modes.insert({operands[1], operands[2]}).second);
        in_function = in_function || op == spv::OpFunction;
        found.instructions += in_function;
        found.conversions += op == spv::OpFConvert;
    });
    return found;
}

// A kernel with one pipeline, since rows of 3 elements rule out wider accesses and since on a CPU
// an invocation takes all heads.
KernelInfo small(Element element, Conversion conversion = VKROPE_CONVERSION_AUTOMATIC) {
    return {.pairing = VKROPE_HALF_SPLIT,
            .rotary_dim = 2,
            .tensor = {{element, element, 3, 0}},
            .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
            .mapping = VKROPE_MAPPING_CPU,
            .conversion = conversion};
}

// The declarations of the only module of a kernel with one pipeline.
Declared declared_by(const KernelHost& host, const KernelInfo& info) {
    const std::size_t before = fake().shaders().size();
    const auto kernel = create(host.ref, info);
    INFO(kernel.status.what);
    REQUIRE(kernel);
    REQUIRE(fake().shaders().size() >= before + 1);
    Declared declared = declared_by(fake().shaders().back());
    vkrope_kernel_destroy(kernel.value);
    check_no_faults();
    return declared;
}

void check_refused(const KernelHost& host, const KernelInfo& info) {
    const auto kernel = create(host.ref, info);
    check_error(kernel.status, VKROPE_ERROR_NOT_SUPPORTED,
                "conversion VKROPE_CONVERSION_NATIVE shaderRoundingModeRTEFloat16 "
                "shaderSignedZeroInfNanPreserveFloat16");
    CHECK(kernel.value == nullptr);
    check_no_faults();
}

}  // namespace

TEST_CASE(
    "a module declares the modes that are reported and enabled; the device converts f16 where it "
    "guarantees RTE rounding") {
    std::set<std::size_t> all_native, normals,
        integer;  // instruction counts of the three kinds of modules, which tell the kinds apart
    for (std::uint32_t reported = 0; reported < 64; ++reported) {
        const bool rte16 = reported & 1, rte32 = reported & 2, denorm16 = reported & 4,
                   denorm32 = reported & 8, keep16 = reported & 16, keep32 = reported & 32;
        for (const auto rounding : independences) {
            for (const auto denorms : independences) {
                VkPhysicalDeviceFloatControlsProperties controls = {};
                controls.roundingModeIndependence = rounding;
                controls.denormBehaviorIndependence = denorms;
                controls.shaderRoundingModeRTEFloat16 = rte16;
                controls.shaderRoundingModeRTEFloat32 = rte32;
                controls.shaderDenormPreserveFloat16 = denorm16;
                controls.shaderDenormPreserveFloat32 = denorm32;
                controls.shaderSignedZeroInfNanPreserveFloat16 = keep16;
                controls.shaderSignedZeroInfNanPreserveFloat32 = keep32;
                KernelHost host({.float_controls = controls});
                const std::uint32_t enabled_all = host.ref.enabled;
                for (const std::uint32_t off :
                     {0u, std::uint32_t{VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS},
                      std::uint32_t{VKROPE_DEVICE_FEATURE_SHADER_FLOAT16}}) {
                    host.ref.enabled = enabled_all & ~off;
                    CAPTURE(reported);
                    CAPTURE(int(rounding));
                    CAPTURE(int(denorms));
                    CAPTURE(off);
                    // A module without 16-bit floats has only modes of 32 bits.
                    std::set<Mode> single;
                    if (off != VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS) {
                        if (rte32) single.insert({rounding_mode_rte, 32});
                        if (denorm32) single.insert({denorm_preserve, 32});
                        if (keep32) single.insert({keep_zero_inf_nan, 32});
                    }
                    // A module with both widths: unless the device sets a mode for each width
                    // independently, both widths have the mode or neither has.
                    const bool rounds =
                        rte16 && (rte32 || rounding != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE);
                    const bool native = off == 0 && rounds && keep16;
                    const bool split_denorms = denorm16 != denorm32 &&
                                               denorms ==
                                                   VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
                    std::set<Mode> both = {{rounding_mode_rte, 16}, {keep_zero_inf_nan, 16}};
                    if (rte32) both.insert({rounding_mode_rte, 32});
                    if (denorm16 && !split_denorms) both.insert({denorm_preserve, 16});
                    if (denorm32 && !split_denorms) both.insert({denorm_preserve, 32});
                    if (keep32) both.insert({keep_zero_inf_nan, 32});

                    const Declared of_f16 = declared_by(host, small(VKROPE_F16));
                    CHECK(of_f16.float16 == native);
                    CHECK((of_f16.conversions != 0) == native);
                    CHECK(of_f16.modes == (native ? both : single));
                    (!native                      ? integer
                     : denorm16 && !split_denorms ? all_native
                                                  : normals)
                        .insert(of_f16.instructions);
                    if (native) {
                        CHECK(
                            declared_by(host, small(VKROPE_F16, VKROPE_CONVERSION_NATIVE)).modes ==
                            both);
                        // A kernel that converts nothing needs no 16-bit floats.
                        CHECK(
                            declared_by(host, small(VKROPE_F32, VKROPE_CONVERSION_NATIVE)).modes ==
                            single);
                    } else {
                        check_refused(host, small(VKROPE_F16, VKROPE_CONVERSION_NATIVE));
                    }
                    if (reported % 8 != 7) continue;  // one kind of rounding suffices from here on
                    for (const Element element : {VKROPE_F32, VKROPE_BF16}) {
                        const Declared other = declared_by(host, small(element));
                        CHECK_FALSE(other.float16);
                        CHECK(other.modes == single);
                    }
                    const Declared by_integers = declared_by(
                        host, small(VKROPE_F16, VKROPE_CONVERSION_INTEGER));
                    CHECK_FALSE(by_integers.float16);
                    CHECK(by_integers.conversions == 0);
                    CHECK(by_integers.modes == single);
                }
            }
        }
    }
    REQUIRE(all_native.size() == 1);
    REQUIRE(normals.size() == 1);
    REQUIRE(integer.size() == 1);
    // Modules of the kind `normals` are longer, since they convert subnormal halves by integers.
    CHECK(*all_native.begin() < *normals.begin());
}

TEST_CASE("by default a CPU device converts f16 by integers; on request it converts natively") {
    KernelHost host({.type = VK_PHYSICAL_DEVICE_TYPE_CPU, .float_controls = all_float_controls()});
    CHECK(declared_by(host, small(VKROPE_F16)).conversions == 0);
    CHECK_FALSE(declared_by(host, small(VKROPE_F16)).float16);
    CHECK(declared_by(host, small(VKROPE_F16, VKROPE_CONVERSION_INTEGER)).conversions == 0);
    CHECK(declared_by(host, small(VKROPE_F16, VKROPE_CONVERSION_NATIVE)).conversions != 0);
}

TEST_CASE("native conversion is refused without float controls, and without shaderFloat16") {
    KernelHost no_controls;
    check_refused(no_controls, small(VKROPE_F16, VKROPE_CONVERSION_NATIVE));
    KernelHost no_feature({.float16_feature = false, .float_controls = all_float_controls()});
    check_refused(no_feature, small(VKROPE_F16, VKROPE_CONVERSION_NATIVE));
    CHECK_FALSE(declared_by(no_feature, small(VKROPE_F16)).float16);
}

TEST_CASE("all modules of an f16 kernel declare the same modes: native or not, with Q, K or both") {
    KernelHost host({.float_controls = all_float_controls()});
    for (const std::uint32_t storage_buffers : {4u, 16u}) {
        fake().config.storage_buffers = storage_buffers;
        KernelInfo info = kernel_info();
        info.tensor[K].in = info.tensor[K].out = VKROPE_F32;
        const std::size_t before = fake().shaders().size();
        const auto kernel = create(host.ref, info);
        INFO(kernel.status.what);
        REQUIRE(kernel);
        for (std::size_t i = before; i < fake().shaders().size(); ++i)
            CHECK(declared_by(fake().shaders()[i]).modes.size() == 6);
        vkrope_kernel_destroy(kernel.value);
        check_no_faults();
    }
}

TEST_CASE(
    "create: computed angles that fit in no uniform buffer are limit_exceeded, with both "
    "numbers") {
    const auto wide = [](std::uint32_t rotary_dim) {
        return KernelInfo{.pairing = VKROPE_HALF_SPLIT,
                          .rotary_dim = rotary_dim,
                          .tensor = {{.head_dim = rotary_dim}},
                          .angles = VKROPE_ANGLES_COMPUTED};
    };
    const auto made = [&](std::uint32_t uniform_range, std::uint32_t rotary_dim) {
        KernelHost host({.uniform_range = uniform_range});
        const auto kernel = create(host.ref, wide(rotary_dim));
        vkrope_kernel_destroy(kernel.value);
        check_no_faults();
        return kernel.status;
    };
    CHECK(made(16384, 4088));
    check_error(made(16384, 4092), VKROPE_ERROR_LIMIT_EXCEEDED,
                "angles computed rotary_dim 4092 16400 16384 maxUniformBufferRange");
    CHECK(made(65536, 4092));
    CHECK(made(1u << 18, 65534).code ==
          VKROPE_ERROR_LIMIT_EXCEEDED);  // the largest rotary_dim takes 2^18 + 32 bytes
    CHECK(made((1u << 18) + 32, 65534));
    KernelHost host;
    KernelInfo textured = wide(4092);
    textured.angles = VKROPE_ANGLES_FACTORED_TEXTURE;  // not a uniform buffer
    const auto kernel = create(host.ref, textured);
    CHECK(kernel.status);
    vkrope_kernel_destroy(kernel.value);
}

}  // namespace vkrope::test
