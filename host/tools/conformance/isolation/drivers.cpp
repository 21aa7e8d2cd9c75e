// SPDX-License-Identifier: MIT
#include "conformance/isolation/drivers.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "conformance/isolation/messages.hpp"
#include "conformance/isolation/worker.hpp"

namespace vkrope::conformance {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using tools::ExitCode;

std::string variable(const char* name, const std::string& otherwise = {}) {
    const char* const value = std::getenv(name);
    return value == nullptr || *value == '\0' ? otherwise : value;
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start < list.size();) {
        const std::size_t end = std::min(list.find(':', start), list.size());
        parts.push_back(list.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

/// Returns the driver manifests that the Vulkan loader reads, as LoaderDriverInterface.md of
/// Khronos's Vulkan-Loader defines them.
std::vector<std::string> manifests() {
    const std::string named = variable("VK_DRIVER_FILES", variable("VK_ICD_FILENAMES"));
    std::vector<std::string> places = split(named);
    if (named.empty()) {
        const std::string home = variable("HOME");
        std::string folders = variable("XDG_CONFIG_HOME", home + "/.config") + ':' +
                              variable("XDG_CONFIG_DIRS", "/etc/xdg") +
                              ":/etc:" + variable("XDG_DATA_HOME", home + "/.local/share") + ':' +
                              variable("XDG_DATA_DIRS", "/usr/local/share:/usr/share");
        for (const std::string& folder : split(folders)) {
            places.push_back(folder + "/vulkan/icd.d");
        }
    }
    std::vector<std::string> files;
    for (const std::string& place : places) {
        std::error_code problem;
        if (!fs::is_directory(place, problem)) {
            if (fs::exists(place, problem)) {
                files.push_back(place);
            }
            continue;
        }
        for (fs::directory_iterator entry(place, problem);
             !problem && entry != fs::directory_iterator(); entry.increment(problem)) {
            if (entry->path().extension() == ".json") {
                files.push_back(entry->path().string());
            }
        }
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    return files;
}

/// The devices that a process listed, and the way the process ended.
struct Listing {
    std::vector<FoundDevice> devices;
    std::optional<tools::Failure> refusal;
    ChildEnd end;
};

Listing list_devices(const std::vector<std::string>& command, const std::string& manifest,
                     const Watch& watch) {
    ChildProcess child(command, environment_of({.manifest = manifest}), watch);
    Listing listing;
    while (const std::optional<Json> line = child.next()) {
        if (line->contains("failure")) {
            listing.refusal.emplace(static_cast<ExitCode>(line->at("code").get<int>()),
                                    line->at("failure").get<std::string>());
        } else if (line->contains("devices")) {
            for (const Json& device : line->at("devices")) {
                listing.devices.push_back({device.get<tools::KnownDevice>(),
                                           std::to_string(listing.devices.size()), manifest});
            }
        }
    }
    listing.end = child.end();
    return listing;
}

}  // namespace

FoundDevices find_devices(const std::vector<std::string>& command, const Watch& watch) {
    Listing all = list_devices(command, {}, watch);
    if (all.refusal) {
        throw *all.refusal;
    }
    FoundDevices found;
    if (all.end.well) {
        found.devices = std::move(all.devices);
        return found;
    }
    for (const std::string& manifest : manifests()) {
        Listing listing = list_devices(command, manifest, watch);
        if (!listing.end.well) {
            found.failed.push_back({fs::path(manifest).filename().string(),
                                    listing.end.sentence + " while its devices were listed"});
            continue;
        }
        std::move(listing.devices.begin(), listing.devices.end(),
                  std::back_inserter(found.devices));
    }
    if (found.failed.empty()) {  // the drivers fail only together, or a layer fails
        found.failed.push_back(
            {"all drivers together", all.end.sentence + " while the devices were listed"});
    }
    return found;
}

}  // namespace vkrope::conformance
