// SPDX-License-Identifier: MIT
// Computes the value of a stored element and the interval of reals that round to the element.
#pragma once

#include <cstdint>
#include <vector>

#include "verify/oracle/oracle.hpp"

namespace vkrope::oracle {

// The values of all elements of one type, computed once, so that comparing an element is a lookup.
class ElementTable {
   public:
    explicit ElementTable(Type type);

    float widen(std::uint32_t bits) const {
        return cells_.empty() ? oracle::widen(Type::f32, bits) : cells_[bits].value;
    }

    // Returns the distance from `exact` to the reals that `bits` stands for; `bits` is not NaN.
    // For f16 and bf16 these are the closed interval of reals that round to the element, for f32
    // the value itself, and for infinities of every type the reals that overflow to them.
    long double distance(std::uint32_t bits, long double exact) const {
        const Cell cell = cells_.empty() ? f32_cell(bits) : cells_[bits];
        if (exact < cell.low) return cell.low - exact;
        return exact > cell.high ? exact - cell.high : 0;
    }

    // Returns whether `exact` lies inside the interval that rounds to `bits`, which may be NaN.
    bool holds(std::uint32_t bits, long double exact) const {
        return !cells_.empty() && exact > cells_[bits].low && exact < cells_[bits].high;
    }

   private:
    struct Cell {
        double low = 0, high = 0;
        float value = 0;
    };

    static Cell f32_cell(std::uint32_t bits);
    static Cell small_cell(Type type, std::uint32_t bits);

    std::vector<Cell> cells_;  // indexed by the 16 bits of the element; empty for f32
};

}  // namespace vkrope::oracle
