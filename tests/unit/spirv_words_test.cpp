// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "interface.h"
#include "kernel/spirv.hpp"
#include "spirv_reader.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t op_constant = 43, op_constant_true = 41, op_spec_first = 48, op_spec_op = 52, op_decorate = 71;

std::vector<std::uint32_t> specialized(const std::vector<std::uint32_t>& words, const std::vector<std::uint32_t>& values) {
    const auto result = specialize(words.data(), words.size(), values.data(), std::uint32_t(values.size()));
    REQUIRE(result.status);
    return {result->words.get(), result->words.get() + result->count};
}

}  // namespace

TEST_CASE("constants get their values, operations on them are carried out, everything else stays") {
    // %1 = bool, %2 = uint; %3 = spec 0 (default 7), %4 = spec 1 (true), %5 = 3; %6 = %3 * %5; %7 = %6 < %5; %8 = select %4 %3 %5;
    // %9 = %3 / 0 (left alone); %10 = %9 + %3 (an operand is unknown)
    const auto instruction = [](std::uint32_t op, std::vector<std::uint32_t> operands) {
        operands.insert(operands.begin(), std::uint32_t(operands.size() + 1) << 16 | op);
        return operands;
    };
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 12, 0};
    for (const auto& i : {instruction(op_decorate, {3, 1, 0}), instruction(op_decorate, {4, 1, 1}),
                          instruction(op_decorate, {3, 42}), instruction(20, {1}), instruction(21, {2, 32, 0}),
                          instruction(50, {2, 3, 7}), instruction(48, {1, 4}), instruction(op_constant, {2, 5, 3}),
                          instruction(op_spec_op, {2, 6, 132, 3, 5}), instruction(op_spec_op, {1, 7, 176, 6, 5}),
                          instruction(op_spec_op, {2, 8, 169, 4, 3, 5}), instruction(op_constant, {2, 11, 0}),
                          instruction(op_spec_op, {2, 9, 134, 3, 11}), instruction(op_spec_op, {2, 10, 128, 9, 3})}) {
        words.insert(words.end(), i.begin(), i.end());
    }
    const auto find = [](const std::vector<Instruction>& all, std::uint32_t id) {
        for (const Instruction& i : all) {
            if (i.op != op_decorate && i.operands.size() >= 2 && i.operands[1] == id) return i;
        }
        return Instruction{};
    };
    const auto given = instructions(specialized(words, {20, 0}));
    CHECK(find(given, 3).operands == std::vector<std::uint32_t>{2, 3, 20});
    CHECK(find(given, 4).op == 42);
    CHECK(find(given, 6).operands == std::vector<std::uint32_t>{2, 6, 60});
    CHECK(find(given, 7).op == 42);
    CHECK(find(given, 8).operands == std::vector<std::uint32_t>{2, 8, 3});
    CHECK(find(given, 9).op == op_spec_op);
    CHECK(find(given, 10).op == op_spec_op);
    CHECK(given.size() == instructions(words).size() - 2);  // the two SpecIds are gone, the other decoration stays

    const auto defaults = instructions(specialized(words, {}));
    CHECK(find(defaults, 3).operands == std::vector<std::uint32_t>{2, 3, 7});
    CHECK(find(defaults, 4).op == op_constant_true);
    CHECK(find(defaults, 6).operands == std::vector<std::uint32_t>{2, 6, 21});
    CHECK(find(defaults, 8).operands == std::vector<std::uint32_t>{2, 8, 7});
}

TEST_CASE("packed words come back") {
    const std::uint8_t packed[] = {3, 0xff, 1, 0x80, 0x80, 0x04, 0xff, 0xff, 0xff, 0xff, 0x0f, 0};
    const auto words = unpack(packed, sizeof packed);
    REQUIRE(words.status);
    CHECK(std::vector<std::uint32_t>(words->words.get(), words->words.get() + words->count) ==
          std::vector<std::uint32_t>{3, 255, 65536, 4294967295u, 0});
}

TEST_CASE("the library's modules have nothing left to specialise, and are valid") {
    const std::string modules = VKROPE_TEST_SPIRV;
    const std::string path = modules.substr(0, modules.find('|'));
    std::vector<std::uint32_t> values(shader::constant_count, 4);
    const auto words = specialized(read_words(path), values);
    for (const Instruction& i : instructions(words)) {
        CHECK_FALSE((i.op >= op_spec_first && i.op <= op_spec_op));
        CHECK_FALSE((i.op == op_decorate && i.operands[1] == 1));
    }
#ifdef VKROPE_TEST_SPIRV_VAL
    const std::string file = VKROPE_TEST_SCRATCH "/specialized.spv";
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(words.data()), std::streamsize(words.size() * 4));
    CHECK(std::system((VKROPE_TEST_SPIRV_VAL " --target-env vulkan1.1 " + file).c_str()) == 0);
#endif
}

}  // namespace vkrope::test
