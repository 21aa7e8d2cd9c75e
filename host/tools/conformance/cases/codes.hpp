// SPDX-License-Identifier: MIT
// Compares the bytes of a quantised output with the bytes that a case expects, code by code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// Rows of a quantised type. Both spans contain the same rows, in full.
struct CodeRows {
    Element element = VKROPE_INT8;
    std::span<const std::byte> actual, expected;
    std::uint64_t row_bytes = 1;
    std::vector<bool> written = {};  // rows that tokens are stored to; empty: all
    /// The share of codes that may differ by one. If it is absent, codes must have equal bits.
    std::optional<double> off_by_one = {};
};

struct CodeFindings {
    std::uint64_t codes = 0;  // in the rows that tokens are stored to
    std::uint64_t wrong = 0;  // number of findings in codes, scales and bytes
    std::uint64_t byte = 0;   // of the first finding
    std::string first;        // "code 3 is 5, expected 6"; empty: no finding
};

/// Finds the differences that exceed the allowed ones:
///
/// - Rows to which no token is stored must have the expected bytes.
/// - Of N codes, floor(off_by_one N) may be one step from the expected code, in the order of their
///   values. -0 and +0 of 8-bit floats are equal in this order, because the sign of a zero depends
///   on how products are summed. All NaNs are one code, with and without off_by_one.
/// - In the same share of the blocks, a scale or a minimum may be one unit in the last place of f16
///   from the expected value. -0 and +0 are equal here.
CodeFindings compare_codes(const CodeRows& rows);

}  // namespace vkrope::conformance
