// SPDX-License-Identifier: MIT
// Prints devices for the commands.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// Returns "discrete", "integrated", "virtual", "cpu" or "other".
const char* type_word(VkPhysicalDeviceType type) noexcept;

// Returns a version as text, "1.3.230".
std::string version_text(std::uint32_t version);

// A vkrope_device_info that owns its strings and arrays.
struct KnownDevice {
    std::string name, driver, uuid, reason;
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    std::uint32_t api_version = 0;
    bool suitable = false;
    std::uint64_t memory_bytes = 0;
    VkPhysicalDeviceLimits limits = {};

    KnownDevice() = default;
    KnownDevice(const DeviceInfo& info);
};

// Returns name and driver, safe to print.
std::string device_text(const KnownDevice& device);

// Returns the device fields of every JSON report: name, type, driver, uuid and api_version.
nlohmann::ordered_json device_json(const KnownDevice& device);

// Prints messages from the loader, a layer or a driver to stderr. For DeviceOptions::on_message.
void print_message(void* unused, VkBool32 is_error, const char* id, const char* text);

}  // namespace vkrope::tools
