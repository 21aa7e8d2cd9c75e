// SPDX-License-Identifier: MIT
// Draws random operations from all that the library accepts.
#pragma once

#include <span>

#include "verify/unplaced.hpp"

namespace vkrope::verify {

// Operations whose seeds have the same quotient by this number share a kernel, because its
// compilation takes most of the time.
inline constexpr std::uint64_t operations_of_a_kernel = 16;

// Random operations that have something in common, which the name says. Null: any is of the kind.
struct Kind {
    const char* name = "";
    bool (*kernel)(const KernelInfo& info, const Shape& shape) = nullptr;
    bool (*call)(const Unplaced& operation) = nullptr;
    std::uint32_t elements = 1500;  // approximate size of the largest tensor
    // Limits under which a call takes several dispatches.
    ReportedLimits limits = {};
    // Whether the operations have a token_count. Those of no kind have one sometimes, and those of
    // the other kinds never, so that all their tokens are compared.
    bool has_token_count = false;
};

// Kinds that together have every value of each field, and the sizes that change how a shader
// works.
std::span<const Kind> kinds();

// Returns an operation that the library accepts, with rows and ids; the same seed and kind give
// the same operation. A device may refuse it as not supported or beyond a limit, never as invalid.
Unplaced random_operation(std::uint64_t seed, const Kind& kind = {});

// Returns whether the arrangements, pages and slots follow the rules of random_operation(), which
// let no two rows overlap.
bool rows_are_apart(const Unplaced& operation);

// Returns the same operation in other memory: in other arrangements, in place or not. Every stored
// row has the same bits.
Unplaced rearranged(const Unplaced& operation, std::uint64_t seed);

}  // namespace vkrope::verify
