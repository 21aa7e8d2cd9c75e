// SPDX-License-Identifier: MIT
// Tests the comparison of quantised rows that are right, off by one or wrong, and its findings.
#include "conformance/cases/codes.hpp"

#include <doctest/doctest.h>

#include "support/names.hpp"
#include "verify/oracle/quantise.hpp"

namespace vkrope::conformance {
namespace {

using oracle::Store;
using Bytes = std::vector<std::uint8_t>;

CodeFindings compared(Element element, const Bytes& actual, const Bytes& expected,
                      std::optional<double> off_by_one = {}, std::vector<bool> written = {}) {
    const std::size_t rows = written.empty() ? 1 : written.size();
    return compare_codes({.element = element,
                          .actual = std::as_bytes(std::span(actual)),
                          .expected = std::as_bytes(std::span(expected)),
                          .row_bytes = actual.size() / rows,
                          .written = std::move(written),
                          .off_by_one = off_by_one});
}

bool right(Element element, const Bytes& actual, const Bytes& expected,
           std::optional<double> off_by_one = {}) {
    return compared(element, actual, expected, off_by_one).wrong == 0;
}

/// Returns two blocks whose codes are neither the lowest nor the highest.
Bytes two_blocks(Store store) {
    std::vector<float> row(64);
    for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = static_cast<float>(i * 7 % 32) - 16;
    }
    return oracle::quantise_blocks(store, row);
}

struct BlockType {
    Element element;
    Store store;
    std::size_t first_code;  // index of its byte in the block
};
constexpr BlockType block_types[] = {{VKROPE_Q8_0, Store::q8_0, 2},
                                     {VKROPE_Q4_0, Store::q4_0, 2},
                                     {VKROPE_Q4_1, Store::q4_1, 4},
                                     {VKROPE_Q5_0, Store::q5_0, 6},
                                     {VKROPE_Q5_1, Store::q5_1, 8}};

TEST_CASE("equal bytes are right, and all codes are counted") {
    for (const BlockType& type : block_types) {
        const Bytes bytes = two_blocks(type.store);
        const CodeFindings findings = compared(type.element, bytes, bytes);
        CHECK(findings.wrong == 0);
        CHECK(findings.codes == 64);
        CHECK(findings.first.empty());
    }
    Bytes all(256);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<std::uint8_t>(i);
    }
    for (const Element element : {VKROPE_E4M3FN, VKROPE_E5M2, VKROPE_INT8}) {
        CHECK(right(element, all, all));
        CHECK(compared(element, all, all).codes == 256);
    }
}

TEST_CASE("one step is in the order of the values") {
    const auto step = [](Element element, std::uint8_t actual, std::uint8_t expected) {
        CHECK(!right(element, {actual}, {expected}));  // without a tolerance no byte may differ
        return right(element, {actual}, {expected}, 1);
    };
    CHECK(step(VKROPE_INT8, 0xff, 0x00));  // -1, 0
    CHECK(step(VKROPE_INT8, 0x80, 0x81));  // -128, -127
    CHECK_FALSE(step(VKROPE_INT8, 0x7f, 0x80));
    CHECK_FALSE(step(VKROPE_INT8, 0x01, 0xff));
    CHECK_FALSE(step(VKROPE_INT8, 5, 7));
    for (const Element element : {VKROPE_E4M3FN, VKROPE_E5M2}) {
        CHECK(step(element, 0x31, 0x30));
        CHECK(step(element, 0xb1, 0xb0));
        CHECK(step(element, 0x80, 0x01));  // -0, the smallest number
        CHECK(step(element, 0x81, 0x00));
        CHECK_FALSE(step(element, 0x81, 0x01));
        CHECK_FALSE(step(element, 0x32, 0x30));
        CHECK_FALSE(step(element, 0xb0, 0x30));
    }
    CHECK(step(VKROPE_E4M3FN, 0x7e, 0x7d));
    CHECK_FALSE(step(VKROPE_E4M3FN, 0x7f, 0x7e));  // a NaN
    CHECK(step(VKROPE_E5M2, 0x7c, 0x7b));          // infinity
    CHECK_FALSE(step(VKROPE_E5M2, 0x7d, 0x7c));
}

TEST_CASE("zeros of both signs are two codes, unless some may differ") {
    for (const Element element : {VKROPE_E4M3FN, VKROPE_E5M2}) {
        CHECK_FALSE(right(element, {0x80}, {0x00}));
        CHECK(right(element, {0x80}, {0x00}, 0.0));
        CHECK_FALSE(right(element, {0x81}, {0x00}, 0.0));
    }
    CHECK_FALSE(right(VKROPE_INT8, {0x80}, {0x00}, 1));
}

TEST_CASE("any NaN is any other") {
    CHECK(right(VKROPE_E4M3FN, {0x7f}, {0xff}));
    CHECK(right(VKROPE_E5M2, {0x7d}, {0xff}));
    CHECK_FALSE(right(VKROPE_E5M2, {0x7c}, {0xfc}));
    CHECK_FALSE(right(VKROPE_INT8, {0x7f}, {0xff}));
}

TEST_CASE("codes of blocks are found where they lie") {
    for (const BlockType& type : block_types) {
        CAPTURE(int(type.element));
        const Bytes expected = two_blocks(type.store);
        const std::size_t second = expected.size() / 2;
        Bytes actual = expected;
        actual[second + type.first_code] ^= 1;  // code 0
        CodeFindings findings = compared(type.element, actual, expected);
        CHECK(findings.wrong == 1);
        CHECK(findings.byte == second + type.first_code);
        test::check_names(findings.first, "code 0 1 64 0");
        CHECK(right(type.element, actual, expected, 1.0 / 64));
        CHECK_FALSE(right(type.element, actual, expected, 0.99 / 64));
        actual = expected;
        actual.back() ^= 0x40;  // code 31, by four or more
        findings = compared(type.element, actual, expected, 1);
        CHECK(findings.wrong == 1);
        CHECK(findings.byte == expected.size() - 1);
        test::check_names(findings.first, "code 31");
    }
}

TEST_CASE("halves of bytes and fifth bits are codes of their own") {
    const Bytes expected = two_blocks(Store::q5_0);
    Bytes actual = expected;
    actual[6] ^= 0x10;  // the lowest bit of code 16
    test::check_names(compared(VKROPE_Q5_0, actual, expected).first, "code 16");
    actual = expected;
    actual[6] ^= 0x11;
    CHECK(compared(VKROPE_Q5_0, actual, expected).wrong == 2);
    CHECK(right(VKROPE_Q5_0, actual, expected, 2.0 / 64));
    actual = expected;
    actual[3] ^= 2;  // the fifth bit of code 9
    test::check_names(compared(VKROPE_Q5_0, actual, expected, 1).first, "code 9");
    actual = expected;  // from 15 to 16 all five bits change
    Bytes next = expected;
    actual[6] = static_cast<std::uint8_t>((actual[6] & 0xf0) | 0x0f);
    actual[2] &= 0xfe;
    next[6] &= 0xf0;
    next[2] |= 0x01;
    CHECK(right(VKROPE_Q5_0, actual, next, 1.0 / 64));
}

TEST_CASE("a share allows its codes, rounded down") {
    const Bytes zeros(100);
    Bytes ones(100);
    std::fill_n(ones.begin(), 29, std::uint8_t{1});
    CHECK(right(VKROPE_INT8, ones, zeros, 0.29));
    CHECK_FALSE(right(VKROPE_INT8, ones, zeros, 0.2899));
    CHECK(compared(VKROPE_INT8, ones, zeros, 0.28).wrong == 29);
    ones[50] = 2;
    const CodeFindings findings = compared(VKROPE_INT8, ones, zeros, 0.29);
    CHECK(findings.wrong == 1);
    CHECK(findings.byte == 50);
    test::check_names(findings.first, "code 2 0");
}

TEST_CASE("scales and minima may be one unit off in the same share of blocks") {
    const Bytes expected = two_blocks(Store::q4_1);
    Bytes actual = expected;
    actual[0] ^= 1;
    actual[2] ^= 1;  // the minimum of the same block
    CHECK(right(VKROPE_Q4_1, actual, expected, 0.5));
    const CodeFindings findings = compared(VKROPE_Q4_1, actual, expected, 0.49);
    CHECK(findings.wrong == 1);
    CHECK(findings.byte == 0);
    test::check_names(findings.first, "scale 1 2 0");
    actual[20] ^= 1;
    CHECK_FALSE(right(VKROPE_Q4_1, actual, expected, 0.5));
    CHECK(right(VKROPE_Q4_1, actual, expected, 1));
    actual = expected;
    actual[22] ^= 4;
    test::check_names(compared(VKROPE_Q4_1, actual, expected, 1).first, "minimum");
}

TEST_CASE("zeros of both signs are one scale") {
    const Bytes zeros = oracle::quantise_blocks(Store::q4_0, std::vector<float>(32));
    CHECK(zeros[1] == 0x80);
    Bytes positive = zeros;
    positive[1] = 0;
    CHECK(right(VKROPE_Q4_0, positive, zeros));
    positive[0] = 1;  // the smallest number
    CHECK_FALSE(right(VKROPE_Q4_0, positive, zeros));
    CHECK(right(VKROPE_Q4_0, positive, zeros, 1));
}

TEST_CASE("rows that no slot names count no codes and may differ in no byte") {
    const Bytes expected(12, 5);
    Bytes actual = expected;
    const std::vector<bool> written = {true, false, true};
    CHECK(compared(VKROPE_INT8, actual, expected, 0.125, written).codes == 8);
    actual[3] = 6;
    CHECK(compared(VKROPE_INT8, actual, expected, 0.125, written).wrong == 0);
    CHECK(compared(VKROPE_INT8, actual, expected, 0.124, written).wrong == 1);
    actual[3] = 5;
    actual[7] = 6;
    const CodeFindings findings = compared(VKROPE_INT8, actual, expected, 1, written);
    CHECK(findings.wrong == 1);
    CHECK(findings.byte == 7);
    test::check_names(findings.first, "0x06 0x05 slot");
    // In rows without a slot, even codes of equal numbers are compared as bytes.
    CHECK(compared(VKROPE_E4M3FN, {0x7f}, {0xff}, 1, {false}).wrong == 1);
}

}  // namespace
}  // namespace vkrope::conformance
