// SPDX-License-Identifier: MIT
// vkrope devices: lists the Vulkan devices and says which of them are suitable.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/device_text.hpp"
#include "cli/terminal.hpp"

namespace vkrope::tools {
namespace {

nlohmann::ordered_json json_of(const KnownDevice& device, std::size_t index) {
    nlohmann::ordered_json json = {{"index", index}};
    json.update(device_json(device));
    json["memory_bytes"] = device.memory_bytes;
    json["suitable"] = device.suitable;
    json["reason"] = printable(device.reason);
    return json;
}

std::string table_of(std::vector<KnownDevice> found) {
    std::size_t name_width = 4, driver_width = 6;
    for (KnownDevice& device : found) {
        device.name = printable(device.name);
        device.driver = printable(device.driver);
        name_width = std::max(name_width, device.name.size());
        driver_width = std::max(driver_width, device.driver.size());
    }
    const auto row = [&](const auto& index, const auto& name, const auto& type, const auto& driver,
                         const auto& api, const auto& memory, const auto& suitable) {
        return fmt::format("{:>5}  {:<{}}  {:<10}  {:<{}}  {:<8}  {:>10}  {}\n", index, name,
                           name_width, type, driver, driver_width, api, memory, suitable);
    };
    std::string table = row("index", "name", "type", "driver", "API", "memory", "suitable");
    for (std::size_t index = 0; index < found.size(); ++index) {
        const KnownDevice& device = found[index];
        table += row(index, device.name, type_word(device.type), device.driver,
                     version_text(device.api_version),
                     fmt::format("{:.1f} GiB", double(device.memory_bytes) / double(1 << 30)),
                     device.suitable ? "yes" : "no: " + printable(device.reason));
    }
    return table;
}

ExitCode list_devices(bool as_json) {
    DeviceOptions options;
    options.on_message = print_message;
    const DeviceList list = value_of(DeviceList::make(options), Subject::device);
    const std::vector<KnownDevice> found(list.begin(), list.end());
    if (found.empty()) fail(ExitCode::no_device, "there is no Vulkan device");
    if (!as_json) {
        write_output(table_of(found));
        return ExitCode::success;
    }
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    for (std::size_t index = 0; index < found.size(); ++index)
        entries.push_back(json_of(found[index], index));
    const nlohmann::ordered_json json = {{"devices", std::move(entries)}};
    write_json(json);
    return ExitCode::success;
}

}  // namespace

void add_devices(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command("devices", "List the Vulkan devices, best first.");
    const auto json = std::make_shared<bool>(false);
    command.add_flag("--json", *json, "Write JSON.");
    command.on_run([json] { return list_devices(*json); });
}

}  // namespace vkrope::tools
