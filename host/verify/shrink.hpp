// SPDX-License-Identifier: MIT
// Reduces an operation that fails to a small one.
#pragma once

#include <functional>

#include "verify/unplaced.hpp"

namespace vkrope::verify {

// The largest number of operations that shrunk() tries. Most operations need about 100 tries. On
// lavapipe, which compiles a kernel for most of them, 160 tries take less than a minute.
inline constexpr std::size_t most_tries = 160;

// Returns a smaller operation that fails, too: fields have their defaults, shapes are small,
// tensors are left out and values are 0 or 1, as far as it still fails.
//
// fails  returns whether an operation fails; false for one that is refused. The last operation for
//        which it returned true is the result. Its exceptions end the search.
Unplaced shrunk(const Unplaced& operation, const std::function<bool(const Unplaced&)>& fails);

}  // namespace vkrope::verify
