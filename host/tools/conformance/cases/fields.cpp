// SPDX-License-Identifier: MIT
#include "conformance/cases/fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/json_document.hpp"

namespace vkrope::conformance {
namespace {

using nlohmann::json;

constexpr std::size_t longest_path = 512;

double number_in(const json& value, const std::string& name) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!std::isfinite(number)) {
        wrong_file("{} is {}: it must be a finite number", name, shown(value));
    }
    return number;
}

std::int64_t integer_in(const json& value, const std::string& name, std::int64_t low,
                        std::int64_t high) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}) &&
                      value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
    if (!fits) {
        wrong_file("{} is {}: it must be an integer from {} to {}", name, shown(value), low, high);
    }
    return value.get<std::int64_t>();
}

const json& array_in(const json& value, const std::string& name) {
    if (!value.is_array()) {
        wrong_file("{} is {}: it must be an array", name, shown(value));
    }
    return value;
}

}  // namespace

std::string shown_text(const std::string& text) {
    return shown_key(text);
}

std::string checked_path(const std::string& path, const std::string& name) {
    if (path.empty() || path.size() > longest_path) {
        wrong_file("{} has {} characters: it must have 1 to {}", name, path.size(), longest_path);
    }
    if (std::any_of(path.begin(), path.end(),
                    [](char c) { return c < ' ' || c > '~' || c == '\\'; })) {
        wrong_file("{} is '{}': it must be printable ASCII without a backslash", name,
                   shown_text(path));
    }
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        const std::string part = path.substr(start, end - start);
        if (part.empty() || part == "." || part == "..") {
            wrong_file("{} is '{}': it must be a relative path without '.' and '..'", name,
                       shown_text(path));
        }
        start = end + 1;
    }
    return path;
}

Fields::Fields(const json& object, std::string name) : object_(&object), name_(std::move(name)) {
    if (!object.is_object()) {
        wrong_file("{} is {}: it must be an object", name_.empty() ? "the document" : name_,
                   shown(object));
    }
}

std::string Fields::name_of(const std::string& key) const {
    return name_.empty() ? shown_key(key) : name_ + "." + shown_key(key);
}

const json* Fields::find(const char* key) {
    asked_for_.insert(key);
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const json& Fields::required(const char* key) {
    const json* value = find(key);
    if (value == nullptr) {
        wrong_file("{} is missing", name_of(key));
    }
    return *value;
}

std::optional<Fields> Fields::object(const char* key) {
    const json* value = find(key);
    return value == nullptr ? std::nullopt
                            : std::optional<Fields>(std::in_place, *value, name_of(key));
}

Fields Fields::required_object(const char* key) {
    return Fields(required(key), name_of(key));
}

std::optional<std::string> Fields::optional_text(const char* key) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        wrong_file("{} is {}: it must be a string", name_of(key), shown(*value));
    }
    return value->get<std::string>();
}

std::string Fields::text(const char* key) {
    required(key);
    return *optional_text(key);
}

std::optional<double> Fields::number(const char* key) {
    const json* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(number_in(*value, name_of(key)));
}

double Fields::required_number(const char* key) {
    return number_in(required(key), name_of(key));
}

std::optional<std::int64_t> Fields::integer(const char* key, std::int64_t low, std::int64_t high) {
    const json* value = find(key);
    return value == nullptr ? std::nullopt
                            : std::optional(integer_in(*value, name_of(key), low, high));
}

std::int64_t Fields::required_integer(const char* key, std::int64_t low, std::int64_t high) {
    return integer_in(required(key), name_of(key), low, high);
}

std::optional<bool> Fields::truth(const char* key) {
    const json* value = find(key);
    if (value != nullptr && !value->is_boolean()) {
        wrong_file("{} is {}: it must be true or false", name_of(key), shown(*value));
    }
    return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<std::vector<std::int64_t>> Fields::integers(const char* key, std::int64_t low,
                                                          std::int64_t high) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    std::vector<std::int64_t> list;
    const std::string name = name_of(key);
    for (const json& entry : array_in(*value, name)) {
        list.push_back(integer_in(entry, fmt::format("{}[{}]", name, list.size()), low, high));
    }
    return list;
}

std::vector<std::int64_t> Fields::required_integers(const char* key, std::int64_t low,
                                                    std::int64_t high) {
    required(key);
    return *integers(key, low, high);
}

std::optional<std::vector<double>> Fields::numbers(const char* key) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    std::vector<double> list;
    const std::string name = name_of(key);
    for (const json& entry : array_in(*value, name)) {
        list.push_back(number_in(entry, fmt::format("{}[{}]", name, list.size())));
    }
    return list;
}

std::string Fields::file(const char* key) {
    return checked_path(text(key), name_of(key));
}

std::string Fields::optional_file(const char* key) {
    const auto path = optional_text(key);
    return path ? checked_path(*path, name_of(key)) : std::string();
}

std::optional<Integers> Fields::integers_or_file(const char* key) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    return value->is_string() ? Integers(file(key))
                              : Integers(*integers(key, std::numeric_limits<std::int64_t>::min(),
                                                   std::numeric_limits<std::int64_t>::max()));
}

void Fields::done() const {
    for (const auto& [key, value] : object_->items()) {
        if (!asked_for_.contains(key)) {
            unsupported("unknown key {}", name_of(key));
        }
    }
}

}  // namespace vkrope::conformance
