// SPDX-License-Identifier: MIT
// Parses JSON text more strictly than the underlying parser: a duplicate key is an error, and size,
// number of values and nesting are bounded. The only extension is NaN and Infinity, as Python's
// json module writes them. They become floats that are not finite, which no field accepts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vkrope {

// The largest config.json of a model has a few MB and lists the quantisation of each expert.
// Reading the worst file within the limits takes a second or two and 300 MB.
inline constexpr std::size_t max_json_bytes = std::size_t{16} << 20;
inline constexpr std::size_t max_json_values = std::size_t{1} << 19;
inline constexpr std::size_t max_json_depth = 64;

// Returns the document. Throws ImportError (invalid_data).
nlohmann::json parse_json(std::string_view text);

// Returns false for null, false, 0 and empty values, which turn a feature off.
bool is_set(const nlohmann::json& value);

// Return a value, or a key, for messages as shortened printable ASCII, so that a hostile file
// cannot control the reader's terminal.
std::string shown(const nlohmann::json& value);
std::string shown_key(const std::string& key);

}  // namespace vkrope
