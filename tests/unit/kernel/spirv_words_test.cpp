// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "kernel_words.hpp"
#include "spirv_reader.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t op_constant = 43, op_constant_true = 41, op_spec_first = 48,
                        op_spec_op = 52, op_decorate = 71;
constexpr std::uint32_t op_extension = 10, op_entry_point = 15, op_execution_mode = 16,
                        op_capability = 17, op_type_float = 22, op_f_convert = 115,
                        capability_float16 = 9;

std::vector<std::uint32_t> specialized(const std::vector<std::uint32_t>& words,
                                       const std::vector<std::uint32_t>& values) {
    const auto result = specialize(words.data(), words.size(), values.data(),
                                   std::uint32_t(values.size()));
    REQUIRE(result.status);
    return {result->words.get(), result->words.get() + result->count};
}

std::string text_of(const std::vector<std::uint32_t>& words) {
    std::string text;
    for (const std::uint32_t word : words) {
        for (std::uint32_t shift = 0; shift < 32; shift += 8) text += char(word >> shift & 0xff);
    }
    return text.c_str();  // up to its end
}

// Without spirv-val only the size is checked.
bool is_valid(const std::vector<std::uint32_t>& words) {
#ifdef VKROPE_TEST_SPIRV_VAL
    const std::string file = VKROPE_TEST_SCRATCH "/kernel.spv";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), std::streamsize(words.size() * 4));
    // Environment variables, so that the shell does not interpret the paths.
    ::setenv("VKROPE_TEST_VALIDATOR", VKROPE_TEST_SPIRV_VAL, 1);
    ::setenv("VKROPE_TEST_FILE", file.c_str(), 1);
    return std::system("\"$VKROPE_TEST_VALIDATOR\" --target-env vulkan1.1 \"$VKROPE_TEST_FILE\"") ==
           0;
#else
    return words.size() > 5;
#endif
}

}  // namespace

TEST_CASE("constants get their values, operations on them are carried out, everything else stays") {
    // %1 = bool, %2 = uint; %3 = spec 0 (default 7), %4 = spec 1 (true), %5 = 3; %6 = %3 * %5; %7 =
    // %6 < %5; %8 = select %4 %3 %5; %9 = %3 / 0 (left alone); %10 = %9 + %3 (an operand is
    // unknown)
    const auto instruction = [](std::uint32_t op, std::vector<std::uint32_t> operands) {
        operands.insert(operands.begin(), std::uint32_t(operands.size() + 1) << 16 | op);
        return operands;
    };
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 12, 0};
    for (const auto& i :
         {instruction(op_decorate, {3, 1, 0}), instruction(op_decorate, {4, 1, 1}),
          instruction(op_decorate, {3, 42}), instruction(20, {1}), instruction(21, {2, 32, 0}),
          instruction(50, {2, 3, 7}), instruction(48, {1, 4}), instruction(op_constant, {2, 5, 3}),
          instruction(op_spec_op, {2, 6, 132, 3, 5}), instruction(op_spec_op, {1, 7, 176, 6, 5}),
          instruction(op_spec_op, {2, 8, 169, 4, 3, 5}), instruction(op_constant, {2, 11, 0}),
          instruction(op_spec_op, {2, 9, 134, 3, 11}),
          instruction(op_spec_op, {2, 10, 128, 9, 3})}) {
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
    CHECK(given.size() ==
          instructions(words).size() - 2);  // the two SpecIds are gone, the other decoration stays

    const auto defaults = instructions(specialized(words, {}));
    CHECK(find(defaults, 3).operands == std::vector<std::uint32_t>{2, 3, 7});
    CHECK(find(defaults, 4).op == op_constant_true);
    CHECK(find(defaults, 6).operands == std::vector<std::uint32_t>{2, 6, 21});
    CHECK(find(defaults, 8).operands == std::vector<std::uint32_t>{2, 8, 7});
}

TEST_CASE("packed words come back") {
    // The header; two kinds of instructions: opcode 61 of 4 words, twice, opcode 300 of 33, once.
    // Operands are differences: +1, +2, +128; then +4294967294, -1, -64.
    std::vector<std::uint8_t> packed = {3,    0xff, 1,    0x80, 0x80, 0x04, 0xff, 0xff, 0xff,
                                        0xff, 0x0f, 0,    2,    0xbd, 0x80, 0x10, 0xac, 0x82,
                                        0x84, 0x01, 0,    2,    4,    0x80, 0x02, 1,    14,
                                        0,    0xfc, 0xff, 0xff, 0xff, 0x1f, 1,    127};
    packed.insert(packed.begin() + 27, 31, 18);
    const auto words = unpack(packed.data(), packed.size());
    REQUIRE(words.status);
    std::vector<std::uint32_t> expected = {3, 255, 65536, 4294967295u,     0, 4u << 16 | 61,
                                           1, 2,   128,   33u << 16 | 300, 7};
    expected.insert(expected.end(), 31, 9);
    expected.insert(expected.end(), {4u << 16 | 61, 4294967295u, 1, 64});
    CHECK(std::vector<std::uint32_t>(words->words.get(), words->words.get() + words->count) ==
          expected);
}

TEST_CASE("branches that constants decide go, with what only they reached") {
    // if (spec) a = 1; else a = 2;  in a module with one function that calls another in each branch
    const auto instruction = [](std::uint32_t op, std::vector<std::uint32_t> operands) {
        operands.insert(operands.begin(), std::uint32_t(operands.size() + 1) << 16 | op);
        return operands;
    };
    std::vector<std::uint32_t> words = {0x07230203, 0x00010300, 0, 40, 0};
    const std::vector<std::vector<std::uint32_t>> all = {
        instruction(15, {5, 10, 0x6e69616d, 0}),  // entry point %10
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
        return std::count_if(left.begin(), left.end(),
                             [=](const Instruction& i) { return i.op == op; });
    };
    CHECK(count(54) == 2);   // the function of the other branch is removed
    CHECK(count(247) == 0);  // no selection is left
    CHECK(count(250) == 0);
    CHECK(count(57) == 1);
    CHECK(count(op_decorate) == 1);
    for (const Instruction& i : left) {
        if (i.op == 57) CHECK(i.operands[2] == 16);
        if (i.op == 245) CHECK(i.operands == std::vector<std::uint32_t>{4, 23, 6, 13});
        if (i.op == op_decorate) CHECK(i.operands[0] == 32);
    }
}

TEST_CASE(
    "what a kernel makes of the module is valid, has nothing left to specialise, and declares what "
    "it uses") {
    std::set<std::uint32_t> sizes;
    for (const KernelKind& kind : kernel_kinds()) {
        for (const std::uint32_t conversion : conversions) {
            CAPTURE(std::string(kind.name));
            CAPTURE(conversion);
            for (const KernelVariation& v : kernel_variations) {
                const auto words = words_of(kernel_module(kind, v, conversion));
                sizes.insert(std::uint32_t(words.size()));
                std::set<std::uint32_t> declared, named;  // variables of the module
                bool in_function = false;
                for (const Instruction& i : instructions(words)) {
                    CHECK_FALSE((i.op >= op_spec_first && i.op <= op_spec_op));
                    CHECK_FALSE((i.op == op_decorate && i.operands[1] == 1));
                    if (i.op == 54) in_function = true;
                    if (i.op == 59 && !in_function) declared.insert(i.operands[1]);
                    if (in_function && (i.op == 65 || i.op == 61))
                        named.insert(i.operands[2]);  // OpAccessChain, OpLoad
                    if (in_function && i.op == 62) named.insert(i.operands[0]);  // OpStore
                }
                CHECK(std::includes(named.begin(), named.end(), declared.begin(), declared.end()));
                CHECK(is_valid(words));
            }
        }
    }
    CHECK(sizes.size() > 4);
}

TEST_CASE("a kernel binds what its constants ask for") {
    for (const KernelKind& kind : kernel_kinds()) {
        for (const KernelVariation& v : kernel_variations) {
            for (const bool counts : {true, false}) {
                CAPTURE(std::string(kind.name));
                CAPTURE(v.access);
                CAPTURE(counts);
                BindingList list;
                REQUIRE(
                    add_bindings(kernel_module(kind, v, shader::conversion_integer, counts), list));
                std::map<std::uint32_t, VkDescriptorType> expected;
                const auto expect = [&](bool wanted, std::uint32_t number,
                                        VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) {
                    if (wanted) expected[number] = type;
                };
                const bool turns = kind.turns && kind.angles == shader::angles_computed;
                const bool textured = kind.turns && (kind.angles == shader::angles_texture ||
                                                     kind.angles == shader::angles_factored);
                expect(kind.turns, shader::binding_q_in);
                expect(kind.turns, shader::binding_q_out);
                expect(kind.has_k, shader::binding_k_in);
                expect(kind.has_k, shader::binding_k_out);
                expect(kind.has_v, shader::binding_v_in);
                expect(kind.has_v, shader::binding_v_out);
                expect(v.positions != shader::positions_implicit && (kind.turns || counts),
                       shader::binding_ids);
                expect(kind.has_k && v.scatter != 0, shader::binding_slot_mapping);
                expect(kind.turns && !turns && !textured, shader::binding_table);
                expect(kind.angles >= shader::angles_cos_sin_cache, shader::binding_table_sin);
                expect(counts, shader::binding_status);
                expect(turns, shader::binding_turns, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
                expect(textured, shader::binding_texture, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE);
                std::map<std::uint32_t, VkDescriptorType> found;
                for (const Binding& binding : list) found[binding.number] = binding.type;
                CHECK(found == expected);
                CHECK(list.storage_buffers() == expected.size() - turns - textured);
            }
        }
    }
}

// If a tensor is absent, not even its strides are read.
TEST_CASE("a kernel reads the strides of the tensors that it has") {
    constexpr std::uint32_t op_variable = 59, op_access_chain = 65, push_constant = 9, sides = 4;
    for (const KernelKind& kind : kernel_kinds()) {
        for (const KernelVariation& v : kernel_variations) {
            CAPTURE(std::string(kind.name));
            CAPTURE(v.access);
            std::map<std::uint32_t, std::uint32_t> constants;
            std::uint32_t push = 0;
            std::set<std::uint32_t>
                read;  // members of Push that are strides: Q's in and out, K's in and out
            for (const Instruction& i :
                 instructions(words_of(kernel_module(kind, v, shader::conversion_integer)))) {
                if (i.op == op_constant) constants[i.operands[1]] = i.operands[2];
                if (i.op == op_variable && i.operands[2] == push_constant) push = i.operands[1];
                if (i.op != op_access_chain || i.operands[2] != push) continue;
                REQUIRE(i.operands.size() > 4);
                REQUIRE(constants.count(i.operands[4]) == 1);
                if (constants[i.operands[4]] < sides) read.insert(constants[i.operands[4]]);
            }
            std::set<std::uint32_t> expected;
            if (kind.turns) expected = {0, 1};
            if (kind.has_k) expected.insert({2, 3});
            CHECK(read == expected);
        }
    }
}

TEST_CASE("a list of bindings is in order, has each once, and is full at its end") {
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

// A division by a number that is not a constant costs a GPU twenty instructions, and makes each
// lane compute the token that its workgroup shares.
TEST_CASE("no kernel divides by what is not a constant, but for the size of a page") {
    constexpr std::uint32_t op_u_div = 134, op_s_div = 135, op_u_mod = 137, op_s_mod = 139;
    for (const KernelKind& kind : kernel_kinds()) {
        for (const KernelVariation& v : kernel_variations) {
            const auto all = instructions(
                words_of(kernel_module(kind, v, shader::conversion_integer)));
            std::set<std::uint32_t> constants;
            std::size_t divisions = 0, open = 0;
            for (const Instruction& i : all) {
                if (i.op == op_constant) constants.insert(i.operands[1]);
                if (i.op < op_u_div || i.op > op_s_mod) continue;
                if (i.op != op_u_div && i.op != op_s_div && i.op != op_u_mod && i.op != 138 &&
                    i.op != op_s_mod)
                    continue;
                ++divisions;
                open += constants.count(i.operands[3]) == 0;
            }
            CAPTURE(std::string(kind.name));
            CAPTURE(v.access);
            CHECK(divisions > 0);
            CHECK(open ==
                  (kind.has_k && v.scatter != 0 ? 2u : 0u));  // the page of a slot, and its row
        }
    }
}

// The element type of a tensor is selected inside functions that Q and K share, so the pruner
// cannot see it: create() requests no conversion by the device if no tensor is f16.
TEST_CASE("16-bit floats stay where the device converts, and nowhere else") {
    for (const KernelKind& kind : kernel_kinds()) {
        for (const std::uint32_t conversion : conversions) {
            for (const KernelVariation& v : kernel_variations) {
                std::size_t capabilities = 0, types = 0, converted = 0;
                for (const Instruction& i :
                     instructions(words_of(kernel_module(kind, v, conversion)))) {
                    capabilities += i.op == op_capability && i.operands[0] == capability_float16;
                    types += i.op == op_type_float && i.operands[1] == 16;
                    converted += i.op == op_f_convert;
                }
                CAPTURE(std::string(kind.name));
                CAPTURE(conversion);
                const std::size_t needed = kind.turns && conversion != shader::conversion_integer;
                CHECK(capabilities == needed);
                CHECK(types == needed);
                CHECK((converted != 0) == (needed != 0));
            }
        }
    }
}

TEST_CASE(
    "the modes of a module are those that were asked for, each once, and nothing else changes") {
    struct Mode {
        std::uint32_t bit, capability, execution_mode, width;
    };
    // SPV_KHR_float_controls: RoundingModeRTE, DenormPreserve, SignedZeroInfNanPreserve.
    const Mode modes[] = {
        {round_to_even_16, 4467, 4462, 16},     {round_to_even_32, 4467, 4462, 32},
        {denorm_preserve_16, 4464, 4459, 16},   {denorm_preserve_32, 4464, 4459, 32},
        {keep_zero_inf_nan_16, 4466, 4461, 16}, {keep_zero_inf_nan_32, 4466, 4461, 32}};
    const Spirv native = kernel_module(kernel_kinds()[0], kernel_variations[0],
                                       shader::conversion_native);
    const Spirv integer = kernel_module(kernel_kinds()[0], kernel_variations[1],
                                        shader::conversion_integer);
    for (const Spirv* module : {&native, &integer}) {
        const auto before = instructions(words_of(*module));
        for (std::uint32_t asked = 0; asked < 64; ++asked) {
            CAPTURE(asked);
            const auto made = with_modes(*module, asked);
            REQUIRE(made.status);
            const auto words = words_of(made.value);
            std::multiset<std::uint32_t> capabilities, expected_capabilities;
            std::multiset<std::vector<std::uint32_t>> declared, expected;
            std::size_t extensions = 0;
            std::uint32_t entry_point = 0;
            auto rest = instructions(words);
            std::erase_if(rest, [&](const Instruction& i) {
                if (i.op == op_entry_point) entry_point = i.operands[1];
                const bool capability = i.op == op_capability && i.operands[0] >= 4464 &&
                                        i.operands[0] <= 4468;
                const bool mode = i.op == op_execution_mode && i.operands[1] >= 4459 &&
                                  i.operands[1] <= 4463;
                const bool extension = i.op == op_extension &&
                                       text_of(i.operands) == "SPV_KHR_float_controls";
                if (capability) capabilities.insert(i.operands[0]);
                if (mode) declared.insert(i.operands);
                extensions += extension;
                return capability || mode || extension;
            });
            for (const Mode& mode : modes) {
                if (!(asked & mode.bit)) continue;
                expected.insert({entry_point, mode.execution_mode, mode.width});
                expected_capabilities.insert(mode.capability);
            }
            CHECK(declared == expected);
            CHECK(std::set(capabilities.begin(), capabilities.end()) ==
                  std::set(expected_capabilities.begin(), expected_capabilities.end()));
            CHECK(extensions == (asked != 0));
            CHECK(std::equal(rest.begin(), rest.end(), before.begin(), before.end(),
                             [](const Instruction& a, const Instruction& b) {
                                 return a.op == b.op && a.operands == b.operands;
                             }));
            CHECK(is_valid(words));
        }
    }
}

}  // namespace vkrope::test
