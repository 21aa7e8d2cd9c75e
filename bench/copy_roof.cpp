// SPDX-License-Identifier: MIT
#include "copy_roof.hpp"

#include <algorithm>
#include <array>

#include "kernel/functions.hpp"
#include "kernel/spirv.hpp"
#include "runtime/device_impl.hpp"
#include "status.hpp"

namespace vkrope::bench {

namespace {

constexpr std::uint8_t packed[] = {
#include "copy.inc"
};

struct Shader {
    const char* name;
    std::uint32_t items, consecutive;
};
constexpr std::array<Shader, 5> shaders = {{{"16 bytes an invocation", 1, 0},
                                            {"4 x 16 bytes a workgroup apart", 4, 0},
                                            {"16 x 16 bytes a workgroup apart", 16, 0},
                                            {"4 x 16 bytes side by side", 4, 1},
                                            {"16 x 16 bytes side by side", 16, 1}}};

constexpr std::uint32_t vector_bytes = 16;

}  // namespace

struct CopyRoof::Impl {
    struct Copy {
        VkDescriptorBufferInfo from, to;
        VkDescriptorSet set = VK_NULL_HANDLE;
    };
    Device::Impl* device = nullptr;
    DeviceFunctions vk;
    std::uint32_t workgroup_size = 0;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    std::array<VkPipeline, shaders.size()> pipelines = {};
    std::vector<Copy> copies;
    std::array<std::vector<double>, shaders.size()> times_ns;

    ~Impl();
    Status create();
    Status create_layouts();
    Status create_pipelines();
    Status create_sets();
    void record(VkCommandBuffer commands, std::size_t shader) const;
    double median_ns(std::size_t shader) const;
    std::size_t best() const;
};

CopyRoof::CopyRoof() noexcept = default;
CopyRoof::~CopyRoof() = default;
CopyRoof::CopyRoof(CopyRoof&&) noexcept = default;
CopyRoof& CopyRoof::operator=(CopyRoof&&) noexcept = default;

Result<CopyRoof> CopyRoof::make(Device& device, const HostRotation::Buffers& buffers) {
    Result<CopyRoof> made;
    made->impl_ = std::make_unique<Impl>();
    Impl& impl = *made->impl_;
    impl.device = &device.impl();
    for (const auto& [from, to] : {std::pair{buffers.q_in, buffers.q_out}, {buffers.k_in, buffers.k_out}}) {
        if (from.buffer == VK_NULL_HANDLE) continue;
        if (from.buffer == to.buffer) return {error(Code::invalid_argument, "buffers: a copy needs them apart, not in place"), {}};
        impl.copies.push_back({from, to});
    }
    made.status = impl.copies.empty() ? error(Code::invalid_argument, "buffers: there is nothing to copy") : impl.create();
    return made;
}

Status CopyRoof::Impl::create() {
    const DeviceRef& ref = device->ref;
    const Result<InstanceFunctions> instance = InstanceFunctions::load(ref.instance, ref.get_instance_proc_addr);
    if (!instance) return instance.status;
    const Result<DeviceFunctions> functions = DeviceFunctions::load(ref, instance.value);
    if (!functions) return functions.status;
    vk = functions.value;
    workgroup_size = std::min(device->candidate.info.limits.maxComputeWorkGroupInvocations, 256u);
    if (Status s = create_layouts(); !s) return s;
    if (Status s = create_pipelines(); !s) return s;
    return create_sets();
}

Status CopyRoof::Impl::create_layouts() {
    VkDescriptorSetLayoutBinding bindings[2] = {};
    for (std::uint32_t i = 0; i < 2; ++i)
        bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set_info = {};
    set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set_info.bindingCount = 2;
    set_info.pBindings = bindings;
    VkResult result = vk.vkCreateDescriptorSetLayout(device->ref.device, &set_info, nullptr, &set_layout);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkCreateDescriptorSetLayout");
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(std::uint32_t)};
    VkPipelineLayoutCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &set_layout;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &range;
    result = vk.vkCreatePipelineLayout(device->ref.device, &info, nullptr, &layout);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkCreatePipelineLayout");
}

Status CopyRoof::Impl::create_pipelines() {
    const Result<Spirv> words = unpack(packed, sizeof packed);
    if (!words) return words.status;
    VkShaderModuleCreateInfo module_info = {};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = words->count * sizeof(std::uint32_t);
    module_info.pCode = words->words.get();
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = vk.vkCreateShaderModule(device->ref.device, &module_info, nullptr, &module);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkCreateShaderModule");
    const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
    for (std::size_t i = 0; i < shaders.size() && result == VK_SUCCESS; ++i) {
        const std::uint32_t values[] = {workgroup_size, shaders[i].items, shaders[i].consecutive};
        const VkSpecializationInfo constants = {3, entries, sizeof values, values};
        VkComputePipelineCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
        info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        info.stage.module = module;
        info.stage.pName = "main";
        info.stage.pSpecializationInfo = &constants;
        info.layout = layout;
        result = vk.vkCreateComputePipelines(device->ref.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipelines[i]);
    }
    vk.vkDestroyShaderModule(device->ref.device, module, nullptr);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkCreateComputePipelines");
}

Status CopyRoof::Impl::create_sets() {
    const auto count = std::uint32_t(copies.size());
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * count};
    VkDescriptorPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool_info.maxSets = count;
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &size;
    VkResult result = vk.vkCreateDescriptorPool(device->ref.device, &pool_info, nullptr, &pool);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkCreateDescriptorPool");
    for (Copy& copy : copies) {
        VkDescriptorSetAllocateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
        info.descriptorPool = pool;
        info.descriptorSetCount = 1;
        info.pSetLayouts = &set_layout;
        result = vk.vkAllocateDescriptorSets(device->ref.device, &info, &copy.set);
        if (result != VK_SUCCESS) return vulkan_error(result, "vkAllocateDescriptorSets");
        const VkDescriptorBufferInfo buffers[] = {copy.from, copy.to};
        VkWriteDescriptorSet write = {};
        write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        write.dstSet = copy.set;
        write.descriptorCount = 2;  // both bindings, one after the other
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = buffers;
        vk.vkUpdateDescriptorSets(device->ref.device, 1, &write, 0, nullptr);
    }
    return {};
}

CopyRoof::Impl::~Impl() {
    const VkDevice handle = device->ref.device;
    if (!vk.vkDestroyPipeline || device->pending) return;  // a queue that never answered may still use them
    for (VkPipeline pipeline : pipelines) vk.vkDestroyPipeline(handle, pipeline, nullptr);
    vk.vkDestroyDescriptorPool(handle, pool, nullptr);
    vk.vkDestroyPipelineLayout(handle, layout, nullptr);
    vk.vkDestroyDescriptorSetLayout(handle, set_layout, nullptr);
}

void CopyRoof::Impl::record(VkCommandBuffer commands, std::size_t shader) const {
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[shader]);
    const std::uint32_t most = device->candidate.info.limits.maxComputeWorkGroupCount[0];
    for (const Copy& copy : copies) {
        const auto vectors = std::uint32_t(copy.from.range / vector_bytes);
        const std::uint32_t per_group = workgroup_size * shaders[shader].items;
        const std::uint32_t groups = vectors / per_group + (vectors % per_group != 0);
        const std::uint32_t x = std::clamp(groups, 1u, most);
        vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &copy.set, 0, nullptr);
        vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof vectors, &vectors);
        vk.vkCmdDispatch(commands, x, groups / x + (groups % x != 0), 1);
    }
}

Status CopyRoof::round() {
    for (std::size_t i = 0; i < shaders.size(); ++i) {
        const auto ns = impl_->device->submit([&](VkCommandBuffer commands) {
            impl_->record(commands, i);
            return Status{};
        });
        if (!ns) return ns.status;
        if (!ns.value) return error(Code::not_supported, "%s has no timestamps", impl_->device->candidate.info.name.c_str());
        impl_->times_ns[i].push_back(*ns.value);
    }
    return {};
}

double CopyRoof::Impl::median_ns(std::size_t shader) const {
    std::vector<double> sorted = times_ns[shader];
    if (sorted.empty()) return 0;
    std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
}

std::size_t CopyRoof::Impl::best() const {
    std::size_t fastest = 0;
    for (std::size_t i = 1; i < shaders.size(); ++i) {
        if (median_ns(i) < median_ns(fastest)) fastest = i;
    }
    return fastest;
}

double CopyRoof::best_ns() const {
    return impl_->median_ns(impl_->best());
}
std::string CopyRoof::best_name() const {
    return shaders[impl_->best()].name;
}

}  // namespace vkrope::bench
