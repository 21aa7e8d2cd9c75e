// SPDX-License-Identifier: MIT
// Implements shader modules, pipelines and descriptors, which determine what a dispatch sees.
#include <algorithm>
#include <cstring>

#include "entry_points.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

// Checks that a capability of a module is enabled, and that the device reports it.
void check_capability(std::uint32_t capability) {
    if (capability == spv::CapabilityFloat16 && !fake().float16_enabled())
        fake().fault("vkCreateShaderModule: shaderFloat16 is not enabled");
    if (capability >= spv::CapabilityDenormPreserve &&
        capability <= spv::CapabilityRoundingModeRTZ &&
        !fake().enabled(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME))
        fake().fault("vkCreateShaderModule: VK_KHR_shader_float_controls is not enabled");
}

void check_mode(std::uint32_t mode, std::uint32_t width) {
    using namespace spv;
    const VkPhysicalDeviceFloatControlsProperties reports = fake().config.float_controls.value_or(
        VkPhysicalDeviceFloatControlsProperties{});
    const bool half = width == 16;
    const VkBool32 has =
        mode == ExecutionModeDenormPreserve
            ? (half ? reports.shaderDenormPreserveFloat16 : reports.shaderDenormPreserveFloat32)
        : mode == ExecutionModeSignedZeroInfNanPreserve
            ? (half ? reports.shaderSignedZeroInfNanPreserveFloat16
                    : reports.shaderSignedZeroInfNanPreserveFloat32)
        : mode == ExecutionModeRoundingModeRTE
            ? (half ? reports.shaderRoundingModeRTEFloat16 : reports.shaderRoundingModeRTEFloat32)
            : VK_TRUE;  // not a float control
    if (!has) fake().fault("vkCreateShaderModule: a float mode that is not offered");
}

void check_words(Words words) {
    each_instruction(
        words,
        [](spv::Op op, Words operands) {
            if (op == spv::OpCapability) check_capability(operands[0]);
            if (op == spv::OpExecutionMode && operands.size() == 3)
                check_mode(operands[1], operands[2]);
        });
}

// Returns the bindings that an instruction of a function names. Only these must be bound.
std::set<std::uint32_t> static_uses(Words words) {
    std::map<std::uint32_t, std::uint32_t> binding_of;
    std::set<std::uint32_t> uses;
    each_instruction(words, [&](spv::Op op, Words operands) {
        if (op == spv::OpDecorate && operands[1] == spv::DecorationBinding)
            binding_of[operands[0]] = operands[2];
        if (op != spv::OpLoad && op != spv::OpAccessChain && op != spv::OpInBoundsAccessChain &&
            op != spv::OpArrayLength)
            return;
        if (const auto found = binding_of.find(operands[2]); found != binding_of.end())
            uses.insert(found->second);
    });
    return uses;
}

Object shader_module_of(const VkShaderModuleCreateInfo& info) {
    Object made;
    made.words.assign(info.pCode, info.pCode + info.codeSize / sizeof *info.pCode);
    if (info.codeSize % sizeof *info.pCode != 0)
        fake().fault("vkCreateShaderModule: codeSize is not a multiple of 4");
    check_words(made.words);
    made.reads = static_uses(made.words);
    fake().keep_shader(made.words);
    return made;
}

std::uint32_t number_for(const std::vector<std::uint32_t>& words) {
    std::uint32_t number = 0;
    for (const std::uint32_t word : words) number = (number ^ word) * 0x01000193;
    return number;
}

// Returns a cache as drivers store it: VkPipelineCacheHeaderVersionOne, then a word per module.
std::vector<std::byte> stored(const Object& cache) {
    const std::uint32_t header[4] = {16 + VK_UUID_SIZE, 1, fake().config.vendor,
                                     fake().config.device_id};
    std::vector<std::byte> all(sizeof header + VK_UUID_SIZE +
                               cache.compiled.size() * sizeof(std::uint32_t));
    std::memcpy(all.data(), header, sizeof header);
    all[sizeof header] = std::byte{fake().config.pipeline_cache_uuid};
    std::byte* word = all.data() + sizeof header + VK_UUID_SIZE;
    for (const std::uint32_t number : cache.compiled) {
        std::memcpy(word, &number, sizeof number);
        word += sizeof number;
    }
    return all;
}

// A driver may crash on initial data that it has not written.
Object pipeline_cache_of(const VkPipelineCacheCreateInfo& info) {
    const auto* data = static_cast<const std::byte*>(info.pInitialData);
    const std::vector<std::byte> all(data, data + info.initialDataSize);
    fake().initial_cache_data.push_back(all);
    Object made;
    if (all.empty()) return made;
    if (!fake().cache_data.contains(all)) {
        fake().fault("vkCreatePipelineCache: data that no vkGetPipelineCacheData returned");
        return made;
    }
    for (std::size_t at = 16 + VK_UUID_SIZE; at < all.size(); at += sizeof(std::uint32_t)) {
        std::uint32_t number;
        std::memcpy(&number, all.data() + at, sizeof number);
        made.compiled.insert(number);
    }
    return made;
}

VKAPI_ATTR VkResult VKAPI_CALL get_pipeline_cache_data(VkDevice device, VkPipelineCache cache,
                                                       std::size_t* bytes, void* data) {
    constexpr const char* entry = "vkGetPipelineCacheData";
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible(entry, data != nullptr);
    if (result < 0) return result;
    check_device(device, entry);
    const Object* object = fake().find(VK_OBJECT_TYPE_PIPELINE_CACHE, cache, entry);
    const std::vector<std::byte> all = stored(object ? *object : Object{});
    if (!data) {
        *bytes = all.size();
        return VK_SUCCESS;
    }
    if (*bytes < all.size() || result == VK_INCOMPLETE) {
        *bytes = 0;
        return VK_INCOMPLETE;
    }
    fake().cache_data.insert(all);
    *bytes = all.size();
    std::memcpy(data, all.data(), all.size());
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_compute_pipelines(VkDevice device, VkPipelineCache cache,
                                                        std::uint32_t count,
                                                        const VkComputePipelineCreateInfo* infos,
                                                        const VkAllocationCallbacks* allocator,
                                                        VkPipeline* pipelines) {
    constexpr const char* entry = "vkCreateComputePipelines";
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible(entry);
    for (std::uint32_t i = 0; i < count; ++i)
        pipelines[i] = VK_NULL_HANDLE;  // the specification requires null here
    if (result != VK_SUCCESS) return result;
    check_device(device, entry);
    Object* const keeper = cache ? fake().find(VK_OBJECT_TYPE_PIPELINE_CACHE, cache, entry)
                                 : nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Object* module = fake().find(VK_OBJECT_TYPE_SHADER_MODULE, infos[i].stage.module,
                                           entry);
        fake().find(VK_OBJECT_TYPE_PIPELINE_LAYOUT, infos[i].layout, entry);
        Object object;
        if (module) object.reads = module->reads;
        if (module && keeper) keeper->compiled.insert(number_for(module->words));
        object.layout = number_of(infos[i].layout);
        object.cache = number_of(cache);
        const std::uint64_t handle = fake().create(VK_OBJECT_TYPE_PIPELINE, number_of(device),
                                                   allocator, object);
        if (handle == 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
        pipelines[i] = reinterpret_cast<VkPipeline>(std::uintptr_t(handle));
    }
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
                                            const VkAllocationCallbacks* allocator) {
    const Entered entered("vkDestroyPipeline");
    check_device(device, "vkDestroyPipeline");
    fake().destroy(VK_OBJECT_TYPE_PIPELINE, number_of(pipeline), allocator, "vkDestroyPipeline");
}

Object set_layout_of(const VkDescriptorSetLayoutCreateInfo& info) {
    Object made;
    made.bindings.assign(info.pBindings, info.pBindings + info.bindingCount);
    made.push_layout = (info.flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR) != 0;
    const auto buffers = std::count_if(
        made.bindings.begin(), made.bindings.end(), [](const auto& binding) {
            return binding.descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        });
    if (buffers > fake().config.storage_buffers)
        fake().fault("vkCreateDescriptorSetLayout: more storage buffers than offered");
    return made;
}

Object pipeline_layout_of(const VkPipelineLayoutCreateInfo& info) {
    fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, info.pSetLayouts[0],
                "vkCreatePipelineLayout");
    Object made{.layout = number_of(info.pSetLayouts[0])};
    for (std::uint32_t i = 0; i < info.pushConstantRangeCount; ++i) {
        const VkPushConstantRange& range = info.pPushConstantRanges[i];
        made.push_bytes = std::max(made.push_bytes, range.offset + range.size);
    }
    if (made.push_bytes > 128)
        fake().fault("vkCreatePipelineLayout: more push constants than offered");
    return made;
}

Object descriptor_pool_of(const VkDescriptorPoolCreateInfo& info) {
    return {.pool_sizes = {info.pPoolSizes, info.pPoolSizes + info.poolSizeCount},
            .sets_left = info.maxSets};
}

// Takes the descriptors of a layout from the pool, from any of its entries with that type.
bool take(Object& pool, const Object& layout) {
    if (pool.sets_left == 0) return false;
    --pool.sets_left;
    return std::all_of(layout.bindings.begin(), layout.bindings.end(),
                       [&](const VkDescriptorSetLayoutBinding& binding) {
                           const auto entry = std::find_if(
                               pool.pool_sizes.begin(), pool.pool_sizes.end(),
                               [&](const VkDescriptorPoolSize& size) {
                                   return size.type == binding.descriptorType &&
                                          size.descriptorCount != 0;
                               });
                           if (entry != pool.pool_sizes.end()) --entry->descriptorCount;
                           return entry != pool.pool_sizes.end();
                       });
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice device,
                                             const VkDescriptorSetAllocateInfo* info,
                                             VkDescriptorSet* sets) {
    constexpr const char* entry = "vkAllocateDescriptorSets";
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible(entry);
    for (std::uint32_t i = 0; i < info->descriptorSetCount; ++i)
        sets[i] = VK_NULL_HANDLE;  // the specification requires null here
    if (result != VK_SUCCESS) return result;
    check_device(device, entry);
    for (std::uint32_t i = 0; i < info->descriptorSetCount; ++i) {
        Object* pool = fake().find(VK_OBJECT_TYPE_DESCRIPTOR_POOL, info->descriptorPool, entry);
        const Object* layout = fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT,
                                           info->pSetLayouts[i], entry);
        if (!pool || !layout) return VK_SUCCESS;
        if (layout->push_layout)
            fake().fault("vkAllocateDescriptorSets: a layout for push descriptors");
        if (!take(*pool, *layout)) return VK_ERROR_OUT_OF_POOL_MEMORY;
        Object set;
        set.layout = number_of(info->pSetLayouts[i]);
        sets[i] = reinterpret_cast<VkDescriptorSet>(std::uintptr_t(fake().create(
            VK_OBJECT_TYPE_DESCRIPTOR_SET, number_of(info->descriptorPool), nullptr, set)));
    }
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice device, std::uint32_t count,
                                       const VkWriteDescriptorSet* writes, std::uint32_t,
                                       const VkCopyDescriptorSet*) {
    const Entered entered("vkUpdateDescriptorSets");
    check_device(device, "vkUpdateDescriptorSets");
    for (std::uint32_t i = 0; i < count; ++i) {
        Object* set = fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET, writes[i].dstSet,
                                  "vkUpdateDescriptorSets");
        if (set && set->pending) fake().fault("vkUpdateDescriptorSets: the queue is using the set");
        if (set) set->descriptors[writes[i].dstBinding] = descriptor_of(writes[i]);
    }
}

}  // namespace

Descriptor descriptor_of(const VkWriteDescriptorSet& write) {
    Descriptor descriptor{.binding = write.dstBinding, .type = write.descriptorType};
    const bool buffer = write.descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER ||
                        write.descriptorType == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    if (write.pBufferInfo && buffer) descriptor.buffer = *write.pBufferInfo;
    if (write.pImageInfo && write.descriptorType == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE)
        descriptor.image = *write.pImageInfo;
    return descriptor;
}

EntryPoints pipeline_entry_points() {
    return {
        VKROPE_CHILD(vkCreateDescriptorPool, vkDestroyDescriptorPool, DESCRIPTOR_POOL,
                     descriptor_pool_of),
        VKROPE_CHILD(vkCreateDescriptorSetLayout, vkDestroyDescriptorSetLayout,
                     DESCRIPTOR_SET_LAYOUT, set_layout_of),
        VKROPE_CHILD(vkCreatePipelineCache, vkDestroyPipelineCache, PIPELINE_CACHE,
                     pipeline_cache_of),
        VKROPE_CHILD(vkCreatePipelineLayout, vkDestroyPipelineLayout, PIPELINE_LAYOUT,
                     pipeline_layout_of),
        VKROPE_CHILD(vkCreateShaderModule, vkDestroyShaderModule, SHADER_MODULE, shader_module_of),
        {"vkAllocateDescriptorSets", entry_point(allocate_sets)},
        {"vkCreateComputePipelines", entry_point(create_compute_pipelines)},
        {"vkDestroyPipeline", entry_point(destroy_pipeline)},
        {"vkGetPipelineCacheData", entry_point(get_pipeline_cache_data)},
        {"vkUpdateDescriptorSets", entry_point(update_sets)}};
}

}  // namespace vkrope::test
