// SPDX-License-Identifier: MIT
// Compares the bytes of a quantised output with those that a case expects, code by code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// Rows of a quantised type. Both spans have the same whole rows.
struct CodeRows {
    Element element = VKROPE_INT8;
    std::span<const std::byte> actual, expected;
    std::uint64_t row_bytes = 1;
    std::vector<bool> written = {};  // rows that a token goes to; empty: all
    /// The share of codes that may differ by one; none: they may differ in no bit.
    std::optional<double> off_by_one = {};
};

struct CodeFindings {
    std::uint64_t codes = 0;  // in the rows that a token goes to
    std::uint64_t wrong = 0;  // findings in codes, scales and bytes
    std::uint64_t byte = 0;   // of the first
    std::string first;        // "code 3 is 5, expected 6"; empty if there is none
};

/// Finds what differs more than it may:
///
/// - Rows that no token goes to must have the expected bytes.
/// - Of N codes floor(off_by_one N) may be one step from the expected one, in the order of their
///   values. In the order of 8-bit floats -0 and +0 are in one place: how products are summed
///   decides which it is. All NaNs are one code, with and without off_by_one.
/// - Of the blocks the same share may have a scale or a minimum that is one unit in the last place
///   of f16 from the expected one. -0 and +0 are equal there.
CodeFindings compare_codes(const CodeRows& rows);

}  // namespace vkrope::conformance
