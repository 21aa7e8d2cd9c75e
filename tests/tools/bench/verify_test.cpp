// SPDX-License-Identifier: MIT
// Tests the check of every benchmark row before it is timed: the check accepts the right rotation
// and rejects any other, even one that is wrong in few values. The outputs are computed here in
// double from the formula.
#include "verify.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "layer.hpp"
#include "meaning.hpp"
#include "rivals.hpp"

namespace vkrope::bench {
namespace {

/// A packed output of Q or K, with or without a mistake.
struct Output {
    bool swapped_pairing = false, inverse = false, unrotated = false;
    std::int64_t position_off = 0, token_off = 0;
    std::uint64_t wrong_element = UINT64_MAX;

    std::vector<std::byte> of(const Shape& shape, Element element, bool key) const {
        const std::uint64_t heads = key ? shape.k_heads : shape.q_heads,
                            head_dim = key ? shape.k_head_dim : shape.q_head_dim;
        const std::uint64_t half = shape.rotary_dim / 2,
                            offset = key ? shape.k_offset : shape.q_offset;
        const std::vector<double> inv_freq = rotation_of(shape).inv_freq;
        std::vector<std::byte> bytes = Pattern(element).at(
            std::uint64_t(token_off) * heads * head_dim, shape.rows() * heads * head_dim);
        const auto type = oracle::Type(std::uint32_t(element));
        const std::uint32_t size = element_bytes(element);
        const auto load = [&](std::uint64_t at) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, bytes.data() + at * size, size);
            return double(oracle::widen(type, bits));
        };
        const auto store = [&](std::uint64_t at, double value) {
            const std::uint32_t bits = oracle::narrow(type, value);
            std::memcpy(bytes.data() + at * size, &bits, size);
        };
        const bool interleaved = (shape.pairing == VKROPE_INTERLEAVED) != swapped_pairing;
        for (std::uint64_t row = 0; row < shape.rows() * heads && !unrotated; ++row) {
            const double position = double(std::int64_t(row / heads % shape.tokens) + position_off);
            for (std::uint64_t j = 0; j < half; ++j) {
                const std::uint64_t first = row * head_dim + offset + (interleaved ? 2 * j : j);
                const std::uint64_t second = first + (interleaved ? 1 : half);
                const double c = std::cos(position * inv_freq[j]),
                             s = std::sin(position * inv_freq[j]) * (inverse ? -1 : 1);
                const double x0 = load(first), x1 = load(second);
                store(first, x0 * c - x1 * s);
                store(second, x0 * s + x1 * c);
            }
        }
        if (wrong_element != UINT64_MAX) store(wrong_element, load(wrong_element) + 1);
        return bytes;
    }
};

Checked check(const Output& output, const Shape& shape, Element element, bool key, double bound_u) {
    const std::vector<std::byte> bytes = output.of(shape, element, key);
    const std::uint32_t size = element_bytes(element);
    return verify(
        shape, element, key,
        [&](std::uint64_t first, std::uint64_t count) {
            const auto start = bytes.begin() + std::ptrdiff_t(first * size);
            return std::vector<std::byte>(start, start + std::ptrdiff_t(count * size));
        },
        bound_u);
}

Shape small(Pairing pairing, std::uint32_t rotary_dim) {
    Shape shape = growing_tokens(40);
    shape.q_heads = 3;
    shape.k_heads = 2;
    shape.pairing = pairing;
    shape.rotary_dim = rotary_dim;
    shape.q_offset = shape.k_offset = (128 - rotary_dim) / 2;
    return shape;
}

/// The bound of a rival that uses pow, which is the widest bound.
constexpr double widest_u = 0x1p20;

}  // namespace

TEST_CASE("the right rotation passes within the bound of direct tables") {
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        for (const std::uint32_t rotary_dim : {128u, 32u}) {
            for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
                for (const bool key : {false, true}) {
                    const Checked checked = check({}, small(pairing, rotary_dim), element, key,
                                                  2.5);
                    CHECK(checked.failure == "");
                    CHECK(checked.share == 1);
                }
            }
        }
    }
}

TEST_CASE("every other rotation is rejected, even with the widest bound") {
    const Output mistakes[] = {
        {.swapped_pairing = true},
        {.inverse = true},
        {.unrotated = true},
        {.position_off = 1},
        {.token_off = 1},
        {.wrong_element = 0},
        {.wrong_element = 5 * 3 * 128 + 1},
        {.wrong_element = 39 * 3 * 128 + 2 * 128 + 127},
    };
    for (const Output& mistake : mistakes) {
        for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
            CHECK(check(mistake, small(VKROPE_HALF_SPLIT, 128), element, false, 6).failure != "");
            CHECK(check(mistake, small(VKROPE_HALF_SPLIT, 128), element, false, widest_u).failure !=
                  "");
            CHECK(check(mistake, small(VKROPE_INTERLEAVED, 32), element, false, 6).failure != "");
        }
    }
}

TEST_CASE(
    "for a large tensor the check compares the first and last tokens and reports their share") {
    Shape shape = growing_tokens(2048);
    shape.k_heads = 1;
    const std::uint64_t row = 32 * 128;
    const Checked checked = check({}, shape, VKROPE_BF16, false, 2.5);
    CHECK(checked.failure == "");
    CHECK(checked.share < 0.2);
    CHECK(checked.elements ==
          std::uint64_t(std::llround(checked.share * double(shape.q_elements()))));
    CHECK(check({.wrong_element = 0}, shape, VKROPE_BF16, false, 2.5).failure != "");
    CHECK(check({.wrong_element = 2048 * row - 1}, shape, VKROPE_BF16, false, 2.5).failure != "");
}

TEST_CASE("an empty comparison is not a success") {
    Shape shape = small(VKROPE_HALF_SPLIT, 128);
    shape.tokens = 0;
    CHECK(check({}, shape, VKROPE_F32, false, 6).failure != "");
}

TEST_CASE(
    "the processor's rotation is right for every element type, and for a number of tokens that "
    "cores cannot share evenly") {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        const Shape shape = growing_tokens(37);
        const std::vector<std::byte> q = Pattern(element).at(0, shape.q_elements());
        std::vector<std::byte> out(q.size());
        rotate_on_cpu(element, q.data(), out.data(), cpu_table(shape).data(), shape.tokens,
                      shape.q_heads, shape.rotary_dim);
        const auto read = [&](std::uint64_t, std::uint64_t) { return out; };
        const Checked checked = verify(shape, element, false, read, 2.5);
        CHECK(checked.failure == "");
        CHECK(checked.share == 1);
    }
}

TEST_CASE("the numbers of the shapes are consistent") {
    for (const Shape& shape : shapes()) {
        CAPTURE(shape.name);
        const std::vector<std::int32_t> ids = ids_of(shape), slots = slots_of(shape);
        CHECK(ids.size() == (shape.numbering == Numbering::ascending
                                 ? 0
                                 : shape.tokens * std::max(shape.sections.axes, 1u)));
        for (const std::int32_t id : ids)
            CHECK((id >= 0 && std::uint64_t(id) < shape.max_position));
        CHECK(slots.size() == (shape.scatters() ? shape.rows() : 0));
        CHECK(rotation_of(shape).inv_freq.size() == shape.rotary_dim / 2);
        if (ids.empty()) CHECK(shape.tokens <= shape.max_position);
        std::uint32_t pairs = 0;
        for (std::uint32_t axis = 0; axis < shape.sections.axes; ++axis)
            pairs += shape.sections.pairs[axis];
        CHECK((shape.sections.axes == 0 || pairs == shape.rotary_dim / 2));
    }
}

}  // namespace vkrope::bench
