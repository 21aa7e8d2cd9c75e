// SPDX-License-Identifier: MIT
// How the commands print a device.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vkrope/runtime.hpp"

namespace vkrope::tools {

/// "discrete", "integrated", "virtual", "cpu" or "other".
const char* type_word(VkPhysicalDeviceType type) noexcept;

/// "1.3.230"
std::string version_text(std::uint32_t version);

/// Name and driver, safe to print.
std::string device_text(const DeviceInfo& device);

/// The device fields of every JSON report: name, type, driver, uuid and api_version.
nlohmann::ordered_json device_json(const DeviceInfo& device);

/// For DeviceOptions::on_message: prints messages from the loader, a layer or a driver to stderr.
void print_message(const Message& message);

}  // namespace vkrope::tools
