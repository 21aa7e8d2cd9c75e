// SPDX-License-Identifier: MIT
#include "model/hf/field.hpp"

#include <cmath>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

[[noreturn]] void refuse(const Field& field, const char* rule) {
    fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be %s", field.name.c_str(),
         shown(*field.value).c_str(), rule);
}

}  // namespace

Field find_first(const Scopes& scopes, std::initializer_list<const char*> names) {
    for (const Scope& scope : scopes) {
        for (const char* name : names) {
            const auto entry = scope.object->find(name);
            if (entry != scope.object->end() && !entry->is_null()) {
                return {scope.prefix + name, &*entry};
            }
        }
    }
    return {};
}

Field find(const Scopes& scopes, std::initializer_list<const char*> names) {
    Field found;
    for (const Scope& scope : scopes) {
        for (const char* name : names) {
            const Field other = find_first({scope}, {name});
            if (found && other && *found.value != *other.value) {
                fail(VKROPE_ERROR_INVALID_DATA, "%s is %s but %s is %s: they must agree",
                     found.name.c_str(), shown(*found.value).c_str(), other.name.c_str(),
                     shown(*other.value).c_str());
            }
            if (!found) {
                found = other;
            }
        }
    }
    return found;
}

Field find_unless_of(const Scopes& others_scopes, std::initializer_list<const char*> others,
                     const Scopes& scopes, std::initializer_list<const char*> names) {
    const auto of_others = [&](const Field& field) {
        for (const char* other : others) {
            const Field found = find_first(others_scopes, {other});
            if (found && *found.value == *field.value) return true;
        }
        return false;
    };
    Field found;
    for (const Scope& scope : scopes) {
        for (const char* name : names) {
            const Field each = find_first({scope}, {name});
            if (!each || of_others(each)) continue;
            if (found && *found.value != *each.value) return find(scopes, names);  // it fails
            if (!found) found = each;
        }
    }
    return found ? found : find(scopes, names);
}

double positive_number(const Field& field) {
    constexpr const char* rule = "a finite number above 0";
    if (!field.value->is_number()) {
        refuse(field, rule);
    }
    const double value = field.value->get<double>();
    if (!std::isfinite(value) || value <= 0) {
        refuse(field, rule);
    }
    return value;
}

std::uint64_t whole_number(const Field& field, std::uint64_t low, std::uint64_t high) {
    const json& value = *field.value;
    // Exact up to 2^53; no caller gives a higher bound.
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= double(low) && number <= double(high)) || number != std::floor(number)) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be a whole number from %llu to %llu",
             field.name.c_str(), shown(value).c_str(), ull{low}, ull{high});
    }
    return std::uint64_t(number);
}

bool truth(const Field& field) {
    if (!field.value->is_boolean()) {
        refuse(field, "true or false");
    }
    return field.value->get<bool>();
}

std::string text(const Field& field) {
    if (!field.value->is_string()) {
        refuse(field, "a string");
    }
    return field.value->get<std::string>();
}

std::string stated(const Field& field) {
    return field.name + " is " + shown(*field.value);
}

}  // namespace vkrope
