// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "interface.h"
#include "kernel/modules.hpp"
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
    // The header; opcode 61 of 4 words; opcode 300 of 33 words, of which the first two are given.
    std::vector<std::uint8_t> packed = {3, 0xff, 1,    0x80, 0x80, 0x04, 0xff, 0xff, 0xff, 0xff, 0x0f,
                                        0, 0xa4, 0x0f, 1,    2,    0x80, 0x01, 0x80, 0x4b, 33,   7};
    packed.insert(packed.end(), 31, 9);
    const auto words = unpack(packed.data(), packed.size());
    REQUIRE(words.status);
    std::vector<std::uint32_t> expected = {3, 255, 65536, 4294967295u, 0, 4u << 16 | 61, 1, 2, 128, 33u << 16 | 300, 7};
    expected.insert(expected.end(), 31, 9);
    CHECK(std::vector<std::uint32_t>(words->words.get(), words->words.get() + words->count) == expected);
}

TEST_CASE("branches that constants decide go, with what only they reached") {
    // if (spec) a = 1; else a = 2;  as a module of one function that calls another in each branch
    const auto instruction = [](std::uint32_t op, std::vector<std::uint32_t> operands) {
        operands.insert(operands.begin(), std::uint32_t(operands.size() + 1) << 16 | op);
        return operands;
    };
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 40, 0};
    const std::vector<std::vector<std::uint32_t>> all = {instruction(15, {5, 10, 0x6e69616d, 0}),  // entry point %10
                                                         instruction(op_decorate, {31, 42}),
                                                         instruction(op_decorate, {32, 42}),  // of the two results
                                                         instruction(19, {1}),
                                                         instruction(20, {2}),
                                                         instruction(33, {3, 1}),
                                                         instruction(21, {4, 32, 0}),
                                                         instruction(41, {2, 5}),
                                                         instruction(op_constant, {4, 6, 7}),
                                                         instruction(54, {1, 10, 0, 3}),
                                                         instruction(248, {11}),
                                                         instruction(168, {2, 20, 5}),  // %20 = !true
                                                         instruction(247, {14, 0}),
                                                         instruction(250, {20, 12, 13}),  // if (%20)
                                                         instruction(248, {12}),
                                                         instruction(57, {1, 21, 15}),
                                                         instruction(249, {14}),
                                                         instruction(248, {13}),
                                                         instruction(57, {1, 22, 16}),
                                                         instruction(249, {14}),
                                                         instruction(248, {14}),
                                                         instruction(245, {4, 23, 6, 12, 6, 13}),
                                                         instruction(253, {}),
                                                         instruction(56, {}),
                                                         instruction(54, {1, 15, 0, 3}),
                                                         instruction(248, {17}),
                                                         instruction(128, {4, 31, 6, 6}),
                                                         instruction(253, {}),
                                                         instruction(56, {}),
                                                         instruction(54, {1, 16, 0, 3}),
                                                         instruction(248, {18}),
                                                         instruction(128, {4, 32, 6, 6}),
                                                         instruction(253, {}),
                                                         instruction(56, {})};
    for (const auto& i : all) words.insert(words.end(), i.begin(), i.end());
    Spirv module;
    module.count = words.size();
    module.words.reset(new std::uint32_t[words.size()]);
    std::copy(words.begin(), words.end(), module.words.get());
    const auto pruned = prune(module);
    REQUIRE(pruned.status);
    const auto left = instructions({pruned->words.get(), pruned->words.get() + pruned->count});
    const auto count = [&](std::uint32_t op) {
        return std::count_if(left.begin(), left.end(), [=](const Instruction& i) { return i.op == op; });
    };
    CHECK(count(54) == 2);   // the first function that a branch calls has gone
    CHECK(count(247) == 0);  // nothing is selected any more
    CHECK(count(250) == 0);
    CHECK(count(57) == 1);
    CHECK(count(op_decorate) == 1);
    for (const Instruction& i : left) {
        if (i.op == 57) CHECK(i.operands[2] == 16);
        if (i.op == 245) CHECK(i.operands == std::vector<std::uint32_t>{4, 23, 6, 13});
        if (i.op == op_decorate) CHECK(i.operands[0] == 32);
    }
}

TEST_CASE("what a kernel makes of the module is valid, has nothing left to specialise, and binds what the table says") {
    struct Kind {
        const Module* module;
        std::uint32_t angles, tensors;
    };
    const Kind kinds[] = {{&wide_module(AngleSource::direct_texture), shader::angles_texture, 2},
                          {&wide_module(AngleSource::direct_buffer), shader::angles_pairs, 2},
                          {&wide_module(AngleSource::caller_buffer), shader::angles_apart + shader::element_f16, 2},
                          {lean_module(AngleSource::direct_texture), shader::angles_texture, 1},
                          {lean_module(AngleSource::direct_buffer), shader::angles_pairs, 1}};
    struct Variation {
        std::uint32_t access, unit, element, axes, scatter, positions, pairing_out, windows;
    };
    const Variation variations[] = {{shader::access_wide, 8, shader::element_f16, 0, 0, 0, 0, 1},
                                    {shader::access_wide, 4, shader::element_f32, 0, 1, 1, 1, 2},
                                    {shader::access_word, 2, shader::element_bf16, 3, 1, 1, 0, 1},
                                    {shader::access_narrow, 1, shader::element_f16, 3, 0, 1, 1, 4}};
    std::set<std::uint32_t> sizes;
    for (const Kind& kind : kinds) {
        std::set<std::uint32_t> bound;
        for (const Variation& v : variations) {
            std::vector<std::uint32_t> values(shader::constant_count, 4);
            values[shader::constant_pairing] = 0;
            values[shader::constant_pairing_out] = v.pairing_out;
            values[shader::constant_rotary_dim] = 16 * v.windows;
            values[shader::constant_positions] = v.positions;
            values[shader::constant_access] = v.access;
            values[shader::constant_unit_elements] = v.unit;
            for (const auto element :
                 {shader::constant_first_in, shader::constant_first_out, shader::constant_second_in, shader::constant_second_out})
                values[element] = v.element;
            values[shader::constant_scatter] = kind.tensors == 2 ? v.scatter : 0;
            for (std::uint32_t w = 0; w < 4; ++w) {
                values[shader::constant_window_dim + w] = w < v.windows ? 16 : 0;
                values[shader::constant_window_at + w] = w < v.windows ? 16 * w : 0;
            }
            values[shader::constant_angles] = kind.angles;
            values[shader::constant_axes] = v.axes;
            values[shader::constant_section_order] = 0;
            for (std::uint32_t i = 0; i < 8; ++i) values[shader::constant_sections + i] = i < v.axes ? 3 : 0;
            values[shader::constant_tensors] = kind.tensors;
            values[shader::constant_counter] = kind.module->counts;
            const auto packed = unpack(kind.module->packed, kind.module->packed_bytes);
            REQUIRE(packed.status);
            const auto special = specialize(packed->words.get(), packed->count, values.data(), shader::constant_count);
            REQUIRE(special.status);
            const auto pruned = prune(special.value);
            REQUIRE(pruned.status);
            const std::vector<std::uint32_t> words(pruned->words.get(), pruned->words.get() + pruned->count);
            CHECK(words.size() < packed->count * 9 / 10);
            sizes.insert(std::uint32_t(words.size()));
            // Variables that a function names, by their binding.
            std::map<std::uint32_t, std::uint32_t> binding_of;
            bool in_function = false;
            for (const Instruction& i : instructions(words)) {
                CHECK_FALSE((i.op >= op_spec_first && i.op <= op_spec_op));
                CHECK_FALSE((i.op == op_decorate && i.operands[1] == 1));
                if (i.op == op_decorate && i.operands[1] == 33) binding_of[i.operands[0]] = i.operands[2];
                if (i.op == 54) in_function = true;
                if (!in_function || (i.op != 65 && i.op != 61)) continue;  // OpAccessChain, OpLoad
                if (const auto found = binding_of.find(i.operands[2]); found != binding_of.end()) bound.insert(found->second);
            }
#ifdef VKROPE_TEST_SPIRV_VAL
            const std::string file = VKROPE_TEST_SCRATCH "/pruned.spv";
            std::ofstream(file, std::ios::binary)
                .write(reinterpret_cast<const char*>(words.data()), std::streamsize(words.size() * 4));
            CHECK(std::system((VKROPE_TEST_SPIRV_VAL " --target-env vulkan1.1 " + file).c_str()) == 0);
#endif
        }
        std::set<std::uint32_t> declared;
        for (std::uint32_t i = 0; i < kind.module->binding_count; ++i) declared.insert(kind.module->bindings[i].number);
        CHECK(bound == declared);
    }
    CHECK(sizes.size() > 4);
}

}  // namespace vkrope::test
