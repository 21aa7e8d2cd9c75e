// SPDX-License-Identifier: MIT
// host FOLDER MODULE TABLE TOKENS Q_HEADS K_HEADS CHANNELS Q K: rotates the files Q and K, packed
// [tokens, heads, channels], at positions from 0 on, with a module of vkrope. It links Vulkan
// alone; all that it knows of the module is in FOLDER/manifest.json.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <vulkan/vulkan_raii.hpp>

namespace {

using Stage = vk::ShaderStageFlagBits;
using Usage = vk::BufferUsageFlagBits;
using Type = vk::DescriptorType;

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// What a parser of JSON would do: the text after some words, and the values of keys in it.
std::string after(const std::string& text, const std::string& words) {
    const std::size_t at = text.find(words);
    if (at == std::string::npos) throw std::runtime_error("the manifest lacks " + words);
    return text.substr(at + words.size());
}

std::string until(const std::string& text, const char* words) {
    return text.substr(0, text.find(words));
}
std::uint32_t number(const std::string& text, const std::string& key) {
    return std::uint32_t(std::stoul(after(text, "\"" + key + "\": ")));
}

struct Gpu {
    vk::raii::Context context;
    vk::ApplicationInfo application = {"host", 1, nullptr, 0, VK_API_VERSION_1_1};
    vk::raii::Instance instance = {context, vk::InstanceCreateInfo({}, &application)};
    vk::raii::PhysicalDevice physical = std::move(vk::raii::PhysicalDevices(instance).front());
    float priority = 1;
    vk::DeviceQueueCreateInfo queues = {{}, 0, 1, &priority};
    vk::raii::Device device = {physical, vk::DeviceCreateInfo({}, queues)};
};

// A buffer that the host sees.
struct Buffer {
    Buffer(const Gpu& gpu, const std::string& content)
        : buffer(gpu.device, {{}, content.size(), Usage::eStorageBuffer | Usage::eUniformBuffer}) {
        const vk::MemoryRequirements needs = buffer.getMemoryRequirements();
        const auto types = gpu.physical.getMemoryProperties();
        std::uint32_t type = 0;  // visible to the host (2) and coherent (4)
        while (!(needs.memoryTypeBits >> type & 1) ||
               (VkFlags(types.memoryTypes[type].propertyFlags) & 6) != 6)
            ++type;
        memory = vk::raii::DeviceMemory(gpu.device, vk::MemoryAllocateInfo(needs.size, type));
        buffer.bindMemory(*memory, 0);
        mapped = static_cast<char*>(memory.mapMemory(0, VK_WHOLE_SIZE));
        std::memcpy(mapped, content.data(), content.size());
    }
    vk::raii::Buffer buffer;
    vk::raii::DeviceMemory memory = nullptr;
    char* mapped = nullptr;
};

}  // namespace

int main(int, char** args) try {
    const std::string folder = args[1], file = args[2], manifest = read(folder + "/manifest.json");
    const std::string module = until(after(manifest, '"' + file + '"'), "\"constants\"");
    const std::string q = read(args[8]), k = read(args[9]), angles = read(folder + '/' + args[3]);
    std::map<std::string, std::string> contents = {{"table", angles}, {"turns", angles}};
    contents["q_in"] = contents["q_out"] = q;
    contents["k_in"] = contents["k_out"] = k;
    contents["status"] = "none";
    const Gpu gpu;
    std::map<std::string, Buffer> buffers;
    std::vector<vk::DescriptorSetLayoutBinding> bindings;
    std::vector<vk::DescriptorBufferInfo> infos(32);  // of bindings
    std::vector<vk::WriteDescriptorSet> writes;
    for (std::string left = after(module, "\"bindings\"");
         left.find("\"binding\": ") != std::string::npos;) {
        left = after(left, "\"binding\": ");
        const auto binding = std::uint32_t(std::stoul(left));
        const std::string name = until(after(left, "\"name\": \""), "\"");
        const Type type = name == "turns" ? Type::eUniformBuffer : Type::eStorageBuffer;
        const Buffer& made = buffers.try_emplace(name, gpu, contents.at(name)).first->second;
        infos[binding] = vk::DescriptorBufferInfo(*made.buffer, 0, VK_WHOLE_SIZE);
        bindings.emplace_back(binding, type, 1, Stage::eCompute);
        writes.emplace_back(vk::DescriptorSet(), binding, 0, 1, type, nullptr, &infos[binding]);
    }

    const auto argument = [&](int i) { return std::uint32_t(std::stoul(args[i])); };
    const std::uint32_t tokens = argument(4), q_heads = argument(5), k_heads = argument(6),
                        channels = argument(7);
    std::vector<std::uint32_t> push(number(after(manifest, "\"push_constants\""), "bytes") / 4);
    const auto set = [&](const std::string& member, std::vector<std::uint32_t> words) {
        const std::string of = after(after(manifest, "\"members\""), '"' + member + "\",");
        std::copy(words.begin(), words.end(), push.begin() + number(of, "offset") / 4);
    };
    for (const char* side : {"q_in", "q_out"}) set(side, {0, q_heads * channels, channels});
    for (const char* side : {"k_in", "k_out"}) set(side, {0, k_heads * channels, channels});
    set("tokens", {tokens});
    set("heads", {q_heads | k_heads << 16});
    set("slot_rows", {1});
    for (const char* factor : {"gain", "q_scale"}) set(factor, {0x3f800000});  // 1.0
    const std::string table = after(manifest, '"' + std::string(args[3]) + '"');
    for (const auto of : {"table_rows", "table_stride", "table_texels"})
        set(of, {number(table, of)});
    const auto groups = [&](std::uint32_t count, const char* per_group) {
        const std::uint32_t by = number(module, per_group);
        return by == 0 ? 1 : (count + by - 1) / by;
    };

    const std::string code = read(folder + '/' + file);
    const vk::raii::ShaderModule shader(
        gpu.device, vk::ShaderModuleCreateInfo({}, code.size(), (const std::uint32_t*)code.data()));
    const vk::raii::DescriptorSetLayout set_layout(gpu.device, {{}, bindings});
    const vk::PushConstantRange range(Stage::eCompute, 0, std::uint32_t(4 * push.size()));
    const vk::raii::PipelineLayout layout(gpu.device, {{}, *set_layout, range});
    const vk::raii::Pipeline pipeline(gpu.device, nullptr,
                                      {{}, {{}, Stage::eCompute, *shader, "main"}, *layout});
    const vk::DescriptorPoolSize sizes[] = {{Type::eStorageBuffer, 20}, {Type::eUniformBuffer, 1}};
    const vk::raii::DescriptorPool pool(
        gpu.device, {vk::DescriptorPoolCreateFlagBits::eFreeDescriptorSet, 1, sizes});
    const vk::raii::DescriptorSets sets(gpu.device, {*pool, *set_layout});
    for (vk::WriteDescriptorSet& write : writes) write.dstSet = *sets.front();
    gpu.device.updateDescriptorSets(writes, {});
    const vk::raii::CommandPool command_pool(gpu.device, {{}, 0});
    const vk::CommandBufferAllocateInfo one(*command_pool, vk::CommandBufferLevel::ePrimary, 1);
    const auto commands = std::move(vk::raii::CommandBuffers(gpu.device, one).front());
    commands.begin({});
    commands.bindPipeline(vk::PipelineBindPoint::eCompute, *pipeline);
    commands.bindDescriptorSets(vk::PipelineBindPoint::eCompute, *layout, 0, *sets.front(), {});
    commands.pushConstants<std::uint32_t>(*layout, Stage::eCompute, 0, push);
    commands.dispatch(
        groups(tokens, "tokens_per_group"),
        std::max(groups(q_heads, "q_heads_per_group"), groups(k_heads, "k_heads_per_group")), 1);
    commands.end();
    gpu.device.getQueue(0, 0).submit(vk::SubmitInfo({}, {}, *commands));
    gpu.device.waitIdle();
    std::ofstream(args[8]).write(buffers.at("q_out").mapped, std::streamsize(q.size()));
    std::ofstream(args[9]).write(buffers.at("k_out").mapped, std::streamsize(k.size()));
} catch (const std::exception& error) {
    return std::fprintf(stderr, "host: %s\n", error.what()), 1;
}
