// SPDX-License-Identifier: MIT
// Compares the output of each row with the definition of the operation before the row is timed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shapes.hpp"
#include "verify/oracle/verdict.hpp"

namespace vkrope::bench {

/// Pseudorandom elements of a tensor; each is generated from its index alone.
class Pattern {
   public:
    explicit Pattern(Element element);
    /// Returns `count` elements from index `first` on, in the stored type.
    std::vector<std::byte> at(std::uint64_t first, std::uint64_t count) const;

   private:
    std::uint32_t bytes_;
    std::vector<std::byte> period_;
};

struct Checked {
    std::uint64_t elements = 0;  // number of compared elements
    double share = 0;            // compared share of the tensor
    double error_u = 0;          // oracle::Verdict::largest_error_u
    std::string failure;         // empty: no error
};

/// Reads `count` elements of an output from index `first` on.
using ReadElements =
    std::function<std::vector<std::byte>(std::uint64_t first, std::uint64_t count)>;

/// Compares the output of Q or K with the exact rotation of the pattern. In a large tensor it
/// compares whole rows of all heads for the first, the last and some tokens between them; in a
/// scattered K it compares everything.
Checked verify(const Shape& shape, Element element, bool key, const ReadElements& output,
               double bound_u);

}  // namespace vkrope::bench
