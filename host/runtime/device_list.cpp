// SPDX-License-Identifier: MIT
#include "runtime/device_list.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/no_throw.hpp"
#include "base/status.hpp"

namespace vkrope {

namespace {

// Returns the rank of a device. A lower rank is better. Unsuitable devices come last.
int rank(const Candidate& candidate) {
    const int unsuitable = candidate.suitable() ? 0 : 10;
    switch (candidate.type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return unsuitable + 0;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return unsuitable + 1;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return unsuitable + 2;
        case VK_PHYSICAL_DEVICE_TYPE_CPU: return unsuitable + 4;
        default: return unsuitable + 3;
    }
}

std::string hex(const std::uint8_t* bytes, std::size_t count) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

using Extensions = std::vector<VkExtensionProperties>;

// Returns all extensions or an error, because a partial list may lack one that must be enabled.
Result<Extensions> extensions_of(const Instance& instance, VkPhysicalDevice device) {
    std::uint32_t count = 0;
    VkResult result = instance.vkEnumerateDeviceExtensionProperties(device, nullptr, &count,
                                                                    nullptr);
    Extensions offered(result == VK_SUCCESS ? count : 0);
    if (result == VK_SUCCESS)
        result = instance.vkEnumerateDeviceExtensionProperties(device, nullptr, &count,
                                                               offered.data());
    if (result != VK_SUCCESS)
        return {vulkan_error(result, "vkEnumerateDeviceExtensionProperties"), {}};
    offered.resize(count);
    return {{}, std::move(offered)};
}

bool has(const Extensions& offered, const char* name) {
    return std::any_of(
        offered.begin(), offered.end(),
        [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

void read_identity(const Instance& instance, const Extensions& offered, Candidate& candidate) {
    VkPhysicalDeviceDriverProperties driver = {};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    VkPhysicalDeviceMaintenance3Properties maintenance = {};
    maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    VkPhysicalDeviceIDProperties id = {};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    id.pNext = &maintenance;
    if (has(offered, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) maintenance.pNext = &driver;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &id;
    instance.vkGetPhysicalDeviceProperties2(candidate.handle, &properties);
    candidate.uuid = hex(id.deviceUUID, VK_UUID_SIZE);
    candidate.driver = driver.driverName;
    if (!candidate.driver.empty() && driver.driverInfo[0]) candidate.driver += ' ';
    candidate.driver += driver.driverInfo;
    if (candidate.driver.empty())
        candidate.driver = std::to_string(properties.properties.driverVersion);
    candidate.largest_allocation = maintenance.maxMemoryAllocationSize;
}

void read_queue(const Instance& instance, Candidate& candidate) {
    std::uint32_t count = 0;
    instance.vkGetPhysicalDeviceQueueFamilyProperties(candidate.handle, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    instance.vkGetPhysicalDeviceQueueFamilyProperties(candidate.handle, &count, families.data());
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        const bool compute_only = !(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
        if (candidate.queue_family != no_queue_family && !compute_only) continue;
        candidate.queue_family = i;
        candidate.timestamp_bits = families[i].timestampValidBits;
        if (compute_only) return;
    }
}

void read_memory(const Instance& instance, Candidate& candidate) {
    VkPhysicalDeviceMemoryProperties memory = {};
    instance.vkGetPhysicalDeviceMemoryProperties(candidate.handle, &memory);
    for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
        if (!(memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
        candidate.memory_bytes = std::max<std::uint64_t>(candidate.memory_bytes,
                                                         memory.memoryHeaps[i].size);
    }
    if (memory.memoryTypeCount == 0) candidate.reason = "it has no memory types";
}

// Describes a device. A device that cannot be described is unsuitable, with a reason. Only lack of
// host memory is an error.
Result<Candidate> describe(const Instance& instance, VkPhysicalDevice handle) {
    Result<Candidate> described;
    Candidate& candidate = described.value;
    candidate.handle = handle;
    VkPhysicalDeviceProperties properties = {};
    instance.vkGetPhysicalDeviceProperties(handle, &properties);
    const char* const name = properties.deviceName;  // null-terminated only if the driver conforms
    candidate.name.assign(name, std::find(name, name + sizeof properties.deviceName, '\0'));
    candidate.type = properties.deviceType;
    candidate.api_version = properties.apiVersion;
    candidate.limits = properties.limits;
    const Result<Requirements> needs = requirements(instance.handle(), handle,
                                                    instance.get_instance_proc_addr());
    if (!needs) {
        if (needs.status.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY) described.status = needs.status;
        candidate.reason = needs.status.what;
        return described;
    }
    candidate.requirements = needs.value;
    const Result<Extensions> offered = extensions_of(instance, handle);
    if (!offered) {
        if (offered.status.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY)
            described.status = offered.status;
        candidate.reason = offered.status.what;
        return described;
    }
    read_identity(instance, offered.value, candidate);
    read_queue(instance, candidate);
    read_memory(instance, candidate);
    candidate.portability_subset = has(offered.value, "VK_KHR_portability_subset");
    if (candidate.queue_family == no_queue_family) candidate.reason = "it has no compute queue";
    return described;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    return text;
}

std::string list_of(const std::vector<DeviceInfo>& found, const std::vector<std::size_t>& which) {
    std::string text;
    for (const std::size_t i : which) {
        if (!text.empty()) text += ", ";
        text += std::to_string(i);
        text += ' ';
        text += found[i].name;
    }
    return text.empty() ? "no device" : text;
}

}  // namespace

DeviceInfo Candidate::info() const noexcept {
    DeviceInfo made;
    made.name = name.c_str();
    made.driver = driver.c_str();
    made.uuid = uuid.c_str();
    made.reason = reason.c_str();
    made.type = type;
    made.api_version = api_version;
    made.suitable = suitable();
    made.memory_bytes = memory_bytes;
    made.limits = &limits;
    return made;
}

Result<std::vector<Candidate>> list_candidates(const Instance& instance) {
    const auto handles = instance.physical_devices();
    if (!handles) return {handles.status, {}};
    std::vector<Candidate> candidates;
    for (VkPhysicalDevice handle : handles.value) {
        auto described = describe(instance, handle);
        if (!described) return {described.status, {}};
        candidates.push_back(std::move(described.value));
    }
    std::stable_sort(
        candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
            return std::pair(rank(a), b.memory_bytes) < std::pair(rank(b), a.memory_bytes);
        });
    return {{}, std::move(candidates)};
}

namespace {

// Returns the index of the one device that `select` names.
Result<std::uint32_t> select_device(const std::vector<DeviceInfo>& found,
                                    const std::string& select) {
    std::vector<std::size_t> all, matches;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back(i);
    if (found.empty())
        return {error(VKROPE_ERROR_NO_DEVICE, "there is no Vulkan device on this system"), 0};
    if (select.empty()) {
        if (found[0].suitable) return {{}, 0};
        return {error(VKROPE_ERROR_NO_DEVICE, "no device is suitable: %s: %s", found[0].name,
                      found[0].reason),
                0};
    }
    const bool hex_digits = select.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    if (hex_digits && select.size() == 32) {
        std::copy_if(
            all.begin(), all.end(), std::back_inserter(matches),
            [&](auto i) { return found[i].uuid == lower(select); });
    } else if (select.find_first_not_of("0123456789") == std::string::npos) {
        std::size_t index = 0;
        const auto parsed = std::from_chars(select.data(), select.data() + select.size(), index);
        if (parsed.ec != std::errc{} || index >= found.size()) {
            return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                          "device index %s does not exist; the %zu devices are: %s", select.c_str(),
                          found.size(), list_of(found, all).c_str()),
                    0};
        }
        matches = {index};
    } else {
        std::copy_if(
            all.begin(), all.end(), std::back_inserter(matches),
            [&](auto i) { return lower(found[i].name).find(lower(select)) != std::string::npos; });
    }
    if (matches.empty()) {
        return {error(VKROPE_ERROR_NO_DEVICE, "no device matches \"%s\"; the devices are: %s",
                      select.c_str(), list_of(found, all).c_str()),
                0};
    }
    if (matches.size() > 1) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT, "several devices match \"%s\": %s",
                      select.c_str(), list_of(found, matches).c_str()),
                0};
    }
    const DeviceInfo& chosen = found[matches[0]];
    if (!chosen.suitable)
        return {error(VKROPE_ERROR_NO_DEVICE, "%s is not suitable: %s", chosen.name, chosen.reason),
                0};
    return {{}, std::uint32_t(matches[0])};
}

}  // namespace

Result<std::uint32_t> select_device(const std::vector<Candidate>& candidates,
                                    const std::string& select) {
    std::vector<DeviceInfo> found;
    for (const Candidate& candidate : candidates) found.push_back(candidate.info());
    return select_device(found, select);
}

}  // namespace vkrope

struct vkrope_device_list {
    std::vector<vkrope::Candidate> candidates;
    std::vector<vkrope_device_info> infos;  // infos of the candidates
};

using namespace vkrope;

vkrope_result vkrope_device_list_create(const vkrope_device_options* options,
                                        vkrope_device_list** list, vkrope_error* failure) {
    return make_all(
        list, "list", failure,
        [&]() -> Result<std::unique_ptr<vkrope_device_list>> {
            const auto instance = Instance::make(OwnedOptions(options));
            if (!instance) return {instance.status, {}};
            auto candidates = list_candidates(*instance.value);
            if (!candidates) return {candidates.status, {}};
            auto made = std::make_unique<vkrope_device_list>();
            made->candidates = std::move(candidates.value);
            for (const Candidate& candidate : made->candidates)
                made->infos.push_back(candidate.info());
            return {{}, std::move(made)};
        });
}

const vkrope_device_info* vkrope_device_list_get(const vkrope_device_list* list, uint32_t* count) {
    if (count) *count = list ? uint32_t(list->infos.size()) : 0;
    return list ? list->infos.data() : nullptr;
}

vkrope_result vkrope_select_device(const vkrope_device_info* devices, uint32_t count,
                                   const char* select, uint32_t* index, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(devices, "devices"); !s && count != 0) return s;
            std::vector<DeviceInfo> found(devices, devices + count);
            for (DeviceInfo& info : found) {
                for (const char** text : {&info.name, &info.driver, &info.uuid, &info.reason})
                    if (!*text) *text = "";
            }
            return hand_out(select_device(found, select ? select : ""), index, "index");
        });
}

void vkrope_device_list_destroy(vkrope_device_list* list) {
    delete list;
}
