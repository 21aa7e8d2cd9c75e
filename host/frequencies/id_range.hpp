// SPDX-License-Identifier: MIT
// Defines the range of ids, and the error for an id outside it.
#pragma once

#include <cstdint>
#include <limits>

#include "base/status.hpp"

namespace vkrope {

constexpr bool fits_id(std::int64_t id) noexcept {
    return id >= std::numeric_limits<std::int32_t>::min() &&
           id <= std::numeric_limits<std::int32_t>::max();
}

// Returns the error for an id in the field "list[index].field", for example "axes[2].first".
inline Status id_out_of_range(const char* list, unsigned long long index, const char* field,
                              std::int64_t id) noexcept {
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "%s[%llu].%s reaches %lld: an id must fit in int32, -2147483648 to 2147483647",
                 list, index, field, static_cast<long long>(id));
}

// Returns the error for an id that is element `index` of `ids`.
inline Status id_out_of_range(unsigned long long index, double id) noexcept {
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "ids[%llu] would be %.17g: an id must fit in int32, -2147483648 to 2147483647",
                 index, id);
}

}  // namespace vkrope
