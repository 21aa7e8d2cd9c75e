// SPDX-License-Identifier: MIT
#include "conformance/facts.hpp"

#include "conformance/builtin/trial.hpp"
#include "interface.h"
#include "kernel/kernel_object.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;

/// PCI's numbers of those who make GPUs, and Khronos's of who has none.
const char* vendor_name(std::uint32_t id) {
    switch (id) {
        case 0x1002: return "AMD";
        case 0x1010: return "Imagination";
        case 0x106b: return "Apple";
        case 0x10de: return "NVIDIA";
        case 0x13b5: return "Arm";
        case 0x1414: return "Microsoft";
        case 0x144d: return "Samsung";
        case 0x14e4: return "Broadcom";
        case 0x1ae0: return "Google";
        case 0x5143: return "Qualcomm";
        case 0x8086: return "Intel";
        case VK_VENDOR_ID_VIV: return "VeriSilicon";
        case VK_VENDOR_ID_MESA: return "Mesa";
        case VK_VENDOR_ID_POCL: return "PoCL";
        default: return "unknown";
    }
}

VkPhysicalDeviceProperties properties_of(const DeviceRef& device) {
    VkPhysicalDeviceProperties properties = {};
    const auto get = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(
        device.get_instance_proc_addr(device.instance, "vkGetPhysicalDeviceProperties"));
    get(device.physical, &properties);
    return properties;
}

Json features_of(const DeviceRef& device) {
    Json features = Json::array();
    const auto add = [&](std::uint32_t bit, const char* word) {
        if (device.enabled & bit) {
            features.push_back(word);
        }
    };
    add(VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR, "VK_KHR_push_descriptor");
    add(VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS, "shader float controls");
    add(VKROPE_DEVICE_FEATURE_SHADER_FLOAT16, "shaderFloat16");
    return features;
}

std::string text_of(const Geometry& geometry, const KernelInfo& info) {
    return fmt::format(
        "{} channels at a time, {} bytes; workgroups of {}: {} along a row, {} heads, {} tokens",
        geometry.unit_elements, geometry.unit_elements * element_bytes(info.tensor[Q].in),
        geometry.workgroup_size(), geometry.step_lanes, geometry.head_lanes, geometry.group_tokens);
}

/// What create() makes for the layer of a large model, in each element type.
Json choices_of(DeviceUnderTest& device) {
    Json choices = Json::array();
    const bool processor = device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    for (const Element element : elements) {
        KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        info.rotary_dim = 128;
        info.tensor[Q] = info.tensor[K] = {.in = element, .out = element, .head_dim = 128};
        const std::string name = fmt::format("{}, Q and K of 128 channels", name_of(element));
        try {
            const Kernel* kernel = device.kernel_for(info);
            std::string why = processor ? "a processor: few large invocations"
                                        : "a GPU: many small invocations";
            if (element == VKROPE_F16) {
                why += kernel->conversion == shader::conversion_integer
                           ? "; f16 is converted by integers"
                           : "; the device converts f16 by itself: " + device.traits().f16;
            }
            choices.push_back({{"kernel", name},
                               {"chosen", text_of(kernel->pipelines[0].geometry, info)},
                               {"why", why}});
        } catch (const Refusal& refusal) {
            choices.push_back({{"kernel", name}, {"chosen", "none"}, {"why", refusal.what()}});
        }
    }
    return choices;
}

/// The largest errors of f32 at positions around each power of two that a source covers.
Json errors_of(DeviceUnderTest& device, AngleSource source) {
    Json points = Json::array();
    for (std::uint32_t log2 = 0; log2 <= 30; log2 += 2) {
        Trial trial = trial_of(VKROPE_F32, 64, 4);
        trial.info.angles = source;
        trial.shape.q_per_group = 4;
        trial.first = (std::int64_t{1} << log2) - 1;
        const std::int64_t last = trial.first + trial.shape.tokens - 1;
        const bool direct = source == VKROPE_ANGLES_DIRECT_TEXTURE ||
                            source == VKROPE_ANGLES_DIRECT_BUFFER;
        if (source != VKROPE_ANGLES_COMPUTED && last >= (direct ? 1 << 13 : 1 << 21)) {
            break;  // a table that long would be large
        }
        trial.table_rows = static_cast<std::uint32_t>(
            std::min<std::int64_t>(last + 1, std::int64_t{1} << 30));
        Findings findings;
        run(device, trial, findings);
        if (const std::optional<double> u = findings.outcome().max_u) {
            points.push_back({trial.first, *u});
        }
    }
    return {{"source", name_of(source)},
            {"bound_u", error_bound(source, 1)},
            {"points", std::move(points)}};
}

}  // namespace

Json find_facts(DeviceUnderTest& device) {
    const DeviceRef& ref = device.device().ref();
    const VkPhysicalDeviceProperties properties = properties_of(ref);
    Json facts = {{"vendor", vendor_name(properties.vendorID)},
                  {"vendor_id", properties.vendorID},
                  {"device_id", properties.deviceID},
                  {"driver_version", properties.driverVersion},
                  {"features", features_of(ref)},
                  {"choices", choices_of(device)},
                  {"errors", Json::array()}};
    for (const AngleSource source : our_sources) {
        try {
            facts["errors"].push_back(errors_of(device, source));
        } catch (const Refusal&) {
            // The checks of this source say why it is unsupported.
        }
    }
    return facts;
}

}  // namespace vkrope::conformance
