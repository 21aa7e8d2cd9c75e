// SPDX-License-Identifier: MIT
// Measures the host cost of one record() and of one create() in instructions, which do not depend
// on the load or the clock of the machine. Runs under callgrind, which collects only inside
// record() and counted_create() and dumps whenever few_calls() or many_calls() returns: see
// record_instructions.sh. Prints the cases in the order of these dumps, and how many more calls the
// second dump has than the first.
//
//     record_instructions [twice]
//
// twice: makes every call twice, which a test must detect.
#include <cstdio>
#include <cstring>
#include <memory>

#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {
namespace {

// Vulkan functions that record() calls do nothing here, because the bookkeeping of a fake is not a
// cost of vkrope.
VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice, std::uint32_t, const VkWriteDescriptorSet*,
                                       std::uint32_t, const VkCopyDescriptorSet*) {}
VKAPI_ATTR void VKAPI_CALL bind_sets(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                     std::uint32_t, std::uint32_t, const VkDescriptorSet*,
                                     std::uint32_t, const std::uint32_t*) {}
VKAPI_ATTR void VKAPI_CALL push_set(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                    std::uint32_t, std::uint32_t, const VkWriteDescriptorSet*) {}
VKAPI_ATTR void VKAPI_CALL bind_pipeline(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
VKAPI_ATTR void VKAPI_CALL push_constants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags,
                                          std::uint32_t, std::uint32_t, const void*) {}
VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer, std::uint32_t, std::uint32_t, std::uint32_t) {}
// The functions that create() calls also do nothing.
VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice, const VkShaderModuleCreateInfo*,
                                             const VkAllocationCallbacks*, VkShaderModule* module) {
    *module = (VkShaderModule)std::uintptr_t{1};
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice, VkShaderModule, const VkAllocationCallbacks*) {}
VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice, VkPipelineCache, std::uint32_t count,
                                                const VkComputePipelineCreateInfo*,
                                                const VkAllocationCallbacks*,
                                                VkPipeline* pipelines) {
    for (std::uint32_t i = 0; i < count; ++i) pipelines[i] = (VkPipeline)std::uintptr_t{1};
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}

PFN_vkVoidFunction silent(const char* name) {
    const struct {
        const char* name;
        PFN_vkVoidFunction function;
    } all[] = {{"vkUpdateDescriptorSets", reinterpret_cast<PFN_vkVoidFunction>(update_sets)},
               {"vkCmdBindDescriptorSets", reinterpret_cast<PFN_vkVoidFunction>(bind_sets)},
               {"vkCmdPushDescriptorSetKHR", reinterpret_cast<PFN_vkVoidFunction>(push_set)},
               {"vkCmdBindPipeline", reinterpret_cast<PFN_vkVoidFunction>(bind_pipeline)},
               {"vkCmdPushConstants", reinterpret_cast<PFN_vkVoidFunction>(push_constants)},
               {"vkCmdDispatch", reinterpret_cast<PFN_vkVoidFunction>(dispatch)},
               {"vkCreateShaderModule", reinterpret_cast<PFN_vkVoidFunction>(create_module)},
               {"vkDestroyShaderModule", reinterpret_cast<PFN_vkVoidFunction>(destroy_module)},
               {"vkCreateComputePipelines", reinterpret_cast<PFN_vkVoidFunction>(create_pipelines)},
               {"vkDestroyPipeline", reinterpret_cast<PFN_vkVoidFunction>(destroy_pipeline)}};
    for (const auto& entry : all)
        if (std::strcmp(entry.name, name) == 0) return entry.function;
    return nullptr;
}

PFN_vkGetDeviceProcAddr fake_device_proc = nullptr;

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = silent(name);
    return found ? found : fake_device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance instance, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0)
        return fake_get_instance_proc_addr(instance, name);
    fake_device_proc = VKROPE_FAKE(vkGetDeviceProcAddr, instance);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
}

// The tensors of a kernel: Q, Q and K, or Q and a K that goes to a cache.
enum class Tensors { q, q_and_k, scatter };

}  // namespace

// A function separate from the create() that prepares record(). callgrind finds it by name.
[[gnu::noinline]] Result<Kernel*> counted_create(const DeviceRef& device, const KernelInfo& info) {
    Result<Kernel*> made = create(device, info);
    asm volatile("" ::: "memory");  // prevents a tail call
    return made;
}

namespace {

struct Case {
    const char* name;
    Tensors tensors = Tensors::q_and_k;
    Mapping mapping = VKROPE_MAPPING_GPU;
    std::uint32_t storage_buffers = 16;  // with 4, Q and K take a dispatch each
    bool push_descriptors = true;
    bool creates = false;     // measures create() instead of record()
    std::uint32_t times = 1;  // how often each call is made
    const Kernel* kernel = nullptr;
    DescriptorArena* arena = nullptr;

    // The number of calls that many_calls() makes in addition to the calls of few_calls().
    int more_calls() const { return creates ? 2 : 200; }

    KernelInfo info() const {
        KernelInfo info = kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE);
        info.mapping = mapping;
        if (tensors == Tensors::q) info.tensor[K] = {};
        info.scatter_kv = tensors == Tensors::scatter;
        return info;
    }

    Call call(const KernelHost& host) const {
        Call call = kernel_call(host, 7, VKROPE_ANGLES_FACTORED_TEXTURE);
        if (tensors == Tensors::q) call.in[K] = call.out[K] = {};
        if (tensors == Tensors::scatter)
            call.paged_cache.slot_mapping = {host.words, 256, 7 * sizeof(std::int32_t)};
        return call;
    }

    bool run(const KernelHost& host, const Call& call, int calls) const {
        vkrope_arena_reset(arena);
        for (int i = 0; i < calls * int(times); ++i)
            if (creates ? !own(counted_create(host.ref, info()))
                        : !record(host.commands, kernel, call, arena))
                return false;
        return true;
    }
};

}  // namespace

// callgrind finds these functions by name. The difference of their costs is the cost of
// more_calls(), without the extra cost of the first call.
[[gnu::noinline]] bool few_calls(const Case& of, const KernelHost& host, const Call& call) {
    const bool recorded = of.run(host, call, of.more_calls() / 2);
    asm volatile("" ::: "memory");  // prevents a tail call
    return recorded;
}
[[gnu::noinline]] bool many_calls(const Case& of, const KernelHost& host, const Call& call) {
    const bool recorded = of.run(host, call, of.more_calls() / 2 + of.more_calls());
    asm volatile("" ::: "memory");
    return recorded;
}

}  // namespace vkrope::test

int main(int argc, char** argv) {
    using namespace vkrope;
    using namespace vkrope::test;
    const std::uint32_t times = argc > 1 && std::strcmp(argv[1], "twice") == 0 ? 2 : 1;
    for (Case of :
         {Case{.name = "push_descriptors/one_dispatch"},
          Case{.name = "push_descriptors/apart", .storage_buffers = 4},
          Case{.name = "arena/one_dispatch", .push_descriptors = false},
          Case{.name = "arena/apart", .storage_buffers = 4, .push_descriptors = false},
          Case{.name = "push_descriptors/q", .tensors = Tensors::q},
          Case{.name = "push_descriptors/scatter", .tensors = Tensors::scatter},
          Case{.name = "push_descriptors/q_cpu_mapping",
          .tensors = Tensors::q,
          .mapping = VKROPE_MAPPING_CPU},
          Case{.name = "push_descriptors/cpu_mapping", .mapping = VKROPE_MAPPING_CPU},
          Case{.name = "push_descriptors/scatter_cpu_mapping",
          .tensors = Tensors::scatter,
          .mapping = VKROPE_MAPPING_CPU},
          Case{.name = "create/q", .tensors = Tensors::q, .creates = true},
          Case{.name = "create/q_and_k", .creates = true},
          Case{.name = "create/apart", .storage_buffers = 4, .creates = true},
          Case{.name = "create/scatter", .tensors = Tensors::scatter, .creates = true},
          Case{.name = "create/q_cpu_mapping",
          .tensors = Tensors::q,
          .mapping = VKROPE_MAPPING_CPU,
          .creates = true},
          Case{.name = "create/cpu_mapping", .mapping = VKROPE_MAPPING_CPU, .creates = true},
          Case{.name = "create/scatter_cpu_mapping",
          .tensors = Tensors::scatter,
          .mapping = VKROPE_MAPPING_CPU,
          .creates = true}}) {
        of.times = times;
        KernelHost host({.storage_buffers = of.storage_buffers,
                         .push_descriptors = of.push_descriptors,
                         .debug_utils = false});
        host.ref.get_instance_proc_addr = instance_proc;
        const Owned<Kernel> kernel(create(host.ref, of.info()).value);
        Owned<DescriptorArena> arena;
        if (kernel && !of.push_descriptors) arena.reset(create_arena(kernel.get(), 2048).value);
        of.kernel = kernel.get();
        of.arena = arena.get();
        const Call call = of.call(host);
        if (!kernel || !few_calls(of, host, call) || !many_calls(of, host, call)) return 1;
        std::printf("%s %d\n", of.name, of.more_calls());
    }
}
