// SPDX-License-Identifier: MIT
// What a kernel makes of the module: it is valid, binds and reads what its constants ask for, and
// has no more modes and capabilities than were asked for.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "kernel_words.hpp"
#include "spirv_reader.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t op_extension = 10, op_entry_point = 15, op_execution_mode = 16,
                        op_capability = 17, op_type_float = 22, op_f_convert = 115,
                        capability_float16 = 9;

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
                expect(counts, shader::binding_out_of_range);
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

// Another invocation may be merging its half of the same word.
TEST_CASE("16-bit rows that share words with others are read and written by atomics alone") {
    constexpr std::uint32_t op_load = 61, op_store = 62, op_access_chain = 65, op_atomic_load = 227,
                            op_atomic_and = 240, op_atomic_or = 241, binding = 33;
    const std::set<std::uint32_t> rows = {shader::binding_q_in,  shader::binding_k_in,
                                          shader::binding_v_in,  shader::binding_q_out,
                                          shader::binding_k_out, shader::binding_v_out};
    for (const KernelKind& kind : kernel_kinds()) {
        for (KernelVariation v : kernel_variations) {
            if (v.access != shader::access_narrow) continue;
            for (const std::uint32_t element : {shader::element_f16, shader::element_bf16}) {
                for (const std::uint32_t ops : {shader::ops_none, shader::ops_shared}) {
                    CAPTURE(std::string(kind.name));
                    CAPTURE(element);
                    CAPTURE(ops);
                    v.element = element;
                    std::set<std::uint32_t>
                        of_rows;  // ids of these variables, and pointers to them
                    std::size_t plain = 0, loads = 0, merges = 0;
                    for (const Instruction& i : instructions(words_of(
                             kernel_module(kind, v, shader::conversion_integer, true, ops)))) {
                        const auto to_row = [&](std::size_t operand) {
                            return of_rows.count(i.operands[operand]) != 0;
                        };
                        if (i.op == op_decorate && i.operands[1] == binding &&
                            rows.count(i.operands[2]))
                            of_rows.insert(i.operands[0]);
                        if (i.op == op_access_chain && to_row(2)) of_rows.insert(i.operands[1]);
                        plain += (i.op == op_load && to_row(2)) || (i.op == op_store && to_row(0));
                        loads += i.op == op_atomic_load && to_row(2);
                        merges += (i.op == op_atomic_and || i.op == op_atomic_or) && to_row(2);
                    }
                    CHECK(plain == 0);
                    CHECK(loads > 0);
                    CHECK(merges > 0);
                }
            }
        }
    }
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
