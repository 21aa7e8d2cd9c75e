// SPDX-License-Identifier: MIT
// Tests operations as text.
#include "verify/text.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "verify/place.hpp"
#include "verify/random.hpp"

namespace vkrope::test {
namespace {

using verify::Unplaced;

std::string problem_of(const char* text) {
    try {
        verify::operation_of(text);
        return "";
    } catch (const std::invalid_argument& problem) {
        return problem.what();
    }
}

}  // namespace

TEST_CASE("random operations are the same after they are printed and read") {
    for (std::uint64_t kernel = 0; kernel < 40; ++kernel) {
        CAPTURE(kernel);
        Unplaced operation = verify::random_operation(kernel * verify::operations_of_a_kernel);
        operation.limits.storage_range = std::uint32_t(kernel);
        const std::string text = verify::text_of(operation);
        Unplaced read = verify::operation_of(text);
        CHECK(verify::text_of(read) == text);
        const std::vector<verify::Field> fields = verify::fields_of(operation),
                                         of_read = verify::fields_of(read);
        for (std::size_t i = 0; i < fields.size(); ++i)
            CHECK(verify::text_of(fields[i]) == verify::text_of(of_read[i]));
        // Fields that text leaves out would change the memory.
        const verify::Operation placed = verify::placed(operation), again = verify::placed(read);
        CHECK(again.memory == placed.memory);
        CHECK(again.inv_freq == placed.inv_freq);
        CHECK(again.call.out[VKROPE_K].where.offset == placed.call.out[VKROPE_K].where.offset);
    }
}

// Executes statements and defines their text.
#define EXECUTE(...) __VA_ARGS__ const std::string text = #__VA_ARGS__

TEST_CASE("the text of an operation is C++") {
    Unplaced operation;
    EXECUTE(
        operation.info.pairing = VKROPE_INTERLEAVED; operation.info.tensor[0].in = VKROPE_BF16;
        operation.info.tensor[0].ops.norm.eps = 1e-06f; operation.info.tensor[0].ops.scale = -2.0f;
        operation.info.windows[3].offset = 4294967295; operation.call.positions.first = -2147483648;
        operation.call.positions.batch_stride = VKROPE_BROADCAST;
        operation.call.positions.token_stride = -3; operation.inv_freq = {1.0, 0.1, INFINITY};
        operation.attention_factor = 1.2079441541679836;
        operation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
        operation.parameters[1].norm_bias = {0.5f, -0.0f}; operation.shape.tokens = 7;
        operation.in = verify::Arrangement::bshd_with_strides;
        operation.out = verify::Arrangement::gathered; operation.in_place[2] = true;
        operation.rows[0] = verify::bytes_of(std::vector<std::uint32_t>{0xffffffff, 0x0});
        operation.rows[1] = verify::bytes_of(std::vector<std::uint8_t>{0xff, 0x1, 0x2});
        operation.rows[2] = verify::Bytes(6); operation.ids = {INT64_MIN, 9223372036854775807, -1};
        operation.limits.no_push_descriptors = true;);
    std::string lines = text;
    for (std::size_t end = 0; (end = lines.find("; ", end)) != std::string::npos;)
        lines.replace(end, 2, ";\n");
    CHECK(verify::text_of(operation) == lines + '\n');
    CHECK(verify::text_of(verify::operation_of(text)) == lines + '\n');
    CHECK(verify::text_of(verify::operation_of("\n// tokens = 1;\n \tshape.tokens=7\r\n")) ==
          "operation.shape.tokens = 7;\n");
    CHECK(verify::text_of(Unplaced()) == "");
}

TEST_CASE("text that is no operation is an error that names the line") {
    CHECK(problem_of("operation.info.pairings = VKROPE_HALF_SPLIT;") ==
          "line 1: 'info.pairings' is no field of an operation");
    CHECK(problem_of("info.pairing = VKROPE_HALF_SPLIT\n\ninfo.tensor[1].ops.norm.span = TOKEN;") ==
          "line 3: info.tensor[1].ops.norm.span: 'TOKEN' is none of VKROPE_NORM_SPAN_HEAD, "
          "VKROPE_NORM_SPAN_TOKEN");
    CHECK(problem_of("info.windows[4].offset = 1;") ==
          "line 1: 'info.windows[4].offset' is no field of an operation");
    CHECK(problem_of("shape.tokens = 4294967296;") ==
          "line 1: shape.tokens: '4294967296' is out of range");
    CHECK(problem_of("shape.tokens = -1;") ==
          "line 1: shape.tokens: '-1' is no integer of this type");
    CHECK(problem_of("call.positions.first = 1x") ==
          "line 1: call.positions.first: '1x' is no integer of this type");
    CHECK(problem_of("attention_factor = 1e400") ==
          "line 1: attention_factor: '1e400' is out of range");
    CHECK(problem_of("attention_factor =") == "line 1: attention_factor: '' is no number");
    CHECK(problem_of("call.q_scale = fast;") == "line 1: call.q_scale: 'fast' is no number");
    CHECK(problem_of("counts = 1") == "line 1: counts: '1' is neither true nor false");
    CHECK(problem_of("ids = 3") == "line 1: ids: '3' is no list {...}");
    CHECK(problem_of("ids = {3, , 4}") == "line 1: ids: '' is no integer of this type");
    CHECK(problem_of("rows[0] = {3}") ==
          "line 1: rows[0]: '{3}' is no verify::bytes_of(std::vector<std::uint32_t>{...})");
    CHECK(problem_of("rows[0] = verify::Bytes(-1)") ==
          "line 1: rows[0]: '-1' is no integer of this type");
    CHECK(problem_of("seed") == "line 1: 'seed' is no assignment");
}

}  // namespace vkrope::test
