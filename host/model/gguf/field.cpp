// SPDX-License-Identifier: MIT
#include "model/gguf/field.hpp"

#include <cmath>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;

std::string shown(const GgufValue& value) {
    if (value.is_list()) {
        return value.known ? "of " + std::to_string(value.numbers.size()) + " elements"
                           : "of strings or lists, or too long";
    }
    if (value.type == GgufType::string) {
        return value.known ? '"' + shown_key(value.text) + '"' : "too long";
    }
    return shown_number(value.numbers[0]);
}

[[noreturn]] void refuse(const GgufField& field, const std::string& rule) {
    fail(VKROPE_ERROR_INVALID_DATA, "%s is %s (%s): it must be %s", field.name.c_str(),
         shown(*field.value).c_str(), name(field.value->type), rule.c_str());
}

/// A boolean is not a number.
bool is_number(const GgufValue& value) {
    return !value.is_list() && value.type != GgufType::string && value.type != GgufType::boolean;
}

std::string range(std::uint64_t low, std::uint64_t high) {
    return "from " + std::to_string(low) + " to " + std::to_string(high);
}

bool in_range(double number, std::uint64_t low, std::uint64_t high) {
    return number >= double(low) && number <= double(high) && number == std::floor(number);
}

bool begins(const std::string& key, const std::string& beginning) {
    return key.compare(0, beginning.size(), beginning) == 0;
}

}  // namespace

GgufField GgufFields::find(const char* name) {
    const std::string key = prefix_ + name;
    asked_for_.insert(key);
    return {shown_key(prefix_) + name, file_.find(key)};
}

GgufField GgufFields::required(const char* name, const char* because) {
    GgufField field = find(name);
    if (!field) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is missing: %s", field.name.c_str(), because);
    }
    return field;
}

void GgufFields::pass_over(const char* beginning) {
    for (const auto& [key, value] : file_.values()) {
        if (begins(key, prefix_ + beginning)) {
            asked_for_.insert(key);
        }
    }
}

std::vector<GgufUnread> GgufFields::unread() const {
    std::vector<GgufUnread> found;
    for (const auto& [key, value] : file_.values()) {
        if (!begins(key, prefix_) || asked_for_.count(key) != 0) continue;
        const std::string name = key.substr(prefix_.size());
        if (const Says says = what_says(name); says != Says::nothing) {
            found.push_back({{shown_key(prefix_) + shown_key(name), &value}, says});
        }
    }
    return found;
}

std::string shown(const GgufField& field) {
    return field.value->type == GgufType::boolean ? field.value->numbers[0] != 0 ? "true" : "false"
                                                  : shown(*field.value);
}

bool is_set(const GgufField& field) {
    const GgufValue& value = *field.value;
    const bool number = value.known && value.type != GgufType::string;
    return !number || (value.is_list() ? !value.numbers.empty() : value.numbers[0] != 0);
}

void warn_of_assumed(const GgufField& field, double value, const std::string& because,
                     std::vector<std::string>& warnings) {
    warnings.push_back(field.name + " is missing: assuming " + shown_number(value) + ", " +
                       because);
}

double finite_number(const GgufField& field) {
    if (!is_number(*field.value) || !std::isfinite(field.value->numbers[0])) {
        refuse(field, "a finite number");
    }
    return field.value->numbers[0];
}

double positive_number(const GgufField& field) {
    if (!is_number(*field.value) || !std::isfinite(field.value->numbers[0]) ||
        field.value->numbers[0] <= 0) {
        refuse(field, "a finite number above 0");
    }
    return field.value->numbers[0];
}

std::uint64_t whole_number(const GgufField& field, std::uint64_t low, std::uint64_t high) {
    if (!is_number(*field.value) || !in_range(field.value->numbers[0], low, high)) {
        refuse(field, "a whole number " + range(low, high));
    }
    return std::uint64_t(field.value->numbers[0]);
}

bool truth(const GgufField& field) {
    if (field.value->type != GgufType::boolean) {
        refuse(field, "true or false");
    }
    return field.value->numbers[0] != 0;
}

std::string text(const GgufField& field) {
    if (field.value->type != GgufType::string || !field.value->known) {
        refuse(field, "a short string");
    }
    return field.value->text;
}

std::vector<std::uint64_t> whole_numbers(const GgufField& field, std::uint64_t low,
                                         std::uint64_t high) {
    const GgufValue& value = *field.value;
    if (value.type == GgufType::string || !value.known || value.numbers.empty()) {
        refuse(field, "whole numbers " + range(low, high));
    }
    std::vector<std::uint64_t> numbers;
    for (const double number : value.numbers) {
        if (!in_range(number, low, high)) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s[%llu] is %s: it must be a whole number %s",
                 field.name.c_str(), ull{numbers.size()}, shown_number(number).c_str(),
                 range(low, high).c_str());
        }
        numbers.push_back(std::uint64_t(number));
    }
    return numbers;
}

std::vector<double> list_of_numbers(const GgufField& field) {
    const std::vector<double>& numbers = field.value->numbers;
    if (!field.is_list() || !field.value->known || numbers.empty()) {
        refuse(field, "a list of numbers");
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!(std::isfinite(numbers[i]) && numbers[i] >= 0)) {
            fail(VKROPE_ERROR_INVALID_DATA, "%s[%llu] is %s: it must be a finite number, at least 0",
                 field.name.c_str(), ull{i}, shown_number(numbers[i]).c_str());
        }
    }
    return numbers;
}

}  // namespace vkrope
