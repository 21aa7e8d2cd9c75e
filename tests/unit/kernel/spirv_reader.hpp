// SPDX-License-Identifier: MIT
// Disassembles SPIR-V for the tests into a list of instructions.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace vkrope::test {

// SPIR-V 1.3, section 3.32. Specialisation constants are op_spec_first to op_spec_op.
inline constexpr std::uint32_t op_extension = 10, op_ext_inst = 12, op_entry_point = 15,
                               op_execution_mode = 16, op_capability = 17, op_type_float = 22,
                               op_type_vector = 23, op_type_array = 28, op_type_struct = 30,
                               op_type_pointer = 32, op_constant_true = 41, op_constant = 43,
                               op_spec_first = 48, op_spec_op = 52, op_function = 54,
                               op_function_call = 57, op_variable = 59, op_load = 61, op_store = 62,
                               op_access_chain = 65, op_decorate = 71, op_f_convert = 115,
                               op_i_add = 128, op_u_div = 134, op_s_div = 135, op_f_div = 136,
                               op_s_mod = 139, op_u_less_than = 176, op_control_barrier = 224,
                               op_atomic_load = 227, op_atomic_store = 228, op_atomic_and = 240,
                               op_atomic_or = 241, op_atomic_xor = 242, op_loop_merge = 246,
                               op_selection_merge = 247, op_branch_conditional = 250;
// Decorations and storage classes.
inline constexpr std::uint32_t spec_id = 1, decoration_binding = 33, no_contraction = 42,
                               storage_workgroup = 4, storage_private = 6, storage_function = 7,
                               storage_push_constant = 9;

struct Instruction {
    std::uint32_t op = 0;
    std::vector<std::uint32_t> operands;
};

inline std::vector<std::uint32_t> read_words(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::uint32_t> words;
    for (std::size_t i = 0; i + 3 < bytes.size(); i += 4) {
        std::uint32_t word = 0;
        for (std::size_t b = 0; b < 4; ++b)
            word |= std::uint32_t(std::uint8_t(bytes[i + b])) << (8 * b);
        words.push_back(word);
    }
    return words;
}

inline std::vector<Instruction> instructions(const std::vector<std::uint32_t>& words) {
    std::vector<Instruction> all;
    for (std::size_t at = 5; at < words.size() && (words[at] >> 16) != 0; at += words[at] >> 16) {
        all.push_back({words[at] & 0xffff,
                       {words.begin() + std::ptrdiff_t(at) + 1,
                        words.begin() + std::ptrdiff_t(at + (words[at] >> 16))}});
    }
    return all;
}

}  // namespace vkrope::test
