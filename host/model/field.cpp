// SPDX-License-Identifier: MIT
#include "model/field.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

namespace vkrope {
namespace {

bool in_range(double number, std::uint64_t low, std::uint64_t high) {
    return number >= double(low) && number <= double(high) && number == std::floor(number);
}

std::string range(std::uint64_t low, std::uint64_t high) {
    return "from " + std::to_string(low) + " to " + std::to_string(high);
}

// Returns the number of a value, or NaN. A boolean is not a number.
double number_or_nan(const json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool Field::is_list() const {
    return value != nullptr &&
           (value->is_array() || (type != nullptr && std::string_view(type) == "array"));
}

json not_kept() {
    return json::binary({});
}

Field find_required(const Scopes& scopes, const char* name, const char* because) {
    Field field = find(scopes, {name});
    if (!field) invalid_data("{}{} is missing{}", scopes[0].prefix, name, because);
    return field;
}

void refuse(const Field& field, const std::string& rule) {
    const std::string type = field.type == nullptr ? "" : " (" + std::string(field.type) + ")";
    invalid_data("{}{}: it must be {}", stated(field), type, rule);
}

Scope inside(const Scope& outer, const Field& object) {
    return {object.value, object.name + ".", outer.reads};
}

void know(const Scopes& scopes, const Keys& keys) {
    for (const Scope& scope : scopes) {
        for (const std::string& name : keys.names)
            if (scope.reads != nullptr) scope.reads->insert(scope.prefix + name);
    }
}

namespace {

// Returns the fields with these names, of one scope after the other.
std::vector<Field> all_of(const Scopes& scopes, const Keys& keys) {
    know(scopes, keys);
    std::vector<Field> found;
    for (const Scope& scope : scopes) {
        for (const std::string& name : keys.names) {
            const auto entry = scope.object->find(name);
            if (entry != scope.object->end() && !entry->is_null())
                found.push_back({scope.prefix + name, &*entry});
        }
    }
    return found;
}

// Returns the first field. Fails if another one has another value.
Field agreed(const std::vector<Field>& fields) {
    for (const Field& other : fields) {
        // A field that holds a NaN differs from itself.
        if (other.value != fields[0].value && *other.value != *fields[0].value)
            disagree(fields[0], other);
    }
    return fields.empty() ? Field() : fields[0];
}

}  // namespace

Field find_first(const Scopes& scopes, const Keys& keys) {
    const std::vector<Field> found = all_of(scopes, keys);
    return found.empty() ? Field() : found[0];
}

Field find(const Scopes& scopes, const Keys& keys) {
    return agreed(all_of(scopes, keys));
}

Field find_preferred(const Scopes& scopes, const Keys& keys, Warnings& warnings) {
    const std::vector<Field> found = all_of(scopes, keys);
    for (const Field& other : found) {
        if (*other.value != *found[0].value) {
            warn(warnings, "{}{}, which is {}, is read", ignored(other), found[0].name,
                 shown(found[0]));
        }
    }
    return found.empty() ? Field() : found[0];
}

Field find_unless_of(const Keys& others, const Scopes& scopes, const Keys& keys) {
    const std::vector<Field> of_others = all_of(scopes, others);
    std::vector<Field> all = all_of(scopes, keys), own;
    std::copy_if(all.begin(), all.end(), std::back_inserter(own), [&](const Field& field) {
        return std::none_of(of_others.begin(), of_others.end(),
                            [&](const Field& other) { return *other.value == *field.value; });
    });
    return agreed(own.empty() ? all : own);
}

void disagree(const Field& one, const Field& other) {
    invalid_data("{} but {}: they must agree", stated(one), stated(other));
}

double finite_number(const Field& field) {
    const double number = number_or_nan(*field.value);
    if (!std::isfinite(number)) refuse(field, "a finite number");
    return number;
}

double positive_number(const Field& field) {
    const double number = number_or_nan(*field.value);
    if (!std::isfinite(number) || number <= 0) refuse(field, "a finite number above 0");
    return number;
}

std::uint64_t whole_number(const Field& field, std::uint64_t low, std::uint64_t high) {
    const double number = number_or_nan(*field.value);
    if (!in_range(number, low, high))  // exact up to 2^53, and no caller passes a higher bound
        refuse(field, "a whole number " + range(low, high));
    return std::uint64_t(number);
}

bool truth(const Field& field) {
    if (!field.value->is_boolean()) refuse(field, "true or false");
    return field.value->get<bool>();
}

std::string text(const Field& field) {
    if (!field.value->is_string())
        refuse(field, field.type == nullptr ? "a string" : "a short string");
    return field.value->get<std::string>();
}

std::vector<std::uint64_t> whole_numbers(const Field& field, std::uint64_t low,
                                         std::uint64_t high) {
    const json& value = *field.value;
    if (value.is_boolean()) return {value.get<bool>()};
    if (!value.is_number() && (!value.is_array() || value.empty()))
        refuse(field, "whole numbers " + range(low, high));
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < value.size(); ++i)
        numbers.push_back(whole_number(value.is_array() ? element(field, i) : field, low, high));
    return numbers;
}

std::vector<double> list_of_numbers(const Field& field) {
    if (!field.value->is_array() || field.value->empty()) refuse(field, "a list of numbers");
    std::vector<double> numbers;
    for (std::size_t i = 0; i < field.value->size(); ++i) {
        const double number = number_or_nan((*field.value)[i]);
        if (!std::isfinite(number) || number < 0)
            refuse(element(field, i), "a finite number, at least 0");
        numbers.push_back(number);
    }
    return numbers;
}

json json_number(double number) {
    if (number != std::floor(number) || std::fabs(number) > double(max_whole)) return number;
    return number < 0 ? json(std::int64_t(number)) : json(std::uint64_t(number));
}

Field element(const Field& list, std::size_t index) {
    return {list.name + "[" + std::to_string(index) + "]", &(*list.value)[index]};
}

std::vector<Field> elements(const Field& list, std::size_t low, std::size_t high) {
    const bool is_array = list.value->is_array();
    const std::size_t count = is_array ? list.value->size() : 0;
    if (count < low || count > high) {
        invalid_data("{}{}: it must be a list of {}{} numbers", stated(list),
                     is_array ? (" of " + std::to_string(count)).c_str() : "",
                     low == high ? "" : (std::to_string(low) + " to "), high);
    }
    std::vector<Field> each;
    for (std::size_t i = 0; i < count; ++i) each.push_back(element(list, i));
    return each;
}

std::string shown(const Field& field) {
    const json& value = *field.value;
    if (field.type == nullptr) return shown(value);
    if (value.is_binary()) return field.is_list() ? "of strings or lists, or too long" : "too long";
    return value.is_array()    ? "of " + std::to_string(value.size()) + " elements"
           : value.is_string() ? '"' + shown_key(value.get<std::string>()) + '"'
           : value.is_number() ? shown_number(value.get<double>())
                               : shown(value);
}

std::string stated(const Field& field) {
    return field.name + " is " + shown(field);
}

std::string ignored(const Field& field) {
    return "ignored key " + field.name + ", which is " + shown(field) + ": ";
}

}  // namespace vkrope
