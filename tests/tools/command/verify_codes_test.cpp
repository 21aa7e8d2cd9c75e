// SPDX-License-Identifier: MIT
// `vkrope rotate --verify` must detect a wrong code and a wrong scale. No healthy device makes one,
// so these are made here, from what the definition gives for a V without steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "io/element_type.hpp"
#include "meaning.hpp"
#include "rotate/rotate.hpp"
#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

constexpr std::uint32_t head_dim = 64, heads = 2, tokens = 3;
constexpr std::uint32_t rows = tokens * heads;

/// V [1, 3, 2, 64], and its outputs as a device would give them.
struct Stored {
    RotateOptions options;
    RotateInputs inputs;
    Measured measured;

    explicit Stored(const StoreSteps& store) {
        options.verify = true;
        inputs.batch = 1;
        inputs.tokens = tokens;
        inputs.steps[V].store = store;
        inputs.steps[V].ops.hadamard = store.hadamard;
        TensorFile v;
        v.option = "--v";
        v.array.header.shape = {1, tokens, heads, head_dim};
        v.view = {.type = oracle::Type::f32,
                  .batch = 1,
                  .tokens = tokens,
                  .heads = heads,
                  .head_dim = head_dim,
                  .batch_stride = rows * head_dim,
                  .token_stride = heads * head_dim,
                  .head_stride = head_dim};
        std::vector<float> numbers(rows * head_dim);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = float(i * i % 101) - 50;
        }
        const auto bytes = std::as_bytes(std::span(numbers));
        v.array.data.assign(bytes.begin(), bytes.end());
        inputs.tensors[V] = v;
        for (std::size_t row = 0; row < rows; ++row) {
            add_row(store, row % heads, std::span(numbers).subspan(row * head_dim, head_dim));
        }
    }

    void add_row(const StoreSteps& store, std::size_t head, std::span<const float> row) {
        const oracle::Store type = reference_store(store.type);
        std::vector<std::uint8_t> codes;
        if (block_channels(store.type) != 1) {
            codes = oracle::quantise_blocks(type, row);
        } else if (is_made(store.scale)) {
            const oracle::MadeRow made = oracle::quantise_made(
                type, row, store.scale_floor, store.scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
            codes = made.codes;
            measured.scales[V].push_back(made.scale);
        } else {
            const std::vector<float>& scales = store.given_scales;
            codes = oracle::quantise_given(type, row, scales[head % scales.size()]);
        }
        const auto bytes = std::as_bytes(std::span(codes));
        measured.outputs[V].insert(measured.outputs[V].end(), bytes.begin(), bytes.end());
    }

    Verification verified() const { return verify(options, inputs, measured); }
};

const StoreSteps ways[] = {
    {.type = VKROPE_Q8_0},
    {.type = VKROPE_Q4_1},
    {.type = VKROPE_INT8, .scale = VKROPE_STORE_SCALE_GIVEN, .given_scales = {2.5f}},
    {.type = VKROPE_E5M2, .scale = VKROPE_STORE_SCALE_MADE},
    {.type = VKROPE_INT8, .scale = VKROPE_STORE_SCALE_MADE, .scale_floor = 0.5f},
    {.type = VKROPE_INT8, .scale = VKROPE_STORE_SCALE_GIVEN_HEAD, .given_scales = {2.5f, 0.5f}},
    {.type = VKROPE_E4M3FN, .scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO, .scale_floor = 0x1p-20f},
};

}  // namespace

TEST_CASE("codes of the definition pass, and each is compared") {
    for (const StoreSteps& store : ways) {
        CAPTURE(int(store.type));
        const Verification verification = Stored(store).verified();
        CHECK(verification.passed);
        CHECK(verification.failure == "");
        CHECK(verification.codes[V]->codes == rows * head_dim);
        CHECK(verification.codes[V]->decided == rows * head_dim);
        CHECK(!verification.verdicts[V]);
        CHECK(!verification.steps[V]);
        CHECK(!verification.codes[K]);
    }
    Stored unverified(ways[0]);
    unverified.options.verify = false;
    CHECK(!unverified.verified().passed);
    CHECK(!unverified.verified().codes[V]);
}

TEST_CASE("a changed byte, scale or factor fails, and so does a Hadamard transform left out") {
    for (const StoreSteps& store : ways) {
        CAPTURE(int(store.type));
        Stored changed(store);
        changed.measured.outputs[V].back() ^= std::byte{1};
        CHECK(!changed.verified().passed);
        CHECK(changed.verified().codes[V]->wrong_codes == 1);
        StoreSteps with = store;
        with.hadamard = 64;
        CHECK(!Stored(with).verified().passed);
    }
    Stored scale(ways[3]);
    scale.measured.scales[V][1] *= 2;
    CHECK(scale.verified().codes[V]->wrong_scales == 1);
    Stored floor(ways[4]);
    floor.inputs.steps[V].store.scale_floor = 1;
    CHECK(floor.verified().codes[V]->wrong_scales == rows);
    Stored power(ways[6]);
    CHECK(power.measured.scales[V][0] == 0.125f);  // 50 / 448 is between 1/16 and 1/8
    power.inputs.steps[V].store.scale = VKROPE_STORE_SCALE_MADE;
    CHECK(power.verified().codes[V]->wrong_scales == rows);
    Stored factor(ways[2]);
    factor.inputs.steps[V].store.given_scales = {1 / 2.5f};
    CHECK(!factor.verified().passed);
    Stored of_heads(ways[5]);
    of_heads.inputs.steps[V].store.given_scales = {0.5f, 2.5f};
    CHECK(!of_heads.verified().passed);
}

TEST_CASE("the failure says how much is wrong, and where it begins") {
    Stored changed({.type = VKROPE_INT8, .scale = VKROPE_STORE_SCALE_GIVEN, .given_scales = {1}});
    changed.measured.outputs[V][heads * head_dim + 2] ^= std::byte{0x80};
    test::check_names(changed.verified().failure,
                      "V 1 384 0 0 batch 0 token 1 head 0 channel 2 code");
}
