// SPDX-License-Identifier: MIT
// Runs the programs on a device. Each step must succeed without a validation message.
#include <cstdio>
#include <cstring>
#include <deque>
#include <iterator>
#include <utility>

#include "../engine/gpu.hpp"
#include "../engine/table.hpp"
#include "walk.hpp"

namespace walk {

Made::Made(const vkrope::DeviceRef& device, const vkrope::KernelInfo& info) {
    const auto created = vkrope::create(device, info);
    status = created.status;
    kernel = created.value;
    if (!kernel || (device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) return;
    const auto sets = vkrope::create_arena(kernel, 8);
    status = sets.status;
    arena = sets.value;
}

Made::~Made() {
    vkrope_arena_destroy(arena);
    vkrope_kernel_destroy(kernel);
}

vkrope::Result<Table> make_table(const Gpu& gpu, const vkrope::RopeParams& rope,
                                 vkrope::AngleSource source, std::uint64_t max_position) {
    const auto plan = vkrope::plan_angles(rope, source, max_position, 4096);
    if (!plan) return {plan.status, {}};
    std::vector<std::byte> content(plan->bytes);
    if (vkrope::Status s = vkrope::fill_angles(rope, plan.value, content.data(), content.size());
        !s)
        return {s, {}};
    if (plan->format == VK_FORMAT_UNDEFINED)
        return {{}, {plan.value, VK_NULL_HANDLE, gpu.upload_buffer(plan->usage, content)}};
    return {{}, {plan.value, gpu.upload_texture(plan.value, content), {}}};
}

Loaded load_model(const Gpu& gpu, std::string_view config_json, vkrope::AngleSource source,
                  std::uint64_t max_position, std::vector<Step>& taken) {
    auto rope = vkrope::from_hf_config(config_json);
    taken.push_back({"model", rope.status});
    const auto table = make_table(gpu, rope.value, source,
                                  max_position != 0 ? max_position : rope->max_position);
    taken.push_back({"table", table.status});
    return {std::move(rope.value), table.value};
}

namespace {

struct Program {
    const char* name;
    std::vector<Step> (*steps)(const Gpu&, std::string_view);
    const char* config;
};

const char* const llama =
    R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
       "num_key_value_heads": 2,
    "head_dim": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096,
    "rope_theta": 10000.0})";
const char* const qwen =
    R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "num_attention_heads": 28,
       "num_key_value_heads": 4,
    "num_hidden_layers": 28, "max_position_embeddings": 128000, "rope_theta": 1000000.0,
    "vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 1280, "num_heads": 16},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})";
const char* const deepseek =
    R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_hidden_layers": 61, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "rope_theta": 10000.0, "rope_scaling": {"type": "yarn",
    "factor": 40, "beta_fast": 32,
    "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096}})";
const char* const gemma =
    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
    "num_hidden_layers": 34, "sliding_window": 1024,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})";
const char* const qwen3 =
    R"({"model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 36,
    "max_position_embeddings": 40960, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6})";

const Program programs[] = {{"qwen25vl", qwen25vl, qwen},
                            {"mla", mla, deepseek},
                            {"training", training, llama},
                            {"packed_qkv", packed_qkv, llama},
                            {"qwen3_layer", qwen3_layer, qwen3},
                            {"qwen3_layer, q8_0", qwen3_layer_q8_0, qwen3},
                            {"gemma3", gemma3, gemma}};

// Prints the failed steps and returns their number. A program without any step counts as a failure.
int walk(const Program& program, const Gpu& gpu, std::size_t& taken) {
    const std::vector<Step> steps = program.steps(gpu, program.config);
    int failures = steps.empty();
    for (const Step& step : steps) {
        if (step.status) continue;
        ++failures;
        std::fprintf(stderr, "walk: %s, step \"%s\": code %d, \"%s\"\n", program.name, step.name,
                     int(step.status.code), step.status.what);
    }
    taken += steps.size();
    return failures;
}

}  // namespace
}  // namespace walk

int main() {
    engine::Gpu device(engine::Enable::extensions);
    const VkCommandPool pool = device.make_command_pool();
    constexpr VkDeviceSize tensor_bytes = VkDeviceSize{8} << 20, index_bytes = 4096;
    std::deque<engine::Buffer> buffers;
    const auto make = [&](VkDeviceSize bytes) {
        engine::Buffer& buffer = buffers.emplace_back(
            device.make_buffer(bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true));
        std::memset(buffer.mapped, 0, bytes);
        return buffer;
    };
    const engine::Buffer q = make(tensor_bytes), k = make(tensor_bytes), cache = make(tensor_bytes);
    const engine::Buffer ids = make(index_bytes), ids64 = make(index_bytes);
    for (std::int32_t i = 0; i < std::int32_t(index_bytes / 4); ++i)
        static_cast<std::int32_t*>(ids.mapped)[i] = i;
    for (std::int64_t i = 0; i < std::int64_t(index_bytes / 8); ++i)
        static_cast<std::int64_t*>(ids64.mapped)[i] = i;

    walk::Gpu gpu;
    gpu.ref = device.ref();
    gpu.buffers = {q.whole(), k.whole(), cache.whole(), ids.whole(), ids64.whole(), ids.whole()};
    gpu.submit = [&](const std::function<vkrope::Status(VkCommandBuffer)>& record) {
        const VkCommandBuffer commands = device.begin(pool);
        const vkrope::Status recorded = record(commands);
        if (!recorded) return recorded;  // the pool frees the command buffer
        const vkrope::Boundary boundary = vkrope::boundary();
        const VkMemoryBarrier written = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                         boundary.output_access, VK_ACCESS_HOST_READ_BIT};
        vkCmdPipelineBarrier(commands, boundary.stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &written,
                             0, nullptr, 0, nullptr);
        device.submit_and_wait(commands);
        return recorded;
    };
    gpu.rotate = [&](const walk::Made& made, const vkrope::Call& call) {
        return gpu.submit([&](VkCommandBuffer commands) {
            return vkrope::record(commands, made.kernel, call, made.arena);
        });
    };
    std::vector<engine::Image> images;
    gpu.upload_texture = [&](const vkrope::AngleTableLayout& plan,
                             const std::vector<std::byte>& texels) {
        const VkCommandBuffer commands = device.begin(pool);
        engine::Table table = engine::upload_table(device, commands, plan, [&](void* staging) {
            std::memcpy(staging, texels.data(), texels.size());
        });
        device.submit_and_wait(commands);
        device.destroy(table.staging);
        return images.emplace_back(table.image).view;
    };

    gpu.upload_buffer = [&](VkBufferUsageFlags usage, const std::vector<std::byte>& content) {
        const engine::Buffer& buffer = buffers.emplace_back(
            device.make_buffer(content.size(), usage, true));
        std::memcpy(buffer.mapped, content.data(), content.size());
        return buffer.whole();
    };
    gpu.download = [&](const VkDescriptorBufferInfo& part) {
        std::vector<std::byte> content(part.range);
        for (const engine::Buffer& buffer : buffers) {
            if (buffer.handle != part.buffer) continue;
            std::memcpy(content.data(), static_cast<const std::byte*>(buffer.mapped) + part.offset,
                        part.range);
        }
        return content;
    };

    int failures = 0;
    std::size_t taken = 0;
    for (const walk::Program& program : walk::programs) failures += walk::walk(program, gpu, taken);
    for (engine::Image& image : images) device.destroy(image);
    for (engine::Buffer& buffer : buffers) device.destroy(buffer);
    vkDestroyCommandPool(device.device(), pool, nullptr);
    std::printf("walk: %zu programs of %zu steps, %d failed, %u validation messages\n",
                std::size(walk::programs), taken, failures, device.messages());
    return failures != 0 || device.messages() != 0;
}
