// SPDX-License-Identifier: MIT
// The dimensions of the sweep: a kernel and a call of it have one value of each.
#pragma once

#include "tuples.hpp"

namespace vkrope::test {

struct Value {
    const char* dimension;
    std::span<const char* const> names;  ///< of all values
    std::uint32_t index;
    enum Of { rows, kernel, ops_of_q, ops_of_k, ops_of_v, call } of = kernel;

    const char* name() const { return names[index]; }
};

/// Whether the pairs of values of these two dimensions are to be covered, `second` being `first` or
/// after it. Rows have more values than there are kernels for: of a kernel's they meet those of two
/// values. Steps meet the steps of their tensor.
inline bool meet(const Value& first, const Value& second) {
    if (first.of == Value::kernel || second.of == Value::call || first.of == second.of) return true;
    return first.of == Value::rows && second.of == Value::kernel && second.names.size() == 2;
}

/// Those of a kernel first: always as many, in the same order.
std::vector<Value> values_of(const Numbers& numbers, const KernelChoice& kernel);
std::vector<Value> values_of(const Numbers& numbers, const KernelChoice& kernel,
                             const Tuple& tuple);

}  // namespace vkrope::test
