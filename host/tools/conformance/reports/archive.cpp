// SPDX-License-Identifier: MIT
#include "conformance/reports/archive.hpp"

#include <algorithm>
#include <filesystem>

#include "conformance/reports/page.hpp"
#include "files/zip.hpp"

namespace vkrope::conformance {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string archive_of(const Json& report, const std::vector<Json>& benches,
                       const std::string& log) {
    std::vector<tools::zip::Entry> entries = {{"report.json", text_of(report)},
                                              {"index.html", page_of(report, benches, log)},
                                              {"log.txt", log}};
    for (std::size_t i = 0; i < benches.size(); ++i) {
        entries.push_back({fmt::format("bench-{}.json", i), text_of(benches[i])});
    }
    return tools::zip::archive_of(entries);
}

std::string archive_name(const std::string& path, const Report& report) {
    std::error_code problem;
    if (!std::filesystem::is_directory(path, problem)) {
        return path;
    }
    std::string device = report.size() == 1 ? report[0].device.name
                                            : fmt::format("{} devices", report.size());
    std::replace_if(
        device.begin(), device.end(),
        [](char c) {
            return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.');
        },
        '_');
    device.erase(std::unique(device.begin(), device.end(),
                             [](char a, char b) { return a == '_' && b == '_'; }),
                 device.end());
    device.resize(std::min<std::size_t>(device.size(), 64));
    return (std::filesystem::path(path) / fmt::format("vkrope-report-{}-{}.zip", device, today()))
        .string();
}

}  // namespace vkrope::conformance
