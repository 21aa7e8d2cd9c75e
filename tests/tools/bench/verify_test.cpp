// SPDX-License-Identifier: MIT
// Tests the check of every benchmark row before it is timed: the check accepts the right rotation
// and rejects any other, even one that is wrong in few values. The outputs are computed here in
// double from the formula.
#include "verify.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/meaning.hpp"
#include "rivals.hpp"
#include "shapes.hpp"
#include "verify/definition.hpp"
#include "verify/elements.hpp"

namespace vkrope::bench {
namespace {

using verify::Operation;

// A packed output of Q or K, with or without a mistake.
struct Output {
    bool swapped_pairing = false, inverse = false, unrotated = false;
    std::int64_t position_off = 0, token_off = 0;
    std::uint64_t wrong_element = UINT64_MAX;

    verify::Bytes of(const Operation& operation, TensorIndex which) const {
        const TensorInfo& info = operation.info.tensor[which];
        const std::uint64_t heads = info.heads, head_dim = info.head_dim;
        const std::uint64_t half = operation.info.rotary_dim / 2,
                            rows = verify::tokens_of(operation);
        verify::Bytes bytes = Pattern(info.in).at(std::uint64_t(token_off) * heads * head_dim,
                                                  rows * heads * head_dim);
        const auto load = [&](std::uint64_t at) {
            return double(verify::value(info.in, bytes, at));
        };
        const auto store = [&](std::uint64_t at, double value) {
            verify::set(info.in, bytes, at, value);
        };
        const bool interleaved = (operation.info.pairing == VKROPE_INTERLEAVED) != swapped_pairing;
        for (std::uint64_t row = 0; row < rows * heads && !unrotated; ++row) {
            const double position = double(std::int64_t(row / heads) + position_off);
            for (std::uint64_t j = 0; j < half; ++j) {
                const std::uint64_t first = row * head_dim + info.rotary_offset +
                                            (interleaved ? 2 * j : j);
                const std::uint64_t second = first + (interleaved ? 1 : half);
                const double angle = position * operation.inv_freq[j], c = std::cos(angle),
                             s = std::sin(angle) * (inverse ? -1 : 1);
                const double x0 = load(first), x1 = load(second);
                store(first, x0 * c - x1 * s);
                store(second, x0 * s + x1 * c);
            }
        }
        if (wrong_element != UINT64_MAX) store(wrong_element, load(wrong_element) + 1);
        return bytes;
    }
};

Checked check(const Operation& operation, TensorIndex which, const verify::Bytes& bytes,
              double bound_u, bool second = false) {
    const auto read = [&](std::uint64_t first, std::uint64_t size) {
        const auto start = bytes.begin() + std::ptrdiff_t(first);
        return verify::Bytes(start, start + std::ptrdiff_t(size));
    };
    return check_output(operation, which, read, bound_u, second);
}

std::string failure_of(const Output& output, const Operation& operation, double bound_u) {
    return check(operation, Q, output.of(operation, Q), bound_u).failure;
}

std::uint64_t elements_of(const Operation& operation, TensorIndex which) {
    const TensorInfo& info = operation.info.tensor[which];
    return verify::tokens_of(operation) * info.heads * info.head_dim;
}

Operation small(Pairing pairing, std::uint32_t rotary_dim, Element element) {
    const std::uint32_t offset = (128 - rotary_dim) / 2;
    return of_type(rotation(40, {3, 128, offset}, {2, 128, offset}, rotary_dim, 500000, pairing),
                   element);
}

// The bound of a rival that uses pow, which is the widest bound.
constexpr double widest_u = 0x1p20;

}  // namespace

TEST_CASE("the right rotation passes within the bound of direct tables") {
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        for (const std::uint32_t rotary_dim : {128u, 32u}) {
            for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
                const Operation operation = small(pairing, rotary_dim, element);
                for (const TensorIndex which : {Q, K}) {
                    const Checked checked = check(operation, which, Output{}.of(operation, which),
                                                  2.5);
                    CHECK(checked.failure == "");
                    CHECK(checked.elements == elements_of(operation, which));
                }
            }
        }
    }
}

TEST_CASE("a second destination has the row after all ops, or as it was read") {
    Operation operation = small(VKROPE_HALF_SPLIT, 128, VKROPE_F32);
    const verify::Bytes rotated = Output{}.of(operation, K),
                        raw = Output{.unrotated = true}.of(operation, K);
    for (const SecondOf of : {VKROPE_SECOND_RESULT, VKROPE_SECOND_INPUT}) {
        operation.info.tensor[K].second_of = of;
        const bool is_raw = of == VKROPE_SECOND_INPUT;
        CHECK((check(operation, K, raw, 6, true).failure == "") == is_raw);
        CHECK((check(operation, K, rotated, 6, true).failure == "") != is_raw);
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
            const Operation half_split = small(VKROPE_HALF_SPLIT, 128, element);
            CHECK(failure_of(mistake, half_split, 6) != "");
            CHECK(failure_of(mistake, half_split, widest_u) != "");
            CHECK(failure_of(mistake, small(VKROPE_INTERLEAVED, 32, element), 6) != "");
        }
    }
}

TEST_CASE(
    "for a large tensor the check compares the first and last tokens and counts what it compared") {
    const Operation operation = of_type(rotation(2048, {32, 128}, {1, 128}, 128, 500000),
                                        VKROPE_BF16);
    const Checked checked = check(operation, Q, Output{}.of(operation, Q), 2.5);
    CHECK(checked.failure == "");
    CHECK(checked.elements > 0);
    CHECK(checked.elements < elements_of(operation, Q) / 5);
    CHECK(failure_of({.wrong_element = 0}, operation, 2.5) != "");
    CHECK(failure_of({.wrong_element = elements_of(operation, Q) - 1}, operation, 2.5) != "");
}

TEST_CASE("an empty comparison is not a success") {
    CHECK(failure_of({}, rotation(0, {1, 128}, {}, 128), 6) != "");
}

TEST_CASE(
    "the processor's rotation is right for every element type, and for a number of tokens that "
    "cores cannot share evenly") {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        const Operation operation = of_type(rotation(37, {32, 128}, {}, 128, 500000), element);
        const verify::Bytes q = Pattern(element).at(0, elements_of(operation, Q));
        verify::Bytes out(q.size());
        rotate_on_cpu(element, q.data(), out.data(), cpu_table(operation).data(), 37, 32, 128);
        const Checked checked = check(operation, Q, out, 2.5);
        CHECK(checked.failure == "");
        CHECK(checked.elements == elements_of(operation, Q));
    }
}

TEST_CASE("every token of a shape has angles, and a row of its cache if there is one") {
    for (const Shape& shape : shapes()) {
        CAPTURE(shape.name);
        Operation operation = shape.operation;
        for (const TensorIndex which : {Q, K})
            operation.call.out[which].where.range = output_bytes(operation, which);
        CHECK(verify::tokens_out_of_range(operation) == 0);
        CHECK(operation.inv_freq.size() == operation.info.rotary_dim / 2);
        std::uint32_t pairs = 0;
        for (const std::uint32_t of_axis : operation.info.sections.pairs) pairs += of_axis;
        CHECK((operation.info.sections.axes == 0 || pairs == operation.info.rotary_dim / 2));
    }
}

}  // namespace vkrope::bench
