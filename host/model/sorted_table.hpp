// SPDX-License-Identifier: MIT
// Tables whose rows are sorted and searched by name.
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

/// Whether the rows are sorted, as find_row() needs; for a static_assert beside the table.
template <class Row, std::size_t count>
constexpr bool sorted(const Row (&rows)[count]) {
    for (std::size_t i = 1; i < count; ++i) {
        if (!before(rows[i - 1], rows[i].name)) {
            return false;
        }
    }
    return true;
}

/// Binary search; null if no row has that name.
template <class Row, std::size_t count>
const Row* find_row(const Row (&rows)[count], std::string_view name) {
    const Row* row = std::lower_bound(std::begin(rows), std::end(rows), name, before<Row>);
    return row != std::end(rows) && row->name == name ? row : nullptr;
}

}  // namespace vkrope
