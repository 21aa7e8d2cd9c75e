// SPDX-License-Identifier: MIT
// Measures times of the host: recording a call, compiling a kernel with and without a pipeline
// cache, filling a table.
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>

#include "cli/failure.hpp"
#include "meaning.hpp"
#include "rows.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void check_result(VkResult result, const char* what) {
    if (result != VK_SUCCESS)
        tools::fail(tools::ExitCode::device_failed, "{}: VkResult {}", what, int(result));
}

/// A command buffer that is recorded and discarded.
class Scratch {
   public:
    explicit Scratch(Device& device) : vk_(device.get()->vk), device_(device.ref().device) {
        VkCommandPoolCreateInfo pool_info = {};
        pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool_info.queueFamilyIndex = device.queue_family();
        check_result(vk_.vkCreateCommandPool(device_, &pool_info, nullptr, &pool_),
                     "vkCreateCommandPool");
        VkCommandBufferAllocateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        info.commandPool = pool_;
        info.commandBufferCount = 1;
        const VkResult result = vk_.vkAllocateCommandBuffers(device_, &info, &commands_);
        if (result != VK_SUCCESS) vk_.vkDestroyCommandPool(device_, pool_, nullptr);
        check_result(result, "vkAllocateCommandBuffers");
    }
    ~Scratch() { vk_.vkDestroyCommandPool(device_, pool_, nullptr); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    VkCommandBuffer begin() {
        check_result(vk_.vkResetCommandPool(device_, pool_, 0), "vkResetCommandPool");
        VkCommandBufferBeginInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        check_result(vk_.vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
        return commands_;
    }
    /// Records the barrier that a caller needs between two rotations of the same bytes. Not timed.
    void barrier() {
        VkMemoryBarrier memory = {};
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
        memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
        constexpr VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
        vk_.vkCmdPipelineBarrier(commands_, stage, stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
    }
    void end() { check_result(vk_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }

   private:
    const DeviceTable& vk_;
    VkDevice device_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

/// Kind of kernel; the host cost depends on it.
struct Kind {
    const char* name;
    Shape shape;
    Mapping mapping = VKROPE_MAPPING_AUTOMATIC;
    std::optional<NormSpan> norm = {};  ///< RMS norm of Q and K with a weight
    Element cache = VKROPE_F16;         ///< type of K and V if quantised, with Hadamard transforms
};

/// Returns whether record() is timed here. ops/ and cache/ time kernels that are not plain.
bool is_plain(const Kind& kind) {
    return !kind.norm && !is_quantised(kind.cache);
}

KernelInfo info_of(const Kind& kind) {
    KernelInfo info = kernel_info(kind.shape, VKROPE_F16, VKROPE_ANGLES_FACTORED_TEXTURE,
                                  kind.mapping);
    if (kind.norm) {
        const bool token = *kind.norm == VKROPE_NORM_SPAN_TOKEN;
        info.tensor[Q].ops.norm = info.tensor[K].ops.norm = {
            .kind = VKROPE_NORM_RMS,
            .span = *kind.norm,
            .eps = 1e-6f,
            .weight = token ? VKROPE_PARAMETER_HEAD_CHANNEL : VKROPE_PARAMETER_CHANNEL};
    }
    if (is_quantised(kind.cache)) {
        info.tensor[K].out = kind.cache;
        info.tensor[V] = info.tensor[K];
        info.tensor[V].heads = info.tensor[K].heads;
        const HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(info.tensor[K].head_dim, true,
                                                                   info.tensor[V].head_dim, true);
        info.tensor[Q].ops.hadamard = info.tensor[K].ops.hadamard = blocks.q_and_k;
        info.tensor[V].ops.hadamard = blocks.v;
    }
    return info;
}

std::vector<Kind> kinds() {
    const auto named = [](const char* name) {
        for (const Shape& shape : shapes()) {
            if (shape.name == name) return shape;
        }
        return shapes()[0];
    };
    Shape q = named("prefill_llama3_8b");
    q.tokens = 16;  // the host cost does not depend on the number of tokens
    const Shape q_and_k = q, scatter = named("decode_b1");
    q.k_heads = 0;
    const Mapping gpu = VKROPE_MAPPING_GPU, by_device = VKROPE_MAPPING_AUTOMATIC;
    return {{"q", q},
            {"q_and_k", q_and_k},
            {"scatter", scatter},
            {"gpu_mapping", q_and_k, gpu},
            {"norms", q_and_k, by_device, VKROPE_NORM_SPAN_HEAD},
            {"norms_of_tokens", q_and_k, by_device, VKROPE_NORM_SPAN_TOKEN},
            {"norms_gpu_mapping", q_and_k, gpu, VKROPE_NORM_SPAN_HEAD},
            {"q8_0", scatter, by_device, {}, VKROPE_Q8_0},
            {"norms_q8_0", scatter, by_device, VKROPE_NORM_SPAN_HEAD, VKROPE_Q8_0}};
}

void time_record(benchmark::State& state, Device& device, const Shape& shape,
                 Mapping mapping = VKROPE_MAPPING_AUTOMATIC) {
    const Layer layer(device, shape, VKROPE_F16, true);
    constexpr std::uint32_t batch = 64;
    Rope rope(device, layer, VKROPE_ANGLES_AUTOMATIC, batch, mapping);
    Scratch scratch(device);
    while (state.KeepRunningBatch(batch)) {
        const VkCommandBuffer commands = scratch.begin();
        rope.begin();
        double seconds = 0;
        for (std::uint32_t i = 0; i < batch; ++i) {
            const double start = now();
            check(rope.record(commands), Subject::device);
            seconds += now() - start;
            scratch.barrier();
        }
        state.SetIterationTime(seconds);
        scratch.end();
    }
}

class Cache {
   public:
    Cache(Device& device, bool wanted) : vk_(device.get()->vk), device_(device.ref().device) {
        VkPipelineCacheCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
        if (wanted)
            check_result(vk_.vkCreatePipelineCache(device_, &info, nullptr, &cache_),
                         "vkCreatePipelineCache");
    }
    ~Cache() { vk_.vkDestroyPipelineCache(device_, cache_, nullptr); }
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    VkPipelineCache get() const noexcept { return cache_; }

   private:
    const DeviceTable& vk_;
    VkDevice device_;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
};

/// Wraps the Vulkan functions of the driver to measure its compile time.
namespace watched {
PFN_vkGetInstanceProcAddr get_of_instance = nullptr;
PFN_vkGetDeviceProcAddr get_of_device = nullptr;
PFN_vkCreateComputePipelines create_pipelines = nullptr;
double seconds = 0;

VKAPI_ATTR VkResult VKAPI_CALL create_watched(VkDevice device, VkPipelineCache cache,
                                              std::uint32_t count,
                                              const VkComputePipelineCreateInfo* infos,
                                              const VkAllocationCallbacks* allocator,
                                              VkPipeline* pipelines) {
    const double start = now();
    const VkResult result = create_pipelines(device, cache, count, infos, allocator, pipelines);
    seconds += now() - start;
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

void time_create(benchmark::State& state, Device& device, const Kind& kind, bool warm) {
    const Cache cache(device, warm);
    DeviceRef ref = device.ref();
    ref.pipeline_cache = cache.get();
    watched::get_of_instance = ref.get_instance_proc_addr;
    ref.get_instance_proc_addr = watched::of_instance;
    const KernelInfo info = info_of(kind);
    if (warm) vkrope_kernel_destroy(value_of(create(ref, info), Subject::device));
    std::vector<double> ours, processor;
    for (auto _ : state) {
        watched::seconds = 0;
        const std::clock_t before = std::clock();  // processor time of all threads
        const double start = now();
        Kernel* kernel = value_of(create(ref, info), Subject::device);
        const double seconds = now() - start;
        state.SetIterationTime(seconds);
        processor.push_back(double(std::clock() - before) * 1e9 / CLOCKS_PER_SEC);
        ours.push_back((seconds - watched::seconds) * 1e9);
        vkrope_kernel_destroy(kernel);
    }
    state.counters["without_driver_ns"] = median(ours);
    state.counters["processor_ns"] = median(processor);
    state.SetLabel(warm ? "with a VkPipelineCache that has it"
                        : "without a VkPipelineCache; the driver may keep one of its own");
}

void time_fill(benchmark::State& state) {
    const RopeParams rotation = rotation_of(shapes()[0]);
    const AngleTableLayout plan = value_of(
        plan_angles(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, 131072, 16384), Subject::device);
    std::vector<std::byte> memory(plan.bytes);
    for (auto _ : state) {
        const double start = now();
        check(fill_angles(rotation, plan, memory.data(), memory.size()), Subject::device);
        state.SetIterationTime(now() - start);
    }
    state.counters["bytes"] = double(plan.bytes);
}

}  // namespace

void Bench::register_host_rows() {
    for (const Shape& shape : shapes()) {
        if (reduced(shape, VKROPE_F16, memory()).tokens != shape.tokens) continue;
        add("host/record/" + shape.name, [this, &shape](benchmark::State& state) {
            row_ = {};
            set_up_.clear();
            time_record(state, device_, shape);
        });
    }
    for (const Kind& kind : kinds()) {
        const std::string name = kind.name;
        if (is_plain(kind)) {
            add("host/record_of/" + name, [this, kind](benchmark::State& state) {
                row_ = {};
                set_up_.clear();
                time_record(state, device_, kind.shape, kind.mapping);
            });
        }
        add("host/create_cold/" + name,
            [this, kind](benchmark::State& state) { time_create(state, device_, kind, false); });
        add("host/create_warm/" + name,
            [this, kind](benchmark::State& state) { time_create(state, device_, kind, true); });
    }
    add("host/fill_factored_131072", time_fill);
}

}  // namespace vkrope::bench
