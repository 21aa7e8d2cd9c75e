// SPDX-License-Identifier: MIT
// Checks the codes and the scales of a quantised output. Each must be the result of the definition
// for a row of f32 whose channels are within their error of the exact values.
#pragma once

#include <functional>
#include <string>

#include "verify/oracle/ops.hpp"
#include "verify/oracle/possible_codes.hpp"

namespace vkrope::oracle {

// Numbers of codes and of scales; d and m of a block are two scales.
struct CodesVerdict {
    std::uint64_t codes = 0, scales = 0;              // compared
    std::uint64_t decided = 0;                        // codes with only one possible value
    std::uint64_t wrong_codes = 0, wrong_scales = 0;  // not possible for any such row
    // Largest distance of a wrong code from the possible codes, in codes, and of a wrong scale
    // from the possible scales, as a relative error; infinite for a NaN.
    int code_distance = 0;
    double scale_error = 0;
    std::string first_wrong;  // "batch 0 token 17 head 3 channel 5: code 7, must be 4 to 6"

    bool right() const { return wrong_codes == 0 && wrong_scales == 0; }
    void add(const CodesVerdict& later);
};

// Checks one row and adds the result to the verdict; `place` precedes the text of an error. Codes
// are compared with the stored scale, block codes with d and m before rounding, because rounding
// to f16 loses too much.
//
// given  the factor of the row; 1 if there is none
// scales the scales that were stored for the groups of the row, if scales are computed
void compare_row(const QuantisedStore& store, float given, std::span<const Approximate> row,
                 std::span<const std::uint8_t> bytes, std::span<const float> scales,
                 const std::string& place, CodesVerdict& verdict);

// Compares the codes of an output with apply_ops() of `input`, as compare() in verdict.hpp does.
//
// codes  whole blocks: the first byte of a row starts the block of its first channel
CodesVerdict compare_codes(const Definition& definition, const void* input, const void* codes,
                           std::span<const float> scales,
                           const std::function<void(double)>& progress);

}  // namespace vkrope::oracle
