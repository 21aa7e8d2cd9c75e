// SPDX-License-Identifier: MIT
#include "conformance/isolation/device_list.hpp"

#include "conformance/isolation/messages.hpp"
#include "conformance/isolation/worker.hpp"

namespace vkrope::conformance {

using Json = nlohmann::json;
using tools::ExitCode;

std::vector<FoundDevice> find_devices(const std::vector<std::string>& command, const Watch& watch) {
    ChildProcess child(command, environment_of({}), watch);
    std::vector<FoundDevice> found;
    while (const std::optional<Json> line = child.next()) {
        if (line->contains("failure")) {
            throw tools::Failure(ExitCode(line->at("code").get<int>()),
                                 line->at("failure").get<std::string>());
        }
        if (line->contains("devices"))
            for (const Json& device : line->at("devices"))
                found.push_back({device.get<tools::KnownDevice>(), std::to_string(found.size())});
    }
    if (const ChildEnd& end = child.end(); !end.well) {
        tools::fail(end.out_of_memory ? ExitCode::out_of_memory : ExitCode::device_failed,
                    "the listing of the devices {}; VK_DRIVER_FILES=MANIFEST.json tests one driver "
                    "alone",
                    end.sentence);
    }
    return found;
}

}  // namespace vkrope::conformance
