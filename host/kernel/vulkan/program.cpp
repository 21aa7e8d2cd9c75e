// SPDX-License-Identifier: MIT
#include "kernel/vulkan/program.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/status.hpp"

namespace vkrope {

namespace {

// Names an object, if debug_utils is enabled.
Status name_object(const Program& program, VkObjectType type, std::uint64_t handle,
                   const char* text) {
    if (!(program.device.enabled & VKROPE_DEVICE_FEATURE_DEBUG_UTILS)) return {};
    VkDebugUtilsObjectNameInfoEXT info = {};
    info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
    info.objectType = type;
    info.objectHandle = handle;
    info.pObjectName = text;
    const VkResult result = program.vk.vkSetDebugUtilsObjectNameEXT(program.device.device, &info);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkSetDebugUtilsObjectNameEXT");
}

Status create_module(const Program& program, const Spirv& words, VkShaderModule& module) {
    VkShaderModuleCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = words.count * sizeof(std::uint32_t);
    info.pCode = words.words.get();
    const VkResult result = program.vk.vkCreateShaderModule(program.device.device, &info,
                                                            program.device.allocator, &module);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkCreateShaderModule");
}

// Reads the float modes that the device supports, for each width and for both together.
void read_modes(Program& program, const InstanceFunctions& instance) {
    VkPhysicalDeviceFloatControlsProperties offered = {};
    offered.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &offered;
    instance.vkGetPhysicalDeviceProperties2(program.device.physical, &properties);
    const auto bit = [](VkBool32 has, FloatMode mode) { return has ? std::uint32_t{mode} : 0u; };
    std::uint32_t round = bit(offered.shaderRoundingModeRTEFloat16, round_to_even_16) |
                          bit(offered.shaderRoundingModeRTEFloat32, round_to_even_32);
    std::uint32_t denorm = bit(offered.shaderDenormPreserveFloat16, denorm_preserve_16) |
                           bit(offered.shaderDenormPreserveFloat32, denorm_preserve_32);
    const std::uint32_t keep =
        bit(offered.shaderSignedZeroInfNanPreserveFloat16, keep_zero_inf_nan_16) |
        bit(offered.shaderSignedZeroInfNanPreserveFloat32, keep_zero_inf_nan_32);
    // A software device already computes like its CPU, and with these modes SwiftShader takes 18
    // times as long.
    if (!program.cpu_device)
        program.modes = (round | denorm | keep) &
                        (round_to_even_32 | denorm_preserve_32 | keep_zero_inf_nan_32);
    // If the widths are not independent, a mode is declared for both or for none.
    if (offered.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
        round != (round_to_even_16 | round_to_even_32))
        round = 0;
    if (offered.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
        denorm != (denorm_preserve_16 | denorm_preserve_32))
        denorm = 0;
    const bool rounds = (round & round_to_even_16) && (keep & keep_zero_inf_nan_16);
    if (rounds && (program.device.enabled & VKROPE_DEVICE_FEATURE_SHADER_FLOAT16))
        program.float16_modes = round | denorm | keep;
}

// Sets the limits of devices with 64 registers or fewer. A lane with several heads keeps the words
// of two heads at a time in registers, which spilled on Mali, and so did norms and transforms of
// units of 16 bytes; on VideoCore computed angles and bf16 did. The numbers are PCI vendor ids.
void limit_registers(std::uint32_t vendor, DispatchLimits& limits) {
    constexpr std::uint32_t arm = 0x13b5, broadcom = 0x14e4, imagination = 0x1010;
    if (vendor != arm && vendor != broadcom && vendor != imagination) return;
    limits.batch = 1;
    limits.ops_access = shader::access_pair;
    if (vendor == broadcom) limits.access = shader::access_pair;
}

}  // namespace

Status check(const DeviceRef& device) noexcept {
    if (!device.instance) return error(VKROPE_ERROR_INVALID_ARGUMENT, "device.instance is null");
    if (!device.physical) return error(VKROPE_ERROR_INVALID_ARGUMENT, "device.physical is null");
    if (!device.device) return error(VKROPE_ERROR_INVALID_ARGUMENT, "device.device is null");
    if (!device.get_instance_proc_addr)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "device.get_instance_proc_addr is null");
    if (device.enabled &
        ~std::uint32_t{VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR | VKROPE_DEVICE_FEATURE_DEBUG_UTILS |
                       VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS |
                       VKROPE_DEVICE_FEATURE_SHADER_FLOAT16}) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "device.enabled is 0x%x: it must hold only bits of vkrope_device_features",
                     device.enabled);
    }
    return {};
}

Status borrow(Program& program, const DeviceRef& device) {
    const Result<InstanceFunctions> instance = InstanceFunctions::load(
        device.instance, device.get_instance_proc_addr);
    if (!instance) return instance.status;
    const Result<DeviceFunctions> functions = DeviceFunctions::load(device, instance.value);
    if (!functions) return functions.status;
    VkPhysicalDeviceProperties properties = {};
    instance->vkGetPhysicalDeviceProperties(device.physical, &properties);
    const VkPhysicalDeviceLimits& limits = properties.limits;
    program.device = device;
    program.vk = functions.value;
    std::memcpy(program.dispatch_limits.workgroup_count, limits.maxComputeWorkGroupCount,
                sizeof limits.maxComputeWorkGroupCount);
    program.dispatch_limits.workgroup_invocations = std::min(limits.maxComputeWorkGroupInvocations,
                                                             limits.maxComputeWorkGroupSize[0]);
    limit_registers(properties.vendorID, program.dispatch_limits);
    program.storage_limits = {limits.minStorageBufferOffsetAlignment, limits.maxStorageBufferRange,
                              limits.minUniformBufferOffsetAlignment, limits.maxUniformBufferRange};
    program.max_storage_buffers = limits.maxPerStageDescriptorStorageBuffers;
    program.cpu_device = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (device.enabled & VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS) read_modes(program, instance.value);
    return {};
}

namespace {

BindingList storage_list(std::initializer_list<std::uint32_t> numbers) noexcept {
    BindingList list;
    for (const std::uint32_t number : numbers)
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    return list;
}

// These functions return bindings without angles: for Q, K and V, for Q and K, or for one tensor.
BindingList bindings_of_three() noexcept {
    return storage_list({shader::binding_q_in, shader::binding_q_out, shader::binding_k_in,
                         shader::binding_k_out, shader::binding_v_in, shader::binding_v_out,
                         shader::binding_ids, shader::binding_slot_mapping,
                         shader::binding_out_of_range});
}
BindingList bindings_of_two() noexcept {
    return storage_list({shader::binding_q_in, shader::binding_q_out, shader::binding_k_in,
                         shader::binding_k_out, shader::binding_ids, shader::binding_slot_mapping,
                         shader::binding_out_of_range});
}
BindingList bindings_of_one() noexcept {
    return storage_list({shader::binding_q_in, shader::binding_q_out, shader::binding_ids,
                         shader::binding_out_of_range});
}

// Returns all bindings of all kernels without ops.
BindingList bindings_of_rotations() noexcept {
    BindingList list = bindings_of_three();
    for (const std::uint32_t number :
         {shader::binding_table, shader::binding_table_sin, shader::binding_token_count})
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    list.add({shader::binding_turns, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER});
    list.add({shader::binding_texture, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE});
    return list;
}

// Returns all bindings of all kernels without computed scales and second destinations.
BindingList bindings_without_scales() noexcept {
    BindingList list = bindings_of_rotations();
    for (const std::uint32_t number : {shader::binding_parameters, shader::binding_q_scales,
                                       shader::binding_k_scales, shader::binding_v_scales})
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    return list;
}

// Returns all bindings of all kernels without second destinations and bound weights.
BindingList bindings_without_seconds() noexcept {
    BindingList list = bindings_without_scales();
    for (const std::uint32_t number :
         {shader::binding_q_scales_out, shader::binding_k_scales_out, shader::binding_v_scales_out})
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    return list;
}

// Returns all bindings of all kernels whose weights are parameters.
BindingList bindings_without_weights() noexcept {
    BindingList list = bindings_without_seconds();
    for (const std::uint32_t number : {shader::binding_k_second, shader::binding_v_second})
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    return list;
}

}  // namespace

BindingList every_binding() noexcept {
    BindingList list = bindings_without_weights();
    for (const std::uint32_t number :
         {shader::binding_q_weight, shader::binding_k_weight, shader::binding_v_weight})
        list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
    return list;
}

Status create_set_layout(const Program& program, VkDescriptorSetLayout& layout) {
    VkDescriptorSetLayoutBinding bindings[BindingList::most] = {};
    std::uint32_t count = 0;
    for (const Binding& binding : program.layout_binds) {
        VkDescriptorSetLayoutBinding& made = bindings[count++];
        made.binding = binding.number;
        made.descriptorType = binding.type;
        made.descriptorCount = 1;
        made.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    if (program.device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)
        info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    info.bindingCount = count;
    info.pBindings = bindings;
    const VkResult result = program.vk.vkCreateDescriptorSetLayout(
        program.device.device, &info, program.device.allocator, &layout);
    return created(result, layout, "vkCreateDescriptorSetLayout");
}

Status create_layouts(Program& program, std::uint32_t push_bytes) {
    const bool pushed = program.device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR;
    // The more bindings a layout has, the more kernels can share an arena: all kernels, those
    // without bound weights, those without second destinations either, those that store no scales
    // either, those without ops, or those without ops that have the same angle source.
    program.layout_binds = program.binds;
    for (const BindingList& shared :
         {every_binding(), bindings_without_weights(), bindings_without_seconds(),
          bindings_without_scales(), bindings_of_rotations(), bindings_of_three(),
          bindings_of_two(), bindings_of_one()}) {
        BindingList list = shared;
        for (const Binding& binding : program.binds) list.add(binding);
        if (pushed || list.storage_buffers() > program.max_storage_buffers) continue;
        program.layout_binds = list;
        break;
    }
    if (Status s = create_set_layout(program, program.set_layout); !s) return s;
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
    VkPipelineLayoutCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &program.set_layout;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &range;
    const VkResult result = program.vk.vkCreatePipelineLayout(
        program.device.device, &info, program.device.allocator, &program.layout);
    if (Status s = created(result, program.layout, "vkCreatePipelineLayout"); !s) return s;
    return name_object(program, VK_OBJECT_TYPE_PIPELINE_LAYOUT, (std::uint64_t)program.layout,
                       "vkrope");
}

Status create_pipeline(const Program& program, const Spirv& words, const char* name,
                       VkPipeline& pipeline) {
    VkShaderModule module = VK_NULL_HANDLE;
    if (Status s = create_module(program, words, module); !s) return s;
    VkComputePipelineCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = program.layout;
    const VkResult result = program.vk.vkCreateComputePipelines(
        program.device.device, program.device.pipeline_cache, 1, &info, program.device.allocator,
        &pipeline);
    program.vk.vkDestroyShaderModule(program.device.device, module, program.device.allocator);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkCreateComputePipelines");
    return name_object(program, VK_OBJECT_TYPE_PIPELINE, (std::uint64_t)pipeline, name);
}

void destroy_layouts(Program& program) noexcept {
    program.vk.vkDestroyPipelineLayout(program.device.device, program.layout,
                                       program.device.allocator);
    program.vk.vkDestroyDescriptorSetLayout(program.device.device, program.set_layout,
                                            program.device.allocator);
}

void begin_label(VkCommandBuffer commands, const Program& program) noexcept {
    if (!(program.device.enabled & VKROPE_DEVICE_FEATURE_DEBUG_UTILS)) return;
    VkDebugUtilsLabelEXT label = {};
    label.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT;
    label.pLabelName = "vkrope";
    program.vk.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
}

void end_label(VkCommandBuffer commands, const Program& program) noexcept {
    if (program.device.enabled & VKROPE_DEVICE_FEATURE_DEBUG_UTILS)
        program.vk.vkCmdEndDebugUtilsLabelEXT(commands);
}

void record_barrier(VkCommandBuffer commands, const Program& program) noexcept {
    constexpr Boundary at = call_boundary;
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = at.output_access;
    barrier.dstAccessMask = at.in_place_access;
    program.vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0, nullptr, 0,
                                    nullptr);
}

void dispatch(VkCommandBuffer commands, const Program& program, VkPipeline pipeline,
              const void* push, std::uint32_t push_bytes, const DispatchShape& shape) noexcept {
    program.vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    program.vk.vkCmdPushConstants(commands, program.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                  push_bytes, push);
    program.vk.vkCmdDispatch(commands, shape.groups[0], shape.groups[1], shape.groups[2]);
}

}  // namespace vkrope
