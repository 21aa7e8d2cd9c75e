// SPDX-License-Identifier: MIT
// Measures times of the host: recording a call, compiling a kernel with and without a pipeline
// cache, filling a table.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "cli/failure.hpp"
#include "copy_roof/median.hpp"
#include "rows.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

// Kind of kernel; the host cost depends on it.
struct Kind {
    const char* name;
    verify::Operation operation;
    bool is_plain = true;  // false: a kernel with ops; the rows ops/ and cache/ time it
};

std::vector<Kind> kinds() {
    const auto scattering = std::find_if(shapes().begin(), shapes().end(), [](const Shape& shape) {
        return shape.operation.info.scatter_kv;
    });
    // The host cost does not depend on the number of tokens.
    const auto of = [](const Heads& k) {
        return of_type(rotation(16, {32, 128}, k, 128, 500000), VKROPE_F16);
    };
    const verify::Operation q_and_k = of({8, 128}),
                            scatter = of_type(scattering->operation, VKROPE_F16);
    const auto on_gpu = [](verify::Operation operation) {
        operation.info.mapping = VKROPE_MAPPING_GPU;
        return operation;
    };
    const auto with_norms = [](verify::Operation operation, NormSpan span = VKROPE_NORM_SPAN_HEAD) {
        add_norms(operation, span);
        return operation;
    };
    const auto to_q8_0 = [](verify::Operation operation) {
        add_v(operation, VKROPE_Q8_0);
        return operation;
    };
    return {{"q", of({})},
            {"q_and_k", q_and_k},
            {"scatter", scatter},
            {"gpu_mapping", on_gpu(q_and_k)},
            {"norms", with_norms(q_and_k), false},
            {"norms_of_tokens", with_norms(q_and_k, VKROPE_NORM_SPAN_TOKEN), false},
            {"norms_gpu_mapping", with_norms(on_gpu(q_and_k)), false},
            {"q8_0", to_q8_0(scatter), false},
            {"norms_q8_0", with_norms(to_q8_0(scatter)), false}};
}

void time_record(benchmark::State& state, Device& device, const verify::Operation& operation) {
    constexpr std::uint32_t batch = 64;
    const Layer layer(device, operation, true);
    const Pass pass(device, layer.operation(), batch);
    const Record between = barrier(device);
    while (state.KeepRunningBatch(batch)) {
        double ns = 0;
        Status status;
        // The callback fails at its end, so that nothing is submitted.
        static_cast<void>(device.submit([&](VkCommandBuffer commands) -> Status {
            pass.begin();
            for (std::uint32_t i = 0; i < batch && status; ++i) {
                const double start = now_ns();
                status = pass.record_next(commands);
                ns += now_ns() - start;
                static_cast<void>(between(commands));
            }
            return VKROPE_ERROR_INVALID_ARGUMENT;
        }));
        check(status, Subject::device);
        state.SetIterationTime(ns * 1e-9);
    }
}

// A VkPipelineCache of the device.
std::shared_ptr<std::remove_pointer_t<VkPipelineCache>> make_cache(const Device& device) {
    VkPipelineCacheCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    VkPipelineCache cache = VK_NULL_HANDLE;
    const VkResult result = function_of<PFN_vkCreatePipelineCache>(device, "vkCreatePipelineCache")(
        device.ref().device, &info, nullptr, &cache);
    if (result != VK_SUCCESS)
        tools::fail(tools::ExitCode::device_failed, "vkCreatePipelineCache: VkResult {}",
                    int(result));
    return {cache, [&device](VkPipelineCache made) {
                function_of<PFN_vkDestroyPipelineCache>(device, "vkDestroyPipelineCache")(
                    device.ref().device, made, nullptr);
            }};
}

// Wraps the Vulkan functions of the driver to measure its compile time.
namespace watched {
PFN_vkGetInstanceProcAddr get_of_instance = nullptr;
PFN_vkGetDeviceProcAddr get_of_device = nullptr;
PFN_vkCreateComputePipelines create_pipelines = nullptr;
double ns = 0;

VKAPI_ATTR VkResult VKAPI_CALL create_watched(VkDevice device, VkPipelineCache cache,
                                              std::uint32_t count,
                                              const VkComputePipelineCreateInfo* infos,
                                              const VkAllocationCallbacks* allocator,
                                              VkPipeline* pipelines) {
    const double start = now_ns();
    const VkResult result = create_pipelines(device, cache, count, infos, allocator, pipelines);
    ns += now_ns() - start;
    return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = get_of_device(device, name);
    if (std::strcmp(name, "vkCreateComputePipelines") != 0) return found;
    create_pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(create_watched);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = get_of_instance(instance, name);
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
    get_of_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(of_device);
}
}  // namespace watched

void time_create(benchmark::State& state, Device& device, const KernelInfo& info, bool warm) {
    const auto cache = warm ? make_cache(device) : nullptr;
    DeviceRef ref = device.ref();
    ref.pipeline_cache = cache.get();
    watched::get_of_instance = ref.get_instance_proc_addr;
    ref.get_instance_proc_addr = watched::of_instance;
    if (warm) vkrope_kernel_destroy(value_of(create(ref, info), Subject::device));
    std::vector<double> ours, processor;
    for (auto _ : state) {
        watched::ns = 0;
        const std::clock_t before = std::clock();  // processor time of all threads
        const double start = now_ns();
        Kernel* kernel = value_of(create(ref, info), Subject::device);
        const double ns = now_ns() - start;
        state.SetIterationTime(ns * 1e-9);
        processor.push_back(double(std::clock() - before) * 1e9 / CLOCKS_PER_SEC);
        ours.push_back(ns - watched::ns);
        vkrope_kernel_destroy(kernel);
    }
    state.counters["without_driver_ns"] = tools::median(ours);
    state.counters["processor_ns"] = tools::median(processor);
    state.SetLabel(warm ? "with a VkPipelineCache that has it"
                        : "without a VkPipelineCache; the driver may keep one of its own");
}

}  // namespace

void Bench::register_host_rows() {
    const auto add_record = [this](const std::string& name, const verify::Operation& operation) {
        add("host/" + name, [this, operation](benchmark::State& state) {
            free_row();
            time_record(state, device_, operation);
        });
    };
    for (const Shape& shape : shapes()) {
        const verify::Operation operation = of_type(shape.operation, VKROPE_F16);
        if (device_bytes(operation) <= memory()) add_record("record/" + shape.name, operation);
    }
    for (const Kind& kind : kinds()) {
        const std::string name = kind.name;
        if (kind.is_plain) add_record("record_of/" + name, kind.operation);
        for (const bool warm : {false, true}) {
            add((warm ? "host/create_warm/" : "host/create_cold/") + name,
                [this, info = kind.operation.info, warm](benchmark::State& state) {
                    time_create(state, device_, info, warm);
                });
        }
    }
    add_row("host/fill_factored_131072", [] {
        const RopeParams rotation = verify::rotation_of(shapes()[0].operation);
        const AngleTableLayout plan = value_of(
            plan_angles(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, 131072, 16384), Subject::device);
        Row row{.label = "", .counters = {{"bytes", double(plan.bytes)}}};
        row.time = [=, memory = std::vector<std::byte>(plan.bytes)]() mutable {
            const double start = now_ns();
            check(fill_angles(rotation, plan, memory.data(), memory.size()), Subject::device);
            return now_ns() - start;
        };
        return row;
    });
}

}  // namespace vkrope::bench
