// SPDX-License-Identifier: MIT
// Compares the output of each row with the definition of the operation before the row is timed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::bench {

// Pseudorandom elements of a tensor; each is generated from its index alone.
class Pattern {
   public:
    explicit Pattern(Element element);
    // Returns `count` elements from index `first` on, in the stored type; both are whole blocks.
    verify::Bytes at(std::uint64_t first, std::uint64_t count) const;

   private:
    std::uint32_t channels_, bytes_;  // of a block
    verify::Bytes period_;
};

struct Checked {
    std::uint64_t elements = 0;  // number of compared elements
    double error_u = 0;          // largest
    std::string failure;         // empty: no error
};

// Reads bytes of an output from byte `first` on.
using ReadBytes = std::function<verify::Bytes(std::uint64_t first, std::uint64_t bytes)>;

// Compares the output of a tensor with the definition, applied to the pattern. In a large tensor
// it compares whole tokens: the first, the last and some between them.
//
// bound_u  replaces the contract's bound of the rotation
// second   the output is the second destination
// scales   reads the made scales, if the store has them
Checked check_output(const verify::Operation& operation, TensorIndex which, const ReadBytes& output,
                     std::optional<double> bound_u = {}, bool second = false,
                     const ReadBytes& scales = nullptr);

}  // namespace vkrope::bench
