// SPDX-License-Identifier: MIT
// Converts the messages from a worker to its parent to and from JSON. Both are the same program, so
// the format may change at any time. A malformed message throws nlohmann::json::exception.
#pragma once

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/device_text.hpp"
#include "conformance/suite.hpp"
#include "conformance/traits.hpp"

namespace vkrope::conformance {

// Returns the value as JSON, or null.
template <class T>
struct OptionalMessage {
    static void to_json(nlohmann::json& message, const std::optional<T>& value) {
        message = value ? nlohmann::json(*value) : nlohmann::json();
    }
    static void from_json(const nlohmann::json& message, std::optional<T>& value) {
        value = message.is_null() ? std::nullopt : std::optional(message.get<T>());
    }
};

}  // namespace vkrope::conformance

namespace nlohmann {

// Not for every std::optional, because users convert std::optional<json> differently.
template <>
struct adl_serializer<std::optional<double>> : vkrope::conformance::OptionalMessage<double> {};
template <>
struct adl_serializer<std::optional<vkrope::conformance::Traits>>
    : vkrope::conformance::OptionalMessage<vkrope::conformance::Traits> {};

template <>
struct adl_serializer<VkPhysicalDeviceLimits> {
    static void to_json(json& message, const VkPhysicalDeviceLimits& limits) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(&limits);
        message = std::vector(bytes, bytes + sizeof limits);
    }
    static void from_json(const json& message, VkPhysicalDeviceLimits& limits) {
        const auto bytes = message.get<std::vector<std::uint8_t>>();
        std::memcpy(&limits, bytes.data(), std::min(bytes.size(), sizeof limits));
    }
};

}  // namespace nlohmann

namespace vkrope::tools {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KnownDevice, name, driver, uuid, reason, type, api_version,
                                   suitable, memory_bytes, limits)
}

namespace vkrope::conformance {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tool, name, version, alters_features)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Traits, vendor_id, device_id, driver_version, features,
                                   flushes_subnormals, subnormals, rounding, specials, nan,
                                   converts_f16, f16, subgroup_size, tools)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ErrorCurve, source, bound_u, points)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, verdict, reason, operation, max_error, max_u, max_ulp,
                                   exit, seconds, curves)
}  // namespace vkrope::conformance
