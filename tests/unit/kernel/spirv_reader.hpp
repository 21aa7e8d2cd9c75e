// SPDX-License-Identifier: MIT
// A minimal SPIR-V disassembler for the tests: a list of instructions.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace vkrope::test {

// SPIR-V 1.3, section 3.32. Specialisation constants are op_spec_first to op_spec_op.
inline constexpr std::uint32_t op_constant_true = 41, op_constant = 43, op_spec_first = 48,
                               op_spec_op = 52, op_decorate = 71;

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
