// SPDX-License-Identifier: MIT
// Whether the checks of rows that are far apart notice a driver that keeps only the low bits of an
// offset: between them and a driver that does as it should, this cuts the offsets of descriptors,
// and the distances that the shader multiplies. Two rows are one distance apart, so that a distance
// that is cut is an offset that is cut.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "builtin.hpp"
#include "device_under_test.hpp"
#include "interface.h"
#include "program.hpp"

namespace vkrope::conformance {
namespace {

struct Cut {
    std::uint32_t bits = 64, element_bytes = 4;

    std::uint64_t operator()(std::uint64_t bytes) const { return bits >= 64 ? bytes : bytes & ((std::uint64_t{1} << bits) - 1); }
    void operator()(shader::Side& side) const {
        for (std::uint32_t shader::Side::*member : {&shader::Side::z, &shader::Side::token, &shader::Side::head}) {
            side.*member = std::uint32_t((*this)(std::uint64_t{side.*member} * element_bytes) / element_bytes);
        }
    }
};
Cut cut;

PFN_vkGetInstanceProcAddr real_get = nullptr;
PFN_vkGetDeviceProcAddr real_get_device = nullptr;
PFN_vkCmdPushConstants real_push_constants = nullptr;
PFN_vkCmdPushDescriptorSetKHR real_push_descriptors = nullptr;
PFN_vkUpdateDescriptorSets real_update = nullptr;

VKAPI_ATTR void VKAPI_CALL push_constants(VkCommandBuffer commands, VkPipelineLayout layout, VkShaderStageFlags stages,
                                          std::uint32_t offset, std::uint32_t size, const void* values) {
    shader::Push push;
    if (size == sizeof push) {
        std::memcpy(&push, values, sizeof push);
        for (shader::Side* side : {&push.q_in, &push.q_out, &push.k_in, &push.k_out}) {
            cut(*side);
        }
        values = &push;
    }
    real_push_constants(commands, layout, stages, offset, size, values);
}

/// Writes of one buffer each, as this library makes them.
struct CutWrites {
    CutWrites(std::uint32_t count, const VkWriteDescriptorSet* given) : writes(given, given + count), buffers(count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (writes[i].pBufferInfo != nullptr) {
                buffers[i] = *writes[i].pBufferInfo;
                buffers[i].offset = cut(buffers[i].offset);
                writes[i].pBufferInfo = &buffers[i];
            }
        }
    }
    std::vector<VkWriteDescriptorSet> writes;
    std::vector<VkDescriptorBufferInfo> buffers;
};

VKAPI_ATTR void VKAPI_CALL push_descriptors(VkCommandBuffer commands, VkPipelineBindPoint point, VkPipelineLayout layout,
                                            std::uint32_t set, std::uint32_t count, const VkWriteDescriptorSet* writes) {
    const CutWrites made(count, writes);
    real_push_descriptors(commands, point, layout, set, count, made.writes.data());
}

VKAPI_ATTR void VKAPI_CALL update(VkDevice device, std::uint32_t count, const VkWriteDescriptorSet* writes, std::uint32_t copies,
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
    return called == "vkCmdPushConstants"          ? instead_of(found, real_push_constants, &push_constants)
           : called == "vkCmdPushDescriptorSetKHR" ? instead_of(found, real_push_descriptors, &push_descriptors)
           : called == "vkUpdateDescriptorSets"    ? instead_of(found, real_update, &update)
                                                   : found;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = real_get(instance, name);
    return std::strcmp(name, "vkGetDeviceProcAddr") == 0 ? instead_of(found, real_get_device, &get_device) : found;
}

/// Runs the checks that begin so on a driver that keeps so many bits, and says where one of them
/// does not end with `expected`.
std::size_t unexpected(DeviceUnderTest& device, const std::string& start, std::uint32_t bits, Verdict expected) {
    std::size_t wrong = 0, ran = 0;
    for (const Group& group : builtin_groups(Level::quick)) {
        for (const std::unique_ptr<Check>& check : group.checks) {
            if (check->id().rfind(start, 0) != 0) {
                continue;
            }
            cut = {.bits = bits, .element_bytes = check->id().find("f32") == std::string::npos ? 2u : 4u};
            const Verdict verdict = check->run(device).verdict;
            wrong += verdict == expected ? 0 : 1;
            ++ran;
            std::printf("%-11s  %s with offsets of %u bits\n", word_for(verdict), check->id().c_str(), bits);
        }
    }
    return ran == 0 ? 1 : wrong;
}

tools::ExitCode run_checks() {
    void* const loader = dlopen("libvulkan.so.1", RTLD_NOW);
    if (loader == nullptr) {
        tools::fail(tools::ExitCode::no_device, "there is no Vulkan loader");
    }
    real_get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
    const char* select = std::getenv("VKROPE_DEVICE");
    DeviceUnderTest device({.select = select == nullptr ? "" : select, .get_instance_proc_addr = get});
    const std::size_t wrong = unexpected(device, "offsets/", 64, Verdict::pass) +
                              unexpected(device, "offsets/beyond_4_MiB", 22, Verdict::fail) +
                              unexpected(device, "offsets/beyond_4_MiB", 23, Verdict::fail) +
                              unexpected(device, "offsets/beyond_4_MiB", 27, Verdict::pass) +
                              unexpected(device, "offsets/beyond_128_MiB", 24, Verdict::fail) +
                              unexpected(device, "offsets/beyond_128_MiB", 27, Verdict::fail);
    std::printf("%zu checks do not end as they should\n", wrong);
    return wrong == 0 ? tools::ExitCode::success : tools::ExitCode::verification_failed;
}

}  // namespace
}  // namespace vkrope::conformance

int main() {
    return vkrope::tools::run_program("not all checks ran", vkrope::conformance::run_checks);
}
