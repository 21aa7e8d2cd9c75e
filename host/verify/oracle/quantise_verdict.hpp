// SPDX-License-Identifier: MIT
// Judges the codes and the scales of a quantised output: each must be one that the definition gives
// for some row of f32 whose channels are within their error of the exact ones.
#pragma once

#include <functional>
#include <string>

#include "verify/oracle/possible_codes.hpp"

namespace vkrope::oracle {

/// Numbers of codes or of scales; d and m of a block are two scales.
struct CodesVerdict {
    std::uint64_t codes = 0, scales = 0;              // compared
    std::uint64_t decided = 0;                        // codes that could have one value only
    std::uint64_t wrong_codes = 0, wrong_scales = 0;  // that no such row has
    /// Largest distance of a wrong code from what it may be, in codes; and of a wrong scale,
    /// relative to that, infinite for a NaN.
    int code_distance = 0;
    double scale_error = 0;
    std::string first_wrong;  // "batch 0 token 17 head 3 channel 5: code 7, must be 4 to 6"

    bool right() const { return wrong_codes == 0 && wrong_scales == 0; }
};

/// Judges one row and adds it to the verdict, with `place` before the text of what is wrong. Codes
/// are judged by the made scale that was stored, block codes by d and m before rounding, because
/// f16 loses too much.
///
/// given  the factor of the row; 1 if there is none
/// scale  the scale that was stored for the row, if scales are made
void compare_row(const QuantisedStore& store, float given, std::span<const Approximate> row,
                 std::span<const std::uint8_t> bytes, float scale, const std::string& place,
                 CodesVerdict& verdict);

/// Compares `codes`, laid out as `out`, whose strides count channels, with apply_ops() of `input`.
///
/// codes   whole blocks: the first byte of a row starts the block of its first channel
/// scales  [batch, tokens, heads], if scales are made
CodesVerdict compare_codes(const Tensor& in, const Tensor& out, const Operation& operation,
                           const Ops& steps, double bound_u, const void* input,
                           const QuantisedStore& store, std::span<const std::uint8_t> codes,
                           std::span<const float> scales,
                           const std::function<void(double)>& progress = {});

}  // namespace vkrope::oracle
