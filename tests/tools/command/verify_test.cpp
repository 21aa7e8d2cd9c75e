// SPDX-License-Identifier: MIT
// `vkrope rotate --verify` must detect a wrong output. No healthy device makes one, so these are
// made here: at position 0 the rotation changes no value, and then one value is changed.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rotate/rotate.hpp"
#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

constexpr std::uint32_t head_dim = 8, rotary_dim = 4, rotary_offset = 2, tokens = 3;

/// Q [1, 3, 1, 8] of ones, and the output that a device at position 0 would give.
struct Case {
    RotateOptions options;
    RotateInputs inputs;
    Measured measured;

    Case() {
        options.verify = true;
        measured.angles.source = VKROPE_ANGLES_DIRECT_TEXTURE;  // the bounds here are its bounds
        inputs.rotation.head_dim = head_dim;
        inputs.rotation.rotary_dim = rotary_dim;
        inputs.rotation.q_rotary_offset = rotary_offset;
        inputs.rotation.inv_freq = {1.0, 0.5};
        inputs.batch = 1;
        inputs.tokens = tokens;
        inputs.positions.ids.assign(tokens, 0);
        TensorFile q;
        q.option = "--q";
        q.array.header.shape = {1, tokens, 1, head_dim};
        q.array.data.resize(tokens * head_dim * sizeof(float));
        q.view = {.type = oracle::Type::f32,
                  .batch = 1,
                  .tokens = tokens,
                  .heads = 1,
                  .head_dim = head_dim,
                  .batch_stride = tokens * head_dim,
                  .token_stride = head_dim,
                  .head_stride = head_dim};
        measured.outputs[Q] = q.array.data;
        inputs.tensors[Q] = q;
        for (std::size_t index = 0; index < tokens * head_dim; ++index) {
            set(inputs.tensors[Q]->array.data, index, 1.0f);
            set(measured.outputs[Q], index, 1.0f);
        }
    }

    static void set(std::vector<std::byte>& bytes, std::size_t index, float value) {
        std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
    }

    Verification verified() const { return verify(options, inputs, measured); }
};

constexpr std::size_t in_window = head_dim + rotary_offset + 1;  // token 1, second rotated channel
constexpr std::size_t outside = 2 * head_dim + 1;                // token 2, before the window
constexpr float u = 0x1p-24f;

}  // namespace

TEST_CASE("a right output passes") {
    const Verification verification = Case().verified();
    CHECK(verification.passed);
    CHECK(verification.failure == "");
    CHECK(verification.verdicts[Q]->elements == tokens * head_dim);
    CHECK(verification.verdicts[Q]->largest_error_u == 0);
    CHECK(!verification.verdicts[K]);
}

TEST_CASE("without --verify nothing has passed") {
    Case rotated;
    rotated.options.verify = false;
    CHECK(!rotated.verified().passed);
    CHECK(!rotated.verified().verdicts[Q]);
}

TEST_CASE("an error just within the bound passes, one just beyond it fails") {
    // |x0| + |x1| is 2, so the bound of 2.5 u allows a difference of 5 u.
    Case near, far;
    Case::set(near.measured.outputs[Q], in_window, 1.0f + 4 * u);
    CHECK(near.verified().passed);
    CHECK(near.verified().verdicts[Q]->largest_error_u == doctest::Approx(2.0));
    Case::set(far.measured.outputs[Q], in_window, 1.0f + 6 * u);
    CHECK(!far.verified().passed);
    CHECK(far.verified().verdicts[Q]->largest_error_u == doctest::Approx(3.0));
    test::check_names(far.verified().failure, "Q 3 2.5");
}

TEST_CASE("an attention factor allows 3 u of what it scales") {
    Case scaled;
    scaled.inputs.rotation.attention_factor = 2.0;
    for (std::size_t token = 0; token < tokens; ++token) {
        for (std::size_t channel = rotary_offset; channel < rotary_offset + rotary_dim; ++channel) {
            Case::set(scaled.measured.outputs[Q], token * head_dim + channel, 2.0f);
        }
    }
    CHECK(scaled.verified().bound_u == 3.0);
    CHECK(scaled.verified().passed);
    Case::set(scaled.measured.outputs[Q], in_window, 2.0f + 16 * u);
    CHECK(!scaled.verified().passed);
}

TEST_CASE("each source has its own bound") {
    struct Source {
        AngleSource source;
        double bound;
    };
    for (const auto& [source, bound] :
         {Source{VKROPE_ANGLES_FACTORED_TEXTURE, 6}, Source{VKROPE_ANGLES_COMPUTED, 4.5},
          Source{VKROPE_ANGLES_DIRECT_TEXTURE, 2.5}, Source{VKROPE_ANGLES_DIRECT_BUFFER, 2.5}}) {
        Case within, beyond;
        within.measured.angles.source = beyond.measured.angles.source = source;
        CHECK(within.verified().bound_u == bound);
        // |x0| + |x1| is 2, and floats from 1 on are 2 u apart.
        const auto steps = float(std::floor(bound));
        Case::set(within.measured.outputs[Q], in_window, 1.0f + 2 * steps * u);
        CHECK(within.verified().passed);
        Case::set(beyond.measured.outputs[Q], in_window, 1.0f + 2 * (steps + 1) * u);
        CHECK(!beyond.verified().passed);
    }
}

TEST_CASE("float32 angles are verified as what they are, and not as the exact ones") {
    // 131071 and a frequency whose product is not a float: the angle error exceeds any bound.
    Case rotated;
    rotated.options.float32_angles = true;
    rotated.inputs.rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    rotated.inputs.rotation.inv_freq = {0.7, 0.5};
    rotated.inputs.positions.ids.assign(tokens, 131071);
    rotated.inputs.positions.lowest = rotated.inputs.positions.highest = 131071;
    for (const bool as_float32 : {true, false}) {
        const double first = as_float32 ? double(131071.0f * 0.7f) : 131071 * 0.7;
        for (std::size_t token = 0; token < tokens; ++token) {
            for (std::size_t j = 0; j < 2; ++j) {
                const double angle = j == 0 ? first : 131071 * 0.5;
                const std::size_t at = token * head_dim + rotary_offset + j;
                Case::set(rotated.measured.outputs[Q], at,
                          float(std::cos(angle) - std::sin(angle)));
                Case::set(rotated.measured.outputs[Q], at + 2,
                          float(std::sin(angle) + std::cos(angle)));
            }
        }
        CHECK(rotated.verified().bound_u == 2.5);
        CHECK(rotated.verified().passed == as_float32);
        rotated.options.float32_angles = false;
        CHECK(rotated.verified().passed == !as_float32);
        rotated.options.float32_angles = true;
    }
    rotated.inputs.rotation.attention_factor = 1.25;  // multiplied as a float: 3 + 1.5
    CHECK(rotated.verified().bound_u == 4.5);
}

TEST_CASE("a channel outside the window must be the same bits") {
    Case rotated;
    Case::set(rotated.inputs.tensors[Q]->array.data, outside, 0.0f);
    Case::set(rotated.measured.outputs[Q], outside, -0.0f);
    CHECK(!rotated.verified().passed);
    CHECK(rotated.verified().verdicts[Q]->bits_changed);
}

TEST_CASE("NaN and infinity where the exact value is finite fail") {
    for (const float wrong :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Case rotated;
        Case::set(rotated.measured.outputs[Q], in_window, wrong);
        CHECK(!rotated.verified().passed);
    }
}

TEST_CASE("K is verified too, at its own offset") {
    Case rotated;
    rotated.inputs.tensors[K] = rotated.inputs.tensors[Q];
    rotated.inputs.rotation.k_rotary_offset = 0;
    rotated.measured.outputs[K] = rotated.measured.outputs[Q];
    CHECK(rotated.verified().passed);
    Case::set(rotated.measured.outputs[K], head_dim + rotary_dim,
              0.0f);  // outside K's window, inside Q's
    CHECK(rotated.verified().verdicts[K]->bits_changed);
    test::check_names(rotated.verified().failure, "K");
}

namespace {

/// With a V [1, 3, 1, 8] of different numbers, and the output that a device would give.
Case with_v() {
    Case moved;
    TensorFile v = *moved.inputs.tensors[Q];
    v.option = "--v";
    for (std::size_t index = 0; index < tokens * head_dim; ++index) {
        Case::set(v.array.data, index, 1.0f + float(index));
    }
    moved.measured.outputs[V] = v.array.data;
    moved.inputs.tensors[V] = v;
    return moved;
}

float with_bits(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

}  // namespace

TEST_CASE("V is right where it is its input, at any position") {
    Case moved = with_v();
    CHECK(moved.verified().passed);
    CHECK(moved.verified().verdicts[V]->elements == tokens * head_dim);
    CHECK(moved.verified().verdicts[V]->passed_through == tokens * head_dim);
    moved.inputs.positions.ids.assign(tokens, 131071);
    const Verification elsewhere = moved.verified();  // Q is wrong, since it is not rotated here
    CHECK(!elsewhere.verdicts[V]->bits_changed);
    test::check_names(elsewhere.failure, "Q");
}

TEST_CASE("a V that was not written, or has a row of another token, fails") {
    Case absent = with_v(), swapped = with_v();
    absent.measured.outputs[V].assign(tokens * head_dim * sizeof(float), std::byte{0});
    CHECK(!absent.verified().passed);
    test::check_names(absent.verified().failure, "V batch 0 token 0 head 0 channel 0 0");
    std::vector<std::byte>& rows = swapped.measured.outputs[V];
    constexpr std::ptrdiff_t row_bytes = head_dim * sizeof(float);
    std::swap_ranges(rows.begin() + row_bytes, rows.begin() + 2 * row_bytes,
                     rows.begin() + 2 * row_bytes);
    CHECK(!swapped.verified().passed);
    test::check_names(swapped.verified().failure, "V batch 0 token 1");
}

TEST_CASE(
    "one bit of V is a change: a rounding, a zero's sign, a NaN's payload, a subnormal that was "
    "flushed") {
    struct Change {
        float in, out;
    };
    for (const auto& [in, out] :
         {Change{1.0f, 1.0f + 2 * u}, Change{-0.0f, 0.0f}, Change{with_bits(1), 0.0f},
          Change{with_bits(0x7f800001), with_bits(0x7fc00001)}}) {
        Case changed = with_v();
        Case::set(changed.inputs.tensors[V]->array.data, outside, in);
        Case::set(changed.measured.outputs[V], outside, in);
        CHECK(changed.verified().passed);
        Case::set(changed.measured.outputs[V], outside, out);
        CHECK(!changed.verified().passed);
        CHECK(changed.verified().verdicts[V]->bits_changed);
    }
}
