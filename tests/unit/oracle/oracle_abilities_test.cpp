// SPDX-License-Identifier: MIT
// Features of the oracle against values computed by hand: quarter turns, (x0, x1) to (-x1, x0),
// and angles of 0.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "verify/oracle/oracle.hpp"

using namespace vkrope::oracle;

namespace {

constexpr double quarter_turn = 1.57079632679489661923;

using Bytes = std::vector<unsigned char>;

Bytes stored(Type type, const std::vector<double>& values) {
    Bytes bytes;
    for (const double value : values) {
        const std::uint32_t bits = narrow(type, value);
        const auto* first = reinterpret_cast<const unsigned char*>(&bits);
        bytes.insert(bytes.end(), first, first + bytes_of(type));
    }
    return bytes;
}

/// Packed rows.
Tensor rows(std::uint64_t tokens, std::uint64_t heads, std::uint64_t head_dim,
            Type type = Type::f32) {
    return {.type = type,
            .tokens = tokens,
            .heads = heads,
            .head_dim = head_dim,
            .batch_stride = tokens * heads * head_dim,
            .token_stride = heads * head_dim,
            .head_stride = head_dim};
}

Operation turn(std::size_t pairs, std::vector<std::int64_t> positions) {
    Operation operation;
    operation.inv_freq.assign(pairs, quarter_turn);
    operation.positions = std::move(positions);
    return operation;
}

Verdict judge(const Tensor& in, const Tensor& out, const Operation& operation,
              const std::vector<double>& x, const std::vector<double>& y) {
    return compare(in, out, operation, stored(in.type, x).data(), stored(out.type, y).data());
}

/// The allowance is for the double nearest to a quarter turn, which is off by 6e-17.
bool right(const Verdict& verdict) {
    return verdict.largest_error_u < 1e-6 && !verdict.nan_mismatch && !verdict.bits_changed;
}

}  // namespace

TEST_CASE("input and output of their own types") {
    Operation operation = turn(1, {1});
    operation.rotary_offset = 1;
    const double between =
        1 + 0x1p-9 + 0x1p-12;  // bf16 has 1 + 2^-7 next to 1, f16 has 1 + 2^-9 and 1 + 3 * 2^-10
    const auto verdict = [&](Type from, Type to, const std::vector<double>& y) {
        return judge(rows(1, 1, 4, from), rows(1, 1, 4, to), operation, {0.5, 2, 3, between}, y);
    };
    CHECK(right(verdict(Type::f32, Type::f16, {0.5, -3, 2, 1 + 0x1p-9})));
    CHECK(right(verdict(Type::f32, Type::bf16, {0.5, -3, 2, 1})));
    CHECK(right(verdict(Type::f16, Type::f32,
                        {0.5, -3, 2, 1 + 0x1p-9})));  // `between` was rounded in the input
    CHECK(right(verdict(Type::bf16, Type::f32, {0.5, -3, 2, 1})));
    CHECK(right(verdict(Type::f16, Type::bf16, {0.5, -3, 2, 1})));
    CHECK(verdict(Type::f32, Type::f16, {0.5, -3, 2, 1 + 3 * 0x1p-10})
              .bits_changed);  // not the nearest
    CHECK(verdict(Type::f32, Type::bf16, {0.5, -3, 2, 1 + 0x1p-7}).bits_changed);
    CHECK(verdict(Type::f32, Type::bf16, {-0.5, -3, 2, 1}).bits_changed);
    // Rotated channels: the output is 3 + 2^-9, the next f16 to 3. Its rounding cell begins 2^-10
    // above 3, in units of 2^-24 * 5.
    CHECK(verdict(Type::f32, Type::f16, {0.5, -3 - 0x1p-9, 2, 1 + 0x1p-9}).largest_error_u ==
          doctest::Approx(16384.0 / 5));
    CHECK(verdict(Type::f32, Type::f16, {0.5, -3, 2, 1 + 0x1p-9}).passed_through == 2);
}

TEST_CASE("a NaN outside the window stays one through another type") {
    Operation operation = turn(1, {1});
    const Tensor in = rows(1, 1, 3), out = rows(1, 1, 3, Type::f16);
    CHECK(right(judge(in, out, operation, {1, 2, NAN}, {-2, 1, -NAN})));
    CHECK(judge(in, out, operation, {1, 2, NAN}, {-2, 1, 0}).bits_changed);
    CHECK(judge(in, out, operation, {1, 2, 0}, {-2, 1, NAN}).bits_changed);
}

TEST_CASE("input and output of their own strides") {
    const Operation operation = turn(1, {0, 1});
    const Tensor in = rows(2, 2, 2);
    Tensor out = in;  // [heads, tokens] with a gap after each row
    out.token_stride = 3;
    out.head_stride = 6;
    const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(right(judge(in, out, operation, x, {1, 2, 99, -6, 5, 99, 3, 4, 99, -8, 7, 99})));
    CHECK_FALSE(right(judge(in, out, operation, x, {1, 2, 99, 3, 4, 99, -6, 5, 99, -8, 7, 99})));
    out.head_dim = 3;
    CHECK_THROWS_AS(judge(in, out, operation, x, x), std::invalid_argument);
}

TEST_CASE("pairs written in another order than read") {
    Operation operation = turn(2, {1});
    operation.rotary_offset = 1;
    operation.interleaved_out = true;
    const Tensor row = rows(1, 1, 6);
    const std::vector<double> x = {0, 1, 2, 3, 4, 5};
    CHECK(right(judge(row, row, operation, x, {0, -3, 1, -4, 2, 5})));  // pairs (1, 3) and (2, 4)
    CHECK_FALSE(right(judge(row, row, operation, x, {0, -3, -4, 1, 2, 5})));
    operation.interleaved = true;
    operation.interleaved_out = false;
    CHECK(right(judge(row, row, operation, x, {0, -2, -4, 1, 3, 5})));  // pairs (1, 2) and (3, 4)
}

TEST_CASE("gain: the factor applied, left out, divided out") {
    Operation operation = turn(1, {0});
    operation.attention_factor = 4;
    const Tensor row = rows(1, 1, 3);
    const auto verdict = [&](Gain gain, const std::vector<double>& y) {
        operation.gain = gain;
        return judge(row, row, operation, {1, 0, 7}, y);
    };
    CHECK(verdict(Gain::apply, {4, 0, 7}).largest_error_u == 0);
    CHECK(verdict(Gain::omit, {1, 0, 7}).largest_error_u == 0);
    CHECK(verdict(Gain::divide_out, {0.25, 0, 7}).largest_error_u == 0);
    CHECK(verdict(Gain::omit, {4, 0, 7}).largest_error_u > 1e6);
    // In units of u * 4, u and u / 4: an error of 2^-22 is 1, 4 and 16 of them.
    CHECK(verdict(Gain::apply, {4 + 0x1p-21, 0, 7}).largest_error_u == 2);
    CHECK(verdict(Gain::omit, {1 + 0x1p-22, 0, 7}).largest_error_u == 4);
    CHECK(verdict(Gain::divide_out, {0.25 + 0x1p-22, 0, 7}).largest_error_u == 16);
    operation.attention_factor =
        3;  // 1/3 is not a float: the nearest is 2^-25 / 3 away, half a unit u / 3
    CHECK(verdict(Gain::divide_out, {1.0 / 3, 0, 7}).largest_error_u == doctest::Approx(0.5));
}

TEST_CASE("positions that are not covered leave rows unrotated, re-paired where asked") {
    Operation operation = turn(2, {1, 2, -2, INT64_MIN, -1});
    operation.covered = 2;
    const Tensor row = rows(5, 1, 4);
    const std::vector<double> x = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4};
    std::vector<double> y = {-3, -4, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 3, 4, -1, -2};
    const Verdict verdict = judge(row, row, operation, x, y);
    CHECK(right(verdict));
    CHECK(verdict.passed_through == 12);
    CHECK(verdict.out_of_range == 3);
    y[5] = std::nextafter(2.0F, 3.0F);
    CHECK(judge(row, row, operation, x, y).bits_changed);
    operation.interleaved_out = true;
    CHECK(right(judge(row, row, operation, x,
                      {-3, 1, -4, 2, 1, 3, 2, 4, 1, 3, 2, 4, 1, 3, 2, 4, 3, -1, 4, -2})));
    CHECK(judge(row, row, operation, x,
                {-3, 1, -4, 2, 1, 2, 3, 4, 1, 3, 2, 4, 1, 3, 2, 4, 3, -1, 4, -2})
              .bits_changed);
}
