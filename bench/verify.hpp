// SPDX-License-Identifier: MIT
// No row is timed before its output has been held against the definition of the operation.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/oracle.hpp"
#include "shapes.hpp"

namespace vkrope::bench {

/// Elements of a tensor that look random and can be had from anywhere on without those before.
class Pattern {
   public:
    explicit Pattern(Element element);
    /// `count` elements from number `first` on, as stored.
    std::vector<std::byte> at(std::uint64_t first, std::uint64_t count) const;

   private:
    std::uint32_t bytes_;
    std::vector<std::byte> period_;
};

/// What comparing came to.
struct Checked {
    std::uint64_t elements = 0;  // compared
    double share = 0;            // of the whole tensor
    double error_u = 0;          // reference::Verdict::largest_error_u
    std::string failure;         // empty: nothing is wrong
};

/// What is wrong with a verdict, by an error bound in u; empty: nothing.
std::string failure_of(const reference::Verdict& verdict, double bound_u);

/// Reads `count` elements of an output, from number `first` on.
using ReadElements =
    std::function<std::vector<std::byte>(std::uint64_t first, std::uint64_t count)>;

/// Compares the output of Q or K with the exact rotation of the pattern. Large tensors: the first,
/// the last and some tokens between them, whole rows of all heads; a scattered K: all of it.
Checked verify(const Shape& shape, Element element, bool key, const ReadElements& output,
               double bound_u);

}  // namespace vkrope::bench
