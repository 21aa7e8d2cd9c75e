// SPDX-License-Identifier: MIT
// Checks verdicts of the oracle on one pair of given bits: the unit of its errors, rounding cells,
// infinities and NaN, gains, and angles at large positions.
#include <doctest/doctest.h>

#include <limits>

#include "verify/oracle/verdict.hpp"

using namespace vkrope::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns the verdict on (y0, y1) as the rotation of (x0, x1) at position 0: cos is `gain`, sin 0.
Verdict judge(Type type, double gain, std::uint32_t x0, std::uint32_t x1, std::uint32_t y0,
              std::uint32_t y1, double allowance = 0) {
    const Tensor tensor = {type, 1, 1, 1, 2, 2, 2, 2};
    const auto stored = [&](std::uint32_t first,
                            std::uint32_t second) -> std::vector<std::uint32_t> {
        if (type == Type::f32) return {first, second};
        return {first | second << 16};
    };
    Operation operation;
    operation.inv_freq = {1};
    operation.positions = {0};
    operation.attention_factor = gain;
    operation.absolute_allowance = allowance;
    return compare({tensor, tensor, operation}, stored(x0, x1).data(), stored(y0, y1).data());
}

// Returns the error of (y0, y1) as the rotation of (x0, 0), for f32 numbers.
double error_of(const Operation& operation, float x0, float y0, float y1) {
    const Tensor tensor = {Type::f32, 1, 1, 1, 2, 2, 2, 2};
    const float in[] = {x0, 0}, out[] = {y0, y1};
    return compare({tensor, tensor, operation}, in, out).largest_error_u;
}

}  // namespace

TEST_CASE("errors are in units of u times the inputs") {
    const std::uint32_t one = 0x3f800000;
    CHECK(judge(Type::f32, 1, one, 0, one, 0).largest_error_u == 0);
    CHECK(judge(Type::f32, 1, one, 0, one + 1, 0).largest_error_u == 2);  // an ulp of 1 is 2^-23
    CHECK(judge(Type::f32, 1, one, one, one, one + 1).largest_error_u == 1);
    CHECK(judge(Type::f32, 1, one, 0, one + 1, 0, 0x1p-24).largest_error_u == 1);
    CHECK(judge(Type::f32, 1, one, 0, one + 1, 0, 0x1p-22).largest_error_u == 0);
    CHECK(judge(Type::f32, 0.5, one, 0, 0x3f000001, 0).largest_error_u == 2);
    CHECK(judge(Type::f32, 1, 0, 0, 0, 0).largest_error_u == 0);
    CHECK(judge(Type::f32, 1, 0, 0, 0, one).largest_error_u == infinity);
    CHECK(judge(Type::f32, 0.5, 1, 0, 0, 0).largest_error_u >
          1e6);  // 2^-149 halved, to 0, without an allowance
    CHECK(judge(Type::f32, 0.5, 1, 0, 0, 0, 0x1p-148).largest_error_u == 0);
}

TEST_CASE("16-bit results are compared by their rounding cells") {
    const std::uint32_t one = 0x3c00;
    const double tie = 1 + 0x1p-11;
    CHECK(judge(Type::f16, tie, one, 0, one, 0).largest_error_u == 0);
    CHECK(judge(Type::f16, tie, one, 0, one + 1, 0).largest_error_u == 0);
    CHECK(judge(Type::f16, tie, one, 0, one + 2, 0).largest_error_u ==
          doctest::Approx(16384 / tie));
    CHECK(judge(Type::f16, 1, one, 0, one + 1, 0).largest_error_u == 8192);
    CHECK(judge(Type::bf16, 1, 0x3f80, 0, 0x3f81, 0).largest_error_u == 65536);
}

TEST_CASE("infinities and NaN") {
    const std::uint32_t max = 0x7f7fffff, inf = 0x7f800000, nan = 0x7fc00000, one = 0x3f800000;
    CHECK(judge(Type::f32, 2, max, 0, inf, 0).largest_error_u == 0);
    CHECK(judge(Type::f32, 2, max, 0, max, 0).largest_error_u > 1e6);
    CHECK(judge(Type::f32, 2, max, 0, 0x80000000 | inf, 0).largest_error_u > 1e6);
    CHECK(judge(Type::f32, 1, max, 0, inf, 0).largest_error_u > 0.4);
    CHECK(judge(Type::f16, 2, 0x7bff, 0, 0x7c00, 0).largest_error_u == 0);
    CHECK(judge(Type::f16, 2, 0x7bff, 0, 0x7bff, 0).largest_error_u > 1e6);
    CHECK(judge(Type::f16, 2, 0x7bff, 0, 0xfc00, 0).largest_error_u > 1e6);

    // Position 0: y0 = x0 - x1 * 0, y1 = x0 * 0 + x1.
    CHECK(!judge(Type::f32, 1, inf, one, inf, nan).nan_mismatch);
    CHECK(judge(Type::f32, 1, inf, one, inf, nan).largest_error_u == 0);
    CHECK(judge(Type::f32, 1, inf, one, one, nan).largest_error_u == infinity);
    CHECK(judge(Type::f32, 1, inf, one, inf, one).nan_mismatch);
    CHECK(!judge(Type::f32, 1, nan, one, nan, 0xffc00001).nan_mismatch);
    CHECK(judge(Type::f32, 1, nan, one, nan, one).nan_mismatch);
    CHECK(judge(Type::f32, 1, one, 0, nan, 0).nan_mismatch);
    CHECK(judge(Type::f16, 1, 0x3c00, 0, 0x7e00, 0).nan_mismatch);

    // The first wrong element is the worst, and the sentence is about it.
    for (const bool nan_first : {true, false}) {
        const Tensor tensor = {Type::f32, 1, 1, 2, 2, 4, 4, 2};
        const float wrong = std::numeric_limits<float>::quiet_NaN();
        const float in[] = {wrong, 1, float(infinity), 1};
        const float out[] = {nan_first ? 1 : wrong, wrong, nan_first ? float(infinity) : 1, wrong};
        Definition definition = {tensor, tensor, {}};
        definition.operation.inv_freq = {1};
        definition.operation.positions = {0};
        const Verdict verdict = compare(definition, in, out);
        CHECK(verdict.worst.place.head == (nan_first ? 0 : 1));
        CHECK(verdict.worst.nan_mismatch == nan_first);
        CHECK((problem_of(definition, verdict).find("NaN") != std::string::npos) == nan_first);
    }
}

TEST_CASE("a NaN outside the window stays a NaN in another type") {
    const Tensor in = {Type::f32, 1, 1, 1, 1, 1, 1, 1}, out = {Type::f16, 1, 1, 1, 1, 1, 1, 1};
    Operation operation;
    operation.positions = {0};
    const auto bits_changed = [&](float x, std::uint16_t y) {
        return compare({in, out, operation}, &x, &y).bits_changed;
    };
    CHECK_FALSE(bits_changed(std::numeric_limits<float>::quiet_NaN(), 0xfe00));
    CHECK(bits_changed(std::numeric_limits<float>::quiet_NaN(), 0));
    CHECK(bits_changed(0, 0x7e00));
}

TEST_CASE("gain: the attention factor is in the unit of errors as it is in cos and sin") {
    Operation operation;
    operation.inv_freq = {1};
    operation.positions = {0};
    operation.attention_factor = 4;
    // In units of u * 4, u and u / 4 an error of 2^-22 is 1, 4 and 16.
    operation.gain = Gain::apply;
    CHECK(error_of(operation, 1, 4 + 0x1p-21F, 0) == 2);
    operation.gain = Gain::omit;
    CHECK(error_of(operation, 1, 1 + 0x1p-22F, 0) == 4);
    CHECK(error_of(operation, 1, 4, 0) > 1e6);
    operation.gain = Gain::divide_out;
    CHECK(error_of(operation, 1, 0.25F + 0x1p-22F, 0) == 16);
    // 1/3 is not a float. The nearest float is 2^-25 / 3 away, which is half of the unit u / 3.
    operation.attention_factor = 3;
    CHECK(error_of(operation, 1, 1.0F / 3, 0) == doctest::Approx(0.5));
}

TEST_CASE("angles are exact at large positions") {
    // cos of 2126261371 * 0.1 (the double), computed with 400 bits. With the product rounded to
    // double, cos would be 2.4728478e-7. sin is -1 + 2.8e-14.
    const long double exact = 0.0000002352460416277563856439226L;
    Operation operation;
    operation.inv_freq = {0.1};
    operation.positions = {2126261371};
    CHECK(error_of(operation, 1, float(exact), -1) <= 0.002);
    operation.positions = {-2126261371};
    CHECK(error_of(operation, 1, float(exact), 1) <= 0.002);
    CHECK(error_of(operation, 1, float(exact + 0.01L * 0x1p-24L), 1) ==
          doctest::Approx(0.01).epsilon(0.1));
}
