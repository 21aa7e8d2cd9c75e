// SPDX-License-Identifier: MIT
#include "cli/device_text.hpp"

#include <fmt/format.h>

#include "cli/terminal.hpp"

namespace vkrope::tools {

const char* type_word(VkPhysicalDeviceType type) noexcept {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return "discrete";
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated";
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return "virtual";
        case VK_PHYSICAL_DEVICE_TYPE_CPU: return "cpu";
        default: return "other";
    }
}

std::string version_text(std::uint32_t version) {
    return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                       VK_API_VERSION_PATCH(version));
}

KnownDevice::KnownDevice(const DeviceInfo& info)
    : name(info.name), driver(info.driver), uuid(info.uuid), reason(info.reason), type(info.type),
      api_version(info.api_version), suitable(info.suitable), memory_bytes(info.memory_bytes),
      limits(*info.limits) {}

std::string device_text(const KnownDevice& device) {
    return printable(device.name) + ", " + printable(device.driver);
}

nlohmann::ordered_json device_json(const KnownDevice& device) {
    return {{"name", printable(device.name)},
            {"type", type_word(device.type)},
            {"driver", printable(device.driver)},
            {"uuid", device.uuid},
            {"api_version", version_text(device.api_version)}};
}

void print_message(void*, VkBool32 is_error, const char* id, const char* text) {
    const std::string sentence = fmt::format("{}: {}", id, text);
    is_error ? print_warning(sentence) : print_note(sentence);
}

}  // namespace vkrope::tools
