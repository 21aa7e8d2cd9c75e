// SPDX-License-Identifier: MIT
// Reads and checks one field of a JSON document, under any of its names and in any object that may
// contain it, or of GGUF metadata. An error names field, value and rule.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {

// Limits for the numbers in a model file. A file that exceeds them is damaged or malicious.
inline constexpr std::uint64_t max_heads = 65536;
inline constexpr std::uint64_t max_hidden_size = max_head_dim * max_heads;
inline constexpr std::size_t max_layer_types = 64;
inline constexpr std::uint64_t max_whole = std::uint64_t{1}
                                           << 53;  // a double represents every integer up to this

using nlohmann::json;

// Full names of the keys that some rule has looked for. unread.hpp judges all other keys.
using Reads = std::set<std::string>;

// An object of the configuration and its name in messages: "" for the top level, "rope_scaling."
// for an object inside it.
struct Scope {
    const json* object = nullptr;
    std::string prefix;
    Reads* reads = nullptr;  // receives the names that are looked for; null: not recorded
};

using Scopes = std::vector<Scope>;

// Names under which files state one fact.
struct Keys {
    Keys(std::initializer_list<const char*> of) : names(of.begin(), of.end()) {}
    explicit Keys(std::vector<std::string> of) : names(std::move(of)) {}
    std::vector<std::string> names;
};

// A value that is present and not null, with the name under which it was found.
struct Field {
    std::string name;
    const json* value = nullptr;
    const char* type = nullptr;  // for a GGUF file: name of the type in messages

    explicit operator bool() const { return value != nullptr; }
    bool is_list() const;
};

// Returns the scope of an object that was found in `outer`.
Scope inside(const Scope& outer, const Field& object);

// Notes that a rule knows these keys, although it does not need their values in this file.
void know(const Scopes& scopes, const Keys& keys);

// Placeholder for a value of a GGUF file that is too long to keep, or a list of values other than
// numbers: no rule accepts it.
json not_kept();

// Returns the field with one of `names` in one of `scopes`; empty if there is none. Fails if it is
// found more than once with different values, because it is unknown which of them applies.
Field find(const Scopes& scopes, const Keys& keys);

// Like find(), but where values differ it ignores those that one of `others` has in these scopes:
// they belong to other layers.
Field find_unless_of(const Keys& others, const Scopes& scopes, const Keys& keys);

// Like find(), but where values differ the first field wins, as in the model's own code, and a
// warning names both.
Field find_preferred(const Scopes& scopes, const Keys& keys, Warnings& warnings);

// Like find(), but returns the first field found and ignores all others.
Field find_first(const Scopes& scopes, const Keys& keys);

// Like find() for one name, but fails if it is missing; `because` is the end of the sentence.
Field find_required(const Scopes& scopes, const char* name, const char* because);

// Fails with an error that states the rule for the field.
[[noreturn]] void refuse(const Field& field, const std::string& rule);

// Fails with an error that the two fields must agree.
[[noreturn]] void disagree(const Field& one, const Field& other);

double finite_number(const Field& field);
double positive_number(const Field& field);  // finite and above 0

// Returns an integer in [low, high]; 8.0 counts as an integer.
std::uint64_t whole_number(const Field& field, std::uint64_t low, std::uint64_t high);

// Returns a boolean.
bool truth(const Field& field);

std::string text(const Field& field);

// Returns one integer, or a list of at least one.
std::vector<std::uint64_t> whole_numbers(const Field& field, std::uint64_t low, std::uint64_t high);

// Returns a list of at least one number, each finite and at least 0.
std::vector<double> list_of_numbers(const Field& field);

// Returns a JSON number, stored as an integer if it is one.
json json_number(double number);

// Returns an element of a list, with its index in the name.
Field element(const Field& list, std::size_t index);

// Returns the elements of a list of `low` to `high` numbers.
std::vector<Field> elements(const Field& list, std::size_t low, std::size_t high);

// Returns the value, or the key with its value, for messages.
std::string shown(const Field& field);
std::string stated(const Field& field);

// Returns the beginning of a warning about a key whose value is not read.
std::string ignored(const Field& field);

}  // namespace vkrope
