// SPDX-License-Identifier: MIT
// Tests that `vkrope rotate --verify` detects a wrong output. No healthy device makes a wrong
// output, so the tests make it: at position 0 the rotation changes no value, and then one value is
// changed. tests/unit/oracle tests what counts as an error. These tests check that each field of
// the inputs reaches the definition, and that each kind of error fails the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/meaning.hpp"
#include "io/element_type.hpp"
#include "rotate/rotate.hpp"
#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

constexpr std::uint32_t rotary_dim = 4, rotary_offset = 2, tokens = 3;
constexpr float u = 0x1p-24f;

void set(std::vector<std::byte>& bytes, std::size_t index, float value) {
    std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

// Inputs with one tensor [1, tokens, heads, head_dim], and a device's output for these inputs.
struct Case {
    RotateOptions options;
    OperationInputs inputs;
    AngleSource source = VKROPE_ANGLES_DIRECT_TEXTURE;  // the tests expect its bounds
    OfEachTensor<std::vector<std::byte>> outputs;
    OfEachTensor<std::vector<float>> scales, seconds;

    Case(TensorIndex which, std::uint32_t heads, std::uint32_t head_dim,
         const std::vector<float>& numbers) {
        options.verify = true;
        inputs.rotation.head_dim = head_dim;
        inputs.rotation.rotary_dim = rotary_dim;
        inputs.rotation.q_rotary_offset = rotary_offset;
        inputs.rotation.inv_freq = {1.0, 0.5};
        inputs.batch = 1;
        inputs.tokens = tokens;
        inputs.positions.ids.assign(tokens, 0);
        add(which, heads, head_dim, numbers);
    }

    void add(TensorIndex which, std::uint32_t heads, std::uint32_t head_dim,
             const std::vector<float>& numbers) {
        TensorFile tensor;
        tensor.option = tensor_names[which].input_option;
        tensor.array.header.shape = {1, tokens, heads, head_dim};
        tensor.view = {.type = oracle::Type::f32,
                       .batch = 1,
                       .tokens = tokens,
                       .heads = heads,
                       .head_dim = head_dim,
                       .batch_stride = tokens * heads * head_dim,
                       .token_stride = heads * head_dim,
                       .head_stride = head_dim};
        const auto bytes = std::as_bytes(std::span(numbers));
        tensor.array.data.assign(bytes.begin(), bytes.end());
        outputs[which] = tensor.array.data;
        inputs.tensors[which] = tensor;
    }

    Verification verified() const {
        OperationInputs given = inputs;
        Measured measured;
        verify::Operation& operation = measured.operation;
        operation = operation_of(options, given, true);
        operation.info.angles = source;
        const auto put = [&](const VkDescriptorBufferInfo& part, const auto& bytes) {
            REQUIRE(part.range == bytes.size());
            std::copy(bytes.begin(), bytes.end(), &operation.memory[part.offset]);
        };
        for (const TensorIndex which : every_tensor) {
            put(operation.call.out[which].where, outputs[which]);
            put(operation.call.scales_out[which], std::as_bytes(std::span(scales[which])));
            put(operation.call.second[which], std::as_bytes(std::span(seconds[which])));
        }
        return tools::verify(options, given, measured);
    }
};

constexpr std::uint32_t q_dim = 8, q_channels = tokens * q_dim;
constexpr std::size_t in_window = q_dim + rotary_offset + 1;  // token 1, second rotated channel

Case q_of_ones() {
    return {Q, 1, q_dim, std::vector<float>(q_channels, 1)};
}

// Verifies with one changed channel of Q.
Verification with_q(const Case& right, std::size_t index, float value) {
    Case changed = right;
    set(changed.outputs[Q], index, value);
    return changed.verified();
}

}  // namespace

TEST_CASE("a right output passes, and without --verify nothing has passed") {
    Case right = q_of_ones();
    const Verification verification = right.verified();
    CHECK(verification.passed);
    CHECK(verification.failure == "");
    CHECK(verification.verdicts[Q]->verdict.elements == q_channels);
    CHECK(!verification.verdicts[K]);
    right.options.verify = false;
    CHECK(!right.verified().passed);
    CHECK(!right.verified().verdicts[Q]);
}

TEST_CASE("each source has its bound, which an attention factor raises") {
    struct Row {
        AngleSource source;
        double factor, bound;
    };
    const Row table[] = {{VKROPE_ANGLES_FACTORED_TEXTURE, 1, 6},
                         {VKROPE_ANGLES_COMPUTED, 1, 4.5},
                         {VKROPE_ANGLES_DIRECT_TEXTURE, 1, 2.5},
                         {VKROPE_ANGLES_DIRECT_BUFFER, 1, 2.5},
                         {VKROPE_ANGLES_DIRECT_TEXTURE, 2, 3}};
    for (const Row& row : table) {
        Case right = q_of_ones();
        right.source = row.source;
        right.inputs.rotation.attention_factor = row.factor;
        const auto one = float(row.factor);
        for (std::size_t channel = 0; channel < q_channels; ++channel) {
            const std::size_t in_row = channel % q_dim;
            const bool rotated = in_row >= rotary_offset && in_row < rotary_offset + rotary_dim;
            set(right.outputs[Q], channel, rotated ? one : 1);
        }
        CHECK(right.verified().bound_u == row.bound);
        // |x0| + |x1| is 2, and floats from 1 on are 2 u apart.
        const auto steps = float(std::floor(row.bound));
        CHECK(with_q(right, in_window, one * (1 + 2 * steps * u)).passed);
        CHECK(!with_q(right, in_window, one * (1 + 2 * (steps + 1) * u)).passed);
    }
    test::check_names(with_q(q_of_ones(), in_window, 1 + 6 * u).failure, "Q 3 2.5");
}

TEST_CASE("float32 angles are verified as float32 angles, not as exact ones") {
    // The product of 131071 and the frequency is not a float: the angle error exceeds any bound.
    Case rotated = q_of_ones();
    rotated.inputs.rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    rotated.inputs.rotation.inv_freq = {0.7, 0.5};
    rotated.inputs.positions.ids.assign(tokens, 131071);
    rotated.inputs.positions.lowest = rotated.inputs.positions.highest = 131071;
    for (const bool as_float32 : {true, false}) {
        const double first = as_float32 ? double(131071.0f * 0.7f) : 131071 * 0.7;
        for (std::size_t token = 0; token < tokens; ++token) {
            for (std::size_t j = 0; j < 2; ++j) {
                const double angle = j == 0 ? first : 131071 * 0.5;
                const std::size_t at = token * q_dim + rotary_offset + j;
                set(rotated.outputs[Q], at, float(std::cos(angle) - std::sin(angle)));
                set(rotated.outputs[Q], at + 2, float(std::sin(angle) + std::cos(angle)));
            }
        }
        CHECK(rotated.verified().bound_u == 2.5);
        CHECK(rotated.verified().passed == as_float32);
        rotated.inputs.rotation.precision = VKROPE_ANGLE_PRECISION_EXACT;
        CHECK(rotated.verified().passed == !as_float32);
        rotated.inputs.rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    }
    rotated.inputs.rotation.attention_factor = 1.25;  // multiplied as a float: 3 + 1.5
    CHECK(rotated.verified().bound_u == 4.5);
}

TEST_CASE("a bit outside the window, and a NaN inside, fail; K has its own offset") {
    Case right = q_of_ones();
    right.add(K, 1, q_dim, std::vector<float>(q_channels, 1));
    right.inputs.rotation.k_rotary_offset = 0;
    CHECK(right.verified().passed);
    CHECK(with_q(right, q_dim + 1, 1 + 2 * u).verdicts[Q]->verdict.bits_changed);
    CHECK(!with_q(right, in_window, NAN).passed);
    set(right.outputs[K], rotary_dim, 1 + 2 * u);  // outside K's window, inside Q's
    CHECK(right.verified().verdicts[K]->verdict.bits_changed);
    test::check_names(right.verified().failure, "K");
}

TEST_CASE("V is right if it equals its input bit for bit, at any position") {
    std::vector<float> numbers(q_channels);
    for (std::size_t index = 0; index < numbers.size(); ++index)
        numbers[index] = float(index) - 1;  // contains a zero and a number below 0
    Case moved = q_of_ones();
    moved.add(V, 1, q_dim, numbers);
    CHECK(moved.verified().passed);
    CHECK(moved.verified().verdicts[V]->verdict.elements == q_channels);
    moved.inputs.positions.ids.assign(tokens, 131071);
    moved.inputs.positions.highest = 131071;
    const Verification elsewhere = moved.verified();  // Q is wrong, because Q was not rotated
    CHECK(!elsewhere.verdicts[V]->verdict.bits_changed);
    test::check_names(elsewhere.failure, "Q");
    moved.inputs.positions.ids.assign(tokens, 0);
    set(moved.outputs[V], 1, -0.0f);
    CHECK(!moved.verified().passed);
    test::check_names(moved.verified().failure, "V batch 0 token 0 head 0 channel 1");
}

TEST_CASE("a second destination must have the result or the input, all of it") {
    for (const SecondOf of : {VKROPE_SECOND_RESULT, VKROPE_SECOND_INPUT}) {
        Case right(K, 1, q_dim, std::vector<float>(q_channels, 1));
        right.inputs.ops[K].clip = 0.5f;
        right.inputs.ops[K].second_of = of;
        const float result = of == VKROPE_SECOND_RESULT ? 0.5f : 1;
        for (std::size_t i = 0; i < q_channels; ++i) set(right.outputs[K], i, 0.5f);
        right.seconds[K].assign(q_channels, result);
        CHECK(right.verified().passed);
        CHECK(right.verified().verdicts[K]->second->elements == q_channels);
        right.seconds[K].back() = 1.5f - result;
        CHECK(right.verified().verdicts[K]->verdict.right());
        test::check_names(right.verified().failure, "second K token 2 channel 7");
    }
}

TEST_CASE("without RoPE every channel keeps its bits, at any position") {
    Case still = q_of_ones();
    still.inputs.rotation = {};
    still.inputs.rotation.head_dim = q_dim;
    still.inputs.rotation.no_rope = true;
    still.inputs.positions.ids.assign(tokens, 131071);
    CHECK(still.verified().passed);
    CHECK(still.verified().bound_u == 0);
    CHECK(with_q(still, in_window, 1 + 2 * u).verdicts[Q]->verdict.bits_changed);
}

namespace {

constexpr std::uint32_t v_dim = 64, heads = 2, rows = tokens * heads;

// Returns the store of V, without other ops.
TensorOps store(Element type, StoreScale scale = VKROPE_STORE_SCALE_NONE,
                const std::vector<float>& given_scales = {}, float scale_floor = 0) {
    TensorOps ops;
    ops.stored = type;
    ops.store_scale = scale;
    ops.scale_floor = scale_floor;
    ops.given_scales = given_scales;
    return ops;
}

TensorOps with_hadamard(TensorOps ops) {
    ops.hadamard = 64;
    return ops;
}

// Returns a case with V stored as the definition says.
Case stored(const TensorOps& ops) {
    std::vector<float> numbers(rows * v_dim);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i * i % 101) - 50;
    Case made(V, heads, v_dim, numbers);
    made.inputs.ops[V] = ops;
    made.outputs[V].clear();
    const oracle::Store type = verify::store_of(ops.stored);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto of_row = std::span(numbers).subspan(row * v_dim, v_dim);
        std::vector<std::uint8_t> codes;
        if (block_channels(ops.stored) != 1) {
            codes = oracle::quantise_blocks(type, of_row);
        } else if (is_made(ops.store_scale)) {
            const oracle::MadeRow quantised = oracle::quantise_made(
                type, of_row, ops.scale_floor,
                ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
            codes = quantised.codes;
            made.scales[V].push_back(quantised.scale);
        } else {
            const std::vector<float>& scales = ops.given_scales;
            codes = oracle::quantise_given(type, of_row, scales[row % heads % scales.size()]);
        }
        const auto bytes = std::as_bytes(std::span(codes));
        made.outputs[V].insert(made.outputs[V].end(), bytes.begin(), bytes.end());
    }
    return made;
}

// A store, and another store that gives other codes and scales.
struct Way {
    TensorOps store, other;
};
const Way ways[] = {
    {store(VKROPE_Q8_0), with_hadamard(store(VKROPE_Q8_0))},
    {store(VKROPE_INT8, VKROPE_STORE_SCALE_GIVEN, {2.5f}),
     store(VKROPE_INT8, VKROPE_STORE_SCALE_GIVEN, {1 / 2.5f})},
    {store(VKROPE_INT8, VKROPE_STORE_SCALE_GIVEN_HEAD, {2.5f, 0.5f}),
     store(VKROPE_INT8, VKROPE_STORE_SCALE_GIVEN_HEAD, {0.5f, 2.5f})},
    {store(VKROPE_INT8, VKROPE_STORE_SCALE_MADE, {}, 0.5f),
     store(VKROPE_INT8, VKROPE_STORE_SCALE_MADE, {}, 1)},
    {store(VKROPE_E4M3FN, VKROPE_STORE_SCALE_MADE_POWER_OF_TWO, {}, 0x1p-20f),
     store(VKROPE_E4M3FN, VKROPE_STORE_SCALE_MADE, {}, 0x1p-20f)},
};

}  // namespace

TEST_CASE("codes and scales of the definition pass, and those of no other store") {
    for (const Way& way : ways) {
        CAPTURE(int(way.store.stored));
        Case right = stored(way.store);
        const Verification verification = right.verified();
        CHECK(verification.passed);
        CHECK(verification.verdicts[V]->verdict.codes.codes == rows * v_dim);
        CHECK(verification.verdicts[V]->verdict.codes.decided == rows * v_dim);
        Case changed = right;
        changed.outputs[V].back() ^= std::byte{1};
        CHECK(changed.verified().verdicts[V]->verdict.codes.wrong_codes == 1);
        CHECK(!changed.verified().passed);
        Case other = right;
        other.inputs.ops[V] = way.other;
        CHECK(!other.verified().passed);
    }
    Case scale = stored(store(VKROPE_E5M2, VKROPE_STORE_SCALE_MADE));
    CHECK(scale.verified().passed);
    scale.scales[V][1] *= 2;
    CHECK(scale.verified().verdicts[V]->verdict.codes.wrong_scales == 1);
    Case first = stored(store(VKROPE_INT8, VKROPE_STORE_SCALE_GIVEN, {1}));
    first.outputs[V][heads * v_dim + 2] ^= std::byte{0x80};
    test::check_names(first.verified().failure,
                      "V 1 384 0 0 batch 0 token 1 head 0 channel 2 code");
}

TEST_CASE("a row of moved keys that nothing changes keeps its bytes") {
    Case right(K, 1, q_dim, std::vector<float>(q_channels));
    right.inputs.ops[K].stored = VKROPE_F32;
    right.inputs.ops[K].hadamard = right.inputs.ops[K].hadamard_of_input = 4;
    CHECK(right.verified().passed);
    set(right.outputs[K], in_window, -0.0f);
    CHECK(!right.verified().passed);
    test::check_names(right.verified().failure, "K row 1 other bytes");
    right.inputs.positions.ids[1] = 1;  // then it is computed, and either zero is right
    right.inputs.positions.highest = 1;
    CHECK(right.verified().passed);
}
