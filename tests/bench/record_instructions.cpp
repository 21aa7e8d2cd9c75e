// SPDX-License-Identifier: MIT
// What one record() costs the host in instructions, which no load of the machine and no clock disturbs. It runs under callgrind,
// which collects inside record() only and dumps whenever few_calls() or many_calls() returns: see record_instructions.sh. Prints
// the cases in the order of these dumps.
//
//     record_instructions [twice]      twice: every call is recorded two times, which a test must notice
#define DOCTEST_CONFIG_IMPLEMENT  // the fake's helpers have checks, which nobody makes here
#include <cstdio>
#include <cstring>
#include <memory>

#include "fake_vulkan/kernel_host.hpp"

namespace vkrope::test {
namespace {

// What record() calls of Vulkan does nothing here: the fake's bookkeeping is no cost of vkrope's.
VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice, std::uint32_t, const VkWriteDescriptorSet*, std::uint32_t,
                                       const VkCopyDescriptorSet*) {}
VKAPI_ATTR void VKAPI_CALL bind_sets(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, std::uint32_t, std::uint32_t,
                                     const VkDescriptorSet*, std::uint32_t, const std::uint32_t*) {}
VKAPI_ATTR void VKAPI_CALL push_set(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, std::uint32_t, std::uint32_t,
                                    const VkWriteDescriptorSet*) {}
VKAPI_ATTR void VKAPI_CALL bind_pipeline(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
VKAPI_ATTR void VKAPI_CALL push_constants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, std::uint32_t, std::uint32_t,
                                          const void*) {}
VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer, std::uint32_t, std::uint32_t, std::uint32_t) {}

PFN_vkVoidFunction silent(const char* name) {
    const struct {
        const char* name;
        PFN_vkVoidFunction function;
    } all[] = {{"vkUpdateDescriptorSets", reinterpret_cast<PFN_vkVoidFunction>(update_sets)},
               {"vkCmdBindDescriptorSets", reinterpret_cast<PFN_vkVoidFunction>(bind_sets)},
               {"vkCmdPushDescriptorSetKHR", reinterpret_cast<PFN_vkVoidFunction>(push_set)},
               {"vkCmdBindPipeline", reinterpret_cast<PFN_vkVoidFunction>(bind_pipeline)},
               {"vkCmdPushConstants", reinterpret_cast<PFN_vkVoidFunction>(push_constants)},
               {"vkCmdDispatch", reinterpret_cast<PFN_vkVoidFunction>(dispatch)}};
    for (const auto& entry : all) {
        if (std::strcmp(entry.name, name) == 0) return entry.function;
    }
    return nullptr;
}

PFN_vkGetDeviceProcAddr fake_device_proc = nullptr;

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = silent(name);
    return found ? found : fake_device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance instance, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return fake_get_instance_proc_addr(instance, name);
    fake_device_proc = VKROPE_FAKE(vkGetDeviceProcAddr, instance);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
}

struct Case {
    const char* name;
    std::uint32_t storage_buffers;  // with 4, Q and K go in a lean dispatch each
    bool push_descriptors;
    std::uint32_t times;  // that each call is recorded
    const Kernel* kernel = nullptr;
    DescriptorArena* arena = nullptr;

    bool run(const KernelHost& host, const Call& call, int calls) const {
        reset(arena);
        for (int i = 0; i < calls * int(times); ++i) {
            if (!record(host.commands, kernel, call, arena)) return false;
        }
        return true;
    }
};

}  // namespace

// Their names are callgrind's to find; the difference of both is what 200 calls cost, whatever the first one costs more.
[[gnu::noinline]] bool few_calls(const Case& of, const KernelHost& host, const Call& call) {
    const bool recorded = of.run(host, call, 100);
    asm volatile("" ::: "memory");  // and no tail call
    return recorded;
}
[[gnu::noinline]] bool many_calls(const Case& of, const KernelHost& host, const Call& call) {
    const bool recorded = of.run(host, call, 300);
    asm volatile("" ::: "memory");
    return recorded;
}

}  // namespace vkrope::test

int main(int argc, char** argv) {
    using namespace vkrope;
    using namespace vkrope::test;
    const std::uint32_t times = argc > 1 && std::strcmp(argv[1], "twice") == 0 ? 2 : 1;
    for (Case of : {Case{"push_descriptors/one_dispatch", 16, true, times}, Case{"push_descriptors/lean", 4, true, times},
                    Case{"arena/one_dispatch", 16, false, times}, Case{"arena/lean", 4, false, times}}) {
        KernelHost host({.storage_buffers = of.storage_buffers, .push_descriptors = of.push_descriptors, .debug_utils = false});
        host.ref.get_instance_proc_addr = instance_proc;
        const Owned<Kernel> kernel(create(host.ref, kernel_info(AngleSource::factored_texture)).value);
        Owned<DescriptorArena> arena;
        if (kernel && !of.push_descriptors) arena.reset(create_arena(kernel.get(), 2048).value);
        of.kernel = kernel.get();
        of.arena = arena.get();
        const Call call = kernel_call(host, 7, AngleSource::factored_texture);
        if (!kernel || !few_calls(of, host, call) || !many_calls(of, host, call)) return 1;
        std::printf("%s\n", of.name);
    }
}
