// SPDX-License-Identifier: MIT
// Reads and checks one field of a configuration, under any of its names, in any of the objects that
// may hold it.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope {

/// An object of the configuration and its name in messages: "" for the top level, "rope_scaling."
/// for an object inside it.
struct Scope {
    const nlohmann::json* object = nullptr;
    std::string prefix;
};

using Scopes = std::vector<Scope>;

/// A value that is present and not null, with the name under which it was found.
struct Field {
    std::string name;
    const nlohmann::json* value = nullptr;

    explicit operator bool() const { return value != nullptr; }
};

/// The field with one of `names` in one of `scopes`; empty if there is none. Fails if it is found
/// more than once with different values, since it is unknown which one the model means.
Field find(const Scopes& scopes, std::initializer_list<const char*> names);

/// Like find(), but where they differ, values that `others` have too are of other layers.
Field find_unless_of(const Scopes& others_scopes, std::initializer_list<const char*> others,
                     const Scopes& scopes, std::initializer_list<const char*> names);

/// Like find(), but the first one found counts, whatever the others say.
Field find_first(const Scopes& scopes, std::initializer_list<const char*> names);

/// A finite number above 0.
double positive_number(const Field& field);

/// A whole number in [low, high]; 8.0 is one.
std::uint64_t whole_number(const Field& field, std::uint64_t low, std::uint64_t high);

/// true or false.
bool truth(const Field& field);

std::string text(const Field& field);

/// The key with its value, for messages.
std::string stated(const Field& field);

}  // namespace vkrope
