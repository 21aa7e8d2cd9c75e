// SPDX-License-Identifier: MIT
// Reads SPIR-V for the tests, which check what the library writes with the names of the Khronos
// header. They share only the layout of a word with the library (kernel/spirv/instruction.hpp).
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "kernel/spirv/instruction.hpp"

namespace vkrope::test {

using Words = std::span<const std::uint32_t>;

// Calls visit(opcode, operands) for each instruction. The operands are the words after the first.
// Throws if the last instruction does not end with the words.
template <class Visit>
void each_instruction(Words words, const Visit& visit) {
    std::size_t at = header_words;
    while (at < words.size()) {
        const std::size_t length = length_of(&words[at]);
        if (length == 0 || length > words.size() - at) break;
        visit(op_of(&words[at]), words.subspan(at + 1, length - 1));
        at += length;
    }
    if (at != words.size()) throw std::runtime_error("a SPIR-V module does not end where it says");
}

struct Instruction {
    spv::Op op = spv::OpNop;
    std::vector<std::uint32_t> operands;

    // Only for an instruction with a type and a result, both of which operand() skips.
    std::uint32_t type() const { return operands[0]; }
    std::uint32_t result() const { return operands[1]; }
    std::uint32_t operand(std::size_t index) const { return operands[index + 2]; }
};

inline std::vector<Instruction> instructions(Words words) {
    std::vector<Instruction> all;
    each_instruction(words, [&](spv::Op op, Words operands) {
        all.push_back({op, {operands.begin(), operands.end()}});
    });
    return all;
}

}  // namespace vkrope::test
