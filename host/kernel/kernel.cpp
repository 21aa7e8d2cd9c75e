// SPDX-License-Identifier: MIT
// requirements() and create(): everything that happens before the first call is recorded.
#include <cstring>
#include <memory>
#include <new>

#include "kernel/kernel_object.hpp"
#include "kernel/validate.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

constexpr std::uint32_t lowest_api_version = VK_API_VERSION_1_1;

const char* access_name(std::uint32_t access) {
    return access == shader::access_wide   ? "vkrope, 16-byte access"
           : access == shader::access_word ? "vkrope, word access"
                                           : "vkrope, narrow access";
}

std::uint32_t angles_of(const KernelInfo& info) {
    switch (info.angles) {
        case AngleSource::direct_texture: return shader::angles_texture;
        case AngleSource::computed: return shader::angles_computed;
        case AngleSource::direct_buffer: return shader::angles_pairs;
        case AngleSource::caller_buffer: return shader::angles_apart + std::uint32_t(info.table);
        default: return shader::angles_factored;
    }
}

struct Constants {
    std::uint32_t values[shader::constant_count];
};

// `info`: of the part that the pipeline is for.
Constants constants_of(const Kernel& kernel, const KernelInfo& info, const Variant& variant) {
    Constants constants = {};
    std::uint32_t* value = constants.values;
    value[shader::constant_workgroup_size] = variant.workgroup_size;
    value[shader::constant_pairing] = std::uint32_t(info.pairing);
    value[shader::constant_rotary_dim] = info.rotary_dim;
    value[shader::constant_positions] =
        info.positions == PositionSource::implicit ? shader::positions_implicit : shader::positions_ids;
    value[shader::constant_access] = variant.access;
    value[shader::constant_unit_elements] = variant.unit_elements;
    value[shader::constant_heads_batch] = variant.heads_batch;
    value[shader::constant_heads_owned] = variant.heads_owned;
    value[shader::constant_units_owned] = variant.units_owned;
    const auto width = [&](std::uint32_t first, const Width& of) {
        value[first] = of.head_dim;
        value[first + 1] = of.rotary_offset;
        value[first + 2] = std::uint32_t(of.in);
        value[first + 3] = std::uint32_t(of.out);
    };
    static_assert(shader::constant_first_out == shader::constant_first_head_dim + 3);
    static_assert(shader::constant_second_out == shader::constant_second_head_dim + 3);
    value[shader::constant_pairing_out] = std::uint32_t(info.pairing_out.value_or(info.pairing));
    value[shader::constant_scatter] = info.scatter_k;
    static_assert(shader::most_windows == max_windows);
    value[shader::constant_angles] = angles_of(info);
    value[shader::constant_tensors] = kernel.lean ? 1 : 2;
    value[shader::constant_counter] = kernel.module->counts;
    value[shader::constant_conversion] = kernel.conversion;
    value[shader::constant_axes] = info.sections.axes;
    value[shader::constant_section_order] = std::uint32_t(info.sections.order);
    value[shader::constant_leftover_axis] = info.sections.leftover_axis;
    static_assert(shader::most_axes == max_axes);
    for (std::uint32_t i = 0; i < max_axes; ++i) value[shader::constant_sections + i] = info.sections.pairs[i];
    const Windows windows = windows_of(info);
    for (std::uint32_t i = 0; i < max_windows; ++i) {
        value[shader::constant_window_dim + i] = windows.of[i].rotary_dim;
        value[shader::constant_window_at + i] = windows.of[i].offset;
    }
    width(shader::constant_first_head_dim, info.q);
    width(shader::constant_second_head_dim, info.k);
    return constants;
}

// The variants that record() may want for one part: each kind of access that the widths allow, with four heads and with one. A lean
// part leaves out four: Q's and K's pipelines share the room.
void choose_variants(Kernel& kernel, Part& part, bool cpu) {
    part.first_pipeline = kernel.pipeline_count;
    const bool words_are_elements = unit_elements(part.info, shader::access_word) == 1;  // f32 throughout: nothing is narrower
    for (const std::uint32_t access : {shader::access_wide, shader::access_word, shader::access_narrow}) {
        if (!widths_allow(part.info, access) || (access == shader::access_narrow && words_are_elements)) continue;
        for (const bool many_heads : {true, false}) {
            if (many_heads && (cpu || kernel.lean)) continue;
            kernel.pipelines[kernel.pipeline_count++].variant =
                variant_for(part.info, cpu, access, many_heads, kernel.dispatch_limits);
        }
    }
    part.pipeline_count = kernel.pipeline_count - part.first_pipeline;
}

// Q and K in one part, or each in its own; K's part is Q's where their widths are the same.
void make_parts(Kernel& kernel, bool cpu) {
    kernel.q.info = kernel.k.info = kernel.info;
    if (!kernel.lean) return choose_variants(kernel, kernel.q, cpu);
    kernel.q.info.k = {};
    kernel.k.info.q = kernel.info.k;
    kernel.k.info.k = {};
    if (kernel.info.q.head_dim != 0) choose_variants(kernel, kernel.q, cpu);
    if (kernel.info.k.head_dim == 0) return;
    if (kernel.info.q.head_dim != 0 && kernel.info.q == kernel.info.k) {
        kernel.k = kernel.q;
    } else {
        choose_variants(kernel, kernel.k, cpu);
    }
}

Status create_pipelines(Kernel& kernel) {
    const Result<Spirv> words = unpack(kernel.module->packed, kernel.module->packed_bytes);
    if (!words) return words.status;
    for (std::uint32_t i = 0; i < kernel.pipeline_count; ++i) {
        const bool of_k = kernel.lean && i >= kernel.k.first_pipeline && kernel.k.pipeline_count != 0;
        Pipeline& pipeline = kernel.pipelines[i];
        const Constants constants = constants_of(kernel, of_k ? kernel.k.info : kernel.q.info, pipeline.variant);
        const std::uint32_t modes = kernel.conversion == shader::conversion_integer ? kernel.modes : kernel.float16_modes;
        const Status made = create_pipeline(kernel, words.value, constants.values, shader::constant_count, modes,
                                            access_name(pipeline.variant.access), pipeline.handle);
        if (!made) return made;
    }
    return {};
}

bool has_f16(const Width& width) {
    return width.head_dim != 0 && (width.in == Element::f16 || width.out == Element::f16);
}

Status choose_conversion(Kernel& kernel) {
    const bool possible = kernel.float16_modes != 0;
    if (kernel.info.conversion == Conversion::native && !possible) {
        return error(Code::not_supported,
                     "conversion is native: it needs Enabled::float_controls and shader_float16, and a device with "
                     "shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16");
    }
    const bool by_itself = kernel.info.conversion == Conversion::by_device && possible && !kernel.cpu_device;
    if ((kernel.info.conversion != Conversion::native && !by_itself) || !(has_f16(kernel.info.q) || has_f16(kernel.info.k)))
        return {};
    kernel.conversion = kernel.float16_modes & denorm_preserve_16 ? shader::conversion_native : shader::conversion_normals;
    return {};
}

Status build(Kernel& kernel) {
    if (Status s = choose_conversion(kernel); !s) return s;
    kernel.module = &wide_module(kernel.info.angles);
    kernel.lean = kernel.module->binds.storage_buffers > kernel.max_storage_buffers;
    if (kernel.lean) {
        const Module* lean = kernel.info.scatter_k ? nullptr : lean_module(kernel.info.angles);
        if (!lean) {
            return error(Code::limit_exceeded,
                         "%s: vkrope then binds %u storage buffers, the device allows %u (maxPerStageDescriptorStorageBuffers)",
                         kernel.info.scatter_k ? "scatter_k" : "angles", kernel.module->binds.storage_buffers,
                         kernel.max_storage_buffers);
        }
        kernel.module = lean;
    }
    const std::uint64_t turns = shader::turn_bytes(kernel.info.rotary_dim / 2);
    if (kernel.info.angles == AngleSource::computed && turns > kernel.storage_limits.uniform_range) {
        return error(Code::limit_exceeded,
                     "angles: computed for rotary_dim %u takes a uniform buffer of %llu bytes, the device allows %llu "
                     "(maxUniformBufferRange)",
                     kernel.info.rotary_dim, static_cast<unsigned long long>(turns),
                     static_cast<unsigned long long>(kernel.storage_limits.uniform_range));
    }
    make_parts(kernel, kernel.info.mapping == Mapping::cpu || (kernel.info.mapping == Mapping::by_device && kernel.cpu_device));
    if (Status s = create_layouts(kernel, sizeof(shader::Push)); !s) return s;
    return create_pipelines(kernel);
}

}  // namespace

Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical,
                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
    if (!instance || !physical || !get_instance_proc_addr) {
        return {error(Code::invalid_argument, "instance, physical and get_instance_proc_addr must not be null"), {}};
    }
    const Result<InstanceFunctions> vk = InstanceFunctions::load(instance, get_instance_proc_addr);
    if (!vk) return {vk.status, {}};
    Requirements needs{.api_version = lowest_api_version};
    VkPhysicalDeviceProperties properties = {};
    vk->vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < lowest_api_version) {
        return {error(Code::not_supported, "%s offers Vulkan %u.%u: vkrope needs 1.1", properties.deviceName,
                      VK_API_VERSION_MAJOR(properties.apiVersion), VK_API_VERSION_MINOR(properties.apiVersion)),
                {}};
    }
    std::uint32_t count = 0;
    VkResult result = vk->vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) return {vulkan_error(result, "vkEnumerateDeviceExtensionProperties"), {}};
    const std::unique_ptr<VkExtensionProperties[]> offered(new (std::nothrow) VkExtensionProperties[count]);
    if (!offered) return {error(Code::out_of_host_memory, "no memory for the names of %u extensions", count), {}};
    result = vk->vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, offered.get());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return {vulkan_error(result, "vkEnumerateDeviceExtensionProperties"), {}};
    const auto add_if_offered = [&](const char* name) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (std::strcmp(offered[i].extensionName, name) != 0) continue;
            needs.optional_extensions[needs.optional_extension_count++] = name;
            return true;
        }
        return false;
    };
    if (add_if_offered(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME)) needs.enabled |= push_descriptor;
    if (add_if_offered(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME)) needs.enabled |= float_controls;
    const bool half_extension = add_if_offered(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    const bool core_1_2 = properties.apiVersion >= VK_API_VERSION_1_2;
    if (core_1_2) needs.enabled_in_core |= float_controls;
    if (half_extension || core_1_2) {
        VkPhysicalDeviceShaderFloat16Int8Features half = {};
        half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
        VkPhysicalDeviceFeatures2 features = {};
        features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
        features.pNext = &half;
        vk->vkGetPhysicalDeviceFeatures2(physical, &features);
        needs.offers_shader_float16 = half_extension && half.shaderFloat16;
        if (core_1_2 && half.shaderFloat16) needs.enabled_in_core |= shader_float16;
    }
    return {{}, needs};
}

Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info) {
    if (Status s = validate(device, info); !s) return {s, nullptr};
    auto* kernel = new (std::nothrow) Kernel;
    if (!kernel) return {error(Code::out_of_host_memory, "no memory for a Kernel"), nullptr};
    if (Status s = borrow(*kernel, device); !s) {
        delete kernel;  // nothing was made, and there may be no function to destroy it with
        return {s, nullptr};
    }
    kernel->info = info;
    if (info.angles == AngleSource::by_default) kernel->info.angles = AngleSource::factored_texture;
    const Status status = build(*kernel);
    if (!status) {
        destroy(kernel);
        return {status, nullptr};
    }
    return {{}, kernel};
}

void destroy(Kernel* kernel) noexcept {
    if (!kernel) return;
    for (const Pipeline& pipeline : kernel->pipelines)
        kernel->vk.vkDestroyPipeline(kernel->device.device, pipeline.handle, kernel->device.allocator);
    destroy_layouts(*kernel);
    delete kernel;
}

}  // namespace vkrope
