// SPDX-License-Identifier: MIT
// Checks words of SPIR-V: packing, specialising, and the bindings that remain.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel_words.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

std::vector<std::uint32_t> instruction(std::uint32_t op, std::vector<std::uint32_t> operands) {
    operands.insert(operands.begin(), std::uint32_t(operands.size() + 1) << 16 | op);
    return operands;
}

Result<Specializer> specializer_of(const std::vector<std::uint32_t>& words) {
    Result<Spirv> module;
    module->count = words.size();
    module->words.reset(new std::uint32_t[words.size()]);
    std::copy(words.begin(), words.end(), module->words.get());
    return Specializer::of(std::move(module));
}

std::vector<std::uint32_t> specialized(const std::vector<std::uint32_t>& words,
                                       const std::vector<std::uint32_t>& values) {
    auto module = specializer_of(words);
    REQUIRE(module.status);
    BindingList binds;
    const auto result = module->specialize(values.data(), std::uint32_t(values.size()), 0,
                                           LoopControls::as_written, binds);
    REQUIRE(result.status);
    return words_of(result.value);
}

}  // namespace

TEST_CASE("constants get their values, operations on them are evaluated, everything else stays") {
    // %1 = bool, %2 = uint; %3 = spec 0 (default 7), %4 = spec 1 (true), %5 = 3; %6 = %3 * %5; %7 =
    // %6 < %5; %8 = select %4 %3 %5; %9 = %3 / 0 (left alone); %10 = %9 + %3 (an operand is
    // unknown)
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 12, 0};
    for (const auto& i :
         {instruction(spv::OpDecorate, {3, 1, 0}), instruction(spv::OpDecorate, {4, 1, 1}),
          instruction(spv::OpDecorate, {3, 42}), instruction(20, {1}), instruction(21, {2, 32, 0}),
          instruction(50, {2, 3, 7}), instruction(48, {1, 4}),
          instruction(spv::OpConstant, {2, 5, 3}),
          instruction(spv::OpSpecConstantOp, {2, 6, 132, 3, 5}),
          instruction(spv::OpSpecConstantOp, {1, 7, 176, 6, 5}),
          instruction(spv::OpSpecConstantOp, {2, 8, 169, 4, 3, 5}),
          instruction(spv::OpConstant, {2, 11, 0}),
          instruction(spv::OpSpecConstantOp, {2, 9, 134, 3, 11}),
          instruction(spv::OpSpecConstantOp, {2, 10, 128, 9, 3})})
        words.insert(words.end(), i.begin(), i.end());
    const auto find = [](const std::vector<Instruction>& all, std::uint32_t id) {
        for (const Instruction& i : all)
            if (i.op != spv::OpDecorate && i.operands.size() >= 2 && i.operands[1] == id) return i;
        return Instruction{};
    };
    const auto given = instructions(specialized(words, {20, 0}));
    CHECK(find(given, 3).operands == std::vector<std::uint32_t>{2, 3, 20});
    CHECK(find(given, 4).op == 42);
    CHECK(find(given, 6).operands == std::vector<std::uint32_t>{2, 6, 60});
    CHECK(find(given, 7).op == 42);
    CHECK(find(given, 8).operands == std::vector<std::uint32_t>{2, 8, 3});
    CHECK(find(given, 9).op == spv::OpSpecConstantOp);
    CHECK(find(given, 10).op == spv::OpSpecConstantOp);
    CHECK(given.size() ==
          instructions(words).size() - 2);  // the two SpecIds are gone, the other decoration stays

    const auto defaults = instructions(specialized(words, {}));
    CHECK(find(defaults, 3).operands == std::vector<std::uint32_t>{2, 3, 7});
    CHECK(find(defaults, 4).op == spv::OpConstantTrue);
    CHECK(find(defaults, 6).operands == std::vector<std::uint32_t>{2, 6, 21});
    CHECK(find(defaults, 8).operands == std::vector<std::uint32_t>{2, 8, 7});
}

TEST_CASE("packed words unpack to the same words") {
    // There are 46 words: the header and two kinds of instructions. Opcode 61, of 4 words, occurs
    // twice; operand 3 counts from operand 2, the result. Opcode 300, of 33 words, occurs once and
    // has neither. Operands are differences: +1, +2, +128; then +4294967294, -1, -64.
    std::vector<std::uint64_t> numbers = {
        46, 3, 255, 65536, 4294967295u, 0, 2, 4u << 16 | 61, 2, 8, 33u << 16 | 300, 0, 0};
    numbers.insert(numbers.end(), {0, 2, 4, 256, 1, 14});
    numbers.insert(numbers.end(), 31, 18);
    numbers.insert(numbers.end(), {0, 8589934588u, 1, 127});
    std::vector<std::uint8_t> packed;  // octal digits, two to a byte; 8 is added if more follow
    bool low = true;
    for (std::uint64_t number : numbers) {
        do {
            const auto digit = std::uint8_t(number % 8 + (number >= 8 ? 8 : 0));
            if (low) packed.push_back(digit);
            if (!low) packed.back() = std::uint8_t(packed.back() | digit << 4);
            low = !low;
            number /= 8;
        } while (number != 0);
    }
    const auto words = unpack(packed.data(), packed.size());
    REQUIRE(words.status);
    std::vector<std::uint32_t> expected = {3, 255, 65536, 4294967295u,     0, 4u << 16 | 61,
                                           1, 2,   130,   33u << 16 | 300, 7};
    expected.insert(expected.end(), 31, 9);
    expected.insert(expected.end(), {4u << 16 | 61, 4294967295u, 1, 4294967233u});
    CHECK(std::vector<std::uint32_t>(words->words.get(), words->words.get() + words->count) ==
          expected);
}

TEST_CASE("branches that constants rule out are removed, with what only they reached") {
    // if (spec) a = 1; else a = 2;  in a module with one function that calls another in each branch
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 40, 0};
    const std::vector<std::vector<std::uint32_t>> all = {
        instruction(15, {5, 10, 0x6e69616d, 0}),  // entry point %10
        instruction(spv::OpDecorate, {31, 42}),
        instruction(spv::OpDecorate, {32, 42}),  // of the two results
        instruction(19, {1}),
        instruction(20, {2}),
        instruction(33, {3, 1}),
        instruction(21, {4, 32, 0}),
        instruction(41, {2, 5}),
        instruction(spv::OpConstant, {4, 6, 7}),
        instruction(32, {7, 6, 4}),
        instruction(spv::OpVariable, {7, 8, 6}),  // a variable for each branch
        instruction(spv::OpVariable, {7, 9, 6}),
        instruction(spv::OpFunction, {1, 10, 0, 3}),
        instruction(248, {11}),
        instruction(168, {2, 20, 5}),  // %20 = !true
        instruction(247, {14, 0}),
        instruction(250, {20, 12, 13}),  // if (%20)
        instruction(248, {12}),
        instruction(57, {1, 21, 15, 8}),
        instruction(249, {14}),
        instruction(248, {13}),
        instruction(57, {1, 22, 16, 9}),
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
    const auto left = instructions(specialized(words, {}));
    const auto count = [&](std::uint32_t op) {
        return std::count_if(left.begin(), left.end(),
                             [=](const Instruction& i) { return i.op == op; });
    };
    CHECK(count(54) == 2);   // the function of the other branch is removed
    CHECK(count(247) == 0);  // no selection is left
    CHECK(count(250) == 0);
    CHECK(count(57) == 1);
    CHECK(count(spv::OpDecorate) == 1);
    CHECK(count(spv::OpVariable) == 1);
    for (const Instruction& i : left) {
        if (i.op == 57) CHECK(i.operands[2] == 16);
        if (i.op == 245) CHECK(i.operands == std::vector<std::uint32_t>{4, 23, 6, 13});
        if (i.op == spv::OpDecorate) CHECK(i.operands[0] == 32);
        if (i.op == spv::OpVariable) CHECK(i.operands[1] == 9);
    }
}

TEST_CASE("a module may be specialised again: nothing is left of the time before") {
    const KernelKind& kind = kernel_kinds().front();
    std::vector<std::vector<std::uint32_t>> first;
    for (const bool again : {false, true}) {
        std::size_t i = 0;
        for (const KernelVariation& v : kernel_variations) {
            for (const std::uint32_t ops : {shader::ops_shared, shader::ops_none}) {
                const KernelWords kernel = kernel_module(kind, v, shader::conversion_native, true,
                                                         ops);
                if (!again) first.push_back(words_of(kernel));
                CHECK(words_of(kernel) == first[i++]);
                auto alone = Specializer::of(unpack(rope_module.bytes, rope_module.size));
                REQUIRE(alone.status);
                BindingList binds;
                const auto words = alone->specialize(&kernel.values.workgroup_size,
                                                     shader::constant_count, 0,
                                                     LoopControls::as_written, binds);
                REQUIRE(words.status);
                CHECK(words_of(words.value) == words_of(kernel));
                CHECK(binds == kernel.binds);
            }
        }
    }
}

TEST_CASE("a module that binds more descriptors than a list has is an error") {
    for (const std::uint32_t bindings : {BindingList::most, BindingList::most + 1}) {
        std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 100, 0};
        const auto add = [&](std::uint32_t op, std::vector<std::uint32_t> operands) {
            const auto i = instruction(op, std::move(operands));
            words.insert(words.end(), i.begin(), i.end());
        };
        add(spv::OpEntryPoint, {5, 10, 0x6e69616d, 0});
        for (std::uint32_t i = 0; i < bindings; ++i)
            add(spv::OpDecorate, {20 + i, spv::DecorationBinding, i});
        add(spv::OpTypeVoid, {1});
        add(spv::OpTypeFunction, {2, 1});
        add(spv::OpTypeInt, {3, 32, 0});
        add(spv::OpTypePointer, {4, spv::StorageClassStorageBuffer, 3});
        for (std::uint32_t i = 0; i < bindings; ++i)
            add(spv::OpVariable, {4, 20 + i, spv::StorageClassStorageBuffer});
        add(spv::OpFunction, {1, 10, 0, 2});
        add(spv::OpLabel, {11});
        for (std::uint32_t i = 0; i < bindings; ++i) add(spv::OpLoad, {3, 60 + i, 20 + i});
        add(spv::OpReturn, {});
        add(spv::OpFunctionEnd, {});
        auto module = specializer_of(words);
        REQUIRE(module.status);
        BindingList binds;
        const auto made = module->specialize(nullptr, 0, 0, LoopControls::as_written, binds);
        CHECK(binds.count() == BindingList::most);
        CHECK(made.status.code ==
              (bindings == BindingList::most ? VKROPE_SUCCESS : VKROPE_ERROR_LIMIT_EXCEEDED));
        if (made.status) CHECK(words_of(made.value) == words);
    }
}

TEST_CASE("loops stay rolled, except those with [[unroll]], or the driver decides") {
    const KernelVariation& of_processors = kernel_variations[1];
    const KernelWords written = kernel_module(kernel_kinds().front(), of_processors,
                                              shader::conversion_integer, true, shader::ops_owned);
    const auto before = instructions(words_of(written));
    for (const bool rolled : {false, true}) {
        const auto after = instructions(words_of(
            kernel_of(written.values, 0, rolled ? LoopControls::rolled : LoopControls::of_driver)));
        REQUIRE(before.size() == after.size());
        std::size_t marked = 0, loops = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            auto expected = before[i].operands;
            if (before[i].op == spv::OpLoopMerge) {
                constexpr std::uint32_t unroll = 1, dont_unroll = 2;
                const bool has_mark = expected[2] == unroll;
                expected[2] = !rolled ? 0 : has_mark ? unroll : dont_unroll;
                marked += has_mark;
                ++loops;
            }
            CHECK(after[i].operands == expected);
        }
        CHECK(marked > 0);
        CHECK(loops > marked);
    }
}

TEST_CASE("a list of bindings is sorted, has each binding once, and refuses more than fit") {
    BindingList list;
    for (const std::uint32_t number : {7u, 3u, 5u, 3u})
        CHECK(list.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}));
    CHECK(list.count() == 3);
    CHECK(std::is_sorted(list.begin(), list.end(),
                         [](const Binding& a, const Binding& b) { return a.number < b.number; }));
    CHECK(list.has(5));
    CHECK_FALSE(list.has(4));
    BindingList other;
    for (const std::uint32_t number : {3u, 5u})
        CHECK(other.add({number, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}));
    CHECK_FALSE(list == other);
    CHECK(other.add({7, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}));
    CHECK(list == other);
    for (std::uint32_t number = 100; number < 100 + BindingList::most - 3; ++number)
        CHECK(list.add({number, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER}));
    CHECK_FALSE(list.add({99, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}));
    CHECK(list.storage_buffers() == 3);
}

}  // namespace vkrope::test
