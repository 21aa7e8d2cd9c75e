// SPDX-License-Identifier: MIT
// Tests that the checks of distant rows detect a driver that keeps only the low bits of an offset.
// This layer between the checks and a correct driver cuts the offsets of descriptors, the distances
// that the shader multiplies, or both. Two rows are one distance apart, so that a cut distance is a
// cut offset. Devices that bind 128 MiB and 4 GiB at once reach distant rows differently, so this
// also reports a different maxStorageBufferRange.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "conformance/builtin/builtin.hpp"
#include "conformance/device_under_test.hpp"
#include "interface.h"
#include "shell/program.hpp"

namespace vkrope::conformance {
namespace {

/// What the driver cuts: offsets of the descriptors of all tensors, of inputs or of outputs;
/// distances in push constants; or both.
enum class Where { descriptors, inputs, outputs, push_constants, both };
constexpr Where everywhere[] = {Where::descriptors, Where::inputs, Where::outputs,
                                Where::push_constants, Where::both};

const char* name_of(Where where) {
    constexpr const char* names[] = {"descriptors", "descriptors of inputs",
                                     "descriptors of outputs", "push constants", "both"};
    return names[static_cast<std::size_t>(where)];
}

bool is_of(Where where, std::uint32_t binding) {
    const bool input = binding == shader::binding_q_in || binding == shader::binding_k_in;
    const bool output = binding == shader::binding_q_out || binding == shader::binding_k_out;
    return where == Where::inputs    ? input
           : where == Where::outputs ? output
                                     : where != Where::push_constants;
}

struct Cut {
    std::uint32_t bits = 64, element_bytes = 4;
    Where where = Where::both;

    std::uint64_t low(std::uint64_t bytes) const {
        return bits >= 64 ? bytes : bytes & ((std::uint64_t{1} << bits) - 1);
    }
    void operator()(std::uint32_t binding, VkDescriptorBufferInfo& buffer) const {
        if (is_of(where, binding)) {
            buffer.offset = low(buffer.offset);
        }
    }
    void operator()(shader::RowLayout& side) const {
        for (std::uint32_t shader::RowLayout::*member :
             {&shader::RowLayout::z, &shader::RowLayout::token, &shader::RowLayout::head}) {
            if (where == Where::push_constants || where == Where::both) {
                side.*member = std::uint32_t(low(std::uint64_t{side.*member} * element_bytes) /
                                             element_bytes);
            }
        }
    }
};
Cut cut;
std::uint32_t reported_range = 0;  // 0: unchanged

PFN_vkGetInstanceProcAddr real_get = nullptr;
PFN_vkGetDeviceProcAddr real_get_device = nullptr;
PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
PFN_vkGetPhysicalDeviceProperties2 real_properties_2 = nullptr;
PFN_vkCmdPushConstants real_push_constants = nullptr;
PFN_vkCmdPushDescriptorSetKHR real_push_descriptors = nullptr;
PFN_vkUpdateDescriptorSets real_update = nullptr;

void report(VkPhysicalDeviceLimits& limits) {
    if (reported_range != 0) {
        limits.maxStorageBufferRange = reported_range;
    }
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical,
                                      VkPhysicalDeviceProperties* found) {
    real_properties(physical, found);
    report(found->limits);
}

VKAPI_ATTR void VKAPI_CALL properties_2(VkPhysicalDevice physical,
                                        VkPhysicalDeviceProperties2* found) {
    real_properties_2(physical, found);
    report(found->properties.limits);
}

VKAPI_ATTR void VKAPI_CALL push_constants(VkCommandBuffer commands, VkPipelineLayout layout,
                                          VkShaderStageFlags stages, std::uint32_t offset,
                                          std::uint32_t size, const void* values) {
    shader::Push push;
    if (size == sizeof push) {
        std::memcpy(&push, values, sizeof push);
        for (shader::RowLayout* side : {&push.q_in, &push.q_out, &push.k_in, &push.k_out}) {
            cut(*side);
        }
        values = &push;
    }
    real_push_constants(commands, layout, stages, offset, size, values);
}

/// Descriptor writes with one buffer each, as the library makes them.
struct CutWrites {
    CutWrites(std::uint32_t count, const VkWriteDescriptorSet* given)
        : writes(given, given + count), buffers(count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (writes[i].pBufferInfo != nullptr) {
                buffers[i] = *writes[i].pBufferInfo;
                cut(writes[i].dstBinding, buffers[i]);
                writes[i].pBufferInfo = &buffers[i];
            }
        }
    }
    std::vector<VkWriteDescriptorSet> writes;
    std::vector<VkDescriptorBufferInfo> buffers;
};

VKAPI_ATTR void VKAPI_CALL push_descriptors(VkCommandBuffer commands, VkPipelineBindPoint point,
                                            VkPipelineLayout layout, std::uint32_t set,
                                            std::uint32_t count,
                                            const VkWriteDescriptorSet* writes) {
    const CutWrites made(count, writes);
    real_push_descriptors(commands, point, layout, set, count, made.writes.data());
}

VKAPI_ATTR void VKAPI_CALL update(VkDevice device, std::uint32_t count,
                                  const VkWriteDescriptorSet* writes, std::uint32_t copies,
                                  const VkCopyDescriptorSet* copied) {
    const CutWrites made(count, writes);
    real_update(device, count, made.writes.data(), copies, copied);
}

template <class Function>
PFN_vkVoidFunction instead_of(PFN_vkVoidFunction found, Function& real, Function ours) {
    real = reinterpret_cast<Function>(found);
    return found == nullptr ? nullptr : reinterpret_cast<PFN_vkVoidFunction>(ours);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = real_get_device(device, name);
    const std::string called = name;
    return called == "vkCmdPushConstants" ? instead_of(found, real_push_constants, &push_constants)
           : called == "vkCmdPushDescriptorSetKHR"
               ? instead_of(found, real_push_descriptors, &push_descriptors)
           : called == "vkUpdateDescriptorSets" ? instead_of(found, real_update, &update)
                                                : found;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = real_get(instance, name);
    const std::string called = name;
    return called == "vkGetDeviceProcAddr" ? instead_of(found, real_get_device, &get_device)
           : called == "vkGetPhysicalDeviceProperties"
               ? instead_of(found, real_properties, &properties)
           : called == "vkGetPhysicalDeviceProperties2"
               ? instead_of(found, real_properties_2, &properties_2)
               : found;
}

Verdict run(DeviceUnderTest& device, Check& check, std::uint32_t bits, Where where) {
    cut = {.bits = bits,
           .element_bytes = check.id().find("f32") == std::string::npos ? 2u : 4u,
           .where = where};
    Outcome outcome;
    try {
        outcome = check.run(device);
    } catch (const Refusal& refusal) {
        outcome = refusal.outcome();
    }
    cut = {};
    std::printf("%-11s  %s, range %u, offsets of %u bits in %s%s%s\n", word_for(outcome.verdict),
                check.id().c_str(), device.info().limits.maxStorageBufferRange, bits,
                name_of(where), outcome.reason.empty() ? "" : ": ", outcome.reason.c_str());
    return outcome.verdict;
}

/// Runs the checks whose id begins with `start` on a driver that keeps `bits` bits. Returns how
/// many do not end with `expected`.
std::size_t unexpected(DeviceUnderTest& device, const std::string& start, std::uint32_t bits,
                       Where where, Verdict expected) {
    std::size_t wrong = 0, ran = 0;
    for (const Group& group : builtin_groups(Level::quick)) {
        for (const std::unique_ptr<Check>& check : group.checks) {
            if (check->id().rfind(start, 0) == 0) {
                wrong += run(device, *check, bits, where) == expected ? 0 : 1;
                ++ran;
            }
        }
    }
    return ran == 0 ? 1 : wrong;
}

/// The quick checks, on a device that binds what it reports.
std::size_t unexpected(DeviceUnderTest& device) {
    constexpr std::uint64_t beyond_128 = (std::uint64_t{1} << 27) + (1u << 20);
    std::size_t wrong = unexpected(device, "offsets/", 64, Where::both, Verdict::pass) +
                        unexpected(device, "offsets/beyond_4_MiB", 23, Where::both, Verdict::fail) +
                        unexpected(device, "offsets/beyond_4_MiB", 27, Where::both, Verdict::pass) +
                        unexpected(device, "offsets/beyond_128_MiB", 24, Where::both,
                                   Verdict::fail);
    for (const Where where : everywhere) {
        wrong += unexpected(device, "offsets/beyond_4_MiB", 22, where, Verdict::fail);
        // Within 128 MiB no distance has more bits.
        if (where != Where::push_constants ||
            device.info().limits.maxStorageBufferRange > beyond_128) {
            wrong += unexpected(device, "offsets/beyond_128_MiB", 27, where, Verdict::fail);
        }
    }
    return wrong;
}

/// Level::full has a check for each higher bit: it runs if the device has enough memory, and fails
/// if the bit is cut.
std::size_t unexpected_in_full(DeviceUnderTest& device) {
    std::size_t wrong = 0, held = 0;
    const std::vector<Group> groups = builtin_groups(Level::full);
    std::uint32_t bit = 28;
    for (const char* far : {"256_MiB", "512_MiB", "1_GiB", "2_GiB", "4_GiB"}) {
        const std::string id = std::string("offsets/beyond_") + far + "_f32_16_bytes";
        std::size_t found = 0;
        for (const Group& group : groups) {
            for (const std::unique_ptr<Check>& check : group.checks) {
                if (check->id() != id) {
                    continue;
                }
                ++found;
                const bool fits = run(device, *check, 64, Where::both) == Verdict::pass;
                const Verdict expected = fits ? Verdict::fail : Verdict::unsupported;
                held += fits ? 1 : 0;
                for (const Where where : {Where::descriptors, Where::both}) {
                    wrong += run(device, *check, bit, where) == expected ? 0 : 1;
                }
            }
        }
        wrong += found == 1 ? 0 : 1;
        ++bit;
    }
    std::printf("%zu of 5 bits from 28 on are within what the device has room for\n", held);
    return wrong + (held == 0 ? 1 : 0);
}

tools::ExitCode run_checks() {
    void* const loader = dlopen("libvulkan.so.1", RTLD_NOW);
    if (loader == nullptr) {
        tools::fail(tools::ExitCode::no_device, "there is no Vulkan loader");
    }
    real_get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
    const char* select = std::getenv("VKROPE_DEVICE");
    std::size_t wrong = 0;
    for (const std::uint32_t range : {0u, 0xffffffffu}) {
        reported_range = range;
        DeviceUnderTest device(
            {.select = select == nullptr ? "" : select, .get_instance_proc_addr = get});
        wrong += unexpected(device);
        if (range == 0) {
            wrong += unexpected_in_full(device);
        }
    }
    std::printf("%zu checks do not end as they should\n", wrong);
    return wrong == 0 ? tools::ExitCode::success : tools::ExitCode::verification_failed;
}

}  // namespace
}  // namespace vkrope::conformance

int main() {
    return vkrope::tools::run_program("not all checks ran", vkrope::conformance::run_checks);
}
