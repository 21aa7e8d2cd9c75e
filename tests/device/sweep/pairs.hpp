// SPDX-License-Identifier: MIT
// Which pairs of values of two dimensions there are, and which of them are covered: for a covering
// array of strength two.
#pragma once

#include "dimensions.hpp"

namespace vkrope::test {

class Pairs {
   public:
    /// The row may be any: it names the dimensions.
    explicit Pairs(const std::vector<Value>& row);

    /// The pairs of a row that may be drawn are possible.
    void allow(const std::vector<Value>& row);
    void cover(const std::vector<Value>& row);

    /// The pairs that this row, or its start, would newly cover, and whose second dimension is
    /// `from` or a later one. The fewer allowed rows have a pair, the more it weighs.
    double gain(const std::vector<Value>& row, std::size_t from = 0) const;

    struct Sum {
        std::size_t possible = 0, covered = 0;
        std::vector<std::string> missing = {};  ///< possible, and not covered
        std::vector<std::string> never = {};    ///< values that no row had
    };
    /// Of the first `dimensions`.
    Sum sum(std::size_t dimensions) const;

   private:
    struct Pair {
        std::uint32_t allowed = 0;  // rows
        bool covered = false;
    };

    template <class Action>
    void each_pair(const std::vector<Value>& row, std::size_t from, Action action) const;

    std::vector<Value> dimensions_;
    std::vector<std::size_t> starts_;  // of each dimension among all values; then their number
    std::vector<Pair> pairs_;          // of two values
};

}  // namespace vkrope::test
