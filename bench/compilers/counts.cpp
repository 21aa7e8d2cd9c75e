// SPDX-License-Identifier: MIT
// Creates kernels on the first Vulkan device, and prints what its compiler says of each pipeline:
// kernel, name of the pipeline, instructions, registers, and what it keeps in memory, with tabs
// between.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"

using namespace vkrope;

namespace {

PFN_vkGetDeviceProcAddr get_device_proc_addr;
PFN_vkCreateComputePipelines create_pipelines;
std::string kernel_name;

// What the drivers call their statistics. V3D says the number of threads, from which the number of
// registers follows.
const std::initializer_list<const char*> instructions = {"Instructions", "Instruction count",
                                                         "Instruction Count"};
const std::initializer_list<const char*> registers = {
    "Number of GPRs", "VGPRs", "Max live registers", "Registers used", "GPRs", "Thread Count"};
const std::initializer_list<const char*> memory = {"Spills to memory",
                                                   "Fills from memory",
                                                   "Spilled SGPRs",
                                                   "Spilled VGPRs",
                                                   "Scratch size",
                                                   "Spills",
                                                   "Fills",
                                                   "Scratch Memory Size",
                                                   "Scratch",
                                                   "STP Count",
                                                   "LDP Count",
                                                   "Spill Size"};

std::vector<VkPipelineExecutableStatisticKHR> statistics_of(VkDevice device, VkPipeline pipeline) {
    const char* name = "vkGetPipelineExecutableStatisticsKHR";
    const auto get = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
        get_device_proc_addr(device, name));
    VkPipelineExecutableInfoKHR info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR;
    info.pipeline = pipeline;
    std::uint32_t count = 0;
    engine::check(get(device, &info, &count, nullptr), name);
    VkPipelineExecutableStatisticKHR empty = {};
    empty.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    std::vector<VkPipelineExecutableStatisticKHR> all(count, empty);
    engine::check(get(device, &info, &count, all.data()), name);
    return all;
}

void print_sum(const std::vector<VkPipelineExecutableStatisticKHR>& statistics,
               const std::initializer_list<const char*>& names) {
    unsigned long long sum = 0;
    bool known = false;
    for (const VkPipelineExecutableStatisticKHR& statistic : statistics)
        for (const char* name : names) {
            if (std::strcmp(statistic.name, name) != 0) continue;
            known = true;
            sum += statistic.value.u64;
        }
    if (!known) engine::fail(std::string("the driver has none of ") + *names.begin() + ", ...");
    std::printf("\t%llu", sum);
}

// vkSetDebugUtilsObjectNameEXT: vkrope names each pipeline after its creation.
VKAPI_ATTR VkResult VKAPI_CALL name_object(VkDevice device,
                                           const VkDebugUtilsObjectNameInfoEXT* object) {
    if (object->objectType != VK_OBJECT_TYPE_PIPELINE) return VK_SUCCESS;
    const auto statistics = statistics_of(device, (VkPipeline)object->objectHandle);
    std::printf("%s\t%s", kernel_name.c_str(), object->pObjectName);
    for (const auto& names : {instructions, registers, memory}) print_sum(statistics, names);
    std::puts("");
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_with_statistics(VkDevice device, VkPipelineCache cache,
                                                      std::uint32_t count,
                                                      const VkComputePipelineCreateInfo* infos,
                                                      const VkAllocationCallbacks* allocator,
                                                      VkPipeline* pipelines) {
    std::vector<VkComputePipelineCreateInfo> with(infos, infos + count);
    for (VkComputePipelineCreateInfo& info : with)
        info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    return create_pipelines(device, cache, count, with.data(), allocator, pipelines);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
    const PFN_vkVoidFunction function = get_device_proc_addr(device, name);
    if (std::strcmp(name, "vkSetDebugUtilsObjectNameEXT") == 0)
        return reinterpret_cast<PFN_vkVoidFunction>(name_object);
    if (std::strcmp(name, "vkCreateComputePipelines") != 0) return function;
    create_pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(function);
    return reinterpret_cast<PFN_vkVoidFunction>(create_with_statistics);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction function = vkGetInstanceProcAddr(instance, name);
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return function;
    get_device_proc_addr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(function);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
}

struct Rows {  // of Q or K
    std::uint32_t heads, head_dim = 128, rotary_offset = 0;
};

KernelInfo plain(Element element, AngleSource angles, const Rows& q = {32}, const Rows& k = {8},
                 std::uint32_t rotary_dim = 128, Pairing pairing = VKROPE_HALF_SPLIT) {
    KernelInfo info = {};
    info.pairing = pairing;
    info.rotary_dim = rotary_dim;
    info.angles = angles;
    for (const auto& [which, rows] : {std::pair{Q, q}, {K, k}}) {
        info.tensor[which] = {.in = element, .out = element, .head_dim = rows.head_dim};
        info.tensor[which].rotary_offset = rows.rotary_offset;
        info.tensor[which].heads = rows.heads;
    }
    return info;
}

KernelInfo with_axes(KernelInfo info, const Sections& sections) {
    info.positions = VKROPE_POSITIONS_AXIS_IDS;
    info.sections = sections;
    return info;
}

// Stores K and V in a cache of this type; a quantised one has llama.cpp's Hadamard transforms.
KernelInfo with_cache(KernelInfo info, Element cache) {
    info.scatter_kv = true;
    info.tensor[V] = info.tensor[K];
    info.tensor[K].out = info.tensor[V].out = cache;
    if (cache == VKROPE_Q8_0) {
        info.tensor[Q].ops.hadamard = info.tensor[K].ops.hadamard = 128;
        info.tensor[V].ops.hadamard = 64;
    }
    return info;
}

KernelInfo with_norms(KernelInfo info) {
    for (const TensorIndex which : {Q, K})
        info.tensor[which].ops.norm = {
            .kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    return info;
}

// The layers of the benchmark's shapes.
std::vector<std::pair<const char*, KernelInfo>> kernels() {
    constexpr AngleSource factored = VKROPE_ANGLES_FACTORED_TEXTURE;
    constexpr AngleSource computed = VKROPE_ANGLES_COMPUTED;
    constexpr Element f32 = VKROPE_F32, f16 = VKROPE_F16, bf16 = VKROPE_BF16;
    constexpr Pairing interleaved = VKROPE_INTERLEAVED;
    constexpr Rows mla_q = {128, 192, 128}, mla_k = {1, 576, 512}, neox = {64, 96},
                   gptj = {16, 256}, vision = {16, 64};
    KernelInfo decode = with_cache(plain(f16, factored), f16);
    decode.tensor[V] = {};
    decode.positions = VKROPE_POSITIONS_IDS;
    KernelInfo vision_2d = with_axes(plain(f16, computed, vision, vision, 64),
                                     {VKROPE_SECTIONS_SEQUENTIAL, 2, {16, 16}});
    vision_2d.windows[0] = {0, 32};
    vision_2d.windows[1] = {32, 32};
    return {
        {"prefill_llama3_8b/f16/factored", plain(f16, factored)},
        {"prefill_llama3_8b/f16/computed", plain(f16, computed)},
        {"prefill_llama3_8b/bf16/factored", plain(bf16, factored)},
        {"prefill_llama3_8b/f32/factored", plain(f32, factored)},
        {"decode_llama3_8b/f16/factored", decode},
        {"mla_deepseek/f16/factored", plain(f16, factored, mla_q, mla_k, 64, interleaved)},
        {"mla_deepseek/f16/computed", plain(f16, computed, mla_q, mla_k, 64, interleaved)},
        {"partial_neox_20b/f16/factored", plain(f16, factored, neox, neox, 24)},
        {"partial_neox_20b/f16/computed", plain(f16, computed, neox, neox, 24)},
        {"gptj_interleaved/f16/computed", plain(f16, computed, gptj, gptj, 64, interleaved)},
        {"mrope_qwen2_vl/f16/computed",
         with_axes(plain(f16, computed, {28}, {4}), {VKROPE_SECTIONS_SEQUENTIAL, 3, {16, 24, 24}})},
        {"vision_2d/f16/computed", vision_2d},
        {"ops_qwen3_8b/f16/factored", with_norms(with_cache(plain(f16, factored), f16))},
        {"cache_llama3_1_8b/q8_0/factored", with_cache(plain(f32, factored), VKROPE_Q8_0)},
    };
}

}  // namespace

// Stands before the loader's function, and enables the extension that reads statistics.
VKAPI_ATTR VkResult VKAPI_CALL vkCreateDevice(VkPhysicalDevice physical,
                                              const VkDeviceCreateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkDevice* device) {
    std::vector<const char*> extensions(
        info->ppEnabledExtensionNames, info->ppEnabledExtensionNames + info->enabledExtensionCount);
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature = {};
    feature.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    feature.pNext = const_cast<void*>(info->pNext);
    feature.pipelineExecutableInfo = VK_TRUE;
    VkDeviceCreateInfo with = *info;
    with.pNext = &feature;
    with.enabledExtensionCount = std::uint32_t(extensions.size());
    with.ppEnabledExtensionNames = extensions.data();
    const auto create = reinterpret_cast<PFN_vkCreateDevice>(dlsym(RTLD_NEXT, "vkCreateDevice"));
    return create(physical, &with, allocator, device);
}

int main() {
    const engine::Gpu gpu(engine::Enable::extensions);
    DeviceRef ref = gpu.ref();
    ref.get_instance_proc_addr = instance_proc;
    ref.pipeline_cache = VK_NULL_HANDLE;
    for (const auto& [name, info] : kernels()) {
        kernel_name = name;
        const auto kernel = own(create(ref, info));
        engine::check(kernel.status, name);
    }
}
