// SPDX-License-Identifier: MIT
// Compiles the kernels with AMD's compiler in Mesa for four generations of GPUs, and prints one
// line per pipeline. RADV compiles for a GPU that is not present (RADV_FORCE_FAMILY); nothing runs.
// The exit status is 1 if registers are spilled, scratch memory is used, too few subgroups fit into
// the registers, or a 16-byte access of the shader takes several machine instructions. It is 77 if
// the driver is missing.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/loader.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {
namespace {

struct Vulkan {
    PFN_vkGetInstanceProcAddr loader = nullptr;
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
};
Vulkan vulkan;

[[noreturn]] void stop(int status, const std::string& why) {
    std::fprintf(stderr, "radv: %s\n", why.c_str());
    std::exit(status);
}

template <class Function>
Function of_instance(const char* name) {
    return reinterpret_cast<Function>(vulkan.loader(vulkan.instance, name));
}

template <class Function>
Function of_device(const char* name) {
    return reinterpret_cast<Function>(
        of_instance<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr")(vulkan.device, name));
}

void must(VkResult result, const char* what) {
    if (result != VK_SUCCESS) stop(2, std::string(what) + ": VkResult " + std::to_string(result));
}

template <class T>
T must(Result<T> result) {
    if (!result) stop(2, result.status.what);
    return result.value;
}

// ---- Functions between library and driver, which query the statistics of each pipeline ----

struct Compiled {
    std::vector<VkPipelineExecutableStatisticKHR> statistics;
    std::string text;  // the compiler's final program

    std::uint64_t number(std::string_view name) const {
        for (const auto& statistic : statistics)
            if (statistic.name == name) return statistic.value.u64;
        stop(2, "the driver has no statistic " + std::string(name));
    }
    // Returns the number of instructions whose name starts with `start`.
    std::size_t count(std::string_view start) const {
        const auto continues = [&](std::size_t at) {
            return at != 0 && (std::isalnum(text[at - 1]) != 0 || text[at - 1] == '_');
        };
        std::size_t found = 0;
        for (std::size_t at = text.find(start); at != std::string::npos;
             at = text.find(start, at + 1))
            found += !continues(at);
        return found;
    }
};
std::vector<Compiled> compiled;
PFN_vkCreateComputePipelines real_create = nullptr;
PFN_vkGetDeviceProcAddr real_get_of_device = nullptr;

Compiled inspect(VkPipeline pipeline) {
    Compiled result;
    VkPipelineExecutableInfoKHR info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR;
    info.pipeline = pipeline;
    std::uint32_t count = 0;
    const auto statistics = of_device<PFN_vkGetPipelineExecutableStatisticsKHR>(
        "vkGetPipelineExecutableStatisticsKHR");
    must(statistics(vulkan.device, &info, &count, nullptr), "vkGetPipelineExecutableStatisticsKHR");
    VkPipelineExecutableStatisticKHR statistic = {};
    statistic.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    result.statistics.assign(count, statistic);
    must(statistics(vulkan.device, &info, &count, result.statistics.data()),
         "vkGetPipelineExecutableStatisticsKHR");

    const auto representations = of_device<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
        "vkGetPipelineExecutableInternalRepresentationsKHR");
    must(representations(vulkan.device, &info, &count, nullptr),
         "vkGetPipelineExecutableInternalRepresentationsKHR");
    VkPipelineExecutableInternalRepresentationKHR representation = {};
    representation.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
    std::vector<VkPipelineExecutableInternalRepresentationKHR> all(count, representation);
    must(representations(vulkan.device, &info, &count, all.data()),
         "vkGetPipelineExecutableInternalRepresentationsKHR");
    std::vector<std::string> texts(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        texts[i].resize(all[i].dataSize);
        all[i].pData = texts[i].data();
    }
    must(representations(vulkan.device, &info, &count, all.data()),
         "vkGetPipelineExecutableInternalRepresentationsKHR");
    for (std::uint32_t i = 0; i < count; ++i)
        if (std::strcmp(all[i].name, "ACO IR") == 0) result.text = texts[i];
    if (result.text.empty()) stop(2, "the driver shows no ACO IR");
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_and_inspect(VkDevice device, VkPipelineCache cache,
                                                  std::uint32_t count,
                                                  const VkComputePipelineCreateInfo* infos,
                                                  const VkAllocationCallbacks* allocator,
                                                  VkPipeline* pipelines) {
    std::vector<VkComputePipelineCreateInfo> with(infos, infos + count);
    for (auto& info : with) {
        info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                      VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    }
    const VkResult result = real_create(device, cache, count, with.data(), allocator, pipelines);
    for (std::uint32_t i = 0; result == VK_SUCCESS && i < count; ++i)
        compiled.push_back(inspect(pipelines[i]));
    return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_device(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = real_get_of_device(device, name);
    if (std::strcmp(name, "vkCreateComputePipelines") != 0) return found;
    real_create = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(create_and_inspect);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = vulkan.loader(instance, name);
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
    real_get_of_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(get_of_device);
}

// ---- A device that compiles ----

// Finds the GPU that RADV_FORCE_FAMILY names.
void find(const char* family) {
    setenv("RADV_FORCE_FAMILY", family, 1);
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo instance_info = {};
    instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance_info.pApplicationInfo = &application;
    vulkan.instance = VK_NULL_HANDLE;
    if (of_instance<PFN_vkCreateInstance>("vkCreateInstance")(&instance_info, nullptr,
                                                              &vulkan.instance) != VK_SUCCESS)
        stop(77, "skipped: no Vulkan driver");
    std::uint32_t count = 1;
    vulkan.physical = VK_NULL_HANDLE;
    of_instance<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(
        vulkan.instance, &count, &vulkan.physical);
    if (vulkan.physical == VK_NULL_HANDLE) stop(2, std::string("RADV does not know ") + family);
}

// Opens the device as an application would, with everything that requirements() asks for. The
// runtime tier cannot open this device, since the driver has no memory.
DeviceRef open() {
    const Requirements needs = must(requirements(vulkan.instance, vulkan.physical, vulkan.loader));
    std::vector<const char*> extensions(needs.optional_extensions,
                                        needs.optional_extensions + needs.optional_extension_count);
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable = {};
    executable.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    executable.pipelineExecutableInfo = VK_TRUE;
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    half.shaderFloat16 = needs.offers_shader_float16;
    if (needs.offers_shader_float16) executable.pNext = &half;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue = {};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &executable;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = std::uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    must(of_instance<PFN_vkCreateDevice>("vkCreateDevice")(vulkan.physical, &info, nullptr,
                                                           &vulkan.device),
         "vkCreateDevice");
    DeviceRef ref{vulkan.instance, vulkan.physical, vulkan.device, get, needs.enabled};
    if (needs.offers_shader_float16) ref.enabled |= VKROPE_DEVICE_FEATURE_SHADER_FLOAT16;
    return ref;
}

// ---- The kernels ----

struct Case {
    const char* name;
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT};
};

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto plain = [](Element element, AngleSource angles) {
        const TensorInfo width{element, element, 128, 0};
        return KernelInfo{.pairing = VKROPE_HALF_SPLIT,
                          .rotary_dim = 128,
                          .tensor = {width, width},
                          .angles = angles};
    };
    constexpr AngleSource factored = VKROPE_ANGLES_FACTORED_TEXTURE;
    all.push_back({"f32", plain(VKROPE_F32, factored)});
    all.push_back({"f16", plain(VKROPE_F16, factored)});
    all.push_back({"f16_by_integers", plain(VKROPE_F16, factored)});
    all.back().info.conversion = VKROPE_CONVERSION_INTEGER;
    all.push_back({"bf16", plain(VKROPE_BF16, factored)});
    for (const auto& [name, angles] : {std::pair{"f16_computed", VKROPE_ANGLES_COMPUTED},
                                       {"f16_direct_texture", VKROPE_ANGLES_DIRECT_TEXTURE},
                                       {"f16_direct_buffer", VKROPE_ANGLES_DIRECT_BUFFER}})
        all.push_back({name, plain(VKROPE_F16, angles)});
    all.push_back({"f32_interleaved", plain(VKROPE_F32, factored)});
    all.back().info.pairing = VKROPE_INTERLEAVED;
    all.push_back({"f16_interleaved", plain(VKROPE_F16, factored)});
    all.back().info.pairing = VKROPE_INTERLEAVED;
    all.push_back({"f16_to_half_split", all.back().info});
    all.back().info.pairing_out = VKROPE_HALF_SPLIT;
    all.push_back({"f16_partial", plain(VKROPE_F16, factored)});
    all.back().info.rotary_dim = 64;
    all.push_back({"f16_decode", plain(VKROPE_F16, factored)});
    all.back().info.positions = VKROPE_POSITIONS_IDS;
    all.back().info.scatter_kv = true;
    all.push_back({"f16_mrope", plain(VKROPE_F16, factored)});
    all.back().info.positions = VKROPE_POSITIONS_AXIS_IDS;
    all.back().info.sections = {.axes = 3, .pairs = {16, 24, 24}};
    all.push_back({"f16_phase", plain(VKROPE_F16, factored)});
    all.back().info.phase = true;
    all.push_back({"f16_sum", plain(VKROPE_F16, VKROPE_ANGLES_COMPUTED)});
    all.back().info.positions = VKROPE_POSITIONS_AXIS_IDS;
    all.back().info.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 3};
    return all;
}

// Prints the pipeline's line. Returns whether the pipeline meets the rules. Later versions of Mesa
// keep the loop over heads, whose body has each store once.
bool report(const Case& of, const Compiled& pipeline, std::uint32_t access_bytes,
            std::uint32_t heads) {
    const std::size_t wide_loads = pipeline.count("buffer_load_dwordx4 "),
                      wide_stores = pipeline.count("buffer_store_dwordx4 ");
    const std::size_t other_loads = pipeline.count("buffer_load_") - wide_loads;
    const std::size_t other_stores = pipeline.count("buffer_store_") - wide_stores;
    const std::uint64_t spilled = pipeline.number("Spilled VGPRs") +
                                  pipeline.number("Spilled SGPRs");
    const std::uint64_t scratch = pipeline.number("Scratch size");
    std::printf("%-18s", of.name);
    for (const std::uint64_t number :
         {std::uint64_t{access_bytes}, std::uint64_t{heads}, pipeline.number("VGPRs"), spilled,
          scratch, pipeline.number("Instructions"), pipeline.number("Code size"),
          std::uint64_t{wide_loads}, std::uint64_t{other_loads}, std::uint64_t{wide_stores},
          std::uint64_t{other_stores}})
        std::printf(" %12llu", static_cast<unsigned long long>(number));
    std::puts("");
    const auto broken = [&](const char* rule) {
        std::fprintf(stderr, "radv: %s, %u bytes an access, %u heads an invocation: %s\n", of.name,
                     access_bytes, heads, rule);
        return false;
    };
    if (spilled != 0) return broken("registers are spilled");
    if (scratch != 0) return broken("scratch memory is used");
    // Of 256 registers, so that two subgroups fit into a SIMD of the oldest GPU, and four where
    // accesses are narrow.
    if (pipeline.number("VGPRs") > (access_bytes == 16 ? 96 : 64))
        return broken("too many registers");
    // A lane has two units of Q and two of K. It may also load ids, and the angles of some sources.
    const bool tensors_only = of.info.positions == VKROPE_POSITIONS_IMPLICIT &&
                              (of.info.angles == VKROPE_ANGLES_FACTORED_TEXTURE ||
                               of.info.angles == VKROPE_ANGLES_DIRECT_TEXTURE);
    if (access_bytes == 16 && (wide_loads < 4 || wide_stores < 4 || other_stores != 0 ||
                               (tensors_only && other_loads != 0)))
        return broken("an access of 16 bytes is several of the machine");
    return true;
}

void print_head() {
    std::printf("%-18s", "kernel");
    for (const char* column :
         {"access_bytes", "heads", "registers", "spilled", "scratch", "instructions", "code_bytes",
          "loads_16", "loads_other", "stores_16", "stores_other"})
        std::printf(" %12s", column);
    std::puts("");
}

bool report(const DeviceRef& device, const Case& of) {
    compiled.clear();
    vkrope_kernel_destroy(must(create(device, of.info)));
    // The pipelines are in the order of create(): each access width with four heads and with one.
    // f32 has no access narrower than a word.
    bool good = true;
    for (std::size_t i = 0; i < compiled.size(); ++i)
        good &= report(of, compiled[i], i / 2 == 0 ? 16 : i / 2 == 1 ? 4 : 2, i % 2 == 0 ? 4 : 1);
    return good && !compiled.empty();
}

std::string mesa;  // the version of Mesa

// Compiles the kernels for one GPU. Returns whether they meet the rules.
bool compile_for(const char* family) {
    find(family);
    const DeviceRef device = open();
    VkPhysicalDeviceDriverProperties driver = {};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &driver;
    of_instance<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2")(
        vulkan.physical, &properties);
    std::printf("%s, %s\n", properties.properties.deviceName, driver.driverInfo);
    mesa = driver.driverInfo;
    print_head();
    bool good = true;
    for (const Case& of : cases()) good &= report(device, of);
    of_device<PFN_vkDestroyDevice>("vkDestroyDevice")(vulkan.device, nullptr);
    of_instance<PFN_vkDestroyInstance>("vkDestroyInstance")(vulkan.instance, nullptr);
    return good;
}

int run() {
    vulkan.loader = find_vulkan_loader();
    if (!vulkan.loader) stop(77, "skipped: no Vulkan loader");
    bool good = true;
    for (const char* family : {"polaris10", "vega10", "navi21"}) good &= compile_for(family);
    // RADV aborts if it does not know the name, and Mesa 22 names the fourth GPU by its instruction
    // set.
    good &= compile_for(mesa.starts_with("Mesa 22.") ? "gfx1100" : "navi31");
    return good ? 0 : 1;
}

}  // namespace
}  // namespace vkrope::test

int main() {
    return vkrope::test::run();
}
