// SPDX-License-Identifier: MIT
// An operation as text: a C++ statement for each field that differs from its default, such as
//
//   operation.info.pairing = VKROPE_INTERLEAVED;
//   operation.ids = {3, 5};
//
// on a variable of the type verify::Unplaced, in a scope where `verify` is that namespace.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "verify/unplaced.hpp"

namespace vkrope::verify {

// An enumeration whose values are indices into `words`.
struct Enumeration {
    void* at;
    std::string prefix;  // before each word in C++
    std::span<const char* const> words;

    std::uint32_t value() const;
    void set(std::uint32_t value) const;
};

// A field of an operation that is no struct and no array of known length.
struct Field {
    std::string path;  // such as info.tensor[0].ops.norm.kind
    std::variant<std::uint32_t*, std::uint64_t*, std::int32_t*, std::int64_t*, float*, double*,
                 bool*, Enumeration, std::vector<float>*, std::vector<double>*,
                 std::vector<std::int64_t>*, Bytes*>
        value;
};

// Returns all fields of an operation that needs no device, always in the same order.
std::vector<Field> fields_of(Unplaced& operation);

// Returns the value of a field in C++, and reads it. read() throws std::invalid_argument.
std::string text_of(const Field& field);
void read(const Field& field, std::string_view text);

// Enumerations must have values with words.
std::string text_of(const Unplaced& operation);

// Reads such text. `operation.` and the semicolons may be left out; empty lines and lines that
// start with // are skipped. Throws std::invalid_argument, whose message starts with the line.
Unplaced operation_of(std::string_view text);

}  // namespace vkrope::verify
