// SPDX-License-Identifier: MIT
// Which steps of each program succeed with this version, and which field is named where one is "not supported yet": no other error,
// no crash, no wrong success.
#include <cstdio>
#include <cstring>
#include <deque>

#include "../engine/gpu.hpp"
#include "../engine/table.hpp"
#include "walk.hpp"

namespace walk {

Made::Made(const vkrope::DeviceRef& device, const vkrope::KernelInfo& info) {
    const auto created = vkrope::create(device, info);
    status = created.status;
    kernel = created.value;
    if (!kernel || (device.enabled & vkrope::push_descriptor)) return;
    const auto sets = vkrope::create_arena(kernel, 8);
    status = sets.status;
    arena = sets.value;
}

Made::~Made() {
    vkrope::destroy(arena);
    vkrope::destroy(kernel);
}

vkrope::Result<Table> make_table(const Gpu& gpu, const vkrope::Rotation& rope, vkrope::AngleSource source,
                                 std::uint64_t max_position) {
    const auto plan = vkrope::plan_angles(rope, source, max_position, 4096);
    if (!plan) return {plan.status, {}};
    std::vector<std::byte> texels(plan->bytes);
    if (vkrope::Status s = vkrope::fill_angles(rope, plan.value, texels.data(), texels.size()); !s) return {s, {}};
    return {{}, {plan.value, gpu.upload_texture(plan.value, texels)}};
}

vkrope::Rotation plain_rotation(std::uint32_t head_dim, std::uint32_t rotary_dim) {
    vkrope::Rotation rotation = engine::plain_rotation(rotary_dim);
    rotation.head_dim = head_dim;
    return rotation;
}

namespace {

// A step that must succeed has no field.
struct Expected {
    const char* step;
    const char* lacks = nullptr;  // the field that `what` names
};

struct Program {
    const char* name;
    std::vector<Step> (*steps)(const Gpu&, std::string_view);
    const char* config;
    std::vector<Expected> expected;
};

const char* const llama = R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 10000.0})";
const char* const qwen = R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
    "num_hidden_layers": 28, "max_position_embeddings": 128000, "rope_theta": 1000000.0,
    "vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 1280, "num_heads": 16},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})";
const char* const deepseek = R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_hidden_layers": 61, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "rope_theta": 10000.0, "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32,
    "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}})";
const char* const gemma = R"({"model_type": "gemma3_text", "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "layer_types": ["sliding_attention", "full_attention"]})";

const Program programs[] = {
    {"paged_decode", paged_decode::steps, llama, {{"model"}, {"table", "source"}, {"direct table"}, {"kernel"}, {"layer"}}},
    {"qwen25vl",
     qwen25vl::steps,
     qwen,
     {{"text"},
      {"vision"},
      {"direct table"},
      {"text kernel"},
      {"vision kernel", "angles"},
      {"text kernel of one axis"},
      {"prefill"},
      {"decode"}}},
    {"mla",
     mla::steps,
     deepseek,
     {{"model"}, {"direct table"}, {"computed angles", "angles"}, {"kernel"}, {"layer"}, {"window kernel"}, {"expand"}}},
    {"training",
     training::steps,
     llama,
     {{"model"},
      {"factored angles", "angles"},
      {"direct table"},
      {"forward kernel"},
      {"backward kernel"},
      {"forward, int64 ids"},
      {"forward, int32 ids"},
      {"backward, int64 ids"},
      {"backward, int32 ids"}}},
    {"layer_types",
     layer_types::steps,
     gemma,
     {{"model"}, {"tables", "source"}, {"direct tables"}, {"kernel"}, {"rotate"}, {"rotate"}, {"shift"}}},
};

bool as_expected(const Step& step, const Expected& expected) {
    if (std::strcmp(step.name, expected.step) != 0) return false;
    if (!expected.lacks) return bool(step.status);
    // The sentence begins with the field.
    const std::size_t length = std::strlen(expected.lacks);
    return step.status.code == vkrope::Code::not_supported && std::strncmp(step.status.what, expected.lacks, length) == 0 &&
           (step.status.what[length] == ' ' || step.status.what[length] == ':');
}

// Steps that did not end as expected, each said.
int walk(const Program& program, const Gpu& gpu) {
    const std::vector<Step> taken = program.steps(gpu, program.config);
    int failures = taken.size() != program.expected.size();
    if (failures)
        std::fprintf(stderr, "walk: %s: %zu steps, %zu were expected\n", program.name, taken.size(), program.expected.size());
    for (std::size_t i = 0; i < taken.size() && i < program.expected.size(); ++i) {
        const Expected& expected = program.expected[i];
        if (as_expected(taken[i], expected)) continue;
        ++failures;
        std::fprintf(stderr, "walk: %s, step \"%s\": code %d, \"%s\"; expected: step \"%s\", %s%s\n", program.name, taken[i].name,
                     int(taken[i].status.code), taken[i].status.what, expected.step, expected.lacks ? "not supported: " : "success",
                     expected.lacks ? expected.lacks : "");
    }
    return failures;
}

}  // namespace
}  // namespace walk

int main() {
    engine::Gpu device(true);
    const VkCommandPool pool = device.make_command_pool();
    constexpr VkDeviceSize tensor_bytes = VkDeviceSize{8} << 20, index_bytes = 4096;
    std::deque<engine::Buffer> buffers;
    const auto make = [&](VkDeviceSize bytes) {
        engine::Buffer& buffer = buffers.emplace_back(device.make_buffer(bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true));
        std::memset(buffer.mapped, 0, bytes);
        return buffer;
    };
    const engine::Buffer q = make(tensor_bytes), k = make(tensor_bytes), cache = make(tensor_bytes);
    const engine::Buffer ids = make(index_bytes), ids64 = make(index_bytes);
    for (std::int32_t i = 0; i < std::int32_t(index_bytes / 4); ++i) static_cast<std::int32_t*>(ids.mapped)[i] = i;
    for (std::int64_t i = 0; i < std::int64_t(index_bytes / 8); ++i) static_cast<std::int64_t*>(ids64.mapped)[i] = i;

    walk::Gpu gpu;
    gpu.ref = device.ref();
    gpu.buffers = {q.whole(), k.whole(), cache.whole(), ids.whole(), ids64.whole(), ids.whole()};
    gpu.run = [&](const std::function<vkrope::Status(VkCommandBuffer)>& record) {
        const VkCommandBuffer commands = device.begin(pool);
        const vkrope::Status recorded = record(commands);
        if (recorded) device.submit_and_wait(commands);  // else it is left to the pool
        return recorded;
    };
    std::vector<engine::Image> images;
    gpu.upload_texture = [&](const vkrope::AnglePlan& plan, const std::vector<std::byte>& texels) {
        const VkCommandBuffer commands = device.begin(pool);
        engine::Table table = engine::upload_table(device, commands, plan,
                                                   [&](void* staging) { std::memcpy(staging, texels.data(), texels.size()); });
        device.submit_and_wait(commands);
        device.destroy(table.staging);
        return images.emplace_back(table.image).view;
    };

    int failures = 0;
    for (const walk::Program& program : walk::programs) failures += walk::walk(program, gpu);
    for (engine::Image& image : images) device.destroy(image);
    for (engine::Buffer& buffer : buffers) device.destroy(buffer);
    vkDestroyCommandPool(device.device(), pool, nullptr);
    std::printf("walk: 5 programs, %d steps not as expected, %u validation messages\n", failures, device.messages());
    return failures != 0 || device.messages() != 0;
}
