// SPDX-License-Identifier: MIT
// JSON text to a document, stricter than the parser beneath it: a key given twice is an error, and
// size, number of values and nesting are bounded. Only what Python's json module writes for a float
// that is not finite, NaN and Infinity, is read beyond JSON: as such a float, which no field that
// is read may be.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vkrope {

// The largest config.json of a model has a few MB, where each expert's quantisation is listed. To
// read the worst that is within the limits takes a second or two and 300 MB.
inline constexpr std::size_t max_json_bytes = std::size_t{16} << 20;
inline constexpr std::size_t max_json_values = std::size_t{1} << 19;
inline constexpr std::size_t max_json_depth = 64;

/// Throws ImportError (invalid_data).
nlohmann::json parse_json(std::string_view text);

/// null, false, 0 and what is empty are how a configuration says that it does without.
bool is_set(const nlohmann::json& value);

/// A value, and a key, as messages show them: printable ASCII, shortened, so that a hostile file
/// cannot write to the reader's terminal.
std::string shown(const nlohmann::json& value);
std::string shown_key(const std::string& key);
/// A number that no file has word for word.
std::string shown_number(double value);

}  // namespace vkrope
