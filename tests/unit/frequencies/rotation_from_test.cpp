// SPDX-License-Identifier: MIT
// Rotations from the arguments of other libraries, against the formula that each documents,
// computed here in long double.
#include "vkrope/rotation_from.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scaling_checks.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

long double power(double base, long double exponent) {
    return std::pow((long double)base, exponent);
}

void check_refused(const Result<Rotation>& made, const std::string& words,
                   Code code = Code::invalid_argument) {
    check_error(made.status, code, words);
    CHECK(made.value.inv_freq.empty());
    CHECK(made.value.head_dim == 0);
}

/// The pairs and axes that a kernel for this rotation has: what is made must be usable.
AnglePlan planned(const Rotation& rotation) {
    const Result<AnglePlan> plan = plan_angles(rotation, AngleSource::computed, 4096, 0);
    REQUIRE_MESSAGE(plan, plan.status.what);
    const Result<KernelInfo> info = kernel_info(rotation, plan.value, Element::f32, Element::f32);
    REQUIRE_MESSAGE(info, info.status.what);
    return plan.value;
}

}  // namespace

TEST_CASE("FlashInfer: rope_scale divides, and Llama 3.1's form blends") {
    const Result<Rotation> plain = rotation_from_flashinfer(
        {.head_dim = 128, .rotary_dim = 64, .interleave = true, .rope_scale = 4});
    REQUIRE(plain);
    CHECK(plain->pairing == Pairing::interleaved);
    CHECK(plain->head_dim == 128);
    CHECK(plain->rotary_dim == 64);
    CHECK(plain->rope_type == "linear");
    for (int j = 0; j < 32; ++j) {
        CHECK(close(plain->inv_freq[j], power(1e4, -2.0L * j / 64) / 4));
    }
    planned(plain.value);

    const Result<Rotation> llama = rotation_from_flashinfer({.head_dim = 128,
                                                             .rope_scale = 8,
                                                             .rope_theta = 5e5,
                                                             .low_freq_factor = 1,
                                                             .high_freq_factor = 4,
                                                             .old_context_len = 8192});
    REQUIRE(llama);
    CHECK(llama->pairing == Pairing::half_split);
    CHECK(llama->rope_type == "llama3");
    std::size_t kept = 0, divided = 0;
    for (int j = 0; j < 64; ++j) {
        // smooth_a and smooth_b of BatchQKApplyLlama31Rotary in FlashInfer's pos_enc.cuh.
        const long double f = power(5e5, -2.0L * j / 128);
        const long double a = 8192 / (two_pi * 4 - two_pi), b = -1 / (4.0L / 1 - 1);
        const long double smooth = std::min(1.0L, std::max(0.0L, f * a + b));
        CHECK(close(llama->inv_freq[j], (1 - smooth) * f / 8 + smooth * f));
        kept += smooth == 1, divided += smooth == 0;
    }
    CHECK(kept > 10);
    CHECK(divided > 10);
    CHECK(rotation_from_flashinfer({.head_dim = 64})->rope_type == "default");

    check_refused(rotation_from_flashinfer({}), "head_dim 0 2 65534");
    check_refused(rotation_from_flashinfer({.head_dim = 64, .rotary_dim = 66}),
                  "rotary_dim 66 2 64");
    check_refused(rotation_from_flashinfer({.head_dim = 64, .rope_scale = 0}), "rope_scale 0");
    check_refused(rotation_from_flashinfer({.head_dim = 64, .rope_theta = -1}), "rope_theta -1");
    check_refused(rotation_from_flashinfer({.head_dim = 64, .low_freq_factor = 1}),
                  "old_context_len 0");
    check_refused(
        rotation_from_flashinfer(
            {.head_dim = 64, .low_freq_factor = 4, .high_freq_factor = 4, .old_context_len = 8192}),
        "low_freq_factor 4 high_freq_factor 4");
}

TEST_CASE("MLX: scale multiplies positions, freqs divide them") {
    const Result<Rotation> plain = rotation_from_mlx(
        {.head_dim = 80, .dims = 32, .traditional = true, .base = 1e4, .scale = 0.25});
    REQUIRE(plain);
    CHECK(plain->pairing == Pairing::interleaved);
    CHECK(plain->rotary_dim == 32);
    CHECK(plain->base == 1e4);
    for (int j = 0; j < 16; ++j) {
        CHECK(close(plain->inv_freq[j], power(1e4, -j / 16.0L) / 4));
    }
    // Gemma 4's proportional form in mlx-lm: what does not turn has an infinite divisor.
    const double freqs[] = {1, 8, 100, std::numeric_limits<double>::infinity()};
    const Result<Rotation> listed = rotation_from_mlx(
        {.head_dim = 8, .dims = 8, .scale = 0.5, .freqs = freqs, .freq_count = 4});
    REQUIRE(listed);
    CHECK(listed->pairing == Pairing::half_split);
    CHECK(listed->base == 0);
    CHECK(listed->inv_freq == std::vector<double>{0.5, 0.0625, 0.005, 0});
    planned(listed.value);

    check_refused(rotation_from_mlx({.head_dim = 8, .dims = 8}), "base freqs");
    check_refused(
        rotation_from_mlx({.head_dim = 8, .dims = 8, .base = 1e4, .freqs = freqs, .freq_count = 4}),
        "base 10000");
    check_refused(rotation_from_mlx({.head_dim = 8, .dims = 8, .freqs = freqs, .freq_count = 8}),
                  "freq_count 8 4");
    check_refused(rotation_from_mlx({.head_dim = 8, .dims = 7, .base = 1e4}), "dims 7");
    check_refused(rotation_from_mlx({.head_dim = 8, .dims = 8, .base = 1e4, .scale = 0}),
                  "scale 0");
    const double bad[] = {1, 0};
    check_refused(rotation_from_mlx({.head_dim = 4, .dims = 4, .freqs = bad, .freq_count = 2}),
                  "freqs[1] 0");
}

TEST_CASE("TransformerEngine: both numbers interpolate, and beyond their product the length does") {
    TransformerEngineRope rope = {
        .dim = 128, .rotary_percent = 0.25, .seq_len_interpolation_factor = 4, .interleaved = true};
    const auto check = [&](long double divisor, const char* type) {
        const Result<Rotation> made = rotation_from_transformer_engine(rope);
        REQUIRE_MESSAGE(made, made.status.what);
        CHECK(made->head_dim == 128);
        CHECK(made->rotary_dim == 32);
        CHECK(made->pairing == Pairing::interleaved);
        CHECK(made->rope_type == type);
        for (int j = 0; j < 16; ++j) {
            CHECK(close(made->inv_freq[j], power(1e4, -2.0L * j / 32) / divisor));
        }
        return made->longest_seq_len;
    };
    CHECK(check(1, "default") == 0);  // the factor alone does nothing
    rope.pretrained_max_position_embeddings = 2048;
    CHECK(check(4, "linear") == 8192);
    rope.max_seq_len = 8192;
    CHECK(check(4, "linear") == 8192);
    rope.max_seq_len = 10000;
    CHECK(check(10000 / 2048.0L, "linear") == 10000);
    rope.seq_len_interpolation_factor = 0;
    CHECK(check(1, "default") == 0);

    check_refused(rotation_from_transformer_engine({}), "dim 0");
    check_refused(rotation_from_transformer_engine({.dim = 100, .rotary_percent = 0.25}),
                  "rotary_percent 25");
    check_refused(rotation_from_transformer_engine({.dim = 64, .rotary_percent = 0}),
                  "rotary_percent 0");
    check_refused(rotation_from_transformer_engine({.dim = 64, .rotary_base = 0}), "rotary_base 0");
    check_refused(rotation_from_transformer_engine({.dim = 64, .seq_len_interpolation_factor = -2}),
                  "seq_len_interpolation_factor -2");
    check_refused(rotation_from_transformer_engine({.dim = 64, .max_seq_len = max_positions + 1}),
                  "max_seq_len 2147483649 2^31");
    CHECK(rotation_from_transformer_engine({.dim = 64, .rotary_percent = 1.5})->rotary_dim == 64);
}

TEST_CASE("ONNX: attributes and shapes make the window; the caches have the angles") {
    const auto window = [](const OnnxRope& rope) {
        const Result<Rotation> made = rotation_from_onnx(rope);
        REQUIRE_MESSAGE(made, made.status.what);
        CHECK(made->inv_freq.empty());
        const Result<AnglePlan> plan = plan_cos_sin_cache(made->rotary_dim / 2, 50,
                                                          made->rotary_dim / 2, Element::f32);
        REQUIRE(plan);
        const Result<KernelInfo> info = kernel_info(made.value, plan.value, Element::f32,
                                                    std::nullopt);
        REQUIRE_MESSAGE(info, info.status.what);
        CHECK(info->angles == AngleSource::cos_sin_cache);
        return made.value;
    };
    // onnx's test_rotary_embedding: X [2, 4, 3, 8], caches [50, 4].
    const Rotation four = window({.channels = 8, .four_dims = true, .cache_width = 4});
    CHECK(four.head_dim == 8);
    CHECK(four.rotary_dim == 8);
    CHECK(four.pairing == Pairing::half_split);
    // test_rotary_embedding_3d_input: X [2, 3, 32], num_heads 4.
    CHECK(window({.num_heads = 4, .channels = 32, .cache_width = 4}).head_dim == 8);
    // test_rotary_embedding_with_interleaved_rotary_dim: rotary_embedding_dim 4, caches [50, 2].
    const Rotation partial = window({.interleaved = true,
                                     .num_heads = 4,
                                     .rotary_embedding_dim = 4,
                                     .channels = 32,
                                     .cache_width = 2});
    CHECK(partial.head_dim == 8);
    CHECK(partial.rotary_dim == 4);
    CHECK(partial.pairing == Pairing::interleaved);
    // com.microsoft without num_heads: the caches say how wide a head is.
    CHECK(window({.channels = 18, .cache_width = 3}).head_dim == 6);

    check_refused(rotation_from_onnx({.channels = 18}), "num_heads 0");
    check_refused(rotation_from_onnx({.rotary_embedding_dim = 4, .channels = 18, .cache_width = 2}),
                  "num_heads 0");
    check_refused(rotation_from_onnx({.num_heads = 4, .channels = 30}), "channels 30 num_heads 4");
    check_refused(rotation_from_onnx({.num_heads = 1, .rotary_embedding_dim = 10, .channels = 8}),
                  "rotary_embedding_dim 10 2 8");
    check_refused(rotation_from_onnx({.channels = 8, .four_dims = true, .cache_width = 8}),
                  "cache_width 8 head_size 4");
    check_refused(rotation_from_onnx({.cache_width = 0xffffffff}), "cache_width 4294967295");
    check_refused(rotation_from_onnx({.scale = 2, .channels = 8, .four_dims = true}), "scale 2",
                  Code::not_supported);
}
