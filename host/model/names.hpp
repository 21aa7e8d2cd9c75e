// SPDX-License-Identifier: MIT
// Defines lists of names and searches tables whose rows have names.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace vkrope {

// All names to which a row applies.
using Names = std::initializer_list<std::string_view>;

// Returns a list of names.
template <class... Name>
constexpr std::array<std::string_view, sizeof...(Name)> names(Name... name) {
    return {name...};
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Returns the first row whose name, or one of whose names, is `name`; null if there is none.
template <class Rows>
auto find_row(const Rows& rows, std::string_view name) -> decltype(&*std::begin(rows)) {
    const auto row = std::find_if(std::begin(rows), std::end(rows), [&](const auto& each) {
        if constexpr (requires { each.names; })
            return contains(each.names, name);
        else
            return name == each.name;
    });
    return row == std::end(rows) ? nullptr : &*row;
}

// A name that is not supported, and the reason.
struct Refusal {
    const char* name;
    const char* reason;
};

// Returns the reason in a row; null if the table has no such row.
template <class Rows>
const char* reason_of(const Rows& rows, std::string_view name) {
    const auto* row = find_row(rows, name);
    return row == nullptr ? nullptr : row->reason;
}

// The reason why a model without a rotary embedding is not read.
inline constexpr const char* no_rotary_embedding = "the model has no rotary embedding";

}  // namespace vkrope
