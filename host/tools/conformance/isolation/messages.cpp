// SPDX-License-Identifier: MIT
#include "conformance/isolation/messages.hpp"

#include <cstring>

#include "cli/terminal.hpp"

namespace vkrope::conformance {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tool, name, version, alters_features)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Traits, vendor, vendor_id, device_id, driver_version, features,
                                   flushes_subnormals, subnormals, rounding, specials, nan,
                                   converts_f16, f16, subgroup_size, tools)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ErrorCurve, source, bound_u, points)

namespace {

Json optional(const std::optional<double>& number) {
    return number ? Json(*number) : Json();
}

std::optional<double> optional(const Json& number) {
    return number.is_null() ? std::nullopt : std::optional(number.get<double>());
}

}  // namespace

Json message_of(const tools::KnownDevice& device) {
    const auto* limits = reinterpret_cast<const std::uint8_t*>(&device.limits);
    return {{"name", tools::printable(device.name)},
            {"driver", tools::printable(device.driver)},
            {"uuid", device.uuid},
            {"type", static_cast<int>(device.type)},
            {"api_version", device.api_version},
            {"memory_bytes", device.memory_bytes},
            {"limits", std::vector(limits, limits + sizeof device.limits)},
            {"suitable", device.suitable},
            {"reason", device.reason}};
}

tools::KnownDevice device_of(const Json& message) {
    tools::KnownDevice device;
    message.at("name").get_to(device.name);
    message.at("driver").get_to(device.driver);
    message.at("uuid").get_to(device.uuid);
    device.type = static_cast<VkPhysicalDeviceType>(message.at("type").get<int>());
    message.at("api_version").get_to(device.api_version);
    message.at("memory_bytes").get_to(device.memory_bytes);
    const auto limits = message.at("limits").get<std::vector<std::uint8_t>>();
    std::memcpy(&device.limits, limits.data(), std::min(limits.size(), sizeof device.limits));
    message.at("suitable").get_to(device.suitable);
    message.at("reason").get_to(device.reason);
    return device;
}

Json message_of(const Traits& traits) {
    return traits;
}

Traits traits_of(const Json& message) {
    return message.get<Traits>();
}

Json message_of(const Outcome& outcome) {
    return {{"verdict", static_cast<int>(outcome.verdict)},
            {"reason", outcome.reason},
            {"max_error", optional(outcome.max_error)},
            {"max_u", optional(outcome.max_u)},
            {"max_ulp", optional(outcome.max_ulp)},
            {"exit", static_cast<int>(outcome.exit)},
            {"seconds", outcome.seconds},
            {"curves", outcome.curves}};
}

Outcome outcome_of(const Json& message) {
    return {.verdict = static_cast<Verdict>(message.at("verdict").get<int>()),
            .reason = message.at("reason").get<std::string>(),
            .max_error = optional(message.at("max_error")),
            .max_u = optional(message.at("max_u")),
            .max_ulp = optional(message.at("max_ulp")),
            .exit = static_cast<tools::ExitCode>(message.at("exit").get<int>()),
            .seconds = message.at("seconds").get<double>(),
            .curves = message.at("curves").get<std::vector<ErrorCurve>>()};
}

}  // namespace vkrope::conformance
