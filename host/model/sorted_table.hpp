// SPDX-License-Identifier: MIT
// Tables of families, whose rows have a name and are searched by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace vkrope {

template <class Row>
constexpr bool before(const Row& row, std::string_view name) {
    return std::string_view(row.name) < name;
}

/// What find_row() needs; for a static_assert beside the table.
template <class Row, std::size_t count>
constexpr bool sorted(const Row (&rows)[count]) {
    for (std::size_t i = 1; i < count; ++i) {
        if (!before(rows[i - 1], rows[i].name)) {
            return false;
        }
    }
    return true;
}

/// By bisection; null where there is none of that name.
template <class Row, std::size_t count>
const Row* find_row(const Row (&rows)[count], std::string_view name) {
    const Row* row = std::lower_bound(std::begin(rows), std::end(rows), name, before<Row>);
    return row != std::end(rows) && row->name == name ? row : nullptr;
}

}  // namespace vkrope
