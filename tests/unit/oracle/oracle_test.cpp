// SPDX-License-Identifier: MIT
// The oracle accepts a right answer and catches each kind of wrong one.
#include "verify/oracle/oracle.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

using namespace vkrope::oracle;

namespace {

/// A tensor in memory, read and written as reals.
struct Array {
    explicit Array(const Tensor& tensor)
        : shape(tensor), width(bytes_of(tensor.type)),
          bytes(tensor.batch * tensor.batch_stride * width, 0x7e) {}

    std::size_t at(std::uint64_t b, std::uint64_t t, std::uint64_t h, std::uint64_t c) const {
        return (b * shape.batch_stride + t * shape.token_stride + h * shape.head_stride + c) *
               width;
    }
    std::uint32_t bits(std::size_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, &bytes[offset], width);
        return value;
    }
    void set_bits(std::size_t offset, std::uint32_t value) {
        std::memcpy(&bytes[offset], &value, width);
    }
    long double get(std::size_t offset) const { return widen(shape.type, bits(offset)); }
    void set(std::size_t offset, long double value) { set_bits(offset, narrow(shape.type, value)); }

    Tensor shape;
    std::size_t width;
    std::vector<unsigned char> bytes;
};

/// batch, tokens, heads, head_dim with gaps after every row, token and sequence.
Tensor gappy(Type type, std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads,
             std::uint64_t head_dim) {
    Tensor tensor = {type, batch, tokens, heads, head_dim, 0, 0, 0};
    tensor.head_stride = head_dim + 3;
    tensor.token_stride = heads * tensor.head_stride + 5;
    tensor.batch_stride = tokens * tensor.token_stride + 7;
    return tensor;
}

Operation operation_for(const Tensor& tensor, std::size_t pairs) {
    Operation operation;
    for (std::size_t j = 0; j < pairs; ++j) {
        operation.inv_freq.push_back(std::pow(100.0, -double(j) / double(pairs)));
    }
    for (std::uint64_t i = 0; i < tensor.batch * tensor.tokens; ++i) {
        operation.positions.push_back(std::int64_t(i * 37) - 50);
    }
    return operation;
}

Array random_input(const Tensor& tensor) {
    Array array(tensor);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (std::size_t offset = 0; offset < array.bytes.size(); offset += array.width) {
        array.set(offset, normal(random));
    }
    return array;
}

/// The simplest implementation of the operation: one call of cos and sin per element.
Array rotate(const Array& input, const Operation& operation) {
    Array output = input;
    const Tensor& s = input.shape;
    const std::uint64_t pairs = operation.inv_freq.size();
    for (std::uint64_t i = 0; i < s.batch * s.tokens * s.heads * pairs; ++i) {
        const std::uint64_t j = i % pairs, h = i / pairs % s.heads, token = i / pairs / s.heads;
        const std::uint64_t b = token / s.tokens, t = token % s.tokens;
        const std::uint64_t first = operation.rotary_offset + (operation.interleaved ? 2 * j : j);
        const std::size_t at0 = input.at(b, t, h, first);
        const std::size_t at1 = input.at(b, t, h, first + (operation.interleaved ? 1 : pairs));
        const long double angle = (operation.inverse ? -1 : 1) * operation.inv_freq[j] *
                                  double(operation.positions[token]);
        const long double c = operation.attention_factor * std::cos(angle),
                          d = operation.attention_factor * std::sin(angle);
        output.set(at0, input.get(at0) * c - input.get(at1) * d);
        output.set(at1, input.get(at0) * d + input.get(at1) * c);
    }
    return output;
}

Verdict verdict_of(const Operation& operation, const Array& input, const Array& output) {
    return compare(input.shape, operation, input.bytes.data(), output.bytes.data());
}

bool right(const Verdict& verdict) {
    return verdict.largest_error_u <= 1.001 && !verdict.nan_mismatch && !verdict.bits_changed;
}

}  // namespace

TEST_CASE("the oracle accepts the definition") {
    for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
        for (const bool interleaved : {false, true}) {
            for (const bool inverse : {false, true}) {
                const Tensor tensor = gappy(type, 2, 5, 3, 16);
                Operation operation = operation_for(tensor, 5);
                operation.interleaved = interleaved;
                operation.inverse = inverse;
                operation.rotary_offset = 3;
                operation.attention_factor = 1.25;
                const Array input = random_input(tensor);
                const Verdict verdict = verdict_of(operation, input, rotate(input, operation));
                CHECK(right(verdict));
                CHECK((type == Type::f32 || verdict.largest_error_u < 1e-6));
                CHECK(verdict.elements == 2 * 5 * 3 * 16);
                CHECK(verdict.passed_through == 2 * 5 * 3 * 6);
            }
        }
    }
}

TEST_CASE("the oracle catches a wrong operation") {
    const Tensor tensor = gappy(Type::f32, 1, 4, 2, 8);
    const Operation operation = operation_for(tensor, 4);
    const Array input = random_input(tensor);
    const auto error_of = [&](auto change) {
        Operation other = operation;
        change(other);
        return verdict_of(operation, input, rotate(input, other)).largest_error_u;
    };
    CHECK(error_of([](Operation&) {}) <= 1.001);
    CHECK(error_of([](Operation& o) { o.interleaved = true; }) > 1e6);
    CHECK(error_of([](Operation& o) { o.inverse = true; }) > 1e6);
    CHECK(error_of([](Operation& o) { ++o.positions[2]; }) > 1e4);
    CHECK(error_of([](Operation& o) { o.inv_freq[3] *= 1 + 1e-5; }) > 100);
    CHECK(error_of([](Operation& o) { o.attention_factor = 1 + 1e-6; }) > 10);
    CHECK(error_of([](Operation& o) { o.positions.assign(4, 0); }) > 1e6);
}

TEST_CASE("the oracle sees every element of a strided tensor, and nothing between them") {
    const Tensor tensor = gappy(Type::f16, 2, 3, 2, 6);
    Operation operation = operation_for(tensor, 2);
    operation.rotary_offset = 1;
    const Array input = random_input(tensor);
    const Array good = rotate(input, operation);
    std::size_t wrong = 0;
    for (std::size_t offset = 0; offset < good.bytes.size(); offset += good.width) {
        Array bad = good;
        bad.set(offset, good.get(offset) + 1);
        const Verdict verdict = verdict_of(operation, input, bad);
        wrong += right(verdict) ? 0 : 1;
    }
    CHECK(wrong == 2 * 3 * 2 * 6);
}

TEST_CASE("the oracle says where the error is") {
    const Tensor tensor = gappy(Type::f32, 2, 3, 4, 8);
    const Operation operation = operation_for(tensor, 3);
    const Array input = random_input(tensor);
    Array output = rotate(input, operation);
    output.set(output.at(1, 2, 3, 4), 9);
    CHECK(verdict_of(operation, input, output)
              .worst.find("batch 1 token 2 head 3 channel 4: got 9 ") == 0);
    // A changed channel outside the window is worse than any error inside.
    output.set(output.at(0, 1, 2, 7), 5);
    output.set(output.at(1, 1, 1, 7), 6);
    const Verdict verdict = verdict_of(operation, input, output);
    CHECK(verdict.bits_changed);
    CHECK(verdict.worst.find("batch 0 token 1 head 2 channel 7: got 5 ") == 0);
}

TEST_CASE("channels outside the window keep every bit") {
    const Tensor tensor = {Type::f32, 1, 1, 1, 4, 4, 4, 4};
    Array input(tensor);
    const std::uint32_t bits[] = {0x7fc00123, 0x3f800000, 0x3f800000,
                                  0x80000000};  // a NaN with a payload, 1, 1, -0
    for (std::size_t c = 0; c < 4; ++c) {
        input.set_bits(c * 4, bits[c]);
    }
    Operation operation;
    operation.inv_freq = {1};
    operation.positions = {0};
    operation.rotary_offset = 1;
    CHECK(right(verdict_of(operation, input, input)));
    Array output = input;
    output.set_bits(12, 0);
    CHECK(verdict_of(operation, input, output).bits_changed);
    output = input;
    output.set_bits(0, 0x7fc00124);
    CHECK(verdict_of(operation, input, output).bits_changed);
}

TEST_CASE("angles are exact far out") {
    // cos of 2126261371 * 0.1 (the double), computed with 400 bits. With the product rounded to
    // double it is 2.4728478e-7.
    const long double exact = 0.0000002352460416277563856439226L;
    const Tensor tensor = {Type::f32, 1, 1, 1, 2, 2, 2, 2};
    Array input(tensor), output(tensor);
    input.set(0, 1);
    input.set(4, 0);
    output.set(0, exact);
    output.set(4, -1);  // sin is -1 + 2.8e-14
    Operation operation;
    operation.inv_freq = {0.1};
    operation.positions = {2126261371};
    CHECK(verdict_of(operation, input, output).largest_error_u <= 0.002);
    operation.positions = {-2126261371};
    output.set(4, 1);
    CHECK(verdict_of(operation, input, output).largest_error_u <= 0.002);
    output.set(0, exact + 0.01L * 0x1p-24L);
    CHECK(verdict_of(operation, input, output).largest_error_u ==
          doctest::Approx(0.01).epsilon(0.1));
}

TEST_CASE("progress ends at 1, and nonsense is refused") {
    const Tensor tensor = gappy(Type::f32, 2, 3, 1, 4);
    Operation operation = operation_for(tensor, 2);
    const Array input = random_input(tensor);
    double last = 0;
    compare(tensor, operation, input.bytes.data(), input.bytes.data(), [&](double done) {
        CHECK(done > last);
        last = done;
    });
    CHECK(last == 1);
    operation.rotary_offset = 1;
    CHECK_THROWS_AS(verdict_of(operation, input, input), std::invalid_argument);
    operation.rotary_offset = 0;
    operation.positions.pop_back();
    CHECK_THROWS_AS(verdict_of(operation, input, input), std::invalid_argument);
}

TEST_CASE("slots beyond the pages are counted; tensors that contradict the operation are refused") {
    struct Given {
        Tensor in, out;
        Operation operation;
    };
    const Tensor rows = {.tokens = 2,
                         .heads = 1,
                         .head_dim = 6,
                         .batch_stride = 12,
                         .token_stride = 6,
                         .head_stride = 6};
    const Cache cache = {
        .slot_mapping = {1, 0}, .pages = 2, .page_size = 1, .page_stride = 6, .row_stride = 6};
    const std::vector<float> memory(12);
    const auto check = [&](const auto& change) {
        Given given = {rows, rows, {}};
        given.operation.inv_freq = {1, 1, 1};
        given.operation.positions = {0, 1};
        change(given);
        return compare(given.in, given.out, given.operation, memory.data(), memory.data());
    };
    const auto refused = [&](const auto& change) {
        CHECK_THROWS_AS(check(change), std::invalid_argument);
    };
    CHECK(right(check([](Given&) {})));
    CHECK(right(check([&](Given& given) { given.out.cache = cache; })));
    const Verdict beyond = check([&](Given& given) {
        given.out.cache = cache;
        given.out.cache->slot_mapping = {2, -1};
    });
    CHECK(beyond.elements == 0);
    CHECK(beyond.out_of_range == 1);  // -1 is not counted
    refused([](Given& given) { given.out.head_dim = 5; });
    refused([&](Given& given) { given.in.cache = cache; });
    refused([&](Given& given) {
        given.out.cache = cache;
        given.out.cache->slot_mapping = {0, 0};
    });
    refused([&](Given& given) {
        given.out.cache = cache;
        given.out.cache->slot_mapping = {0};
    });
    refused([](Given& given) { given.operation.windows = {{0, 2}, {3, 1}}; });  // they overlap
    refused([](Given& given) { given.operation.windows = {{0, 1}, {2, 1}}; });  // of two pairs
    refused([](Given& given) { given.operation.windows = {{0, 1}, {4, 2}}; });  // beyond the row
}
