// SPDX-License-Identifier: MIT
// `vkrope rotate --verify` must notice a wrong output. No healthy device makes one, so these are made here: at position 0 the
// rotation leaves every value as it is, and then one value is changed.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "rotate.hpp"

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
        measured.angles.source = AngleSource::direct_texture;  // whose bounds these are
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
        q.view = {.type = reference::Type::f32,
                  .batch = 1,
                  .tokens = tokens,
                  .heads = 1,
                  .head_dim = head_dim,
                  .batch_stride = tokens * head_dim,
                  .token_stride = head_dim,
                  .head_stride = head_dim};
        measured.q = q.array.data;
        inputs.q = q;
        for (std::size_t index = 0; index < tokens * head_dim; ++index) {
            set(inputs.q->array.data, index, 1.0f);
            set(measured.q, index, 1.0f);
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
    CHECK(verification.q->elements == tokens * head_dim);
    CHECK(verification.q->largest_error_u == 0);
    CHECK(!verification.k);
}

TEST_CASE("without --verify nothing has passed") {
    Case rotated;
    rotated.options.verify = false;
    CHECK(!rotated.verified().passed);
    CHECK(!rotated.verified().q);
}

TEST_CASE("an error just within the bound passes, one just beyond it fails") {
    // |x0| + |x1| is 2, so the bound of 2.5 u allows a difference of 5 u.
    Case near, far;
    Case::set(near.measured.q, in_window, 1.0f + 4 * u);
    CHECK(near.verified().passed);
    CHECK(near.verified().q->largest_error_u == doctest::Approx(2.0));
    Case::set(far.measured.q, in_window, 1.0f + 6 * u);
    CHECK(!far.verified().passed);
    CHECK(far.verified().q->largest_error_u == doctest::Approx(3.0));
    CHECK(far.verified().failure.find("Q: a value is too far from the exact one (3 u, allowed 2.5 u)") == 0);
}

TEST_CASE("an attention factor allows 3 u of what it scales") {
    Case scaled;
    scaled.inputs.rotation.attention_factor = 2.0;
    for (std::size_t token = 0; token < tokens; ++token) {
        for (std::size_t channel = rotary_offset; channel < rotary_offset + rotary_dim; ++channel) {
            Case::set(scaled.measured.q, token * head_dim + channel, 2.0f);
        }
    }
    CHECK(scaled.verified().bound_u == 3.0);
    CHECK(scaled.verified().passed);
    Case::set(scaled.measured.q, in_window, 2.0f + 16 * u);
    CHECK(!scaled.verified().passed);
}

TEST_CASE("a channel outside the window must be the same bits") {
    Case rotated;
    Case::set(rotated.inputs.q->array.data, outside, 0.0f);
    Case::set(rotated.measured.q, outside, -0.0f);
    CHECK(!rotated.verified().passed);
    CHECK(rotated.verified().failure.find("outside the rotated window") != std::string::npos);
}

TEST_CASE("NaN and infinity where the exact value is finite fail") {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Case rotated;
        Case::set(rotated.measured.q, in_window, wrong);
        CHECK(!rotated.verified().passed);
    }
}

TEST_CASE("K is verified too, at its own offset") {
    Case rotated;
    rotated.inputs.k = rotated.inputs.q;
    rotated.inputs.rotation.k_rotary_offset = 0;
    rotated.measured.k = rotated.measured.q;
    CHECK(rotated.verified().passed);
    Case::set(rotated.measured.k, head_dim + rotary_dim, 0.0f);  // outside K's window, inside Q's
    CHECK(rotated.verified().failure.find("K: a channel outside the rotated window") == 0);
}
